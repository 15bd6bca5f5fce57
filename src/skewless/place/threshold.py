"""Which items are worth an entry of their own: those whose frequency passes delta (section 4.1.3)."""

from __future__ import annotations

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError
from skewless.place.resources import DEGREES, Resources, Tolerance, beta


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


def delta(
    resources: Resources, alpha: Tolerance, sigma: float, channels: int, domain: int, known: FloatArray | None = None
) -> float:
    """Equations 16 and 17: the lowest frequency to track, over a domain of `domain` items.

    An untracked item of this frequency causes at most `sigma` of the imbalance that is allowed. For a quadratic
    resource the average load is taken to be as low as possible, with all items alike, so delta is low. The second
    filter raises it: delta again, with the load that the items of these `known` frequencies really cause, while the
    other items are taken to be alike. The paper leaves the channels out of the average load there; as equation 16
    speaks of the average of a channel, the sum is divided by them.

    >>> tolerance = Tolerance.of(1.2)
    >>> round(delta(Resources("LCL"), tolerance, 0.1, 10, 10**6), 6)
    0.001765
    >>> round(delta(Resources("LQL"), tolerance, 0.1, 10, 10**6), 6)
    4.2e-05
    >>> delta(Resources("CCC"), tolerance, 0.1, 10, 10**6)
    1.0
    >>> from skewless.workload import Zipf
    >>> zipf = Zipf(1.0, keys=10**6).frequencies
    >>> round(delta(Resources("LQL"), tolerance, 0.1, 10, 10**6, zipf[zipf >= 4.2e-05]), 6)
    0.001765
    """
    squares = 1.0 / domain  # the least that the squared frequencies can add up to, where all are alike
    if known is not None:
        rest = max(0.0, 1.0 - float(known.sum()))
        others = max(0, domain - len(known))
        squares = max(squares, float(beta("Q", known).sum()) + (rest**2 / others if others else 0.0))
    found = 1.0  # constant resources balance by themselves
    for letter, tolerated in zip(resources.letters, alpha, strict=True):
        total = squares if letter == "Q" else 1.0
        allowed = sigma * theta(tolerated, channels) * total / channels
        if letter != "C":
            found = min(found, allowed ** (1 / DEGREES[letter]))  # beta(delta) = allowed, solved for delta
    return found
