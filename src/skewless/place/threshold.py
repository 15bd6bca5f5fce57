"""Which items are worth an entry of their own: those whose frequency passes delta (section 4.1.3)."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray
from skewless.core.errors import SkewlessError
from skewless.place.resources import Resources, Tolerance, beta


def theta(alpha: float, channels: int) -> float:
    """Equation 15: how far a load may be from the average, relative to it, if the largest is alpha times the smallest.

    The worst case of equation 14 is one channel at alpha x and all others at x.

    >>> round(theta(1.2, 10), 4)
    0.1765
    >>> theta(1.2, 1)
    0.0
    """
    if channels < 1:
        raise SkewlessError(f"{channels} channels: there is at least 1")
    return 0.0 if channels == 1 else (alpha - 1) / (1 + alpha / (channels - 1))


def delta(resources: Resources, alpha: Tolerance, sigma: float, channels: int, domain: int) -> float:
    """Equations 16 and 17: the lowest frequency to track, over a domain of `domain` items.

    An untracked item of this frequency causes at most `sigma` of the imbalance that is allowed. For a quadratic
    resource the average load is taken to be as low as possible, with all items alike, so delta is low: `second_delta`
    raises it once the frequent items are known.

    >>> tolerance = Tolerance.of(1.2)
    >>> round(delta(Resources("LCL"), tolerance, 0.1, 10, 10**6), 6)
    0.001765
    >>> round(delta(Resources("LQL"), tolerance, 0.1, 10, 10**6), 6)
    4.2e-05
    >>> delta(Resources("CCC"), tolerance, 0.1, 10, 10**6)
    1.0
    """
    # The sum of squared frequencies is least, 1 / domain, where all are alike.
    totals = {"C": float(domain), "L": 1.0, "Q": 1.0 / domain}
    return _least(resources, alpha, sigma, channels, totals)


def second_delta(
    resources: Resources, alpha: Tolerance, sigma: float, channels: int, domain: int, frequencies: FloatArray
) -> float:
    """The second filter for quadratic resources: delta again, with the load that these frequent items really cause.

    The items not listed are taken to be alike. The paper leaves the channels out of the average load here; as equation
    16 speaks of the average of a channel, the sum is divided by them.

    >>> zipf = 1 / np.arange(1, 10**6 + 1) / np.sum(1 / np.arange(1, 10**6 + 1))
    >>> tolerance, frequent = Tolerance.of(1.2), zipf[zipf >= 4.2e-05]
    >>> round(second_delta(Resources("LQL"), tolerance, 0.1, 10, 10**6, frequent), 6)
    0.001765
    """
    rest = max(0.0, 1.0 - float(frequencies.sum()))
    others = max(0, domain - len(frequencies))
    squares = float(beta("Q", frequencies).sum()) + (rest**2 / others if others else 0.0)
    totals = {"C": float(domain), "L": 1.0, "Q": max(squares, 1.0 / domain)}
    return _least(resources, alpha, sigma, channels, totals)


def tracked(
    frequencies: FloatArray, resources: Resources, alpha: Tolerance, sigma: float, channels: int, domain: int
) -> BoolArray:
    """Whether each item is worth an entry of its own: it passes delta, and the second filter if there is one.

    A single channel is always balanced, so nothing is tracked there.

    >>> tracked(np.array([0.4, 0.001]), Resources("LCL"), Tolerance.of(1.2), 0.1, 10, 1000)
    array([ True, False])
    """
    if not 0 < sigma <= 1:
        raise SkewlessError(f"sigma is {sigma}; give a number above 0 and up to 1, such as 0.1")
    if channels == 1 or set(resources.letters) == {"C"}:
        return np.zeros(len(frequencies), bool)
    kept: BoolArray = frequencies >= delta(resources, alpha, sigma, channels, domain)
    if "Q" in resources.letters:
        kept &= frequencies >= second_delta(resources, alpha, sigma, channels, domain, frequencies[kept])
    return kept


def _least(resources: Resources, alpha: Tolerance, sigma: float, channels: int, totals: dict[str, float]) -> float:
    """The least of the resources' own thresholds: beta(delta) = sigma theta total / channels, solved for delta."""
    found = 1.0  # constant resources balance by themselves
    for letter, tolerated in zip(resources.letters, alpha, strict=True):
        allowed = sigma * theta(tolerated, channels) * totals[letter] / channels
        if letter == "L":
            found = min(found, allowed)
        elif letter == "Q":
            found = min(found, allowed**0.5)
    return found
