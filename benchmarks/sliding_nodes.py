"""The paper's cluster of sliding windows on Spark, as it is printed: a split, query nodes, and for panes a ring.

The split is one task, the nodes are the tasks behind an exchange, and the results come to the driver. Unlike
`sk.windowed(...).apply`, which sends a row once to each worker that needs it, the split here copies a row for every
window, or batch of windows, that has it, as the paper says. Nodes compute count, min, max and mean of Linear Road's
speeds, and then wait as long as the paper's own nodes took, times `SLOWER`: two cores cannot hold four busy nodes, but
four that wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from experiments.sliding.measured import SLOWER
from experiments.sliding.model import ONE, PAPER, PAPER_MERGE
from experiments.sliding.partition import ByBatch, ByPane, Partitioner
from skewless.chop.assignment import BatchAssignment
from skewless.chop.ring import PaneRing
from skewless.core.arrays import Int64Array
from skewless.spark.staging import owners_of

COPIES = "owner int, partition long, number long, speed double"
ANSWERS = "owner int, pane long, n long, least double, most double, total double"
RESULT = "window long, n long, least double, most double, mean double"
BLOCK = 1 << 16  # copies at a time


class Debt:
    """Seconds that are owed as a wait; short ones are put together, as a sleep takes longer than is asked for."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def owe(self, seconds: float, least: float = 0.01) -> None:
        """Owe more, and wait if it is worth it."""
        self.seconds += seconds
        if self.seconds > least:
            start = time.perf_counter()
            time.sleep(self.seconds)
            self.seconds -= time.perf_counter() - start


@dataclass(frozen=True)
class Split:
    """The split stage: every row to the nodes of its partitions, a copy for each partition.

    Parameters
    ----------
    partitioner
        By window, by batch or by pane.
    nodes
        Query nodes. One node needs no copies: it gets each row once, and has all windows.
    owners
        The value that Spark shuffles to each node.
    clock
        A file for the seconds of a processor that the split took in Python.
    """

    partitioner: Partitioner
    nodes: int
    owners: tuple[int, ...]
    clock: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Owner, partition, number and speed of each copy."""
        start, owners = time.process_time(), np.array(self.owners, np.int32)
        for batch in batches:
            numbers, speeds = (np.asarray(column) for column in batch.columns)
            for rows, partitions in self._blocks(numbers):
                columns = owners[self._node_of(partitions)], partitions, numbers[rows], speeds[rows]
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], _names(COPIES))
        Path(self.clock).write_text(str(time.process_time() - start))

    def _blocks(self, numbers: Int64Array) -> Iterator[tuple[Int64Array, Int64Array]]:
        if self.nodes > 1 or isinstance(self.partitioner, ByPane):
            yield from self.partitioner.blocks(numbers, BLOCK)
        else:
            yield np.arange(len(numbers)), np.zeros(len(numbers), np.int64)

    def _node_of(self, partitions: Int64Array) -> Any:
        if isinstance(self.partitioner, ByPane):
            return ring_of(self.partitioner, self.nodes).owner_of_pane(partitions)
        return self.partitioner.worker_of(partitions, self.nodes)


@dataclass(frozen=True)
class Aggregate:
    """A query node that has whole windows: it reads every copy, and updates all windows of its partition with it."""

    partitioner: Partitioner
    nodes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The statistics of every window."""
        debt, rows = Debt(), _rows(batches)
        order = np.lexsort((rows["number"], rows["partition"]))
        partitions, numbers, speeds = (rows[name][order] for name in ("partition", "number", "speed"))
        there, starts = np.unique(partitions, return_index=True)
        stops = np.append(starts, len(order))[1:]
        found: list[tuple[float, ...]] = []
        for partition, start, stop in zip(there.tolist(), starts, stops, strict=True):
            some, windows = numbers[start:stop], self._windows(partition, numbers[start:stop])
            debt.owe(SLOWER * PAPER.other * len(some))
            lows, highs = (
                start + np.searchsorted(some, [self.partitioner.windows.span(window)[edge] for window in windows])
                for edge in (0, 1)
            )
            for window, low, high in zip(windows, lows, highs, strict=True):
                if low < high:
                    found.append((window, *statistics(speeds[low:high])))
                    debt.owe(SLOWER * PAPER.update * (high - low))
        debt.owe(0.0, least=0.0)
        yield _table(found, RESULT)

    def _windows(self, partition: int, numbers: Int64Array) -> range:
        if self.nodes > 1:
            return self.partitioner.windows_of(partition)
        windows = self.partitioner.windows
        return range(int(windows.first(numbers[:1])[0]), int(windows.last(numbers[-1:])[0]) + 1)


