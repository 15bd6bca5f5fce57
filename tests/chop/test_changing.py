from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import ByBatch, ChangingBatches
from skewless.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda pair: (max(pair), min(pair)))
STEPS = st.lists(st.tuples(st.integers(1, 25), st.integers(1, 6)), min_size=1, max_size=6)


@given(SHAPES, st.integers(1, 6), STEPS, st.booleans())
def test_every_window_has_all_its_rows_in_one_batch(
    shape: tuple[int, int], batch: int, steps: list[tuple[int, int]], rows: bool
) -> None:
    batches = ChangingBatches(*shape, batch, rows=rows)
    held: dict[int, set[int]] = {}
    at = 0
    for count, size in steps:
        copied, partitions = batches.assign(np.arange(at, at + count))
        for row, partition in zip(copied.tolist(), partitions.tolist(), strict=True):
            assert at + row not in held.get(partition, set())
            held.setdefault(partition, set()).add(at + row)
        at += count
        batches.change(size)
    last = at // batches.windows.slide
    owners = {window: [p for p in held if window in batches.windows_of(p)] for window in range(last)}
    for window, partitions_of in owners.items():
        assert len(partitions_of) == 1
        start, end = batches.windows.span(window)
        assert set(range(start, min(end, at))) <= held[partitions_of[0]]
    for partition, numbers in held.items():
        start, end = batches.span(partition)
        assert all(start <= number < end for number in numbers)


@given(SHAPES, st.integers(1, 6), st.lists(st.integers(-200, 200), max_size=40))
def test_without_a_change_it_is_by_batch(shape: tuple[int, int], batch: int, times: list[int]) -> None:
    stream = np.array(times, np.int64)
    rows, firsts = ChangingBatches(*shape, batch).assign(stream)
    expected_rows, partitions = ByBatch(*shape, batch).assign(stream)
    assert rows.tolist() == expected_rows.tolist()
    assert firsts.tolist() == (partitions * batch).tolist()


def test_sizes_that_only_late_rows_need_are_forgotten() -> None:
    batches = ChangingBatches(10, 5, 2)
    batches.assign(np.arange(20))
    batches.change(4)  # from window 4 on, at 20
    batches.forget(watermark=19)
    assert batches.windows_of(2) == range(2, 4)
    assert batches.complete(2, watermark=25)
    assert not batches.complete(2, watermark=24)
    batches.forget(watermark=25)
    with pytest.raises(SkewlessError, match="no batch starts with window 2"):
        batches.windows_of(2)
    assert batches.windows_of(4) == range(4, 8)


def test_a_change_may_be_taken_back_before_it_matters() -> None:
    batches = ChangingBatches(4, 2, 1, rows=True)
    batches.change(5)
    batches.change(3, window=7)
    batches.change(2, window=7)
    assert (batches.windows_of(0), batches.windows_of(5), batches.windows_of(7)) == (range(5), range(5, 7), range(7, 9))


def test_windows_that_have_rows_keep_their_batch() -> None:
    batches = ChangingBatches(4, 2, 3)
    batches.assign(np.array([11]))
    with pytest.raises(SkewlessError, match="change the size from 6 on"):
        batches.change(2, window=5)


def test_it_goes_on_from_its_state() -> None:
    batches = ChangingBatches(7, 2, 3)
    batches.assign(np.arange(10))
    batches.change(5)
    again = ChangingBatches.from_state(json.loads(json.dumps(batches.state())))
    for here, there in zip(batches.assign(np.arange(8, 30)), again.assign(np.arange(8, 30)), strict=True):
        assert here.tolist() == there.tolist()
    assert (again.batch, again.state()) == (5, batches.state())
