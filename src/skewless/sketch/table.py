"""A hash table of counts in one flat array, which is emptied at no cost: the store behind the exact counts.

An entry is two longs side by side, so that a look-up costs one cache line: the key, and its count together with the
number of the window it belongs to. An entry of an older window counts as empty, so starting a window costs nothing. For
tables of anything else than the counts of a window there is `open_addressing`.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.keys import key_hash

SMALLEST = 1 << 10
COUNT_BITS = 40
COUNT_MASK = (1 << COUNT_BITS) - 1
WINDOWS = 1 << (63 - COUNT_BITS)  # window numbers, before they start again

# What `meta` holds.
WINDOW = 0  # the current window's number, from 1
USED = 1  # keys of the current window
META = 2


def new_table(capacity: int) -> Int64Array:
    """An empty table for up to `capacity` entries (a power of two), half of which may be used."""
    return np.zeros((capacity, 2), dtype=np.int64)


@inner
def table_add(table: Int64Array, meta: Int64Array, h: int, key: int, weight: int) -> int:
    """Add `weight` to the count of `key`, whose hash is `h`, and return the new count."""
    mask = table.shape[0] - 1
    window = meta[WINDOW]
    i = (h >> 20) & mask
    while table[i, 1] >> COUNT_BITS == window:
        if table[i, 0] == key:
            table[i, 1] += weight
            return int(table[i, 1] & COUNT_MASK)
        i = (i + 1) & mask
    table[i, 0] = key
    table[i, 1] = (window << COUNT_BITS) + weight
    meta[USED] += 1
    return weight


@inner
def table_full(table: Int64Array, meta: Int64Array) -> bool:
    """Whether the next new key may need a larger table."""
    return bool(2 * (meta[USED] + 1) > table.shape[0])


@lean_kernel
def table_next_window(table: Int64Array, meta: Int64Array) -> None:
    """Forget all counts."""
    meta[USED] = 0
    meta[WINDOW] += 1
    if meta[WINDOW] == WINDOWS:
        for i in range(table.shape[0]):
            table[i, 1] = 0
        meta[WINDOW] = 1


@lean_kernel
def table_find_all(table: Int64Array, meta: Int64Array, keys: Int64Array, out: Int64Array) -> None:
    """The count of each of `keys`, 0 for a key that is not there."""
    mask = table.shape[0] - 1
    window = meta[WINDOW]
    for j in range(keys.shape[0]):
        i = (key_hash(keys[j]) >> 20) & mask
        out[j] = 0
        while table[i, 1] >> COUNT_BITS == window:
            if table[i, 0] == keys[j]:
                out[j] = table[i, 1] & COUNT_MASK
                break
            i = (i + 1) & mask


def table_items(table: Int64Array, meta: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The keys of the current window and their counts, in no order."""
    live = table[table[:, 1] >> COUNT_BITS == meta[WINDOW]]
    return live[:, 0], live[:, 1] & COUNT_MASK


@lean_kernel
def _move(old: Int64Array, new: Int64Array, window: int) -> None:
    mask = new.shape[0] - 1
    for j in range(old.shape[0]):
        if old[j, 1] >> COUNT_BITS == window:
            i = (key_hash(old[j, 0]) >> 20) & mask
            while new[i, 1] != 0:
                i = (i + 1) & mask
            new[i, 0], new[i, 1] = old[j, 0], old[j, 1]


def grown(table: Int64Array, meta: Int64Array) -> Int64Array:
    """The same counts in a table of twice the size."""
    larger = new_table(2 * table.shape[0])
    _move(table, larger, meta[WINDOW])
    return larger
