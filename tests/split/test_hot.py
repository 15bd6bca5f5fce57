from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.split import DAGreedy
from skewless.split.hot import (
    COUNT,
    FREE,
    KEY,
    MISSING,
    RELEASED,
    RELEASED_ROW,
    STATS_SEEN,
    THRESHOLD,
    HotKeys,
    hot_next_window,
    hot_peak,
    hot_promote,
    hot_threshold,
)

LONGS = st.integers(-(2**63), 2**63 - 1)


def hot_keys(hot_at: float = 1.0, window: int = 100, workers: int = 4) -> HotKeys:
    return HotKeys(workers, window=window, hot_at=hot_at, statistics="exact")


def promote(hot: HotKeys, key: int, count: int = 0) -> int:
    hot.make_room()
    return int(hot_promote(hot.state, key, count))


def next_window(hot: HotKeys, load: int = 100) -> list[int]:
    """End the window; the rows that were given back."""
    hot_next_window(hot.state, load)
    return hot.state.rows[: hot.state.meta[RELEASED], RELEASED_ROW].tolist()


def splitter_with_threshold_25(slides: int = 10) -> DAGreedy:
    return DAGreedy(4, slide=100, slides=slides, hot_at=1.0, statistics="exact")


def fill(splitter: DAGreedy, key: int, times: int, start: int) -> None:
    """A slide in which `key` comes so many times first, and then only keys that come once."""
    splitter.route(np.full(times, key))
    splitter.route(np.arange(start, start + 100 - times))


@pytest.mark.parametrize(
    ("hot_at", "load", "workers", "threshold"),
    [(1.0, 100, 4, 25), (1.0, 101, 4, 26), (0.2, 100, 4, 5), (1.0, 100, 1, 100), (0.1, 10, 4, 2), (1.0, 0, 4, 2)],
)
def test_the_threshold_is_a_share_of_the_fair_load(hot_at: float, load: int, workers: int, threshold: int) -> None:
    assert hot_threshold(hot_at, load, workers) == threshold
    if load:
        assert hot_keys(hot_at, load, workers).state.meta[THRESHOLD] == threshold


def test_a_key_becomes_hot_at_exactly_the_threshold() -> None:
    splitter = splitter_with_threshold_25()
    splitter.route(np.full(24, 7))
    assert splitter.hot_keys == 0
    splitter.route(np.full(1, 7))
    assert splitter.hot.keys.tolist() == [7]


def test_counts_of_two_windows_do_not_add_up() -> None:
    splitter = splitter_with_threshold_25()
    fill(splitter, 7, 24, start=1_000)
    splitter.route(np.full(24, 7))
    assert splitter.hot_keys == 0


def test_a_key_stays_hot_for_the_current_and_the_next_window() -> None:
    splitter = splitter_with_threshold_25()
    fill(splitter, 7, 25, start=1_000)
    hot = [splitter.hot_keys]
    for window in range(2, 5):
        fill(splitter, 7, 0, start=1_000 * window)
        hot.append(splitter.hot_keys)
    assert hot == [1, 1, 0, 0]


def test_a_key_hot_again_in_the_next_window_stays_for_one_more() -> None:
    splitter = splitter_with_threshold_25()
    hot = []
    for window, times in enumerate([25, 25, 24, 0]):
        fill(splitter, 7, times, start=1_000 * (window + 1))
        hot.append(splitter.hot_keys)
    assert hot == [1, 1, 1, 0]


def test_a_row_that_was_given_back_is_used_again() -> None:
    hot = hot_keys()
    row = promote(hot, 7, count=25)
    assert next_window(hot) == []
    assert hot.rows(np.array([7, 8])).tolist() == [row, MISSING]
    hot.state.rows[row, COUNT] = 24
    assert next_window(hot) == [row]
    assert hot.rows(np.array([7])).tolist() == [MISSING]
    assert promote(hot, 8, count=5) == row
    assert hot.keys.tolist() == [8]
    assert hot_peak(hot.state, row) == 5  # nothing is left of the key before


def test_the_peak_is_the_larger_count_of_this_window_and_the_last() -> None:
    hot = hot_keys()
    row = promote(hot, 7, count=40)
    next_window(hot)
    hot.state.rows[row, COUNT] = 30
    assert hot_peak(hot.state, row) == 40
    hot.state.rows[row, COUNT] = 50
    assert hot_peak(hot.state, row) == 50


