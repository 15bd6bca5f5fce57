"""A micro-batch grouped by key, the most frequent key first, and the plain way to make one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.sketch.keys import as_keys
from skewless.sketch.open_addressing import HELD, KEY, SMALLEST, find, grown, is_full, put


@dataclass(frozen=True, eq=False)
class Batch:
    """The keys of a micro-batch, most frequent first, each with its count and its rows.

    The rows of key i are `rows[offsets[i]:offsets[i + 1]]`, as positions in the micro-batch, in rising order.
    """

    keys: Int64Array
    counts: Int64Array
    offsets: Int64Array
    rows: Int64Array


def post_sort(keys: Int64Array) -> Batch:
    """Group a whole micro-batch, then sort its keys by exact counts: the work that `FrequencyBuffer` does on arrival.

    Equal counts go by rising key.

    >>> batch = post_sort(np.array([5, 9, 5, 7, 5, 9]))
    >>> batch.keys.tolist(), batch.counts.tolist()
    ([5, 9, 7], [3, 2, 1])
    >>> batch.rows[batch.offsets[1] : batch.offsets[2]].tolist()
    [1, 5]
    """
    distinct, counts, owners = _group(as_keys(keys))
    return gather(np.lexsort((distinct, -counts)), distinct, counts, owners)


def gather(order: Int64Array, keys: Int64Array, counts: Int64Array, owners: Int64Array) -> Batch:
    """Make a batch from its key numbers in order, the key and count of each number, and the key number of each row."""
    sizes = counts[order]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    heads = np.empty(len(counts), np.int64)
    heads[order] = offsets[:-1]
    rows = np.empty(len(owners), np.int64)
    _deal(owners, heads, rows)
    return Batch(keys[order], sizes, offsets, rows)


def _group(keys: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The distinct keys in order of arrival, their counts, and the number of each row's key among them."""
    table: Int64Array = np.zeros((SMALLEST, 2), np.int64)
    owners = np.empty(len(keys), np.int64)
    done, known = _number(keys, 0, 0, table, owners)
    while done < len(keys):
        table = grown(table)
        done, known = _number(keys, done, known, table, owners)
    entries = table[table[:, HELD] != 0]
    distinct = np.empty(known, np.int64)
    distinct[entries[:, HELD] - 1] = entries[:, KEY]
    return distinct, np.bincount(owners, minlength=known), owners


@lean_kernel
def _number(keys: Int64Array, done: Int, known: Int, table: Int64Array, owners: Int64Array) -> tuple[Int, Int]:
    """Continue from row `done`, with `known` keys, up to the first key for which there is no room."""
    for row in range(done, len(keys)):
        slot = find(table, keys[row])
        if table[slot, HELD] == 0:
            if is_full(table, known):
                return row, known
            known += 1
            put(table, keys[row], known, slot)
        owners[row] = table[slot, HELD] - 1
    return len(keys), known


@lean_kernel
def _deal(owners: Int64Array, heads: Int64Array, rows: Int64Array) -> None:
    for row in range(len(owners)):
        rows[heads[owners[row]]] = row
        heads[owners[row]] += 1
