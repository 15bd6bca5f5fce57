"""Recent counts: every micro-batch fades what was counted before it, and keys with very low counts are forgotten."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError


class FadingCounts:
    """Counts of hot keys and of slots over the last micro-batches; each one weighs `memory` times as much as the next.

    It is lossy counting with micro-batches as buckets: after each one, keys below `epsilon` of all rows are dropped. So
    at most 1 / `epsilon` keys are kept, and a count is too low by at most this share of the rows.

    Parameters
    ----------
    slots
        The number of tail slots.
    memory
        Weight of a micro-batch relative to the next one, from 0 to below 1; 0 uses only the newest.
    epsilon
        Share of all rows below which a key is forgotten.

    Examples
    --------
    >>> recent = FadingCounts(slots=2, memory=0.5)
    >>> recent.add(np.array([7]), np.array([60]), 100, np.array([10, 30]))
    >>> recent.add(np.array([7]), np.array([20]), 100, np.array([70, 10]))
    >>> seen = recent.counts()
    >>> seen.keys, seen.counts, seen.total, seen.tail
    (array([7]), array([50.]), 150.0, array([75., 25.]))
    """

    def __init__(self, slots: int, memory: float = 0.5, epsilon: float = 1e-4) -> None:
        if not 0 <= memory < 1:
            raise SkewlessError(f"memory is {memory}; give a number from 0 to below 1, such as 0.5")
        self._memory, self._epsilon = memory, epsilon
        self._counts: dict[int, float] = {}
        self._tail: FloatArray = np.zeros(slots)
        self._total = 0.0

    def add(self, hashes: Int64Array, counts: Int64Array, total: int, tail: Int64Array) -> None:
        """Add a micro-batch: its hot keys, all its rows, and the rows of the other keys in each tail slot."""
        fresh = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
        self._total = self._memory * self._total + total
        self._tail = self._memory * self._tail + tail
        least = self._epsilon * self._total
        kept: dict[int, float] = {}
        for key in self._counts.keys() | fresh.keys():
            count = self._memory * self._counts.get(key, 0.0) + fresh.get(key, 0)
            if count >= least and count > 0:
                kept[key] = count
            else:
                self._tail[key % len(self._tail)] += count
        self._counts = kept

    def counts(self) -> Counts:
        """The counts in the form that placers take."""
        keys = np.array(sorted(self._counts), dtype=np.int64)
        counts = np.array([self._counts[key] for key in keys.tolist()])
        # A sketch may count too high where it is unsure.
        total = max(self._total, float(counts.sum()))
        return Counts(keys, counts, total, self._tail.copy())
