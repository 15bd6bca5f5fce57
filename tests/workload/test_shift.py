from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Shift, Zipf, new_exponents, new_hot_keys, uniform_then_zipf
from skewless.workload.shift import spread


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 70), st.integers(0, 500), st.integers(1, 600))
def test_every_tuple_belongs_to_the_phase_of_its_position(every: int, n: int, block: int) -> None:
    stream = Shift(every, phase=lambda number: Zipf(0.0, keys=1000, hottest=number))
    uniform = Zipf(0.0, keys=1000, seed=stream.seed).take(n)
    expected = (uniform + np.arange(n) // every) % 1000
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.int64), *stream.blocks(n, block)]), expected)
    np.testing.assert_array_equal(stream.take(n), expected)


def test_uniform_and_zipf_take_turns() -> None:
    keys = uniform_then_zipf(1.5, every=10_000, keys=1000).take(40_000).reshape(4, 10_000)
    hottest = [np.bincount(phase).max() for phase in keys]
    assert max(hottest[0], hottest[2]) < 50
    assert min(hottest[1], hottest[3]) > 3000


def test_other_keys_are_hot_in_each_phase() -> None:
    keys = new_hot_keys(1.5, every=20_000, keys=1000).take(100_000).reshape(5, 20_000)
    hot = [set(np.argsort(np.bincount(phase, minlength=1000))[-20:].tolist()) for phase in keys]
    assert all(not earlier & later for i, later in enumerate(hot) for earlier in hot[:i])
    shares = [np.bincount(phase).max() / 20_000 for phase in keys]
    assert max(shares) - min(shares) < 0.02


@given(st.integers(2, 10_000), st.integers(0, 50))
def test_the_next_hot_key_is_another_one(keys: int, number: int) -> None:
    assert 0 <= spread(number, keys) < keys
    assert spread(number, keys) != spread(number + 1, keys)


def test_exponents_are_drawn_anew_from_the_range() -> None:
    stream = new_exponents(0.5, 1.5, every=1000, seed=4)
    exponents = np.array([stream.phase(number).s for number in range(400)])
    assert 0.5 <= exponents.min() < 0.55
    assert 1.45 < exponents.max() <= 1.5
    assert abs(exponents.mean() - 1.0) < 0.05
    assert stream.phase(17).s == exponents[17]


@pytest.mark.parametrize("make", [uniform_then_zipf, new_hot_keys])
def test_a_seed_is_a_stream(make: object) -> None:
    first, again, other = (make(1.5, every=100, keys=50, seed=seed).take(1000) for seed in (1, 1, 2))  # type: ignore[operator]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_cannot_shift_is_refused() -> None:
    with pytest.raises(SkewlessError, match="at least 1 tuple, not 0"):
        uniform_then_zipf(1.5, every=0)
    with pytest.raises(SkewlessError, match="at least 2 keys"):
        new_hot_keys(1.5, every=10, keys=1)
    with pytest.raises(SkewlessError, match=r"not \[1.5, 0.5\]"):
        new_exponents(1.5, 0.5, every=10)
