"""Dalton's switch: exact counts while the keys are few, count-min while they are many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.base import with_share
from skewless.sketch.countmin import cells_add, cells_clear, cells_distinct, cells_find_all, new_cells
from skewless.sketch.keys import as_keys, key_hash
from skewless.sketch.table import (
    META,
    SMALLEST,
    USED,
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

MODES = ("exact", "countmin", "switch")

# What `meta` holds after the numbers of the table.
SKETCHING = META  # 1 while the count-min is in use
SWITCH_AT = META + 1  # keys in a window from which the next one is sketched
STATE = META + 2


class CountState(NamedTuple):
    """The arrays of a switch, to be handed to kernels."""

    table: Int64Array
    cells: Int64Array
    meta: Int64Array


class SwitchCounts(Tumbling):
    """Counts keys over a tumbling window, with the structure that suits the window before.

    A hash table is exact, but with many keys it leaves the cache and every tuple waits for memory; a count-min sketch
    costs the same however many keys there are. Each window is counted by what would have suited the last one.

    Error: none in a window counted exactly; CountMin's in the others. Memory: the table for the keys of the largest
    window counted exactly, and the sketch.

    A window that is counted exactly knows its number of keys; a sketched one estimates it from the counters of one row
    that are still zero. With more than about width x ln(width) keys no counter is zero, and the next window is sketched
    too, whatever `switch_at` says.

    Parameters
    ----------
    window
        Tuples in a tumbling window; None means that only `reset` starts a new one.
    epsilon, delta
        CountMin's bound.
    switch_at
        Distinct keys in a window from which the next one is sketched; with fewer keys it is counted exactly.
    mode
        "switch", or "exact" or "countmin" to stay with one of them.

    Examples
    --------
    >>> counts = SwitchCounts(window=100, switch_at=10)
    >>> counts.add(np.arange(100))            # many keys, counted exactly
    >>> counts.add(np.zeros(1, dtype=int))    # so the next window is sketched
    >>> counts.sketching
    True

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022, 5.3.
    """

    def __init__(
        self,
        window: int | None = None,
        *,
        epsilon: float = 0.001,
        delta: float = 0.01,
        switch_at: int = 1 << 13,
        mode: str = "switch",
    ) -> None:
        """See the class."""
        super().__init__(window)
        if mode not in MODES:
            raise SkewlessError(f"statistics are {mode!r}; choose one of {', '.join(MODES)}")
        if switch_at < 1:
            raise SkewlessError(f"switch_at is {switch_at} keys; give at least 1, or mode='countmin' to always sketch")
        self.mode = mode
        meta = np.zeros(STATE, dtype=np.int64)
        meta[WINDOW] = 1
        meta[SKETCHING] = mode == "countmin"
        # A threshold that is out of reach never makes it switch.
        meta[SWITCH_AT] = {"exact": np.iinfo(np.int64).max, "countmin": -1, "switch": switch_at}[mode]
        self.state = CountState(new_table(SMALLEST), new_cells(epsilon, delta), meta)

    @property
    def sketching(self) -> bool:
        """Whether the current window is counted by the sketch."""
        return bool(self.state.meta[SKETCHING])

    def estimate(self, keys: Int64Array) -> Int64Array:
        """The count, or its estimate, of each of `keys` in the current window."""
        keys = as_keys(keys)
        out = np.empty(len(keys), dtype=np.int64)
        if self.sketching:
            cells_find_all(self.state.cells, keys, out)
        else:
            table_find_all(self.state.table, self.state.meta, keys, out)
        return out

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys with at least `share` of the current window, while it is counted exactly.

        A sketched window does not know its keys: use `estimate`, or `CountMin`, which remembers the heavy ones.
        """
        if self.sketching:
            raise SkewlessError("this window is sketched and has no list of keys; use CountMin, or mode='exact'")
        return with_share(*table_items(self.state.table, self.state.meta), share, self._total)

    @property
    def full(self) -> bool:
        """Whether the next new key may need `grow` first."""
        return 2 * (int(self.state.meta[USED]) + 1) > len(self.state.table)

    def grow(self) -> None:
        """Make room for more keys."""
        self.state = self.state._replace(table=grown(self.state.table, self.state.meta))

    def _count(self, keys: Int64Array) -> int:
        return _add(self.state, keys)

    def _next_window(self) -> None:
        counts_next_window(self.state)


@inner
def counts_add(counts: CountState, h: int, key: int, weight: int) -> int:
    """Add `weight` to `key`, whose hash is `h`, and return its count; check `counts_full` before."""
    if counts.meta[SKETCHING]:
        return cells_add(counts.cells, h, weight)
    return table_add(counts.table, counts.meta, h, key, weight)


@inner
def counts_full(counts: CountState) -> bool:
    """Whether the next new key may need a larger table."""
    return table_full(counts.table, counts.meta)


@lean_kernel
def counts_next_window(counts: CountState) -> None:
    """Start a new window, with the structure that would have suited the last one."""
    meta = counts.meta
    if meta[SKETCHING]:
        keys = cells_distinct(counts.cells)
        cells_clear(counts.cells)
    else:
        keys = meta[USED]
        table_next_window(counts.table, meta)
    meta[SKETCHING] = keys >= meta[SWITCH_AT]


@lean_kernel
def _add(counts: CountState, keys: Int64Array) -> int:
    for i in range(len(keys)):
        if counts_full(counts):
            return i
        counts_add(counts, key_hash(keys[i]), keys[i], 1)
    return len(keys)
