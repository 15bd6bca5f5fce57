"""Windows and panes of so many rows, of each key or of all rows, against rows counted one by one, with crashes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import SkewlessError
from skewless.chop.assignment import Assignment, BatchAssignment, KeyAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.core import blob
from skewless.core.store import MemoryStore, Store
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.operators.send import Sender, received
from skewless.operators.windows.counted import CountedPanes, CountedWorker, Numberer
from skewless.operators.windows.counting import RangeNumberer, Ranges
from skewless.operators.windows.function import MergeCall, PaneCall, WindowCall
from skewless.operators.windows.spread import copies
from skewless.operators.windows.worker import Columns, Task
from skewless.operators.worker import Worker
from support.campaign import campaign

ROWS = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ANSWER = pa.schema([("values", pa.list_(pa.int64()))])
KINDS = (pa.int64(),) * 4
Row = tuple[int, int, int]
"""Time, key and value."""
Stage = tuple[Callable[[Turn, Store], Worker], Assignment | None, int]
"""Makes the workers; who gets what they give, if it is not the result; and what its numbers are multiplied by."""


def values(key: tuple[int, ...], window: Any, rows: Any) -> tuple[list[int]]:
    return (rows["value"].tolist(),)


def of_pane(key: tuple[int, ...], pane: Any, rows: Any) -> list[int]:
    assert len(rows) == pane.end - pane.start
    return list(rows["value"])


def of_window(key: tuple[int, ...], window: Any, panes: list[list[int]]) -> tuple[list[int]]:
    found = [value for pane in panes for value in pane]
    assert len(found) == window.end - window.start
    return (found,)


@dataclass
class Counting:
    """A query of windows of rows on workers with stores of their own, without Spark."""

    windows: Windows
    workers: int
    batch: int
    keyed: bool
    paned: bool
    stages: list[Stage] = field(init=False)
    stores: list[list[MemoryStore]] = field(init=False)

    def __post_init__(self) -> None:
        keys = (0,) if self.keyed else ()
        ring, columns = PaneRing(self.windows.size, self.windows.slide, self.workers), Columns(keys, (0, 1))
        if self.paned:
            panes, deal = PaneAssignment(ring), BatchAssignment.of(self.windows, self.workers, ring.run)
            task = Task(columns, self.windows.panes, PaneCall(of_pane, ROWS))
            merge = Task(Columns(keys, (len(keys),)), self.windows, MergeCall(of_window, ANSWER), newest=True)
            then: list[Stage] = [
                (partial(CountedPanes, task, panes), deal, ring.pane),
                (partial(CountedWorker, merge, deal, step=ring.pane), None, 1),
            ]
            first: Assignment = panes
        else:
            first = BatchAssignment.of(self.windows, self.workers, self.batch)
            task = Task(columns, self.windows, WindowCall(values, ROWS, ANSWER))
            then = [(partial(CountedWorker, task, first), None, 1)]
        number: Stage = (partial(Numberer, task) if self.keyed else partial(RangeNumberer, ""), first, 1)
        self.stages = [number, *then]
        self.stores = [[MemoryStore() for _ in range(self.workers)] for _stage in self.stages]

    def sent(self, rows: list[Row], cuts: list[int]) -> list[dict[str, Any]]:
        """Lines of tasks: as rows come, or, where all rows are counted, with a range of time each."""
        lines: list[pa.RecordBatch] = []
        edges = [-(10**9), *sorted(cuts)[: self.workers - 1], 10**9]
        for task in range(len(edges) - 1):
            sender, loads = Sender(range(self.workers), task), np.zeros(self.workers, np.int64)
            some = [row for row in rows if edges[task] <= row[0] < edges[task + 1]]
            if some and self.keyed:
                lines += [copies(table(some, keyed=True), KeyAssignment(self.workers), sender, loads)]
            elif some:
                parts = [table(part, keyed=False) for part in (some[:3], some[3:]) if part]
                lines += Ranges(KINDS).send(parts, sender, Turn(task))
        return [line for each in lines for line in each.to_pylist()]

    def run(self, rows: list[Row], cuts: list[int], crash: int | None = None) -> list[tuple[int, int, tuple[int, ...]]]:
        """The windows of a micro-batch; all stages die once so many workers were done, as Spark's tasks might."""
        lines, done, out = self.sent(rows, cuts), 0, []
        for stage, (make, then, unit) in enumerate(self.stages):
            gave: list[dict[str, Any]] = []
            for worker in range(self.workers):
                if done == crash:
                    return []
                done += 1
                tables = received((line["part"], line["rows"]) for line in lines if line["owner"] == worker)
                answers = list(make(Turn(worker), self.stores[stage][worker]).run(None, tables, None))
                if then is None:
                    out += [row for answer in answers for row in self.found(answer)]
                    continue
                sender, loads = Sender(range(self.workers), worker), np.zeros(self.workers, np.int64)
                for answer in answers:
                    numbers = pa.array(np.asarray(answer.column(1)) * unit)
                    moved = answer.set_column(1, answer.schema.field(1), numbers)
                    gave += copies(moved, then, sender, loads).to_pylist()
            lines = gave
        return out

    def found(self, answer: pa.RecordBatch) -> Iterable[tuple[int, int, tuple[int, ...]]]:
        starts, *keys, lists = (column.to_pylist() for column in answer.columns)
        for start, key, some in zip(starts, keys[0] if keys else [0] * len(starts), lists, strict=True):
            yield start, key, tuple(some)

    def snapshot(self) -> list[list[dict[str, bytes]]]:
        return [[dict(store.blobs) for store in stores] for stores in self.stores]

    def restore(self, kept: list[list[dict[str, bytes]]]) -> None:
        for stores, blobs in zip(self.stores, kept, strict=True):
            for store, each in zip(stores, blobs, strict=True):
                store.blobs = dict(each)


