"""Shuffling: every worker gets the same number of tuples, whatever their keys."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.policy import Policy
from skewless.split.base import Splitter


class Shuffle(Splitter):
    """Deals tuples round robin, whatever their key.

    The loads are as equal as possible, but every key is on every worker, so merging costs the most.

    Examples
    --------
    >>> Shuffle(3).route(np.array([7, 7, 7, 7]))
    array([0, 1, 2, 0], dtype=int32)
    """

    name: ClassVar[str] = "shuffle"

    def __init__(self, workers: int = 1) -> None:
        super().__init__(workers)
        self._next = 0

    def plan(self, seen: Counts) -> Policy:
        """A policy in which every tuple may go to any worker."""
        self.version += 1
        return Policy.of(self.workers, tail="shuffle", version=self.version)

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        out[:] = (np.arange(self._next, self._next + len(keys)) % self.workers).astype(np.int32)
        self._next = (self._next + len(keys)) % self.workers

    def _begin_batch(self, seen: Counts) -> None:
        """Shuffling remembers nothing of a batch."""
