"""Keys in the form that sketches take, and the hash by which a sketch finds the entry of a key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, xxhash64_long
from skewless.core.kernel import inner


def as_keys(keys: npt.ArrayLike) -> Int64Array:
    """Keys in the form that kernels take: longs in a flat array, side by side in memory.

    >>> as_keys([1, 2])
    array([1, 2])
    >>> as_keys([1.5])
    Traceback (most recent call last):
    skewless.core.errors.SkewlessError: keys are float64: give integers, or hash them to such first
    """
    given = np.asarray(keys)
    if given.ndim != 1:
        raise SkewlessError(f"keys have {given.ndim} dimensions: give one row of them")
    if len(given) and not np.can_cast(given.dtype, np.int64, "same_kind"):
        raise SkewlessError(f"keys are {given.dtype}: give integers, or hash them to such first")
    return np.ascontiguousarray(given, np.int64)


@inner
def key_hash(key: int) -> int:
    """Spark's `xxhash64` of a key."""
    return int(xxhash64_long(np.int64(key), np.int64(SEED)))
