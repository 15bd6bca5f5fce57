from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from skewless.core.random_bits import below, draw, gap, gap_scale

MASK = (1 << 64) - 1
SEEDS = st.integers(0, 2**62)
PLACES = st.integers(0, 2**40)


@njit
def draws(seed: int, n: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = draw(seed, i)
    return out


@njit
def gaps(seed: int, n: int, scale: float) -> np.ndarray:
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = gap(draw(seed, i), scale)
    return out


def splitmix64(state: int) -> int:
    """The published mixing function of SplitMix64."""
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@given(SEEDS, PLACES)
def test_a_draw_is_splitmix64_of_its_place(seed: int, i: int) -> None:
    assert draw(seed, i) == splitmix64((seed + i * 0x9E3779B97F4A7C15) & MASK) >> 1


def test_the_published_first_outputs_of_seed_0() -> None:
    # The generator adds its constant before it mixes: its first output is the draw of place 1.
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [draw(0, i) for i in (1, 2, 3)] == [output >> 1 for output in published]


def test_a_draw_is_the_same_from_python_and_inside_a_kernel() -> None:
    assert draws(7, 20).tolist() == [draw(7, i) for i in range(20)]


def test_each_of_the_63_bits_is_as_often_set_as_not() -> None:
    bits = (draws(3, 20_000)[:, None] >> np.arange(63)) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.02  # five standard deviations are 0.018


def test_a_draw_is_never_negative() -> None:
    assert draws(1, 20_000).min() >= 0


@given(st.integers(0, 2**63 - 1), st.integers(1, 2**31 - 1))
def test_below_stays_below(bits: int, n: int) -> None:
    assert 0 <= below(bits, n) < n


def test_below_reaches_both_ends() -> None:
    assert below(0, 10) == 0
    assert below(2**63 - 1, 10) == 9


@pytest.mark.parametrize("n", [2, 3, 10])
def test_below_is_even(n: int) -> None:
    counts = np.bincount([below(bits, n) for bits in draws(5, 20_000).tolist()], minlength=n)
    assert np.abs(counts / 20_000 - 1 / n).max() < 0.02


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.5, 0.9])
def test_a_gap_is_geometric(probability: float) -> None:
    drawn = gaps(11, 40_000, gap_scale(probability))
    assert drawn.min() == 0
    mean = (1 - probability) / probability
    spread = math.sqrt(1 - probability) / probability / math.sqrt(40_000)
    assert drawn.mean() == pytest.approx(mean, abs=5 * spread)
    assert (drawn == 0).mean() == pytest.approx(probability, abs=0.013)  # five standard deviations at most


def test_what_always_happens_needs_no_waiting() -> None:
    assert gaps(1, 1_000, gap_scale(1.0)).max() == 0


def test_what_never_happens_is_waited_for_for_ever() -> None:
    assert gaps(1, 1_000, gap_scale(0.0)).min() == np.iinfo(np.int64).max
