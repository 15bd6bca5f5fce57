"""Least fragmentation: whole keys where they fit best, and only what fits nowhere is split."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.split.blocks import BlockPlan, counted


def least_fragmentation(keys: Int64Array, counts: Int64Array, blocks: int) -> BlockPlan:
    """Divide a batch into blocks of equal size by best fit, largest key first, a rival of Prompt's Algorithm 2.

    A key goes as a whole to the fullest block that can hold it. If none can, it fills the emptiest one, and so on with
    the rest. Hardly any key is split, but blocks with large keys have few keys, and others very many.

    >>> plan = least_fragmentation(np.arange(8), np.array([140, 90, 60, 35, 25, 15, 12, 8]), 4)
    >>> plan.sizes, plan.cardinalities, np.flatnonzero(plan.split)
    (array([97, 96, 97, 95]), array([1, 5, 2, 2]), array([0, 7]))

    References
    ----------
    B. LeCun, T. Mautor, F. Quessette, M.-A. Weisser: Bin packing with fragmentable items: presentation and
    approximations. Theoretical Computer Science, 2015.
    """
    keys, counts = counted(keys, counts, blocks)
    order = np.argsort(-counts, kind="stable")
    keys, counts = keys[order], counts[order]
    most = len(keys) + blocks
    which, block, size = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    room = np.full(blocks, -(-int(counts.sum()) // blocks), np.int64)
    used = _fit(counts, room, which, block, size)
    return BlockPlan(blocks, keys, counts, which[:used], block[:used], size[:used])


@lean_kernel
def _fit(counts: Int64Array, room: Int64Array, which: Int64Array, block: Int32Array, size: Int64Array) -> Int:
    used = 0
    for k in range(counts.shape[0]):
        rest = counts[k]
        while rest > 0:
            best, emptiest = -1, 0
            for b in range(room.shape[0]):
                if room[b] >= rest and (best < 0 or room[b] < room[best]):
                    best = b
                if room[b] > room[emptiest]:
                    emptiest = b
            target = best if best >= 0 else emptiest
            taken = min(rest, room[target])
            which[used], block[used], size[used] = k, target, taken
            used += 1
            room[target] -= taken
            rest -= taken
    return used
