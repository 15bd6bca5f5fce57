"""Zipf's law: the key of rank r comes with a frequency proportional to 1 / r^s."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import kernel
from skewless.workload.stream import Workload

MOST_KEYS = 100_000_000  # the tables take 16 to 24 bytes a key


@dataclass(frozen=True)
class Zipf(Workload):
    """Keys with Zipf frequencies.

    A key is found by inverting the cumulative frequencies. A guide table says where the search in them starts, so it
    ends after one or two steps, whatever the skew. The keys are, number for number, those of numpy's own
    `default_rng(seed).choice(keys, size=n, p=p)`, at many times its speed.

    Parameters
    ----------
    s
        The exponent: 0 is uniform, 1 is natural language, 1.5 is heavy skew.
    keys
        Number of distinct keys; they are 0 to keys - 1.
    seed
        The same seed gives the same stream.
    hottest
        The most frequent key; the next in rank is hottest + 1, and so on around to hottest - 1.

    Examples
    --------
    >>> stream = Zipf(1.5, keys=1000, seed=1)
    >>> keys = stream.take(100_000)
    >>> round(float((keys == 0).mean()), 2), round(float(stream.frequencies[0]), 2)
    (0.39, 0.39)
    >>> sum(len(block) for block in stream.blocks(100_000, block=30_000))
    100000
    """

    s: float
    keys: int = 100_000
    seed: int = 1
    hottest: int = 0

    def __post_init__(self) -> None:
        """Check the exponent and the keys."""
        if not (math.isfinite(self.s) and self.s >= 0):
            raise SkewlessError(f"the Zipf exponent must be at least 0 (0 is uniform), not {self.s}")
        if not 1 <= self.keys <= MOST_KEYS:
            raise SkewlessError(f"a stream has 1 to {MOST_KEYS:,} keys, not {self.keys:,}")
        if not 0 <= self.hottest < self.keys:
            raise SkewlessError(f"the hottest key must be one of 0 to {self.keys - 1}, not {self.hottest}")

    @property
    def frequencies(self) -> FloatArray:
        """The probability of each rank, highest first."""
        return _frequencies(self.s, self.keys)

    def keys_at(self, position: int, uniforms: FloatArray) -> Int64Array:
        """The keys of these uniform numbers; the position does not matter to a stream that never changes."""
        cumulative, guide = _tables(self.s, self.keys)
        return _invert(uniforms, cumulative, guide, self.hottest)


def _frequencies(s: float, keys: int) -> FloatArray:
    # Under a huge exponent the far ranks weigh nothing.
    with np.errstate(over="ignore"):
        weights = 1.0 / np.arange(1, keys + 1, dtype=np.float64) ** s
    frequencies: FloatArray = weights / weights.sum()
    return frequencies


# Streams that shift return to the same few distributions.
@lru_cache(maxsize=4)
def _tables(s: float, keys: int) -> tuple[FloatArray, Int64Array]:
    """Cumulative frequencies, and for each of equal steps in [0, 1) the first rank that lies beyond it."""
    cumulative = _frequencies(s, keys).cumsum()
    cumulative /= cumulative[-1]
    # A power of two, so that scaling a uniform number by it is exact.
    steps = 1 << max(10, (keys - 1).bit_length())
    guide = np.searchsorted(cumulative, np.arange(steps) / steps, side="right")
    return cumulative, guide


@kernel
def _invert(uniforms: FloatArray, cumulative: FloatArray, guide: Int64Array, hottest: int) -> Int64Array:
    found = np.empty(len(uniforms), np.int64)
    for i in range(len(uniforms)):
        rank = guide[np.int64(uniforms[i] * len(guide))]
        while cumulative[rank] <= uniforms[i]:
            rank += 1
        key = rank + hottest
        found[i] = key if key < len(cumulative) else key - len(cumulative)
    return found
