"""When tuples arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.simulate import Recorded, Source, sine, steps, varying
from skewless.workload import Spikes, Zipf


@given(st.floats(0.5, 500), st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_a_constant_rate_spaces_tuples_evenly_however_time_is_cut(rate, cuts):
    feed = Source(Zipf(1.0, keys=50), rate).feed()
    found = np.concatenate([feed.until(float(end))[1] for end in np.cumsum(cuts) / 10])
    np.testing.assert_allclose(found, np.arange(len(found)) / rate, atol=1e-4 / rate)
    assert len(found) == pytest.approx(rate * sum(cuts) / 10, abs=1)


def test_the_keys_are_those_of_the_workload_in_its_order():
    zipf = Zipf(1.0, keys=50, seed=7)
    feed = Source(zipf, 1000.0).feed()
    keys = np.concatenate([feed.until(end)[0] for end in (0.1, 0.15, 3.0)])
    np.testing.assert_array_equal(keys, zipf.take(3000))


@pytest.mark.parametrize(
    ("rate", "seconds", "expected"),
    [
        (steps((0, 10), (2, 50)), 4, 120),
        (sine(100, 80, period=4), 4, 400),
        (sine(100, 80, period=4), 2, 302),
        (varying(Spikes(base=10, peak=50, every=4, lasts=1, first=2)), 4, 80),
    ],
)
def test_a_rate_over_time_makes_as_many_tuples_as_its_integral(rate, seconds, expected):
    # Half a period of the sine has 2 x 100 + 80 x 4 / pi.
    feed = Source(Recorded(np.arange(10)), rate).feed()
    times = np.concatenate([feed.until(float(end))[1] for end in range(1, seconds + 1)])
    assert len(times) == pytest.approx(expected, abs=1)
    assert (np.diff(times) >= 0).all()
    assert times[-1] < seconds


def test_tuples_are_denser_where_the_rate_is_higher():
    feed = Source(Recorded(np.arange(10)), steps((0, 10), (2, 50))).feed()
    times = np.concatenate([feed.until(float(end))[1] for end in range(1, 5)])
    assert (times < 2).sum() == 20


def test_a_faster_source_has_the_same_keys():
    for rate in (50.0, steps((0, 50))):
        keys, times = Source(Recorded(np.arange(1000)), rate).at(3).feed().until(1.0)
        assert keys.tolist() == list(range(150))
        assert times[-1] == pytest.approx(149 / 150)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: steps((1, 5)), "rise from 0"),
        (lambda: steps((0, 5), (0, 6)), "rise from 0"),
        (lambda: sine(1, 2, 3), "amplitude is 2; give 0 to the mean of 1"),
        (lambda: Source(Recorded(np.array([1])), lambda at: -1 + 0 * at).feed().until(1.0), "the rate is -1"),
        (lambda: Source(Recorded(np.array([1])), -1.0), "the rate is -1.0 tuples a second"),
        (lambda: Source(Recorded(np.array([1])), np.nan), "the rate is nan tuples a second"),
        (lambda: Source(Recorded(np.array([1])), 2.0).at(np.inf), "the rate is inf tuples a second"),
        (lambda: Source(Recorded(np.array([], dtype=int)), 1.0).feed().until(1.5), "no keys to repeat"),
    ],
)
def test_impossible_rates_are_refused(call, words):
    with pytest.raises(SkewlessError) as refused:
        call()
    assert words in str(refused.value)
