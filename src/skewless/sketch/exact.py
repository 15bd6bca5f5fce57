"""Exact counts, optionally over a tumbling window."""

from __future__ import annotations

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel
from skewless.sketch.base import Counting, with_share
from skewless.sketch.keys import key_hash
from skewless.sketch.open_addressing import full
from skewless.sketch.table import (
    SMALLEST,
    USED,
    Table,
    grown,
    new_table,
    table_add,
    table_find_all,
    table_full,
    table_items,
    table_next_window,
)


class ExactCounts(Counting):
    """Counts every key of the current window without error.

    A full window stays until the next tuple comes. Error: none. Memory: at most 64 bytes for each distinct key of the
    largest window seen, and 16 kB.

    Parameters
    ----------
    window
        Tuples in a tumbling window, after which counting starts again. None counts for ever.

    Examples
    --------
    >>> import numpy as np
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
        super().__init__()
        if window is not None and window < 1:
            raise SkewlessError(f"window is {window} tuples; give at least 1, or None to count for ever")
        self.window = window
        self.table: Table = new_table(SMALLEST)

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys with at least `share` of the current window, and their counts, most frequent first."""
        return with_share(*table_items(self.table), share, self._total)

    def reset(self) -> None:
        """Start a new window."""
        self._next_window()
        self._total = 0

    def grow(self) -> None:
        """Make room for more keys, if the next new one may need it."""
        if full(self.table.entries, self.table.meta[USED]):
            self.table = grown(self.table)

    def _make_room(self) -> None:
        if self._total == self.window:
            self.reset()
        self.grow()

    def _count(self, keys: Int64Array) -> int:
        return self._add(keys if self.window is None else keys[: self.window - self._total])

    def _add(self, keys: Int64Array) -> int:
        """Count these tuples of one window while there is room, and return how many were counted."""
        return int(_add(self.table, keys))

    def _find(self, keys: Int64Array, out: Int64Array) -> None:
        table_find_all(self.table, keys, out)

    def _next_window(self) -> None:
        table_next_window(self.table)


@lean_kernel
def _add(table: Table, keys: Int64Array) -> int:
    for i in range(len(keys)):
        if table_full(table):
            return i
        table_add(table, key_hash(keys[i]), keys[i], 1)
    return len(keys)