def test_the_threshold_follows_the_load_of_the_window_before() -> None:
    hot = hot_keys()
    next_window(hot, load=1_000)
    assert hot.state.meta[THRESHOLD] == 250
    next_window(hot, load=6)
    assert hot.state.meta[THRESHOLD] == 2


def test_a_plan_takes_the_threshold_from_its_batch() -> None:
    splitter = splitter_with_threshold_25()
    splitter.plan(Counts(np.array([7, 8]), np.array([250, 249]), total=1_000))
    assert splitter.hot.keys.tolist() == [7]


def test_whether_a_key_was_hot_is_judged_by_the_threshold_of_that_window() -> None:
    hot = hot_keys()
    promote(hot, 7, count=25)
    next_window(hot, load=10_000)
    hot.state.rows[hot.rows(np.array([7]))[0], COUNT] = 2_499
    assert len(next_window(hot)) == 1


def test_a_new_window_has_seen_nothing() -> None:
    hot = hot_keys()
    hot.state.meta[STATS_SEEN] = 100
    row = promote(hot, 7, count=25)
    next_window(hot)
    assert hot.state.meta[STATS_SEEN] == 0
    assert hot.state.rows[row, COUNT] == 0


@given(st.lists(LONGS, unique=True, min_size=1, max_size=300))
@settings(max_examples=30)
def test_growing_keeps_every_row(keys: list[int]) -> None:
    hot = hot_keys()
    rows = [promote(hot, key, count=i) for i, key in enumerate(keys)]
    assert len(set(rows)) == len(keys)
    assert hot.rows(np.array(keys, dtype=np.int64)).tolist() == rows
    assert hot.state.rows[rows, KEY].tolist() == keys
    assert hot.state.rows[rows, COUNT].tolist() == list(range(len(keys)))
    assert hot.capacity - hot.state.meta[FREE] == len(keys)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("count"), st.integers(-8, 8), st.integers(1, 40)),
            st.tuples(st.just("window"), st.integers(0, 400)),
            st.tuples(st.just("room"), st.integers(1, 100)),
        ),
        max_size=80,
    )
)
@settings(max_examples=100)
def test_hot_keys_are_those_of_a_plain_dictionary(steps: list[tuple]) -> None:
    hot = hot_keys()
    threshold, window = 25, 0
    counts: dict[int, int] = {}
    until: dict[int, int] = {}
    rows: dict[int, int] = {}
    for step, *details in steps:
        if step == "count":
            key, times = details
            counts[key] = counts.get(key, 0) + times
            if key in until:
                hot.state.rows[rows[key], COUNT] += times
            elif counts[key] >= threshold:
                until[key] = window + 1
                rows[key] = promote(hot, key, counts[key])
        elif step == "window":
            cooled = {k for k in until if counts.get(k, 0) < threshold and until[k] == window}
            until.update({k: window + 1 for k in until if counts.get(k, 0) >= threshold})
            assert set(next_window(hot, details[0])) == {rows[k] for k in cooled}
            for key in cooled:
                del until[key], rows[key]
            counts.clear()
            window += 1
            threshold = max(2, math.ceil(details[0] / 4))
        else:
            hot.make_room(details[0])
            assert hot.state.meta[FREE] >= details[0]
        assert sorted(hot.keys.tolist()) == sorted(until)
        assert hot.rows(np.arange(-8, 9)).tolist() == [rows.get(key, MISSING) for key in range(-8, 9)]
        assert len(set(rows.values())) == len(rows)


@pytest.mark.parametrize("window", [0, -5])
def test_a_window_of_no_tuples_is_refused(window: int) -> None:
    with pytest.raises(SkewlessError, match=f"slide is {window} tuples; give a whole number from 1"):
        hot_keys(window=window)


@pytest.mark.parametrize("hot_at", [0.0, -0.5, 1e-12, float("nan"), float("inf")])
def test_a_share_that_makes_every_key_hot_is_refused(hot_at: float) -> None:
    with pytest.raises(SkewlessError, match=f"hot_at is {hot_at}; give a share of the fair load from 1e-06 on"):
        hot_keys(hot_at=hot_at)
