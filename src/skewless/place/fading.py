"""Recent counts: every micro-batch fades what was counted before it, and keys with very low counts are forgotten."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError


class FadingCounts:
    """Counts of hot keys and of slots over the last micro-batches; each one weighs `memory` times as much as the next.

    It is lossy counting with micro-batches as buckets. A key is kept from the micro-batch that it comes in on, and
    dropped when it has less than `epsilon` of the rows since then. Counts and rows fade alike, so that with
    micro-batches of T rows, W rows in all and W' of them since the key came:

    - **A count is never too high, and too low by at most epsilon (W - W').** What a key had before it came was dropped
      at less than epsilon of the rows until then, or never seen at all. So a key with at least epsilon W is kept: if it
      were dropped, it would have less than epsilon W' since it came for the last time, and less than epsilon (W - W')
      from before.
    - **A steady key is found in its first micro-batch if it has at least epsilon of its rows,** however long the memory
      is. If a key had to have epsilon of all rows at once, it would need epsilon / (1 - memory) of every micro-batch.
    - **There are at most (1 + ln(W / T)) / epsilon keys,** T being the rows of the newest micro-batch; that is
      (1 + ln(1 / (1 - memory))) / epsilon if all have as many rows. Those that came at most i micro-batches ago have
      epsilon W_i rows each, of the W_i since then; W_i grows from T to W, and (W_i - W_(i-1)) / W_i adds up to no more
      than 1 + ln(W / T).

    Parameters
    ----------
    slots
        The number of tail slots.
    memory
        Weight of a micro-batch relative to the next one, from 0 to below 1; 0 uses only the newest.
    epsilon
        Share of the rows since a key came below which it is forgotten.

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
        self._counts: dict[int, tuple[float, float]] = {}  # rows of a key, and all rows since it came
        self._tail: FloatArray = np.zeros(slots)
        self._total = 0.0

    def add(self, hashes: Int64Array, counts: Int64Array, total: int, tail: Int64Array) -> None:
        """Add a micro-batch: its hot keys, all its rows, and the rows of the other keys in each tail slot."""
        fresh = dict(zip(hashes.tolist(), counts.tolist(), strict=True))
        self._total = self._memory * self._total + total
        self._tail = self._memory * self._tail + tail
        kept: dict[int, tuple[float, float]] = {}
        for key in self._counts.keys() | fresh.keys():
            had, since = self._counts.get(key, (0.0, 0.0))
            count, since = self._memory * had + fresh.get(key, 0), self._memory * since + total
            if count >= self._epsilon * since and count > 0:
                kept[key] = count, since
            else:
                self._tail[key % len(self._tail)] += count
        self._counts = kept

    def counts(self) -> Counts:
        """The counts in the form that placers take."""
        keys = np.array(sorted(self._counts), dtype=np.int64)
        counts = np.array([self._counts[key][0] for key in keys.tolist()])
        # A sketch may count too high where it is unsure.
        total = max(self._total, float(counts.sum()))
        return Counts(keys, counts, total, self._tail.copy())
