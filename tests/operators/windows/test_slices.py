"""Slices of sorted rows, against windows looked through one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.windows import Windows
from skewless.operators.windows.slices import Slices, slices

LENGTHS = st.integers(1, 20)
WINDOWS = st.tuples(LENGTHS, LENGTHS, st.booleans()).map(
    lambda three: Windows(max(three[:2]), min(three[:2]), three[2])
)
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 120)), max_size=40)


def listed(found: Slices) -> list[tuple[int, ...]]:
    columns = (found.groups, found.windows, found.starts, found.stops)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def looked_through(
    rows: list[tuple[int, int]], windows: Windows, low: int = -10_000, high: int = 10_000
) -> list[tuple[int, ...]]:
    """Each window of each group that holds rows, with the first of them and the one after the last."""
    found = []
    for group in sorted({group for group, _time in rows}):
        times = [time for each, time in rows if each == group]
        lowest = 0 if windows.rows else (min(times) - windows.size) // windows.slide
        for window in range(max(low, lowest), min(high, max(times) // windows.slide + 1)):
            start, end = windows.span(window)
            held = [i for i, (each, time) in enumerate(rows) if each == group and start <= time < end]
            if held:
                assert held == list(range(held[0], held[-1] + 1))
                found.append((group, window, held[0], held[-1] + 1))
    return found


@given(ROWS, WINDOWS, st.integers(-200, 200))
def test_every_window_with_rows_is_one_slice(rows: list[tuple[int, int]], windows: Windows, shift: int) -> None:
    rows = sorted((group, time if windows.rows else time + shift) for group, time in rows)
    groups, times = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    assert listed(slices(groups, times, windows)) == looked_through(rows, windows)


@given(ROWS, WINDOWS, st.integers(-30, 130), st.integers(0, 60))
def test_only_the_windows_asked_for(rows: list[tuple[int, int]], windows: Windows, low: int, count: int) -> None:
    rows = sorted(rows)
    groups, times = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    found = slices(groups, times, windows, low, low + count)
    assert listed(found) == looked_through(rows, windows, low, low + count)


@given(ROWS, WINDOWS, st.integers(0, 8))
def test_windows_before_others(rows: list[tuple[int, int]], windows: Windows, above: int) -> None:
    groups, times = (np.array([row[i] for row in sorted(rows)], np.int64) for i in (0, 1))
    found = slices(groups, times, windows)
    ordered = listed(found.in_order())
    assert ordered == sorted(listed(found), key=lambda each: (each[1], each[0]))
    long = found.where(found.stops - found.starts > above)
    assert listed(long) == [each for each in listed(found) if each[3] - each[2] > above]


def test_years_without_rows_cost_nothing() -> None:
    far = 2**60
    found = slices(np.array([0, 0, 1]), np.array([-far, far, 0]), Windows(3, 1))
    assert listed(found) == [
        *[(0, -far - 2 + i, 0, 1) for i in range(3)],
        *[(0, far - 2 + i, 1, 2) for i in range(3)],
        *[(1, -2 + i, 2, 3) for i in range(3)],
    ]


def test_no_rows_no_windows() -> None:
    assert listed(slices(np.zeros(0, np.int64), np.zeros(0, np.int64), Windows(10, 5))) == []


@given(ROWS, WINDOWS, st.integers(0, 3))
def test_rows_count_once_however_many_slices_have_them(
    rows: list[tuple[int, int]], windows: Windows, every: int
) -> None:
    groups, times = (np.array([row[i] for row in sorted(rows)], np.int64) for i in (0, 1))
    found = slices(groups, times, windows)
    some = found.where(found.windows % (every + 1) == 0)
    assert some.rows == len({row for *_rest, start, stop in listed(some) for row in range(start, stop)})
