from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.base import Sketch
from skewless.sketch.lossy import LossyCounts
from skewless.sketch.sliding import SlidingCounts

unhurried = settings(deadline=None)  # the first example may compile the kernels


class Recorder(Sketch):
    """Remembers every tuple, so that a test can see which ones a window holds."""

    def __init__(self) -> None:
        self.tuples: list[int] = []

    @property
    def total(self) -> int:
        return len(self.tuples)

    def add(self, keys: np.ndarray) -> None:
        self.tuples.extend(keys.tolist())

    def estimate(self, keys: np.ndarray) -> np.ndarray:
        counts = Counter(self.tuples)
        return np.array([counts[key] for key in keys.tolist()], np.int64)

    def heavy(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        ranked = Counter(self.tuples).most_common()
        return np.array([key for key, _ in ranked]), np.array([count for _, count in ranked])


WINDOWS, COUNTERS = st.integers(1, 40), st.integers(2, 6)


@unhurried
@given(WINDOWS, COUNTERS, st.lists(st.integers(0, 60), max_size=12))
def test_the_window_is_the_last_w_to_w_and_a_part_tuples_at_every_position(
    window: int, counters: int, chunks: list[int]
) -> None:
    sliding = SlidingCounts(window, counters, Recorder)
    seen = 0
    for chunk in [*chunks, *[1] * (3 * window)]:
        sliding.add(np.arange(seen, seen + chunk))
        seen += chunk
        assert min(seen, window) <= sliding.total <= (1 + 1 / (counters - 1)) * window
        # Tuple i has key i, so the window holds exactly the last `total` tuples if it knows these and not one more.
        newest = np.arange(seen - sliding.total, seen)
        assert (sliding.estimate(newest) == 1).all()
        assert sliding.estimate(np.array([seen - sliding.total - 1])).tolist() == [0]


@unhurried
@given(st.integers(1, 40), COUNTERS)
def test_the_window_starts_at_w_and_nearly_reaches_its_upper_end(steps: int, counters: int) -> None:
    window = steps * (counters - 1)
    sliding = SlidingCounts(window, counters, Recorder)
    sizes = []
    for i in range(4 * window):
        sliding.add(np.array([i]))
        sizes.append(sliding.total)
    assert sizes[:window] == list(range(1, window + 1))
    assert min(sizes[window:]) == window
    assert max(sizes) == window + steps - 1


@unhurried
@given(st.lists(st.integers(0, 9), max_size=300), WINDOWS, COUNTERS, st.lists(st.integers(0, 300), max_size=6))
def test_the_answer_does_not_depend_on_how_the_stream_is_cut(
    stream: list[int], window: int, counters: int, cuts: list[int]
) -> None:
    make = partial(LossyCounts, 0.05)
    whole, pieces = SlidingCounts(window, counters, make), SlidingCounts(window, counters, make)
    keys = np.array(stream, np.int64)
    whole.add(keys)
    for piece in np.split(keys, sorted(min(cut, len(keys)) for cut in cuts)):
        pieces.add(piece)
    assert pieces.total == whole.total
    np.testing.assert_array_equal(pieces.heavy(0.0), whole.heavy(0.0))


def test_an_old_hot_key_is_forgotten_and_a_new_one_found() -> None:
    sliding = SlidingCounts(1_000, make=partial(LossyCounts, 0.01))
    rare = np.arange(10, 10_010)
    old, new = np.where(rare % 2, 1, rare), np.where(rare % 2, 2, rare)
    sliding.add(old)
    assert sliding.heavy(0.3)[0].tolist() == [1]
    sliding.add(new[:1_500])
    assert sliding.heavy(0.3)[0].tolist() == [2]
    assert sliding.estimate(np.array([1])).tolist() == [0]


@pytest.mark.parametrize("window", [0, -5])
def test_a_window_has_tuples(window: int) -> None:
    with pytest.raises(SkewlessError, match=f"window is {window}.*1 or more"):
        SlidingCounts(window)


@pytest.mark.parametrize("counters", [1, 0, -1])
def test_one_counter_cannot_slide(counters: int) -> None:
    with pytest.raises(SkewlessError, match=f"counters is {counters}.*2 or more"):
        SlidingCounts(10, counters)
