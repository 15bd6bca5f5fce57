from __future__ import annotations

import re
from math import isclose, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.place import Resources, Scan, Tolerance
from skewless.place.threshold import delta, theta
from skewless.workload import Zipf

ALPHA = Tolerance.of(1.2)


@given(st.floats(1.01, 4), st.integers(2, 40))
def test_theta_is_the_largest_distance_from_the_average(alpha: float, channels: int) -> None:
    loads = np.array([alpha, *np.ones(channels - 1)])  # the worst case: one at alpha, all others at 1
    assert isclose(theta(alpha, channels), (loads.max() - loads.mean()) / loads.mean(), rel_tol=1e-9)


@given(
    st.text("CLQ", min_size=3, max_size=3),
    st.tuples(*[st.floats(1.01, 4)] * 3),
    st.floats(0.001, 1),
    st.integers(2, 50),
    st.integers(1, 10**8),
)
def test_delta_is_the_least_of_the_resources(
    letters: str, alphas: tuple[float, float, float], sigma: float, channels: int, domain: int
) -> None:
    each = []
    for letter, alpha in zip(letters, alphas, strict=True):
        allowed = sigma * theta(alpha, channels)
        forms = {"C": 1.0, "L": allowed / channels, "Q": sqrt(allowed / (domain * channels))}
        each.append(forms[letter])
    assert delta(Resources(letters), Tolerance.of(alphas), sigma, channels, domain) == pytest.approx(min(1.0, *each))


@pytest.mark.parametrize("letters", ["CCL", "LCL", "LLL", "LQL"])
def test_after_the_second_filter_all_resources_track_the_same_items(letters: str) -> None:
    frequencies = Zipf(1.0, keys=1_000_000).frequencies
    kept = Scan(resources=letters).tracked(frequencies, 10, 1_000_000)
    assert kept.sum() == 39  # "around 50" in the paper, with a counter that also lets slightly rarer items through


def test_the_second_filter_raises_a_quadratic_delta() -> None:
    frequencies = Zipf(1.0, keys=100_000).frequencies
    resources = Resources("CQC")
    first = delta(resources, ALPHA, 0.1, 10, 100_000)
    kept = frequencies[frequencies >= first]
    rest = 1 - kept.sum()
    load = (kept**2).sum() + rest**2 / (100_000 - len(kept))
    expected = sqrt(0.1 * theta(1.2, 10) * load / 10)
    assert delta(resources, ALPHA, 0.1, 10, 100_000, kept) == pytest.approx(expected)
    assert first < expected / 10
    assert Scan(resources=resources).tracked(frequencies, 10, 100_000).sum() == (frequencies >= expected).sum()


def test_lower_sigma_and_more_channels_track_more() -> None:
    frequencies = Zipf(1.0, keys=100_000).frequencies
    kept = [Scan(sigma=sigma).tracked(frequencies, 10, 100_000).sum() for sigma in (1.0, 0.1, 0.01)]
    assert kept == sorted(kept)
    kept = [Scan().tracked(frequencies, n, 100_000).sum() for n in (1, 2, 10, 32)]
    assert kept[0] == 0
    assert kept == sorted(kept)


def test_constant_resources_need_no_tracking() -> None:
    assert not Scan(resources="CCC").tracked(np.array([1.0]), 10, 1).any()


@pytest.mark.parametrize("letters", ["LC", "LCLL", "lcl", "LXL", ""])
def test_unknown_resources_are_refused(letters: str) -> None:
    with pytest.raises(SkewlessError, match=f"resources are {letters!r}; give a letter each"):
        Resources(letters)


@pytest.mark.parametrize("alpha", [1.0, 0.5, float("nan"), float("inf")])
def test_a_tolerance_of_nothing_is_refused(alpha: float) -> None:
    with pytest.raises(SkewlessError, match=re.escape(f"alpha for state is {alpha}; give a number above 1")):
        Tolerance.of(alpha)
    with pytest.raises(SkewlessError, match="alpha for communication"):
        Tolerance.of((1.2, 1.2, alpha))


@pytest.mark.parametrize("sigma", [0.0, -1.0, 1.1])
def test_sigma_is_a_part_of_the_tolerance(sigma: float) -> None:
    with pytest.raises(SkewlessError, match=f"sigma is {sigma}"):
        Scan(sigma=sigma)
