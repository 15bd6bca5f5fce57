"""What every sketch of key counts offers, and how those that count by a kernel are fed."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.sketch.keys import as_keys


class Sketch(ABC):
    """Counts how often each key came, exactly or within a stated bound.

    A stream may be added in any number of calls; the answers are the same.
    """

    @abstractmethod
    def add(self, keys: Int64Array) -> None:
        """Count these tuples."""

    @abstractmethod
    def estimate(self, keys: Int64Array) -> Int64Array:
        """How often each of `keys` was counted; 0 for a key that is not known."""

    @abstractmethod
    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys with at least `share` of the tuples counted, and their counts, most frequent first."""

    @property
    @abstractmethod
    def total(self) -> int:
        """Tuples counted."""


class Counting(Sketch):
    """A sketch whose kernel counts tuples until there may be no room for the next key; then more room is made."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._total = 0

    @property
    def total(self) -> int:
        """Tuples counted, in the current window if there are windows."""
        return self._total

    def add(self, keys: Int64Array) -> None:
        """Count these tuples."""
        keys = as_keys(keys)
        while len(keys):
            self._make_room()
            counted = self._count(keys)
            self._total += counted
            keys = keys[counted:]

    def estimate(self, keys: Int64Array) -> Int64Array:
        """How often each of `keys` was counted, within the error of the sketch; 0 for a key that is not known."""
        keys = as_keys(keys)
        out = np.empty(len(keys), dtype=np.int64)
        self._find(keys, out)
        return out

    @abstractmethod
    def _make_room(self) -> None:
        """Make sure that the next tuple can be counted, whatever its key."""

    @abstractmethod
    def _count(self, keys: Int64Array) -> int:
        """Count the first of these tuples, as many as there is room for, and return how many were counted."""

    @abstractmethod
    def _find(self, keys: Int64Array, out: Int64Array) -> None:
        """Write the count of each of `keys` to `out`."""


def with_share(keys: Int64Array, counts: Int64Array, share: float, total: int) -> tuple[Int64Array, Int64Array]:
    """The keys whose count is at least `share` of `total`, and their counts, most frequent first.

    >>> with_share(np.array([4, 5, 6]), np.array([7, 90, 3]), 0.07, 100)
    (array([5, 4]), array([90,  7]))
    """
    # Divide, do not multiply: 7 / 100 is the 0.07 that was asked for, but 0.07 * 100 is rounded to above 7.
    enough = counts / max(total, 1) >= share
    return most_frequent_first(keys[enough], counts[enough])


def most_frequent_first(keys: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Keys and counts by falling count, equal counts by rising key.

    >>> most_frequent_first(np.array([7, 3, 5]), np.array([1, 2, 2]))
    (array([3, 5, 7]), array([2, 2, 1]))
    """
    order = np.lexsort((keys, -counts))
    return keys[order], counts[order]
