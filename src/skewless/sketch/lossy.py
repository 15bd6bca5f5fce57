"""Lossy counting: the frequent keys of an endless stream in logarithmic memory."""

from __future__ import annotations

from math import ceil

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel
from skewless.sketch.base import Counting, most_frequent_first
from skewless.sketch.open_addressing import HELD, KEY, SMALLEST, find, full, grown, is_full

COUNT, ERROR = HELD, 2  # a key is held while its count is not 0


class LossyCounts(Counting):
    """Counts keys in logarithmic memory, never above the truth and never more than `epsilon` of the stream below it.

    The stream is cut into buckets of `width = ceil(1 / epsilon)` tuples. A key enters with the count 1 and, as its
    possible error, the number of closed buckets: if it came before, it may have been evicted once in each. When bucket
    b closes, every key with count + error <= b is evicted. After N tuples, in B = ceil(N / width) buckets:

    - an estimate is at most the true count, and at least the true count - epsilon N;
    - for `share` > epsilon, `heavy(share)` has every key of true count >= share N, and none of true count below
      (share - epsilon) N: it returns the counts >= (share - epsilon) N. For a lower share, all keys in memory;
    - at most width (1/1 + 1/2 + ... + 1/B) keys are in memory: the paper's (1/epsilon) log(epsilon N)
      before it replaces the harmonic sum by a logarithm.

    Parameters
    ----------
    epsilon
        The error allowed, as a share of the stream, between 0 and 1. A tenth of the smallest share of interest is
        usual.

    Examples
    --------
    >>> counts = LossyCounts(epsilon=0.01)
    >>> counts.add(np.where(np.arange(10_000) % 4 == 0, 8, np.arange(10_000)))  # key 8 is a quarter, the rest come once
    >>> keys, estimates = counts.heavy(0.2)
    >>> keys.tolist(), estimates.tolist()
    ([8], [2500])
    >>> counts.total, counts.entries
    (10000, 1)

    References
    ----------
    G. S. Manku, R. Motwani. Approximate Frequency Counts over Data Streams. VLDB 2002.
    """

    def __init__(self, epsilon: float = 0.001) -> None:
        """See the class."""
        super().__init__()
        if not 0 < epsilon < 1:
            raise SkewlessError(f"epsilon is {epsilon}: give the error allowed as a share of the stream, such as 0.001")
        self.epsilon = epsilon
        self.width = ceil(1 / epsilon)
        self._table: Int64Array = np.zeros((SMALLEST, 3), np.int64)
        self._spare: Int64Array = np.zeros_like(self._table)
        self.entries = 0  # keys in memory

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys and counts of the keys that may hold `share` of the stream, most frequent first."""
        least = max((share - self.epsilon) * self._total, 1)
        found = self._table[self._table[:, COUNT] >= least]
        return most_frequent_first(found[:, KEY], found[:, COUNT])

    def _make_room(self) -> None:
        if full(self._table, self.entries):
            self._table = grown(self._table)
            self._spare = np.empty_like(self._table)

    def _count(self, keys: Int64Array) -> int:
        counted, self.entries, swapped = _count(keys, self._table, self._spare, self.entries, self._total, self.width)
        if swapped:
            self._table, self._spare = self._spare, self._table
        return counted

    def _find(self, keys: Int64Array, out: Int64Array) -> None:
        _find_all(self._table, keys, out)


@lean_kernel
def _count(
    keys: Int64Array, table: Int64Array, spare: Int64Array, entries: int, total: int, width: int
) -> tuple[int, int, bool]:
    """Count while there is room; return the tuples counted, the keys held, and whether `spare` now holds them."""
    swapped = False
    closed = total // width
    left = width - total % width  # tuples until the bucket closes
    for i in range(len(keys)):
        if is_full(table, entries):
            return i, entries, swapped
        row = find(table, keys[i])
        if table[row, COUNT] == 0:
            table[row, KEY] = keys[i]
            table[row, ERROR] = closed
            entries += 1
        table[row, COUNT] += 1
        left -= 1
        if left == 0:
            closed += 1
            left = width
            entries = _survivors(table, spare, closed)
            table, spare = spare, table
            swapped = not swapped
    return len(keys), entries, swapped


@lean_kernel
def _survivors(table: Int64Array, spare: Int64Array, closed: int) -> int:
    """Copy the keys that survive bucket `closed` into `spare`, and return how many there are."""
    for row in range(len(spare)):
        spare[row, COUNT] = 0
    entries = 0
    for old in range(len(table)):
        if table[old, COUNT] > 0 and table[old, COUNT] + table[old, ERROR] > closed:
            row = find(spare, table[old, KEY])
            spare[row, KEY] = table[old, KEY]
            spare[row, COUNT] = table[old, COUNT]
            spare[row, ERROR] = table[old, ERROR]
            entries += 1
    return entries


@lean_kernel
def _find_all(table: Int64Array, keys: Int64Array, out: Int64Array) -> None:
    for i in range(len(keys)):
        out[i] = table[find(table, keys[i]), COUNT]
