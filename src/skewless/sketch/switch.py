"""Dalton's switch: exact counts while the keys are few, count-min while they are many."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Bool, Int, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.countmin import cells_add, cells_clear, cells_distinct, cells_find_all, new_cells
from skewless.sketch.exact import ExactCounts
from skewless.sketch.keys import key_hash
from skewless.sketch.table import META, USED, Table, table_add, table_full, table_next_window

MODES = ("exact", "countmin", "switch")

# What the table's `meta` holds after its own numbers.
SKETCHING = META  # 1 while the count-min is in use
SWITCH_AT = META + 1  # keys in a window from which the next one is sketched


class CountState(NamedTuple):
    """The arrays of a switch, to be handed to kernels."""

    table: Table
    cells: Int64Array


class SwitchCounts(ExactCounts):
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
        # A threshold that is out of reach never makes it switch.
        threshold = {"exact": np.iinfo(np.int64).max, "countmin": -1, "switch": switch_at}[mode]
        self.table = self.table._replace(meta=np.append(self.table.meta, [mode == "countmin", threshold]))
        self._cells = new_cells(epsilon, delta)

    @property
    def state(self) -> CountState:
        """The arrays, as they are until the next `grow`."""
        return CountState(self.table, self._cells)

    @property
    def sketching(self) -> bool:
        """Whether the current window is counted by the sketch."""
        return bool(self.table.meta[SKETCHING])

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys with at least `share` of the current window, while it is counted exactly.

        A sketched window does not know its keys: use `estimate`, or `CountMin`, which remembers the heavy ones.
        """
        if self.sketching:
            raise SkewlessError("this window is sketched and has no list of keys; use CountMin, or mode='exact'")
        return super().heavy(share)

    def _add(self, keys: Int64Array) -> int:
        return int(_add(self.state, keys))

    def _find(self, keys: Int64Array, out: Int64Array) -> None:
        if self.sketching:
            cells_find_all(self._cells, keys, out)
        else:
            super()._find(keys, out)

    def _next_window(self) -> None:
        counts_next_window(self.state)


@inner
def counts_add(counts: CountState, h: Int, key: Int, weight: Int) -> Int:
    """Add `weight` to `key`, whose hash is `h`, and return its count; check `counts_full` before."""
    if counts.table.meta[SKETCHING]:
        return cells_add(counts.cells, h, weight)
    return table_add(counts.table, h, key, weight)


@inner
def counts_full(counts: CountState) -> Bool:
    """Whether the next new key may need a larger table."""
    return table_full(counts.table)


@lean_kernel
def counts_next_window(counts: CountState) -> None:
    """Start a new window, with the structure that would have suited the last one."""
    meta = counts.table.meta
    if meta[SKETCHING]:
        keys = cells_distinct(counts.cells)
        cells_clear(counts.cells)
    else:
        keys = meta[USED]
        table_next_window(counts.table)
    meta[SKETCHING] = keys >= meta[SWITCH_AT]


@lean_kernel
def _add(counts: CountState, keys: Int64Array) -> int:
    for i in range(len(keys)):
        if counts_full(counts):
            return i
        counts_add(counts, key_hash(keys[i]), keys[i], 1)
    return len(keys)
