"""First fit, decreasing: blocks are filled one after the other."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.split.blocks import BlockPlan, counted


def first_fit(keys: Int64Array, counts: Int64Array, blocks: int) -> BlockPlan:
    """Divide a batch into blocks of equal size by first fit, largest key first, a rival of Prompt's Algorithm 2.

    A key goes to the first block that has room, and what does not fit there to the next one. So at most as many keys
    are split as there are blocks, less one; but the last blocks have nearly all of the keys.

    >>> plan = first_fit(np.arange(8), np.array([140, 90, 60, 35, 25, 15, 12, 8]), 4)
    >>> plan.sizes, plan.cardinalities, np.flatnonzero(plan.split)
    (array([97, 97, 97, 94]), array([1, 2, 3, 5]), array([0, 1, 3]))

    References
    ----------
    N. Menakerman, R. Rom: Bin packing with item fragmentation. WADS 2001.
    """
    keys, counts = counted(keys, counts, blocks)
    order = np.argsort(-counts, kind="stable")
    keys, counts = keys[order], counts[order]
    most = len(keys) + blocks
    which, block, size = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    used = _fill(counts, -(-int(counts.sum()) // blocks), which, block, size)
    return BlockPlan(blocks, keys, counts, which[:used], block[:used], size[:used])


@lean_kernel
def _fill(counts: Int64Array, capacity: Int, which: Int64Array, block: Int32Array, size: Int64Array) -> Int:
    used, here, room = 0, 0, capacity
    for k in range(counts.shape[0]):
        rest = counts[k]
        while rest > 0:
            if room == 0:
                here += 1
                room = capacity
            taken = min(rest, room)
            which[used], block[used], size[used] = k, here, taken
            used += 1
            room -= taken
            rest -= taken
    return used
