from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.lossy import LossyCounts

unhurried = settings(deadline=None)  # the first example may compile the kernels
EPSILONS = st.floats(0.01, 0.6)
SHARES = st.floats(0, 1)


@st.composite
def streams(draw: st.DrawFn) -> np.ndarray:
    """A few hot keys in a sea of rare ones, or whatever hypothesis likes."""
    drawn = np.array(draw(st.lists(st.integers(-3, 40), max_size=300)), np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    zipf = rng.zipf(draw(st.floats(1.1, 3)), draw(st.integers(0, 500))) % 10_000
    return np.concatenate((drawn, zipf, drawn[::-1]))


def true_counts(stream: np.ndarray) -> dict[int, int]:
    keys, counts = np.unique(stream, return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def counted(stream: np.ndarray, epsilon: float) -> LossyCounts:
    sketch = LossyCounts(epsilon)
    sketch.add(stream)
    return sketch


@unhurried
@given(streams(), EPSILONS)
def test_an_estimate_is_never_above_the_truth_and_below_by_at_most_one_a_bucket(
    stream: np.ndarray, epsilon: float
) -> None:
    sketch = counted(stream, epsilon)
    keys, truth = np.unique(stream, return_counts=True)
    missing = truth - sketch.estimate(keys)
    assert (missing >= 0).all()
    assert (missing <= len(stream) // sketch.width).all()
    assert len(stream) // sketch.width <= epsilon * len(stream)


@unhurried
@given(streams(), EPSILONS, SHARES)
def test_heavy_has_every_key_of_the_share_and_none_far_below_it(
    stream: np.ndarray, epsilon: float, share: float
) -> None:
    share = epsilon + (1 - epsilon) * max(share, 1e-3)
    found = set(counted(stream, epsilon).heavy(share)[0].tolist())
    for key, count in true_counts(stream).items():
        if count >= share * len(stream):
            assert key in found
        if count < (share - epsilon - 1e-9) * len(stream):
            assert key not in found


@unhurried
@given(streams(), EPSILONS)
def test_memory_stays_within_the_bound_after_every_tuple(stream: np.ndarray, epsilon: float) -> None:
    sketch = LossyCounts(epsilon)
    harmonic = 0.0
    for n, key in enumerate(stream):
        if n % sketch.width == 0:
            harmonic += 1 / (n // sketch.width + 1)
        sketch.add(np.array([key]))
        assert sketch.entries <= sketch.width * harmonic + 1e-9
        assert sketch.entries == len(sketch.heavy(0.0)[0]) <= len(sketch._table) // 2


def test_a_stream_made_for_it_fills_the_memory_bound_but_for_one_key() -> None:
    # Of 4 buckets of 12 tuples, one gets 3 keys 4 times, the next 4 keys 3 times, then 6 keys twice and 12 keys once:
    # each comes just often enough to be there still when the last bucket is one tuple short of closing.
    stream = np.arange(3 + 4 + 6 + 12).repeat([4] * 3 + [3] * 4 + [2] * 6 + [1] * 12)
    assert counted(stream[:-1], 1 / 12).entries == 12 // 1 + 12 // 2 + 12 // 3 + 12 // 4 - 1


@unhurried
@given(streams(), EPSILONS, st.lists(st.integers(0, 800), max_size=5))
def test_the_answer_does_not_depend_on_how_the_stream_is_cut(
    stream: np.ndarray, epsilon: float, cuts: list[int]
) -> None:
    whole, pieces = counted(stream, epsilon), LossyCounts(epsilon)
    for piece in np.split(stream, sorted(min(cut, len(stream)) for cut in cuts)):
        pieces.add(piece)
    assert pieces.total == whole.total == len(stream)
    np.testing.assert_array_equal(pieces.heavy(0.0), whole.heavy(0.0))


@unhurried
@given(streams(), EPSILONS, SHARES)
def test_heavy_goes_by_falling_estimate_then_by_rising_key(stream: np.ndarray, epsilon: float, share: float) -> None:
    sketch = counted(stream, epsilon)
    keys, counts = sketch.heavy(share)
    np.testing.assert_array_equal(counts, sketch.estimate(keys))
    ranking = list(zip((-counts).tolist(), keys.tolist(), strict=True))
    assert ranking == sorted(ranking)


def test_rare_keys_are_evicted_when_a_bucket_closes() -> None:
    sketch = counted(np.arange(99), 0.01)
    assert sketch.entries == 99
    sketch.add(np.array([99]))
    assert sketch.entries == 0
    assert sketch.total == 100


def test_extreme_keys_are_keys_like_others() -> None:
    extremes = np.array([np.iinfo(np.int64).min, -1, 0, np.iinfo(np.int64).max])
    sketch = counted(np.repeat(extremes, [1, 2, 3, 4]), 0.01)
    assert sketch.estimate(extremes).tolist() == [1, 2, 3, 4]
    assert sketch.estimate(np.array([5])).tolist() == [0]


def test_an_empty_sketch_has_nothing() -> None:
    sketch = counted(np.array([], np.int64), 0.1)
    assert sketch.total == sketch.entries == 0
    assert sketch.heavy(0.5)[0].tolist() == []


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 2, float("nan")])
def test_epsilon_is_a_share(epsilon: float) -> None:
    with pytest.raises(SkewlessError, match=f"epsilon is {epsilon}.*such as"):
        LossyCounts(epsilon)
