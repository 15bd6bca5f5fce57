"""Streams with the number of keys and the hottest key's share of the data sets in Dalton's Table 2.

The data sets are not in this package, and little is known of them beyond that table: between the hottest key and the
number of keys, frequencies follow Zipf's law here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.workload.shift import Shift
from skewless.workload.zipf import Zipf

T4SA_KEYS, T4SA_TOP = 450_000, 0.0269
ELECTIONS_KEYS, ELECTIONS_TOP = 200_000, 0.072
VOTERS_KEYS, VOTERS_TOP = 100_000, 0.3845
STEEPEST = 64.0  # exponents beyond this leave nothing to all keys but one


def zipf_with_top(top: float, keys: int = 100_000, seed: int = 1) -> Zipf:
    """Zipf frequencies in which the hottest key has this share of the tuples.

    >>> stream = zipf_with_top(0.072, keys=200_000)
    >>> round(stream.s, 3), round(float(stream.frequencies[0]), 6)
    (0.986, 0.072)
    """
    return Zipf(_exponent(top, keys), keys, seed)


def t4sa_like(seed: int = 1) -> Zipf:
    """Like the hashtags of T4SA: 450,000 keys, of which the hottest has 2.69 % of the tuples.

    >>> t4sa_like().keys, round(float(t4sa_like().frequencies[0]), 4)
    (450000, 0.0269)
    """
    return zipf_with_top(T4SA_TOP, T4SA_KEYS, seed)


def elections_like(seed: int = 1) -> Zipf:
    """Like the hashtags of tweets on elections: 200,000 keys, of which the hottest has 7.2 % of the tuples.

    >>> elections_like().keys, round(float(elections_like().frequencies[0]), 4)
    (200000, 0.072)
    """
    return zipf_with_top(ELECTIONS_TOP, ELECTIONS_KEYS, seed)


def voters_like(every: int, seed: int = 1) -> Shift:
    """Like the post codes of voters: 100,000 keys, of which the hottest has up to 38.45 % of the tuples.

    Its share goes up and down as in the paper's Figure 9c: uniform in even phases, that share in odd ones.

    Parameters
    ----------
    every
        Tuples in a phase.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> stream = voters_like(every=1_000_000)
    >>> [round(float(stream.phase(number).frequencies[0]), 5) for number in range(4)]
    [1e-05, 0.3845, 1e-05, 0.3845]
    """
    uniform, skewed = Zipf(0.0, VOTERS_KEYS), zipf_with_top(VOTERS_TOP, VOTERS_KEYS)
    return Shift(every, lambda number: skewed if number % 2 else uniform, seed)


def new_skews(low: float = 0.5, high: float = 1.5, *, every: int, keys: int = 100_000, seed: int = 1) -> Shift:
    """Zipf with a new exponent and new hot keys for each phase (Dalton, section 5.2 and Fig. 9d).

    The exponent is drawn uniformly from [low, high], and the hottest key from all keys.

    >>> stream = new_skews(every=1_000_000, keys=1000)
    >>> [(round(stream.phase(number).s, 2), stream.phase(number).hottest) for number in range(3)]
    [(1.01, 950), (0.83, 611), (0.95, 430)]
    """
    if not 0 <= low <= high:
        raise SkewlessError(f"exponents come from a range of numbers of at least 0, not [{low}, {high}]")

    def phase(number: int) -> Zipf:
        draw = np.random.default_rng([seed, number])
        return Zipf(draw.uniform(low, high), keys, hottest=int(draw.random() * keys))

    return Shift(every, phase, seed)


@lru_cache(maxsize=16)
def _exponent(top: float, keys: int) -> float:
    """The exponent with which the first of so many ranks has this share, found by halving."""
    if not 1 / max(keys, 1) <= top < 1:
        raise SkewlessError(
            f"the hottest of {keys:,} keys has at least 1 / {keys:,} of the tuples and less than all, not {top}"
        )
    ranks = np.arange(1, keys + 1, dtype=np.float64)
    low, high = 0.0, STEEPEST
    for _ in range(60):
        middle = (low + high) / 2
        if 1.0 / (ranks**-middle).sum() < top:
            low = middle
        else:
            high = middle
    return high
