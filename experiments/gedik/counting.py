"""The frequencies that partitioning functions are built from: what three staggered lossy counters saw of the stream.

As in the paper's Figure 2: the oldest of three counters answers, and holds the last W to 1.5 W rows. Between two steps
of growth, three quarters of W rows go by, so that the answers are at all ages that they can have.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.sketch import LossyCounts, SlidingCounts
from skewless.workload import Zipf

BLOCK = 50_000


class Counted(NamedTuple):
    """What the counters know at one time.

    Attributes
    ----------
    ranks
        The items in memory, by rank: 0 is the most frequent of the domain.
    shares
        The share of the rows that each has, at most the true one of those rows.
    error
        How much too low a share may be.
    """

    ranks: Int64Array
    shares: FloatArray
    error: float


# The algorithms, and settings that differ in their utility, look at the same streams.
@lru_cache(maxsize=48)
def counted(z: float, domain: int, window: int, epsilon: float, steps: int, run: int) -> tuple[Counted, ...]:
    """What the trio knows before each of so many steps.

    >>> few, more = counted(1.0, 1000, window=10_000, epsilon=0.01, steps=2, run=0)
    >>> few.ranks[:3].tolist(), more.ranks[:3].tolist(), more.error
    ([0, 1, 2], [0, 1, 2], 0.01)
    """
    trio = SlidingCounts(window, 3, lambda: LossyCounts(epsilon))
    stream = Zipf(z, keys=domain, seed=run + 1)
    between = window * 3 // 4
    found: list[Counted] = []
    for i, block in enumerate(stream.blocks(between * steps, block=min(BLOCK, between)), 1):
        trio.add(block)
        if i * min(BLOCK, between) >= between * (len(found) + 1):
            ranks, counts = trio.heavy(0.0)
            found.append(Counted(ranks, counts / trio.total, epsilon))
    return tuple(found)


def exact(frequencies: FloatArray, most: int) -> Counted:
    """The frequencies of Zipf's law themselves, of so many items."""
    return Counted(np.arange(most), frequencies[:most], 0.0)
