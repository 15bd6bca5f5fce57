"""How fast one core deals rows to partitions, over Linear Road reports, a thousand a second."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from experiments.figure import Tell
from experiments.sliding.partition import ByBatch, ByPane, ByWindow, Partitioner
from skewless.core.arrays import Int32Array, Int64Array
from skewless.workload.linear_road import LinearRoad, Reports

T = TypeVar("T", bound=Hashable)

ROAD = LinearRoad(expressways=3, vehicles=30_000)
SECOND = 1_000_000
WORKERS = 16
COPIES = 4_000_000  # that a measurement makes; many short ones find a quiet moment
BLOCK = 1 << 16  # of them at a time: they stay in the cache


def partitioners(ratio: int, batches: tuple[int, ...]) -> dict[str, Partitioner]:
    """By window, by batch and by pane, for windows that are `ratio` times their slide of a second."""
    size = ratio * SECOND
    by_batch = {f"batch {batch}": ByBatch(size, SECOND, batch) for batch in batches}
    return {"window": ByWindow(size, SECOND), **by_batch, "pane": ByPane(size, SECOND)}


def speeds(reports: Reports, shapes: Mapping[T, Partitioner], repeats: int, tell: Tell) -> dict[T, float]:
    """Rows a second of each partitioner: the best of several measurements in turn."""
    times = reports.time * SECOND
    best = dict.fromkeys(shapes, np.inf)
    for repeat in range(repeats):
        tell(f"dealing rows, {repeat + 1} of {repeats}")
        for name, partitioner in shapes.items():
            rows = min(len(times), max(4000, int(COPIES / partitioner.replication)))
            start = time.thread_time()
            _split(partitioner, times[:rows], reports.vehicle, reports.position)
            best[name] = min(best[name], (time.thread_time() - start) / rows)
    return {name: 1 / seconds for name, seconds in best.items()}


def _split(partitioner: Partitioner, times: Int64Array, *columns: Int32Array | Int64Array) -> None:
    """Partition and worker of every copy, and the columns copied."""
    for rows, partitions in partitioner.blocks(times, BLOCK):
        partitioner.worker_of(partitions, WORKERS)
        for column in columns:
            column.take(rows)
