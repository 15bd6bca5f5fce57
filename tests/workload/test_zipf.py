from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Zipf


def chi_square(keys: np.ndarray, frequencies: np.ndarray) -> tuple[float, int]:
    """Pearson's statistic over the keys expected at least 20 times, the others as one, and its degrees of freedom."""
    expected = frequencies * len(keys)
    seen = np.bincount(keys, minlength=len(frequencies))
    often = expected >= 20
    expected, seen = (np.append(x[often], x[~often].sum()) for x in (expected, seen))
    terms = (seen - expected)[expected > 0] ** 2 / expected[expected > 0]
    return float(terms.sum()), len(terms) - 1


@pytest.mark.parametrize("s", [0.0, 0.5, 1.0, 1.5, 2.5])
def test_frequencies_follow_the_law(s: float) -> None:
    stream = Zipf(s, keys=1000, seed=11)
    assert stream.frequencies[0] / stream.frequencies[9] == pytest.approx(10**s)
    statistic, freedom = chi_square(stream.take(400_000), stream.frequencies)
    assert abs(statistic - freedom) < 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize(
    ("s", "keys"), [(0.0, 1), (0.0, 1000), (0.7, 1023), (1.0, 100_000), (1.5, 100_000), (5.0, 1025)]
)
def test_the_stream_is_numpys_choice(s: float, keys: int) -> None:
    p = 1.0 / np.arange(1, keys + 1) ** s
    chosen = np.random.default_rng(3).choice(keys, size=100_000, p=p / p.sum())
    np.testing.assert_array_equal(Zipf(s, keys, seed=3).take(100_000), chosen)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 3000), st.integers(1, 3500), st.sampled_from([0.0, 1.5]))
def test_the_stream_does_not_depend_on_the_block(n: int, block: int, s: float) -> None:
    stream = Zipf(s, keys=500)
    blocks = list(stream.blocks(n, block))
    assert all(len(piece) == block for piece in blocks[:-1])
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.int64), *blocks]), stream.take(n))


def test_a_seed_is_a_stream() -> None:
    assert np.array_equal(Zipf(1.0, seed=5).take(1000), Zipf(1.0, seed=5).take(1000))
    assert not np.array_equal(Zipf(1.0, seed=5).take(1000), Zipf(1.0, seed=6).take(1000))


def test_the_hottest_key_can_be_any() -> None:
    plain, turned = Zipf(1.2, keys=50).take(10_000), Zipf(1.2, keys=50, hottest=47).take(10_000)
    np.testing.assert_array_equal(turned, (plain + 47) % 50)


def test_keys_are_int64() -> None:
    assert Zipf(1.0).take(3).dtype == np.int64


def test_an_enormous_exponent_leaves_one_key() -> None:
    assert not Zipf(2000.0, keys=10).take(1000).any()


@pytest.mark.parametrize("s", [-0.1, float("nan"), float("inf")])
def test_the_exponent_is_a_number_of_at_least_0(s: float) -> None:
    with pytest.raises(SkewlessError, match="exponent must be at least 0"):
        Zipf(s)


@pytest.mark.parametrize("keys", [0, 10**9])
def test_the_number_of_keys_has_bounds(keys: int) -> None:
    with pytest.raises(SkewlessError, match="1 to 100,000,000 keys"):
        Zipf(1.0, keys=keys)


def test_the_hottest_key_is_one_of_the_keys() -> None:
    with pytest.raises(SkewlessError, match="one of 0 to 9, not 10"):
        Zipf(1.0, keys=10, hottest=10)


def test_lengths_are_checked() -> None:
    with pytest.raises(SkewlessError, match="at least 0, not -1"):
        Zipf(1.0).take(-1)
    with pytest.raises(SkewlessError, match="at least 0, not -1"):
        next(Zipf(1.0).blocks(-1))
    with pytest.raises(SkewlessError, match="at least 1 tuple, not 0"):
        next(Zipf(1.0).blocks(10, block=0))