def table(rows: list[Row], *, keyed: bool) -> pa.RecordBatch:
    times, keys, numbers = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    hashes = keys * 7 if keyed else numbers * 12_345_678_910 % 1_000_003  # of the whole row
    return pa.RecordBatch.from_arrays([pa.array(each) for each in (hashes, times, keys, numbers)], ["0", "1", "2", "3"])


def wanted(stream: list[list[Row]], windows: Windows, *, keyed: bool) -> list[tuple[int, int, tuple[int, ...]]]:
    """Rows counted one by one; those of one time, where all rows are counted, by their hashes."""
    seen: dict[int, list[int]] = defaultdict(list)
    for rows in stream:
        ties = {row[2]: 0 if keyed else row[2] * 12_345_678_910 % 1_000_003 for row in rows}
        for _time, key, value in sorted(rows, key=lambda row: (row[0], ties[row[2]])):
            seen[key if keyed else 0].append(value)
    return sorted(
        (start, key, tuple(some[start : start + windows.size]))
        for key, some in seen.items()
        for start in range(0, len(some) - windows.size + 1, windows.slide)
    )


@campaign(50)
@given(
    st.lists(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 2)), max_size=14), min_size=1, max_size=6),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_windows_of_rows_are_those_of_rows_counted_one_by_one_whatever_crashes(
    micro_batches: list[list[tuple[int, int]]],
    lengths: tuple[int, int],
    workers: int,
    batch: int,
    keyed: bool,
    paned: bool,
    data: st.DataObject,
) -> None:
    windows = Windows(max(lengths), min(lengths), rows=True)
    query, number, stream, got = Counting(windows, workers, batch, keyed, paned), 0, [], []
    for times in micro_batches:
        rows = [(time, key, number + i) for i, (time, key) in enumerate(times)]
        number += len(rows)
        stream.append(rows)
        for _ in range(data.draw(st.integers(0, 1))):
            kept = query.snapshot()
            cuts = data.draw(st.lists(st.integers(-20, 20), max_size=3))  # Spark may choose other ranges
            query.run(rows, cuts, crash=data.draw(st.integers(0, 3 * workers)))
            query.restore(kept)
        # A range has all rows of a time, however they come; a task without ranges has them in their order.
        shuffled = rows if keyed else data.draw(st.permutations(rows))
        got += query.run(shuffled, [] if keyed else data.draw(st.lists(st.integers(-20, 20), max_size=3)))
    assert sorted(got) == wanted(stream, windows, keyed=keyed)


def test_a_pane_keeps_its_rows_only_until_it_is_over() -> None:
    query = Counting(Windows(100, 10, rows=True), workers=1, batch=1, keyed=True, paned=True)
    query.run([(i, 1, i) for i in range(1005)], [])
    assert held(query.stores[1][0]) == 5  # of the pane that has begun
    assert held(query.stores[2][0]) == 9  # answers of panes of windows that are not over


def held(store: MemoryStore) -> int:
    return sum(blob.load(data).num_rows for name, data in store.blobs.items() if name != "state")


def test_no_worker_is_sent_all_rows_where_all_are_counted() -> None:
    query = Counting(Windows(10, 5, rows=True), workers=4, batch=1, keyed=False, paned=True)
    lines = query.sent([(i, 1, i) for i in range(400)], [100, 200, 300])
    for worker in range(4):
        tables = received((line["part"], line["rows"]) for line in lines if line["owner"] == worker)
        rows = [each.num_rows for each in tables if each.num_columns > 2]
        counts = [(each.column(0)[0].as_py(), each.column(1)[0].as_py()) for each in tables if each.num_columns == 2]
        assert rows == [100]
        assert counts == [(task, 100) for task in range(4)]


def test_more_ranges_than_workers_are_refused() -> None:
    sending = Ranges(KINDS).send([table([(1, 1, 1)], keyed=False)], Sender(range(2), 2), Turn(2))
    with pytest.raises(SkewlessError, match="range 2 of time has no worker, there are 2"):
        list(sending)
