from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sliding.marks import marks
from skewless.chop import Windows
from skewless.core.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (max(pair), min(pair)))
TIMES = st.lists(st.integers(-200, 200), max_size=60).map(sorted)


def holding(windows: Windows, time: int) -> list[int]:
    """The windows that hold a time, by looking at all."""
    least = 0 if windows.rows else -400
    return [k for k in range(least, 400) if holds(windows, k, time)]


def holds(windows: Windows, window: int, time: int) -> bool:
    return window * windows.slide <= time < window * windows.slide + windows.size


@given(SHAPES, TIMES)
def test_marks_name_the_windows_that_hold_a_row(shape: tuple[int, int], times: list[int]) -> None:
    windows = Windows(*shape)
    marked = marks(windows, np.array(times, np.int64), then=1000)
    for time, first, last in zip(times, marked.first, marked.last, strict=True):
        assert list(range(first, last + 1)) == holding(windows, time)


@given(SHAPES, st.integers(0, 120))
def test_row_numbers_are_marked_as_in_the_paper(shape: tuple[int, int], n: int) -> None:
    w, s = shape
    marked = marks(Windows(w, s, rows=True), np.arange(n))
    for i in range(1, n + 1):
        assert marked.first[i - 1] == max(math.ceil((i - w) / s) + 1, 1) - 1
        assert marked.last[i - 1] == math.ceil(i / s) - 1
        assert marked.closer[i - 1] == (i >= w and (i - w) % s == 0)


@given(SHAPES, TIMES, st.integers(0, 50))
def test_the_last_row_of_a_window_closes_it(shape: tuple[int, int], times: list[int], later: int) -> None:
    windows = Windows(*shape)
    then = times[-1] + later if times else 0
    closer = marks(windows, np.array(times, np.int64), then).closer
    for i, time in enumerate(times):
        following = times[i + 1] if i + 1 < len(times) else then
        ends = [windows.span(window)[1] for window in holding(windows, time)]
        assert closer[i] == any(end <= following for end in ends)


def test_of_equal_times_the_last_closes() -> None:
    dense = np.repeat(np.arange(12), 3)
    w, s = 4, 2
    last_of_equals = np.arange(36) % 3 == 2
    condition = (dense + 1 - w) % s == 0
    assert marks(Windows(w, s), dense).closer.tolist() == (condition & last_of_equals).tolist()


@given(SHAPES, st.integers(1, 6), st.integers(1, 100))
def test_a_batch_closes_with_every_bth_window(shape: tuple[int, int], batch: int, n: int) -> None:
    windows = Windows(*shape, rows=True)
    rows = np.arange(n)
    marked = marks(windows, rows)
    # The paper: a window closer, and the number of the window, counted from 1, is a multiple of B.
    closed = (rows + 1 - windows.size) // windows.slide + 1
    expected = marked.closer & (closed % batch == 0)
    assert marks(windows.batches(batch), rows).closer.tolist() == expected.tolist()


@given(SHAPES, TIMES, st.integers(0, 60))
def test_marks_do_not_depend_on_how_the_stream_is_cut(shape: tuple[int, int], times: list[int], cut: int) -> None:
    windows, stream = Windows(*shape), np.array(times, np.int64)
    cut = min(cut, len(times))
    whole = marks(windows, stream, then=500)
    front = marks(windows, stream[:cut], then=int(stream[cut]) if cut < len(times) else 500)
    back = marks(windows, stream[cut:], then=500)
    assert np.concatenate([front.closer, back.closer]).tolist() == whole.closer.tolist()


def test_times_must_be_whole_numbers_in_order() -> None:
    with pytest.raises(SkewlessError, match="float64"):
        marks(Windows(3, 1), np.array([1.5]))
    with pytest.raises(SkewlessError, match="sort the rows"):
        marks(Windows(3, 1), np.array([2, 1]))
    with pytest.raises(SkewlessError, match="goes on at 1, before its last row at 2"):
        marks(Windows(3, 1), np.array([2]), then=1)


def test_no_rows_have_no_marks() -> None:
    marked = marks(Windows(3, 1), np.empty(0, np.int64))
    assert (len(marked.first), len(marked.last), len(marked.closer)) == (0, 0, 0)
