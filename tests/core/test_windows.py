from __future__ import annotations

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


@given(SHAPES, st.booleans(), TIMES)
def test_first_and_last_name_the_windows_that_hold_a_row(shape: tuple[int, int], rows: bool, times: list[int]) -> None:
    windows, stream = Windows(*shape, rows), np.array(times, np.int64)
    for time, first, last in zip(times, windows.first(stream), windows.last(stream), strict=True):
        assert list(range(first, last + 1)) == holding(windows, time)


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
    windows, times = Windows(10, 5), np.array([-1])
    assert (windows.first(times).tolist(), windows.last(times).tolist()) == ([-2], [-1])


def test_windows_with_gaps_are_refused() -> None:
    with pytest.raises(SkewlessError, match="slide 5 is longer than size 3"):
        Windows(3, 5)
    with pytest.raises(SkewlessError, match="slide of a window is 0"):
        Windows(3, 0)
    with pytest.raises(SkewlessError, match=r"size of a window is 2\.5"):
        Windows(2.5, 1)  # type: ignore[arg-type]
    with pytest.raises(SkewlessError, match="batch of 0 windows"):
        Windows(3, 1).batches(0)
