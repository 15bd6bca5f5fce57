"""Open addressing in one int64 array: a hash table with any columns that the caller needs.

The number of entries is a power of two, and at most half of them are taken. Column `KEY` holds the key, and column
`HELD` is not 0 in an entry that is taken; further columns belong to the caller. For plain counts that are forgotten
window by window, `table` needs less memory and is emptied faster.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.keys import key_hash

KEY, HELD = 0, 1
SMALLEST = 16


@inner
def find(table: Int64Array, key: int) -> int:
    """The entry that holds `key`, or the free entry where it belongs."""
    mask = len(table) - 1
    row = key_hash(key) & mask
    while table[row, HELD] != 0 and table[row, KEY] != key:
        row = (row + 1) & mask
    return row


def grown(table: Int64Array) -> Int64Array:
    """The same entries in a table of twice the size."""
    bigger = np.zeros((2 * len(table), table.shape[1]), np.int64)
    _move(table, bigger)
    return bigger


@lean_kernel
def _move(table: Int64Array, bigger: Int64Array) -> None:
    for old in range(len(table)):
        if table[old, HELD] != 0:
            row = find(bigger, table[old, KEY])
            for column in range(table.shape[1]):
                bigger[row, column] = table[old, column]
