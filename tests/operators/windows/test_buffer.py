"""Rows that wait, against a list of them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.store import MemoryStore
from skewless.operators.windows.buffer import MOST_PARTS, Buffer

Rows = list[tuple[int, int]]
"""A time and a number each."""
PARTS = st.lists(st.lists(st.integers(-50, 150), min_size=1, max_size=15), max_size=40)


def numbered(parts: list[list[int]]) -> list[Rows]:
    numbers = iter(range(10_000))
    return [[(time, next(numbers)) for time in part] for part in parts]


def add(buffer: Buffer, rows: Rows) -> None:
    times, numbers = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    buffer.add(pa.RecordBatch.from_arrays([pa.array(times), pa.array(numbers)], ["0", "1"]), times)


def held(buffer: Buffer, start: int, stop: int) -> Rows:
    parts = buffer.read(start, stop)
    return [
        (time, number) for part in parts for time, number in zip(*(c.to_pylist() for c in part.columns), strict=True)
    ]


def again(buffer: Buffer, store: MemoryStore, stretch: int) -> Buffer:
    """The buffer as it is when the store is read in the next micro-batch."""
    return Buffer(store, stretch, json.loads(json.dumps(buffer.notes())))


@given(PARTS, st.integers(1, 60), st.integers(-60, 160), st.integers(0, 100))
def test_rows_are_kept_by_stretches_of_time_and_in_the_order_they_came(
    parts: list[list[int]], stretch: int, start: int, length: int
) -> None:
    store = MemoryStore()
    buffer = Buffer(store, stretch)
    for part in numbered(parts):
        buffer = again(buffer, store, stretch)
        add(buffer, part)
    rows = [row for part in numbered(parts) for row in part]
    assert buffer.rows == len(rows)
    assert buffer.least == min((time for time, _number in rows), default=None)
    in_order = sorted(rows, key=lambda row: row[0] // stretch)
    assert held(buffer, -1000, 1000) == in_order
    stop = start + length
    some = [row for row in in_order if row[0] // stretch * stretch < stop and (row[0] // stretch + 1) * stretch > start]
    assert held(buffer, start, stop) == some
    assert {row for row in rows if start <= row[0] < stop} <= set(some)


@given(PARTS, st.integers(1, 60), st.integers(-60, 220))
def test_what_no_window_needs_is_forgotten(parts: list[list[int]], stretch: int, before: int) -> None:
    store = MemoryStore()
    buffer = Buffer(store, stretch)
    for part in numbered(parts):
        add(buffer, part)
    buffer.forget(before)
    buffer = again(buffer, store, stretch)
    rows = [row for part in numbered(parts) for row in part if (row[0] // stretch + 1) * stretch > before]
    assert sorted(held(buffer, -1000, 1000)) == sorted(rows)
    assert buffer.rows == len(rows)
    assert buffer.least == min((time for time, _number in rows), default=None)
    buffer.forget(1000)
    assert (buffer.rows, buffer.least, buffer.notes(), store.blobs) == (0, None, {}, {})


@given(st.lists(st.integers(1, 200), max_size=150))
def test_parts_of_a_stretch_stay_few(sizes: list[int]) -> None:
    store = MemoryStore()
    buffer = Buffer(store, 1000)
    for part in numbered([[0] * size for size in sizes]):
        add(buffer, part)
        assert len(store.blobs) <= MOST_PARTS + max(1, buffer.rows).bit_length()
    assert held(buffer, 0, 1) == [(0, number) for number in range(sum(sizes))]


def test_parts_that_become_ever_smaller_stay_few() -> None:
    store = MemoryStore()
    buffer = Buffer(store, 1000)
    for part in numbered([[0] * size for size in range(60, 0, -1)]):
        add(buffer, part)
    assert buffer.rows == 60 * 61 // 2
    assert len(store.blobs) <= MOST_PARTS + 11  # as often as the rows can be halved


def test_a_row_is_written_few_times() -> None:
    written = 0

    class Counting(MemoryStore):
        def put(self, name: str, data: bytes) -> None:
            nonlocal written
            written += len(data)
            super().put(name, data)

    store = Counting()
    buffer = Buffer(store, 10_000)
    for part in numbered([[i] * 10 for i in range(1000)]):
        add(buffer, part)
    assert buffer.rows == 10_000
    assert written < 12 * (160_000 + 1000 * 400)  # the rows, and what a blob has beside them
