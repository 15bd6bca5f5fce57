"""Prompt's allocations: the keys of a batch to blocks (Algorithm 2), and a block's keys to buckets (Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.kernel import inner, lean_kernel
from skewless.split.base import as_keys

GOLDEN = 0.6180339887498949
MOST_TUPLES = 2**61  # of a batch, and in its blocks before; compiled sums of twice as many still fit a long


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
        keys = as_keys(keys)
        by_key = np.argsort(keys, kind="stable")
        # Fragments in the order of the tuples: keys rising, the parts of a key one after the other.
        owners = self.keys[self.which]
        order = np.argsort(owners, kind="stable")
        if not np.array_equal(keys[by_key], np.repeat(owners[order], self.size[order])):
            raise SkewlessError(
                f"these {len(keys):,} tuples are not those of the plan, which has {int(self.size.sum()):,} of "
                f"{len(self.keys):,} keys; give the batch that was counted, or make a plan of this one"
            )
        out = np.empty(len(keys), dtype=np.int32)
        out[by_key] = np.repeat(self.block[order], self.size[order])
        return out


def partition(
    keys: Int64Array,
    counts: Int64Array,
    blocks: int,
    already: Int64Array | None = None,
    already_keys: Int64Array | None = None,
) -> BlockPlan:
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
    `already_keys` has how many keys these tuples have, other ones than `keys`. A block then gets as many keys as it
    lacks: the dealing passes over those that have enough, so that it is the least frequent keys that make up for it.

    >>> plan = partition(np.array([7, 8, 9]), np.array([6, 3, 3]), 2)
    >>> plan.sizes, plan.cardinalities
    (array([6, 6]), array([1, 2]))

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """
    keys, counts = counted(keys, counts, blocks)
    filled, there = (_in_each("already", already, blocks), _in_each("already_keys", already_keys, blocks))
    held = int(filled.sum())
    most = 2 * len(keys) + blocks  # for each key a fragment and the rest of it, and one more where that fills a block
    which, block, size = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    total = int(counts.sum())
    cut = max(1, min(total // max(1, len(keys)), -(-total // blocks)))
    large = int(_deal(counts, cut, *_evened(there, len(keys)), filled, which, block, size))
    smallest_first = np.argsort(counts[which[:large]], kind="stable")
    capacity = -(-(total + held) // blocks)
    used = _serve(counts, cut, capacity, smallest_first, filled, which, block, size)
    order = np.argsort(which[:used], kind="stable")
    return BlockPlan(blocks, keys, counts, which[order], block[order], size[order])


def counted(keys: Int64Array, counts: Int64Array, blocks: int) -> tuple[Int64Array, Int64Array]:
    """The keys and counts that a plan is made of; refuses what no batch has, since compiled loops would not notice."""
    if isinstance(blocks, bool) or not isinstance(blocks, (int, np.integer)) or blocks < 1:
        raise SkewlessError(f"blocks is {blocks}; give at least 1, a whole number")
    keys, counts = as_keys(keys), whole("counts", counts)
    if len(keys) != len(counts):
        raise SkewlessError(f"{len(keys)} keys but {len(counts)} counts; give one count for each key")
    if len(counts) and counts.min() == 0:
        raise SkewlessError(
            f"key {keys[counts.argmin()]} has a count of 0, and would be a fragment without tuples; give only keys "
            "that the batch has"
        )
    return keys, counts


def whole(name: str, values: Int64Array) -> Int64Array:
    """Numbers of tuples, as a flat array of longs."""
    values = np.asarray(values)
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        raise SkewlessError(
            f"{name} are {values.dtype} of shape {values.shape}; give one flat array of whole numbers of tuples"
        )
    if len(values) and values.min() < 0:
        raise SkewlessError(f"{name} has {values.min()}; give numbers of tuples, from 0")
    if values.sum(dtype=np.float64) > MOST_TUPLES:
        raise SkewlessError(
            f"{name} are {values.sum(dtype=np.float64):.3g} tuples together; give at most {MOST_TUPLES:.3g} (2^61)"
        )
    return np.ascontiguousarray(values, np.int64)


def _in_each(name: str, values: Int64Array | None, blocks: int) -> Int64Array:
    """What is in each block before the dealing, as an array of its own; nothing if it is not given."""
    if values is None:
        return np.zeros(blocks, np.int64)
    values = whole(name, values)
    if len(values) != blocks:
        raise SkewlessError(f"{name} has {len(values)} numbers for {blocks} blocks; give one for each block")
    return values.copy()


def _evened(there: Int64Array, keys: int) -> tuple[Int64Array, Int64Array]:
    """How many of so many keys each block gets, so that all have equally many, or as nearly as that can be.

    Second is 1 for each block that may get one of the keys that are left after that. A block that has more of them
    before than others have after it gets none.

    >>> _evened(np.array([5, 3, 9]), 7)
    (array([2, 4, 0]), array([1, 1, 0]))
    """
    rising = np.sort(there)
    needed = rising * np.arange(1, len(there) + 1) - np.cumsum(rising)  # to bring all blocks before up to this one
    lowest = int(np.searchsorted(needed, keys, side="right"))  # blocks that get any
    level = (keys + int(rising[:lowest].sum())) // lowest
    return np.maximum(0, level - there), (there <= level).astype(np.int64)


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


@inner
def _next(turn: Int, direction: Int, blocks: Int) -> tuple[Int, Int]:
    """The next block in zig-zag, and the direction from there."""
    if 0 <= turn + direction < blocks:
        return turn + direction, direction
    return turn, -direction  # the last block in one direction is the first on the way back


@lean_kernel
def _deal(
    counts: Int64Array,
    cut: Int,
    lacking: Int64Array,
    spare: Int64Array,
    filled: Int64Array,
    which: Int64Array,
    block: Int32Array,
    size: Int64Array,
) -> Int:
    """Put the first part of each large key, then each other key, into a block; return how many are large.

    A block that lacks no more keys is passed over, until none lacks any; then those of `spare` may get one more.
    """
    blocks, keys = filled.shape[0], counts.shape[0]
    used = 0
    turn = 0
    left = lacking.sum()
    for k in range(keys):
        if counts[k] > cut:
            if left == 0:
                for b in range(blocks):
                    lacking[b] = spare[b]
            left -= 1
            while lacking[turn] == 0:
                turn = (turn + 1) % blocks
            which[used], block[used], size[used] = k, turn, cut
            filled[turn] += cut
            lacking[turn] -= 1
            used += 1
            turn = (turn + 1) % blocks
    large = used

    direction = 1
    for k in range(keys):
        if counts[k] <= cut:
            if left == 0:
                for b in range(blocks):
                    lacking[b] = spare[b]
            left -= 1
            while lacking[turn] == 0:
                turn, direction = _next(turn, direction, blocks)
            which[used], block[used], size[used] = k, turn, counts[k]
            filled[turn] += counts[k]
            lacking[turn] -= 1
            used += 1
            turn, direction = _next(turn, direction, blocks)
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
