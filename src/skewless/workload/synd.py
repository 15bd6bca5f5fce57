"""SynD: the synthetic stream of the Prompt experiments."""

from __future__ import annotations

from skewless.core.errors import SkewlessError
from skewless.workload.zipf import Zipf

LOWEST, HIGHEST = 0.1, 2.0
MOST_KEYS = 10_000_000


def synd(z: float, keys: int = MOST_KEYS, seed: int = 1) -> Zipf:
    """Keys with Zipf frequencies of exponent `z`, 0.1 to 2.0, of up to 10 million keys.

    >>> synd(1.0, keys=100_000).take(3)
    array([  272, 54941,     2])

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """
    if not LOWEST <= z <= HIGHEST:
        raise SkewlessError(f"z is {z}; SynD has exponents from {LOWEST} to {HIGHEST}, and Zipf takes any other")
    if not 1 <= keys <= MOST_KEYS:
        raise SkewlessError(f"keys is {keys:,}; SynD has 1 to {MOST_KEYS:,} keys, and Zipf takes more")
    return Zipf(z, keys, seed)
