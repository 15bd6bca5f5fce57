"""The two sources of Figure 14, and what its halves share."""

from __future__ import annotations

from experiments.dalton.team import Alternating
from skewless.simulate.arrivals import Keys
from skewless.workload import Zipf

THREADS = 64
KEYS, EXPONENT = 100_000, 1.5
SINCE, START = 180.0, 200_000.0
"""Seconds before anything is counted, and the first rate that is tried."""


def two_streams(keys: int, seed: int) -> dict[str, tuple[Keys, Keys]]:
    """By name, the streams of two sources."""
    first = 10 * seed
    uniform = Zipf(0.0, keys, seed=first + 1), Zipf(0.0, keys, seed=first + 2)
    skewed = Zipf(EXPONENT, keys, seed=first + 3), Zipf(EXPONENT, keys, seed=first + 4)
    return {
        "one uniform, one Zipf": (uniform[0], skewed[0]),
        "both the same": (Alternating(uniform[0], skewed[0]), Alternating(uniform[1], skewed[1])),
    }
