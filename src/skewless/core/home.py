"""The home of a key: the worker that plain hashing gives it, the same here and in Spark."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import lean_kernel


def homes(keys: Int64Array, workers: int) -> Int32Array:
    """The home of each key: Spark's `pmod(xxhash64(key), workers)`.

    >>> homes(np.array([0, 1, 2, 3]), 4)
    array([0, 2, 1, 3], dtype=int32)
    """
    out = np.empty(len(keys), dtype=np.int32)
    fill_homes(keys, workers, out)
    return out


@lean_kernel
def fill_homes(keys: Int64Array, workers: Int, out: Int32Array) -> None:
    """Write the home of each key to `out`."""
    for i in range(keys.shape[0]):
        out[i] = pmod(xxhash64_long(keys[i], SEED), workers)
