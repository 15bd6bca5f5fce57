"""Windows of random streams: rows for workers, a function that says what it saw, and windows put together by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.control.batch_sizes import BatchSizes
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL, Windows
from skewless.operators.windows.adaptive import AdaptiveWorker
from skewless.operators.windows.worker import Columns, Task

ROWS = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ANSWER = pa.schema([("n", pa.int64()), ("values", pa.list_(pa.int64()))])
COLUMNS = Columns((0,), (0, 1))
Stream = list[tuple[list[tuple[int, int, int]], int]]
"""Micro-batches of rows (time, key, value), each with the watermark by which it runs."""


def whole(key: tuple[int], window: Any, frame: Any) -> tuple[int, list[int]]:
    """How many rows, and which, in order of time."""
    return len(frame), frame["value"].tolist()


def table(batch: list[tuple[int, int, int]]) -> pa.RecordBatch:
    times, keys, values = (np.array(column, np.int64) for column in zip(*batch, strict=True))
    names = ["0", "1", "2", "3"]
    return pa.RecordBatch.from_arrays([pa.array(keys * 7), pa.array(times), pa.array(keys), pa.array(values)], names)


def found(windows: Windows, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Window, key, how many, which."""
    for batch in batches:
        start, key, n, values = (column.to_pylist() for column in batch.columns)
        for at, k, c, v in zip(start, key, n, values, strict=True):
            assert at % windows.slide == 0
            yield at // windows.slide, k, c, tuple(v)


def expected(stream: Stream, windows: Windows) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Each window with the rows that came before the watermark had passed it."""
    held: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    gave, over = [], BEFORE_ALL
    for batch, watermark in stream:
        for time, key, value in batch:
            window = np.array([time])
            for k in range(max(over, int(windows.first(window)[0])), int(windows.last(window)[0]) + 1):
                held[k, key].append((time, value))
        over = max(over, windows.open_at(watermark))
        for k, key in sorted(held):
            if k < over:
                some = sorted(held.pop((k, key)), key=lambda row: row[0])
                gave.append((k, key, len(some), tuple(value for _time, value in some)))
    return sorted(gave)


def adaptive(
    task: Task,
    folder: BatchSizes,
    turn: Turn,
    store: MemoryStore,
    code: int | None,
    tables: list[pa.RecordBatch],
    watermark: int | None,
) -> list[pa.RecordBatch]:
    return list(AdaptiveWorker(task, folder, turn, store).run(code, tables, watermark))
