"""A hash table of counts in one flat array, which is emptied at no cost: the store behind the exact counts.

An entry is two longs side by side, so that a look-up costs one cache line: the key, and its count together with the
number of the window it belongs to. An entry of an older window counts as empty, so starting a window costs nothing. For
tables of anything else than the counts of a window there is `open_addressing`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Bool, Int, Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.keys import key_hash
from skewless.sketch.open_addressing import is_full

SMALLEST = 1 << 10
COUNT_BITS = 40
COUNT_MASK = (1 << COUNT_BITS) - 1
WINDOWS = 1 << (63 - COUNT_BITS)  # window numbers, before they start again

# What `meta` holds.
WINDOW = 0  # the current window's number, from 1
USED = 1  # keys of the current window
META = 2


class Table(NamedTuple):
    """The arrays of a table, to be handed to kernels."""

    entries: Int64Array
    meta: Int64Array


def new_table(capacity: int) -> Table:
    """An empty table for up to `capacity` entries (a power of two), half of which may be used."""
    return Table(np.zeros((capacity, 2), dtype=np.int64), np.array([1, 0], dtype=np.int64))


@inner
def _entry(table: Table, h: Int, key: Int) -> Int:
    """The entry of `key`, whose hash is `h`, in the current window, or the free entry where it belongs."""
    entries, window = table.entries, table.meta[WINDOW]
    mask = entries.shape[0] - 1
    i = (h >> 20) & mask
    while entries[i, 1] >> COUNT_BITS == window and entries[i, 0] != key:
        i = (i + 1) & mask
    return i


@inner
def table_add(table: Table, h: Int, key: Int, weight: Int) -> Int:
    """Add `weight` to the count of `key`, whose hash is `h`, and return the new count."""
    entries, meta = table
    i = _entry(table, h, key)
    if entries[i, 1] >> COUNT_BITS == meta[WINDOW]:
        entries[i, 1] += weight
        return entries[i, 1] & COUNT_MASK
    entries[i, 0] = key
    entries[i, 1] = (meta[WINDOW] << COUNT_BITS) + weight
    meta[USED] += 1
    return weight


@inner
def table_full(table: Table) -> Bool:
    """Whether the next new key may need a larger table."""
    return is_full(table.entries, table.meta[USED])


@lean_kernel
def table_next_window(table: Table) -> None:
    """Forget all counts."""
    entries, meta = table
    meta[USED] = 0
    meta[WINDOW] += 1
    if meta[WINDOW] == WINDOWS:
        for i in range(entries.shape[0]):
            entries[i, 1] = 0
        meta[WINDOW] = 1


@lean_kernel
def table_find_all(table: Table, keys: Int64Array, out: Int64Array) -> None:
    """The count of each of `keys`, 0 for a key that is not there."""
    for j in range(keys.shape[0]):
        packed = table.entries[_entry(table, key_hash(keys[j]), keys[j]), 1]
        out[j] = packed & COUNT_MASK if packed >> COUNT_BITS == table.meta[WINDOW] else 0


def table_items(table: Table) -> tuple[Int64Array, Int64Array]:
    """The keys of the current window and their counts, in no order."""
    live = table.entries[table.entries[:, 1] >> COUNT_BITS == table.meta[WINDOW]]
    return live[:, 0], live[:, 1] & COUNT_MASK


@lean_kernel
def _move(old: Int64Array, table: Table) -> None:
    for j in range(old.shape[0]):
        if old[j, 1] >> COUNT_BITS == table.meta[WINDOW]:
            i = _entry(table, key_hash(old[j, 0]), old[j, 0])
            table.entries[i, 0], table.entries[i, 1] = old[j, 0], old[j, 1]


def grown(table: Table) -> Table:
    """The same counts in a table of twice the size."""
    larger = Table(np.zeros((2 * len(table.entries), 2), dtype=np.int64), table.meta)
    _move(table.entries, larger)
    return larger
