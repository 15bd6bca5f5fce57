"""Prompt's allocations: the keys of a batch to blocks (Algorithm 2), and a block's keys to buckets (Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.kernel import inner, lean_kernel

GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class BlockPlan:
    """Says which part of each key goes to which block.

    Attributes
    ----------
    blocks
        The number of blocks.
    keys, counts
        The keys of the batch and their counts, most frequent first.
    which, block, size
        Fragments: `size[i]` tuples of `keys[which[i]]` go to `block[i]`; the fragments of a key are adjacent.
    """

    blocks: int
    keys: Int64Array
    counts: Int64Array
    which: Int64Array
    block: Int32Array
    size: Int64Array

    @property
    def sizes(self) -> Int64Array:
        """Tuples in each block."""
        return np.bincount(self.block, self.size, self.blocks).astype(np.int64)

    @property
    def cardinalities(self) -> Int64Array:
        """Distinct keys in each block."""
        return np.bincount(self.block, minlength=self.blocks).astype(np.int64)

    @property
    def split(self) -> BoolArray:
        """For each key, whether it is on several blocks."""
        return np.bincount(self.which, minlength=len(self.keys)) > 1

    def route(self, keys: Int64Array) -> Int32Array:
        """A block for each tuple of the batch, in the order in which they came.

        >>> partition(np.array([7, 8]), np.array([3, 1]), 2).route(np.array([7, 8, 7, 7]))
        array([0, 1, 0, 1], dtype=int32)
        """
        by_key = np.argsort(keys, kind="stable")
        # Fragments in the order of the tuples: keys rising, the parts of a key one after the other.
        order = np.argsort(self.keys[self.which], kind="stable")
        out = np.empty(len(keys), dtype=np.int32)
        out[by_key] = np.repeat(self.block[order], self.size[order])
        return out


def partition(keys: Int64Array, counts: Int64Array, blocks: int, already: Int64Array | None = None) -> BlockPlan:
    """Divide a batch into blocks of equal size and equal cardinality, splitting few keys (Algorithm 2).

    `keys` come most frequent first, or nearly so. Each key of more than the cut-off, N / K tuples, puts that many into
    the next block in turn; the other keys are dealt out in zig-zag, one to a block. What is left of the large keys, the
    residuals, is served smallest first. A residual stays in the block that has the key's first part if it fits there;
    if not, it fills that block, and the rest goes to the fullest block that can hold it. If no block can hold it, it
    fills the emptiest block, and so on, so that the rest goes to as few blocks as possible.

    The paper names no order for the residuals. Smallest first, nearly all of them stay where their keys are, and the
    few largest keys fill the room that is left: there are about as many extra fragments as blocks. Largest first, the
    hot keys would fill every block, and each of the many small residuals would become a fragment.

    The dealing continues at the block where the large keys ended, so that the numbers of keys differ by at most one.
    With fewer keys than blocks the cut-off is the size of a block, because N / K would leave every key whole. `already`
    has the tuples that are in the blocks in any case; the large keys are split so that these are balanced too.

    >>> plan = partition(np.array([7, 8, 9]), np.array([6, 3, 3]), 2)
    >>> plan.sizes, plan.cardinalities
    (array([6, 6]), array([1, 2]))

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """
    if blocks < 1:
        raise SkewlessError(f"blocks is {blocks}; give at least 1")
    most = 2 * len(keys) + blocks  # for each key a fragment and the rest of it, and one more where that fills a block
    which, block, size = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    filled = np.zeros(blocks, np.int64) if already is None else already.copy()
    total = int(counts.sum())
    cut = max(1, min(total // max(1, len(keys)), -(-total // blocks)))
    large = int(_deal(counts, cut, filled, which, block, size))
    smallest_first = np.argsort(counts[which[:large]], kind="stable")
    capacity = -(-int(total + (0 if already is None else already.sum())) // blocks)
    used = _serve(counts, cut, capacity, smallest_first, filled, which, block, size)
    order = np.argsort(which[:used], kind="stable")
    return BlockPlan(blocks, keys, counts, which[order], block[order], size[order])


def allocate(keys: Int64Array, sizes: Int64Array, split: BoolArray, buckets: int, block: int = 0) -> Int32Array:
    """A reduce bucket for each key of a block (Algorithm 3).

    A split key goes to a bucket by its hash, so that every block sends it to the same bucket. The other keys go,
    largest first, to the bucket with the most room among those not yet served in this round. Where buckets have equal
    room, blocks of different numbers start at different ones: if all started at the first, it would get the keys that
    every block has over after its last whole round.

    >>> allocate(np.array([1, 2, 3, 4]), np.array([5, 4, 2, 1]), np.array([False] * 4), 2)
    array([0, 1, 1, 0], dtype=int32)
    """
    if buckets < 1:
        raise SkewlessError(f"buckets is {buckets}; give at least 1")
    out = homes(keys, buckets)
    room = np.full(buckets, sizes.sum() / buckets)
    np.subtract.at(room, out[split], sizes[split])
    whole = np.flatnonzero(~split)
    whole = whole[np.argsort(-sizes[whole], kind="stable")]
    _worst_fit(room, sizes, whole, int(first_bucket(block, buckets)), np.zeros(buckets, dtype=np.bool_), out)
    return out


@inner
def first_bucket(block: Int, buckets: Int) -> Int:
    """Where a block starts, spread by the golden ratio: neighbouring blocks, which are often alike, do not start near.

    >>> [int(first_bucket(block, 100)) for block in range(4)]
    [0, 61, 23, 85]
    """
    return np.int64(block * GOLDEN % 1.0 * buckets)


@lean_kernel
def _deal(
    counts: Int64Array, cut: Int, filled: Int64Array, which: Int64Array, block: Int32Array, size: Int64Array
) -> Int:
    """Put the first part of each large key, then each other key, into a block; return how many are large."""
    blocks, keys = filled.shape[0], counts.shape[0]
    used = 0
    turn = 0
    for k in range(keys):
        if counts[k] > cut:
            which[used], block[used], size[used] = k, turn, cut
            filled[turn] += cut
            used += 1
            turn = (turn + 1) % blocks
    large = used

    direction = 1
    for k in range(keys):
        if counts[k] <= cut:
            which[used], block[used], size[used] = k, turn, counts[k]
            filled[turn] += counts[k]
            used += 1
            if 0 <= turn + direction < blocks:
                turn += direction
            else:
                direction = -direction  # the last block in one direction is the first on the way back
    return large


@lean_kernel
def _serve(
    counts: Int64Array,
    cut: Int,
    capacity: Int,
    order: Int64Array,
    filled: Int64Array,
    which: Int64Array,
    block: Int32Array,
    size: Int64Array,
) -> Int:
    """Place the residuals of the large keys, the first `len(order)` fragments, in this order; return all fragments."""
    blocks, used = filled.shape[0], counts.shape[0]
    for first in order:
        k = which[first]
        rest = counts[k] - cut
        own = block[first]
        here = min(rest, max(0, capacity - filled[own]))
        size[first] += here
        filled[own] += here
        rest -= here
        while rest > 0:
            fullest, emptiest = -1, 0
            for b in range(blocks):
                if capacity - filled[b] >= rest and (fullest < 0 or filled[b] > filled[fullest]):
                    fullest = b
                if filled[b] < filled[emptiest]:
                    emptiest = b
            target = fullest if fullest >= 0 else emptiest
            here = min(rest, capacity - filled[target])
            which[used], block[used], size[used] = k, target, here
            filled[target] += here
            used += 1
            rest -= here
    return used


@lean_kernel
def _worst_fit(
    room: FloatArray, sizes: Int64Array, whole: Int64Array, first: Int, served: BoolArray, out: Int32Array
) -> None:
    left = room.shape[0]
    for i in range(whole.shape[0]):
        best = -1
        for step in range(room.shape[0]):
            bucket = (first + step) % room.shape[0]
            if not served[bucket] and (best < 0 or room[bucket] > room[best]):
                best = bucket
        out[whole[i]] = best
        room[best] -= sizes[whole[i]]
        served[best] = True
        left -= 1
        if left == 0:
            left = room.shape[0]
            for bucket in range(room.shape[0]):
                served[bucket] = False
