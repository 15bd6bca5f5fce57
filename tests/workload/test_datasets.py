"""The streams of Dalton's experiments against its Table 2 and its section 5.2."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Zipf, elections_like, new_skews, t4sa_like, voters_like, zipf_with_top

# Table 2: keys, and the frequency of the hottest in per cent.
T4SA, ELECTIONS, VOTERS = (450_000, 2.69), (200_000, 7.2), (100_000, 38.45)
TUPLES = 1_000_000


def top_share(keys: np.ndarray) -> float:
    return float(np.unique(keys, return_counts=True)[1].max()) / len(keys)


def close(share: float, per_cent: float) -> bool:
    """Within four standard deviations of what chance allows."""
    expected = per_cent / 100
    return abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / TUPLES)


@pytest.mark.parametrize(("stream", "row"), [(t4sa_like(), T4SA), (elections_like(), ELECTIONS)])
def test_hashtags_are_those_of_table_2(stream: Zipf, row: tuple[int, float]) -> None:
    keys = stream.take(TUPLES)
    assert stream.keys == row[0]
    assert round(100 * stream.frequencies[0], 3) == row[1]
    assert close(top_share(keys), row[1])
    assert keys.min() >= 0
    assert keys.max() < row[0]


@pytest.mark.parametrize(("stream", "row"), [(t4sa_like(), T4SA), (elections_like(), ELECTIONS)])
def test_every_hashtag_has_its_chance(stream: Zipf, row: tuple[int, float]) -> None:
    assert len(stream.frequencies) == row[0]
    assert stream.frequencies.min() > 0
    assert stream.frequencies.sum() == pytest.approx(1)
    rarest = stream.keys_at(0, np.array([np.nextafter(1.0, 0.0)]))
    assert rarest == row[0] - 1


def test_the_share_of_the_hottest_post_code_goes_up_to_that_of_table_2() -> None:
    stream = voters_like(every=TUPLES, seed=3)
    assert {stream.phase(number).keys for number in range(4)} == {VOTERS[0]}
    uniform, skewed, again = stream.take(3 * TUPLES).reshape(3, TUPLES)
    assert close(top_share(skewed), VOTERS[1])
    assert max(top_share(uniform), top_share(again)) < 0.0001
    assert len(np.unique(uniform)) > 0.999 * VOTERS[0]


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3000), st.floats(0.0, 3.0))
def test_the_exponent_is_found_from_the_share_it_gives(keys: int, s: float) -> None:
    top = 1 / sum(rank**-s for rank in range(1, keys + 1))
    assert zipf_with_top(min(top * (1 + 1e-12), 0.999), keys).s == pytest.approx(s, abs=1e-6)


@pytest.mark.parametrize(("top", "keys"), [(0.0, 10), (0.05, 10), (1.0, 10), (1.0, 1), (math.nan, 10)])
def test_a_share_that_no_hottest_key_can_have_is_refused(top: float, keys: int) -> None:
    with pytest.raises(SkewlessError, match="the hottest of"):
        zipf_with_top(top, keys)


def test_exponents_and_hot_keys_are_drawn_anew_in_each_phase() -> None:
    stream = new_skews(every=1000, keys=5000, seed=4)
    phases = [stream.phase(number) for number in range(300)]
    exponents = np.array([phase.s for phase in phases])
    hottest = np.array([phase.hottest for phase in phases])
    assert 0.5 <= exponents.min() < 0.55
    assert 1.45 < exponents.max() <= 1.5
    assert abs(exponents.mean() - 1.0) < 0.06
    assert len(set(hottest.tolist())) > 280
    assert abs(hottest.mean() / 5000 - 0.5) < 0.06
    assert stream.phase(17) == phases[17]
    assert new_skews(every=1000, keys=5000, seed=5).phase(17) != phases[17]


def test_a_phase_is_as_skewed_as_its_exponent() -> None:
    stream = new_skews(every=50_000, keys=5000, seed=2)
    for number, keys in enumerate(stream.take(200_000).reshape(4, 50_000)):
        phase = stream.phase(number)
        counts = np.bincount(keys, minlength=5000)
        assert counts[phase.hottest] / 50_000 == pytest.approx(phase.frequencies[0], rel=0.1)


def test_a_range_of_exponents_is_one() -> None:
    with pytest.raises(SkewlessError, match=r"not \[1.5, 0.5\]"):
        new_skews(1.5, 0.5, every=10)


@pytest.mark.parametrize("make", [t4sa_like, elections_like, lambda seed: voters_like(500, seed)])
def test_a_seed_is_a_stream(make: object) -> None:
    first, again, other = (make(seed).take(1000) for seed in (1, 1, 2))  # type: ignore[operator]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
