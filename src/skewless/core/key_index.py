"""An index of a few keys among many: where each of them is in a list, found inside kernels in a step or two."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.hashing import SEED, xxhash64_long
from skewless.core.kernel import inner, lean_kernel


def index_of(keys: Int64Array) -> Int64Array:
    """The index of a list of keys, for `place_of`.

    >>> index_of(np.array([7, -3])).shape
    (8, 2)
    """
    index = np.zeros((2 << len(keys).bit_length(), 2), dtype=np.int64)
    _fill(index, keys)
    return index


@inner
def place_of(index: Int64Array, key: Int, hashed: Int) -> Int:
    """Where the key, whose `xxhash64` is `hashed`, is in the list; -1 if it is not in it."""
    mask = index.shape[0] - 1
    at = (hashed >> 40) & mask
    while index[at, 1] != 0 and index[at, 0] != key:
        at = (at + 1) & mask
    return index[at, 1] - 1


@lean_kernel
def _fill(index: Int64Array, keys: Int64Array) -> None:
    mask = index.shape[0] - 1
    for i in range(keys.shape[0]):
        at = (xxhash64_long(keys[i], SEED) >> 40) & mask
        while index[at, 1] != 0:
            at = (at + 1) & mask
        index[at, 0] = keys[i]
        index[at, 1] = i + 1
