from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    marks = windows.marks(np.array(times, np.int64), then=1000)
    for time, first, last in zip(times, marks.first, marks.last, strict=True):
        assert list(range(first, last + 1)) == holding(windows, time)


@given(SHAPES, st.integers(0, 120))
def test_row_numbers_are_marked_as_in_the_paper(shape: tuple[int, int], n: int) -> None:
    w, s = shape
    marks = Windows(w, s, rows=True).marks(np.arange(n))
    for i in range(1, n + 1):
        assert marks.first[i - 1] == max(math.ceil((i - w) / s) + 1, 1) - 1
        assert marks.last[i - 1] == math.ceil(i / s) - 1
        assert marks.closer[i - 1] == (i >= w and (i - w) % s == 0)


@given(SHAPES, TIMES, st.integers(0, 50))
def test_the_last_row_of_a_window_closes_it(shape: tuple[int, int], times: list[int], later: int) -> None:
    windows = Windows(*shape)
    then = times[-1] + later if times else 0
    closer = windows.marks(np.array(times, np.int64), then).closer
    for i, time in enumerate(times):
        following = times[i + 1] if i + 1 < len(times) else then
        ends = [windows.span(window)[1] for window in holding(windows, time)]
        assert closer[i] == any(end <= following for end in ends)


def test_of_equal_times_the_last_closes() -> None:
    dense = np.repeat(np.arange(12), 3)
    w, s = 4, 2
    last_of_equals = np.arange(36) % 3 == 2
    condition = (dense + 1 - w) % s == 0
    assert Windows(w, s).marks(dense).closer.tolist() == (condition & last_of_equals).tolist()


@given(SHAPES, st.integers(1, 6), st.integers(1, 100))
def test_a_batch_closes_with_every_bth_window(shape: tuple[int, int], batch: int, n: int) -> None:
    windows = Windows(*shape, rows=True)
    rows = np.arange(n)
    marks = windows.marks(rows)
    # The paper: a window closer, and the number of the window, counted from 1, is a multiple of B.
    closed = (rows + 1 - windows.size) // windows.slide + 1
    expected = marks.closer & (closed % batch == 0)
    assert windows.batches(batch).marks(rows).closer.tolist() == expected.tolist()


@given(SHAPES, TIMES, st.integers(0, 60))
def test_marks_do_not_depend_on_how_the_stream_is_cut(shape: tuple[int, int], times: list[int], cut: int) -> None:
    windows, stream = Windows(*shape), np.array(times, np.int64)
    cut = min(cut, len(times))
    whole = windows.marks(stream, then=500)
    front = windows.marks(stream[:cut], then=int(stream[cut]) if cut < len(times) else 500)
    back = windows.marks(stream[cut:], then=500)
    assert np.concatenate([front.closer, back.closer]).tolist() == whole.closer.tolist()


@given(SHAPES, st.booleans(), st.integers(-100, 100))
def test_windows_before_the_first_open_one_are_complete(shape: tuple[int, int], rows: bool, watermark: int) -> None:
    windows = Windows(*shape, rows=rows)
    open_at = windows.open_at(watermark)
    assert windows.span(open_at)[1] > watermark
    assert open_at == windows.lowest or windows.span(open_at - 1)[1] <= watermark


@given(SHAPES)
def test_no_edge_of_a_window_cuts_a_pane(shape: tuple[int, int]) -> None:
    windows = Windows(*shape)
    pane = windows.panes.size
    assert windows.panes.slide == pane
    edges = {edge for k in range(-3, 4) for edge in windows.span(k)}
    assert all(edge % pane == 0 for edge in edges)
    assert pane == max(d for d in range(1, windows.slide + 1) if all(edge % d == 0 for edge in edges))


@given(SHAPES, st.integers(-60, 60))
def test_a_window_is_made_up_of_the_panes_that_it_holds(shape: tuple[int, int], window: int) -> None:
    windows = Windows(*shape)
    start, end = windows.span(window)
    panes = windows.panes_of(window)
    assert (panes.start * windows.pane, panes.stop * windows.pane) == (start, end)
    assert all(window in windows.with_pane(pane) for pane in panes)
    assert window not in windows.with_pane(panes.start - 1)
    assert window not in windows.with_pane(panes.stop)


@given(SHAPES, st.integers(-60, 60))
def test_the_windows_with_a_pane_are_those_that_hold_its_times(shape: tuple[int, int], pane: int) -> None:
    windows = Windows(*shape)
    for time in range(pane * windows.pane, (pane + 1) * windows.pane):
        assert list(windows.with_pane(pane)) == [k for k in range(-3000, 3000) if holds(windows, k, time)]


def test_times_before_1970_are_in_the_windows_below() -> None:
    marks = Windows(10, 5).marks(np.array([-1]))
    assert (marks.first.tolist(), marks.last.tolist()) == ([-2], [-1])


def test_windows_with_gaps_are_refused() -> None:
    with pytest.raises(SkewlessError, match="slide 5 is longer than size 3"):
        Windows(3, 5)
    with pytest.raises(SkewlessError, match="slide of a window is 0"):
        Windows(3, 0)
    with pytest.raises(SkewlessError, match=r"size of a window is 2\.5"):
        Windows(2.5, 1)  # type: ignore[arg-type]
    with pytest.raises(SkewlessError, match="batch of 0 windows"):
        Windows(3, 1).batches(0)


def test_times_must_be_whole_numbers_in_order() -> None:
    with pytest.raises(SkewlessError, match="float64"):
        Windows(3, 1).marks(np.array([1.5]))
    with pytest.raises(SkewlessError, match="sort the rows"):
        Windows(3, 1).marks(np.array([2, 1]))
    with pytest.raises(SkewlessError, match="goes on at 1, before its last row at 2"):
        Windows(3, 1).marks(np.array([2]), then=1)


def test_no_rows_have_no_marks() -> None:
    marks = Windows(3, 1).marks(np.empty(0, np.int64))
    assert (len(marks.first), len(marks.last), len(marks.closer)) == (0, 0, 0)
