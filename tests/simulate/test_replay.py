from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.metrics import fragments_per_key
from skewless.simulate import replay


class RoundRobin:
    """Deals tuples out in turn, across calls, and calls three keys hot."""

    hot_keys = 3

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.dealt = 0

    def route(self, keys: np.ndarray) -> np.ndarray:
        turns = np.arange(self.dealt, self.dealt + len(keys))
        self.dealt += len(keys)
        return (turns % self.workers).astype(np.int32)


class KeyAssignment:
    """Each key on the worker of its number."""

    hot_keys = 0

    def route(self, keys: np.ndarray) -> np.ndarray:
        return keys.astype(np.int32)


def test_loads_are_those_of_each_window() -> None:
    keys = np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 0])
    result = replay(KeyAssignment(), [keys], workers=2, window=4)
    assert result.loads.tolist() == [[3, 1], [1, 3]]
    assert result.total.tolist() == [6, 4]
    assert result.tuples == 10
    assert result.max_over_avg == 1.2
    assert (result.mean_window, result.worst_window, result.last_window) == (1.5, 1.5, 1.5)
    assert result.fragments_per_key.tolist() == [1.0, 1.0]


def test_windows_may_slide() -> None:
    result = replay(KeyAssignment(), [np.array([0, 0, 1, 1, 1, 1, 0])], workers=2, window=4, slide=2)
    assert result.loads.tolist() == [[2, 2], [0, 4]]
    assert (result.mean_window, result.worst_window, result.last_window) == (1.5, 2.0, 2.0)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.sampled_from([(6, 6), (6, 2), (6, 1), (50, 10)]))
def test_measures_do_not_depend_on_how_the_stream_is_cut(lengths: list[int], window: tuple[int, int]) -> None:
    keys = np.random.default_rng(0).integers(0, 9, sum(lengths) + 1)
    pieces = np.split(keys, np.cumsum(lengths))
    cut = replay(RoundRobin(4), pieces, 4, *window)
    whole = replay(RoundRobin(4), [keys], 4, *window)
    np.testing.assert_array_equal(cut.loads, whole.loads)
    np.testing.assert_array_equal(cut.fragments_per_key, whole.fragments_per_key)
    assert cut.total.sum() == len(keys)


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 60))
def test_fragments_are_those_of_each_complete_window(n: int, window: int) -> None:
    keys = np.arange(n) % 7
    result = replay(RoundRobin(4), [keys], 4, window)
    routed = RoundRobin(4).route(keys)
    starts = range(0, n - window + 1, window) if n >= window else [0]
    expected = [fragments_per_key(keys[at : at + window], routed[at : at + window], 4) for at in starts]
    assert result.fragments_per_key.tolist() == expected


def test_a_short_stream_is_one_window() -> None:
    result = replay(KeyAssignment(), [np.array([0, 0, 1])], workers=2, window=100, slide=2)
    assert result.loads.tolist() == [[2, 1]]
    assert result.worst_window == result.max_over_avg


def test_hot_keys_and_speed_come_from_the_splitter() -> None:
    result = replay(RoundRobin(2), [np.arange(10)], workers=2, window=5)
    assert result.hot_keys == 3
    assert result.seconds > 0
    assert result.tuples_per_second == 10 / result.seconds


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(SkewlessError, match="stream is empty"):
        replay(KeyAssignment(), [np.array([], np.int64)], workers=2, window=5)


def test_a_worker_that_is_not_there_is_refused() -> None:
    with pytest.raises(SkewlessError, match="from 0 to 1, but the routing has 0 to 2"):
        replay(KeyAssignment(), [np.array([0, 1, 2])], workers=2, window=5)


@pytest.mark.parametrize(("window", "slide"), [(0, None), (5, 0), (5, 2), (2, 4)])
def test_a_window_is_made_of_slides(window: int, slide: int | None) -> None:
    with pytest.raises(SkewlessError, match="slides long"):
        replay(KeyAssignment(), [np.array([0])], 1, window, slide)


def test_there_is_at_least_one_worker() -> None:
    with pytest.raises(SkewlessError, match="workers must be at least 1"):
        replay(KeyAssignment(), [np.array([0])], 0, 5)
