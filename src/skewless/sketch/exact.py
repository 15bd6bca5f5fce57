"""Exact counts, optionally over a tumbling window."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.kernel import lean_kernel
from skewless.sketch.base import with_share
from skewless.sketch.keys import as_keys, key_hash
from skewless.sketch.table import (
    META,
    SMALLEST,
    WINDOW,
    grown,
    new_table,
    table_add,
    table_find_all,
    table_full,
    table_items,
    table_next_window,
)
from skewless.sketch.tumbling import Tumbling


class ExactCounts(Tumbling):
    """Counts every key of the current window without error.

    Error: none. Memory: at most 64 bytes for each distinct key of the largest window seen, and 16 kB.

    Parameters
    ----------
    window
        Tuples in a tumbling window, after which counting starts again. None counts for ever.

    Examples
    --------
    >>> counts = ExactCounts(window=4)
    >>> counts.add(np.array([7, 7, 9]))
    >>> counts.estimate(np.array([7, 9, 8]))
    array([2, 1, 0])
    >>> counts.add(np.array([9, 8]))      # the fifth tuple opens the second window
    >>> counts.estimate(np.array([7, 9, 8]))
    array([0, 0, 1])
    """

    def __init__(self, window: int | None = None) -> None:
        """See the class."""
        super().__init__(window)
        self._table = new_table(SMALLEST)
        self._meta = np.zeros(META, dtype=np.int64)
        self._meta[WINDOW] = 1

    def estimate(self, keys: Int64Array) -> Int64Array:
        """The exact count of each of `keys` in the current window."""
        keys = as_keys(keys)
        out = np.empty(len(keys), dtype=np.int64)
        table_find_all(self._table, self._meta, keys, out)
        return out

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys with at least `share` of the current window, and their counts, most frequent first."""
        return with_share(*table_items(self._table, self._meta), share, self._total)

    def grow(self) -> None:
        """Make room for more keys."""
        self._table = grown(self._table, self._meta)

    def _count(self, keys: Int64Array) -> int:
        return _add(self._table, self._meta, keys)

    def _next_window(self) -> None:
        table_next_window(self._table, self._meta)


@lean_kernel
def _add(table: Int64Array, meta: Int64Array, keys: Int64Array) -> int:
    for i in range(len(keys)):
        if table_full(table, meta):
            return i
        table_add(table, meta, key_hash(keys[i]), keys[i], 1)
    return len(keys)