@dataclass(frozen=True)
class Panes:
    """A node of the ring that has panes: it reads every row once, and sends answers to itself and to the next node."""

    partitioner: ByPane
    nodes: int
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The answer for each pane, to each node that needs it."""
        debt, rows = Debt(), _rows(batches)
        order = np.argsort(rows["partition"], kind="stable")
        panes, speeds = rows["partition"][order], rows["speed"][order]
        there, starts = np.unique(panes, return_index=True)
        stops = np.append(starts, len(order))[1:]
        found = []
        for pane, start, stop in zip(there.tolist(), starts, stops, strict=True):
            n, least, most, mean = statistics(speeds[start:stop])
            found.append((pane, n, least, most, mean * n))
            debt.owe(SLOWER * ONE * n)
        debt.owe(0.0, least=0.0)
        ring, windows = ring_of(self.partitioner, self.nodes), self.partitioner.windows
        which, nodes = BatchAssignment.of(windows, self.nodes, ring.run).copies(
            np.zeros(len(there), np.int64), there * windows.pane
        )
        yield _table([(self.owners[node], *found[i]) for i, node in zip(which, nodes, strict=True)], ANSWERS)


@dataclass(frozen=True)
class Merge:
    """A node of the ring that has windows: it merges the answers for their panes."""

    partitioner: ByPane
    node_of: dict[int, int]
    nodes: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The statistics of every window."""
        debt, rows = Debt(), _rows(batches)
        windows, ring = self.partitioner.windows, ring_of(self.partitioner, self.nodes)
        order = np.argsort(rows["pane"], kind="stable")
        panes, n, least, most, total = (rows[name][order] for name in ("pane", "n", "least", "most", "total"))
        node = self.node_of[int(rows["owner"][0])] if len(order) else 0
        first = int(windows.first(panes[:1] * windows.pane)[0]) if len(order) else 0
        last = int(windows.last(panes[-1:] * windows.pane)[0]) if len(order) else -1
        found: list[tuple[float, ...]] = []
        for window in range(first, last + 1):
            if window // ring.run % self.nodes != node:
                continue
            span = windows.panes_of(window)
            low, high = np.searchsorted(panes, [span.start, span.stop])
            if low < high:
                count = int(n[low:high].sum())
                mean = float(total[low:high].sum()) / count
                found.append((window, count, float(least[low:high].min()), float(most[low:high].max()), mean))
                debt.owe(SLOWER * PAPER_MERGE * (high - low))
        debt.owe(0.0, least=0.0)
        yield _table(found, RESULT)


def query(rows: DataFrame, partitioner: Partitioner, nodes: int, clock: Path) -> DataFrame:
    """The statistics of all windows of rows of number and speed; a session has as many shuffle partitions as nodes."""
    owners = owners_of(rows)
    assert len(owners) == nodes
    copies = rows.coalesce(1).mapInArrow(Split(partitioner, nodes, owners, str(clock)), COPIES)
    copies = copies.repartition(nodes, "owner")
    if not isinstance(partitioner, ByPane):
        return copies.mapInArrow(Aggregate(partitioner, nodes), RESULT)
    answers = copies.mapInArrow(Panes(partitioner, nodes, owners), ANSWERS).repartition(nodes, "owner")
    return answers.mapInArrow(Merge(partitioner, {owner: i for i, owner in enumerate(owners)}, nodes), RESULT)


def row_cost(partitioner: Partitioner, nodes: int) -> float:
    """Seconds that all nodes together are to wait for a row."""
    if isinstance(partitioner, ByPane):
        merged = partitioner.windows.size / partitioner.windows.pane
        return SLOWER * (ONE + merged * PAPER_MERGE / partitioner.windows.slide)
    copies = partitioner.replication if nodes > 1 else 1.0
    return SLOWER * (copies * PAPER.other + partitioner.windows.size / partitioner.windows.slide * PAPER.update)


def ring_of(partitioner: Partitioner, nodes: int) -> PaneRing:
    """The ring of the nodes."""
    return PaneRing(partitioner.windows.size, partitioner.windows.slide, nodes)


def partitioner_of(way: str, ratio: int, slide: int = 1) -> Partitioner:
    """By pane, by window, or by batches of some windows.

    >>> partitioner_of("batch 10", ratio=100).replication
    10.9
    """
    size = ratio * slide
    return ByPane(size, slide) if way == "pane" else ByBatch(size, slide, 1 if way == "window" else int(way.split()[1]))


def statistics(speeds: Any) -> tuple[int, float, float, float]:
    """Count, min, max and mean."""
    return len(speeds), float(speeds.min()), float(speeds.max()), float(speeds.mean())


def _rows(batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
    parts = list(batches)
    if not parts:
        names = _names(f"{COPIES}, {ANSWERS}")
        return {name: np.zeros(0, np.int64) for name in names}
    table = pa.Table.from_batches(parts)
    return {name: table[name].to_numpy() for name in table.column_names}


def _table(found: list[tuple[float, ...]], schema: str) -> pa.RecordBatch:
    kinds = {"int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
    fields = [(name, kinds[kind]) for name, kind in (field.split() for field in schema.split(", "))]
    columns = list(zip(*found, strict=True)) if found else [()] * len(fields)
    arrays = [pa.array(column, type=kind) for column, (_name, kind) in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _names(schema: str) -> list[str]:
    return [field.split()[0] for field in schema.split(", ")]
