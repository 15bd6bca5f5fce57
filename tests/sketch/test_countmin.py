from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.countmin import MANY, CountMin, cells_add, cells_clear, cells_distinct, new_cells
from skewless.sketch.keys import key_hash

unhurried = settings(deadline=None)  # the first example may compile the kernels
EPSILONS = st.floats(0.001, 0.9)
DELTAS = st.floats(0.001, 0.9)
CUTS = st.lists(st.integers(0, 800), max_size=6)


@st.composite
def streams(draw: st.DrawFn) -> np.ndarray:
    """A few hot keys in a sea of rare ones, or whatever hypothesis likes."""
    drawn = np.array(draw(st.lists(st.integers(-3, 40), max_size=200)), np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    zipf = rng.zipf(draw(st.floats(1.1, 3)), draw(st.integers(0, 500))) % 10_000
    return np.concatenate((drawn, zipf, drawn[::-1]))


def counted(stream: np.ndarray, *bound: float, candidates: int = 1024) -> CountMin:
    counts = CountMin(*bound, candidates=candidates)
    counts.add(stream)
    return counts


def filled(distinct: int, epsilon: float) -> np.ndarray:
    cells = new_cells(epsilon, 0.1)
    for key in range(distinct):
        cells_add(cells, key_hash(key), 1)
    return cells


@unhurried
@given(streams(), EPSILONS, DELTAS)
def test_an_estimate_is_never_below_the_truth(stream: np.ndarray, epsilon: float, delta: float) -> None:
    keys, truth = np.unique(stream, return_counts=True)
    estimates = counted(stream, epsilon, delta).estimate(keys)
    assert (estimates >= truth).all()
    assert (estimates <= len(stream)).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_estimate_is_above_the_bound_for_at_most_delta_of_the_keys(depth: int) -> None:
    # The hardest stream: as many equally heavy keys as can each alone lift a counter above epsilon N. A rare key is
    # above the bound when it meets one of them in every row, by chance 0.31 in each, where delta allows 1 / e.
    width, rare = 128, 1_000
    epsilon, delta = 1.0001 * math.e / width, 1.0001 * math.exp(-depth)
    assert new_cells(epsilon, delta).shape == (depth, width)
    heavy = int(width / math.e) - 1
    above = 0
    for seed in range(60):
        keys = np.random.default_rng(seed).integers(-(2**63), 2**63 - 1, heavy + rare)
        stream = np.concatenate((keys[:heavy].repeat(10_000), keys[heavy:]))
        estimates = counted(stream, epsilon, delta).estimate(keys[heavy:])
        above += np.count_nonzero(estimates > 1 + epsilon * len(stream))
    assert 0.3**depth / 2 < above / (60 * rare) <= delta


@pytest.mark.parametrize("exponent", [1.1, 1.5, 2.5])
def test_on_skewed_streams_the_error_is_far_below_the_bound(exponent: float) -> None:
    above = keys_seen = 0
    for seed in range(20):
        stream = np.random.default_rng(seed).zipf(exponent, 20_000)
        keys, truth = np.unique(stream, return_counts=True)
        above += np.count_nonzero(counted(stream, 0.01, 0.05).estimate(keys) > truth + 0.01 * len(stream))
        keys_seen += len(keys)
    assert above <= 0.05 / 10 * keys_seen


def test_only_the_counters_below_the_estimate_are_raised() -> None:
    # Plain counting would add 100 to every counter of both keys; where the two meet, nothing need be added.
    plain, conservative = np.zeros((3, 4), np.int64), np.zeros((3, 4), np.int64)
    for key in range(40):
        h = key_hash(key)
        for row in range(3):
            plain[row, (h + row * ((h >> 32) | 1)) & 3] += 100
        assert cells_add(conservative, h, 100) >= 100
    assert plain.sum() == 3 * 40 * 100
    assert conservative.sum() < 0.8 * plain.sum()
    assert (conservative <= plain).all()


@unhurried
@given(EPSILONS, DELTAS)
def test_memory_is_what_the_bound_needs_and_less_than_twice_it(epsilon: float, delta: float) -> None:
    depth, width = new_cells(epsilon, delta).shape
    assert math.e / epsilon <= width < 2 * math.e / epsilon
    assert width & (width - 1) == 0
    assert depth == max(1, math.ceil(math.log(1 / delta)))


@unhurried
@given(streams(), st.floats(0.001, 0.5), st.integers(1, 40), CUTS)
def test_heavy_has_every_key_with_one_candidates_share(
    stream: np.ndarray, epsilon: float, candidates: int, cuts: list[int]
) -> None:
    counts = CountMin(epsilon, 0.1, candidates)
    for piece in np.split(stream, sorted(min(cut, len(stream)) for cut in cuts)):
        counts.add(piece)
    found = set(counts.heavy(1 / candidates)[0].tolist())
    for key, count in Counter(stream.tolist()).items():
        if count * candidates >= len(stream):
            assert key in found


def test_a_key_that_was_rare_at_first_is_found_when_it_has_become_heavy() -> None:
    counts = CountMin(0.001, 0.01, candidates=4)
    counts.add(np.concatenate(([7], np.arange(1_000, 2_000), np.full(400, 7))))
    assert counts.heavy(0.25)[0].tolist() == [7]


def test_few_names_are_remembered_though_many_keys_are_heavy_for_a_while() -> None:
    counts, truth = CountMin(0.001, 0.01, candidates=10), Counter[int]()
    for key in range(60):
        truth[key] = counts.total // 5 + 1
        counts.add(np.full(truth[key], key))
        assert set(counts.heavy(0.1)[0].tolist()) >= {k for k in truth if 10 * truth[k] >= counts.total}
        assert len(counts.heavy(0.0)[0]) <= 40


@unhurried
@given(streams(), st.floats(0.001, 0.5), st.integers(1, 20), CUTS)
def test_the_answer_does_not_depend_on_how_the_stream_is_cut(
    stream: np.ndarray, epsilon: float, candidates: int, cuts: list[int]
) -> None:
    whole, pieces = counted(stream, epsilon, 0.1, candidates=candidates), CountMin(epsilon, 0.1, candidates)
    for piece in np.split(stream, sorted(min(cut, len(stream)) for cut in cuts)):
        pieces.add(piece)
    assert pieces.total == whole.total == len(stream)
    np.testing.assert_array_equal(pieces.estimate(stream), whole.estimate(stream))
    np.testing.assert_array_equal(pieces.heavy(0.0), whole.heavy(0.0))


@unhurried
@given(streams(), st.floats(0, 1))
def test_heavy_goes_by_falling_estimate_then_by_rising_key(stream: np.ndarray, share: float) -> None:
    counts = counted(stream, 0.01, 0.1)
    keys, estimates = counts.heavy(share)
    np.testing.assert_array_equal(estimates, counts.estimate(keys))
    assert (estimates >= share * len(stream) * (1 - 1e-12)).all()
    ranking = list(zip((-estimates).tolist(), keys.tolist(), strict=True))
    assert ranking == sorted(ranking)


@pytest.mark.parametrize("distinct", [0, 1, 30, 500, 1_000, 2_000])
def test_the_number_of_keys_is_told_from_the_counters_still_zero(distinct: int) -> None:
    cells = filled(distinct, math.e / 1_000)
    assert cells.shape[1] == 1_024
    assert cells_distinct(cells) == pytest.approx(distinct, rel=0.1, abs=2)


def test_the_number_of_keys_is_many_when_no_counter_is_zero() -> None:
    assert cells_distinct(filled(5_000, 0.5)) == MANY


def test_cleared_cells_count_from_zero() -> None:
    cells = filled(100, 0.1)
    cells_clear(cells)
    assert cells_distinct(cells) == 0
    assert cells_add(cells, key_hash(3), 2) == 2


def test_reset_forgets_counts_and_names() -> None:
    counts = counted(np.array([1, 1, 2]))
    counts.reset()
    assert counts.total == 0
    assert counts.heavy(0.0)[0].tolist() == []
    assert counts.estimate(np.array([1, 2])).tolist() == [0, 0]
    counts.add(np.array([2]))
    assert counts.heavy(1.0)[0].tolist() == [2]


@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("value", [0, 1, -0.1, 2, float("nan")])
def test_the_bound_is_made_of_shares(name: str, value: float) -> None:
    with pytest.raises(SkewlessError, match=f"{name} is {value}; give a number between 0 and 1"):
        CountMin(**{name: value})


def test_there_are_candidates() -> None:
    with pytest.raises(SkewlessError, match="candidates is 0; give at least 1"):
        CountMin(candidates=0)
