"""Open addressing in one int64 array: a hash table with any columns that the caller needs.

The number of entries is a power of two, and at most half of them are taken. Column `KEY` holds the key, and column
`HELD` is not 0 in an entry that is taken; further columns belong to the caller. For plain counts that are forgotten
window by window, `table` needs less memory and is emptied faster.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Bool, BoolArray, Int, Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.keys import key_hash

KEY, HELD = 0, 1
SMALLEST = 16


def full(table: Int64Array, taken: Int) -> Bool:
    """Whether the next new key may need more room, with so many entries taken."""
    return 2 * (taken + 1) > len(table)


is_full = inner(full)


@inner
def probe(table: Int64Array, key: Int, hashed: Int) -> Int:
    """The entry that holds `key`, whose hash is `hashed`, or the free entry where it belongs."""
    mask = len(table) - 1
    row = hashed & mask
    while table[row, HELD] != 0 and table[row, KEY] != key:
        row = (row + 1) & mask
    return row


@inner
def find(table: Int64Array, key: Int) -> Int:
    """The entry that holds `key`, or the free entry where it belongs."""
    return probe(table, key, key_hash(key))


@inner
def put(table: Int64Array, key: Int, held: Int, row: Int) -> None:
    """Take the free entry `row` for `key`."""
    table[row, KEY] = key
    table[row, HELD] = held


def grown(table: Int64Array) -> Int64Array:
    """The same entries in a table of twice the size."""
    bigger = np.zeros((2 * len(table), table.shape[1]), np.int64)
    move(table, bigger)
    return bigger


def roomier(table: Int64Array, kept: BoolArray) -> tuple[Int64Array, int]:
    """The entries that are taken and kept, in a table of at least that size in which at most a quarter is taken."""
    live = table[(table[:, HELD] != 0) & kept]
    size = len(table)
    while 4 * (len(live) + 1) > size:
        size *= 2
    target = np.zeros((size, table.shape[1]), np.int64)
    move(live, target)
    return target, len(live)


@lean_kernel
def move(source: Int64Array, target: Int64Array) -> None:
    """Copy the entries that are taken to another table, which must have room for them."""
    for row in range(len(source)):
        if source[row, HELD] != 0:
            entry = find(target, source[row, KEY])
            for column in range(source.shape[1]):
                target[entry, column] = source[row, column]
