"""Random numbers inside kernels: the i-th draw of a seed is the same however the stream is cut into calls."""

from __future__ import annotations

import math

import numpy as np

from skewless.core.arrays import Float, Int
from skewless.core.kernel import inner


@inner
def draw(seed: Int, i: Int) -> Int:
    """63 random bits (SplitMix64's i-th output)."""
    x = np.uint64(seed) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(1))


@inner
def below(bits: Int, n: Int) -> Int:
    """A number from 0 to n - 1, for n < 2**31, from the low half of a draw."""
    return ((bits & 0x7FFFFFFF) * n) >> 31


def gap_scale(probability: float) -> float:
    """The number that `gap` needs for a probability: 1 / ln(1 - probability)."""
    if probability in (0.0, 1.0):
        return -math.inf if probability == 0.0 else 0.0
    return 1.0 / math.log1p(-probability)


@inner
def gap(bits: Int, scale: Float) -> Int:
    """A geometric draw: how often an event does not happen before it does, at the probability given to `gap_scale`."""
    if scale == -np.inf:
        return np.iinfo(np.int64).max
    u = ((bits >> 10) + 1) * (1.0 / (1 << 53))  # in (0, 1]
    return np.int64(np.log(u) * scale)
