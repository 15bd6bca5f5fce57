"""Blocks by time: what arrives in a part of the interval is a block."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError


def time_blocks(times: FloatArray | Int64Array, start: float, interval: float, blocks: int) -> Int32Array:
    """A block for each tuple of a micro-batch by the time of its arrival, as Spark Streaming's receivers do.

    The interval from `start` is cut into as many equal parts as there are blocks. Blocks are equal in tuples only
    while the rate is constant, and a key is wherever it comes.

    >>> time_blocks(np.array([10.0, 10.4, 10.5, 11.9]), start=10, interval=2, blocks=4)
    array([0, 0, 1, 3], dtype=int32)

    References
    ----------
    M. Zaharia, T. Das, H. Li, T. Hunter, S. Shenker, I. Stoica: Discretized streams: fault-tolerant streaming
    computation at scale. SOSP 2013.
    """
    if blocks < 1:
        raise SkewlessError(f"blocks is {blocks}; give at least 1")
    if not interval > 0:
        raise SkewlessError(f"interval is {interval}; give more than 0")
    times = np.asarray(times, np.float64)
    outside = times[(times < start) | (times >= start + interval)]
    if len(outside):
        raise SkewlessError(f"time {outside[0]} is outside [{start}, {start + interval}); give the times of one batch")
    # The last time before the end may be rounded up to it.
    return np.minimum((times - start) / interval * blocks, blocks - 1).astype(np.int32)
