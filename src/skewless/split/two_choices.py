"""Two choices: the less loaded of a key's two workers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import inner, lean_kernel
from skewless.split.base import Splitter


class TwoChoices(Splitter):
    """Sends a tuple to the less loaded of two workers that the key hashes to (partial key grouping).

    Among equally loaded workers, the first hash wins. Every key may be split in two, hot or not, and a key that is too
    heavy for two workers overloads both.

    Examples
    --------
    >>> TwoChoices(8).route(np.array([5, 5, 5, 5]))
    array([5, 1, 5, 1], dtype=int32)

    References
    ----------
    M. A. U. Nasir, G. De Francisci Morales, D. Garcia-Soriano, N. Kourtellis, M. Serafini: The power of both choices:
    practical load balancing for distributed stream processing engines. ICDE 2015.
    """

    name: ClassVar[str] = "two-choices"

    def __init__(self, workers: int = 1) -> None:
        super().__init__(workers)
        self.loads: Int64Array = np.zeros(workers, dtype=np.int64)

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        _route(self.loads, keys, weights, out)

    def _begin_batch(self, seen: Counts) -> None:
        self.loads[:] = seen.tail_loads(self.workers)


@inner
def candidate(key: Int, j: Int, workers: Int) -> Int:
    """The j-th worker that `key` hashes to; the first is its home."""
    return pmod(xxhash64_long(key, SEED + j), workers)


@inner
def less_loaded(loads: Int64Array, first: Int, second: Int) -> Int:
    """The less loaded of two workers; the first one if they are equal."""
    return second if loads[second] < loads[first] else first


@lean_kernel
def _route(loads: Int64Array, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
    workers = loads.shape[0]
    step = np.int64(weights.shape[0] > 1)
    for i in range(keys.shape[0]):
        worker = less_loaded(loads, candidate(keys[i], 0, workers), candidate(keys[i], 1, workers))
        loads[worker] += weights[i * step]
        out[i] = worker
