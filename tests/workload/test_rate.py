from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Constant, Rate, Sine, Spikes

RATES = [
    Constant(70),
    Sine(mean=100, amplitude=100, period=7),
    Sine(mean=100, amplitude=30, period=60, phase=11),
    Spikes(base=10, peak=50, every=8, lasts=3, first=2.5),
    Spikes(base=0, peak=50, every=8, lasts=8),
]
EVERY = pytest.mark.parametrize("rate", RATES)
TIMES = st.floats(-50, 200)


@EVERY
def test_tuples_between_two_times_are_the_sum_of_the_rate(rate: Rate) -> None:
    times = (np.arange(200_000) + 0.5) * 37.3 / 200_000 + 1.1
    summed = np.mean([rate(time) for time in times]) * 37.3
    assert rate.between(1.1, 1.1 + 37.3) == pytest.approx(summed, rel=1e-4)


@EVERY
@given(TIMES, TIMES, TIMES)
def test_two_spans_that_meet_have_the_tuples_of_both(rate: Rate, one: float, two: float, three: float) -> None:
    start, middle, stop = sorted((one, two, three))
    both = rate.between(start, middle) + rate.between(middle, stop)
    assert rate.between(start, stop) == pytest.approx(both, abs=1e-6)
    assert rate.between(start, stop) >= -1e-6


def test_a_sine_has_its_mean_over_a_period_and_its_extremes_a_quarter_on() -> None:
    rate = Sine(mean=100, amplitude=40, period=20, phase=3)
    assert rate.between(4, 24) == pytest.approx(2000)
    assert (rate(2), rate(12)) == (pytest.approx(140), pytest.approx(60))


def test_there_is_no_spike_before_the_first() -> None:
    rate = Spikes(base=10, peak=50, every=8, lasts=3, first=20)
    assert rate.between(0, 20) == 200
    assert rate.between(20, 28) == 80 + 3 * 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1), "rate is -1 tuples a second; give a number from 0"),
        (lambda: Sine(10, 11, 5), "amplitude is 11; give 0 to the mean of 10"),
        (lambda: Sine(10, 5, 0), "period is 0 seconds; give more than 0"),
        (lambda: Spikes(10, 5, 5, 1), "peak is 5; give at least the base of 10"),
        (lambda: Spikes(10, 20, 5, 6), "lasts is 6 seconds; give more than 0, up to every=5"),
        (lambda: Constant(1).between(3, 2), "between 3 and 2: give the earlier time first"),
    ],
)
def test_what_is_no_rate_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
