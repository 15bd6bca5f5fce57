"""Plain hashing: every key always has the same worker."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.home import fill_homes
from skewless.core.policy import Policy
from skewless.split.base import Splitter


class Hash(Splitter):
    """Sends every tuple to the home of its key, `pmod(xxhash64(key), workers)`, as Spark would.

    Nothing is ever split, so nothing has to be merged, but the worker of a hot key is overloaded.

    Examples
    --------
    >>> skewed = np.array([1, 1, 1, 1, 1, 1, 2, 3])
    >>> np.bincount(Hash(4).route(skewed), minlength=4)
    array([0, 1, 6, 1])
    """

    name: ClassVar[str] = "hash"

    def plan(self, seen: Counts) -> Policy:
        """A policy in which no key has lanes."""
        return self._policy(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        fill_homes(keys, self.workers, out)
