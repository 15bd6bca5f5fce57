"""Algorithm 2 with homes: a block for each key of a task by its hash, and for the few keys that find no room there.

Where a key is put depends on its hash as far as possible, and on its count only where the count is so large that every
task agrees on it: tasks that never talk have to come to the same plan, up to what chance makes of their rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.home import homes
from skewless.core.kernel import inner, lean_kernel

EVERY = 2**62  # rows of a key: more than any has
HOT_PARTS = 3  # of hot keys, which a block gets beside its own keys
MANY = 100  # keys in a block; with less, which block has the most is no more than chance
CLASSES = 64  # of counts: one for each power of two


class Moves(NamedTuple):
    """The keys that are not, or not only, at home, in rising order.

    The rows of `keys[i]` go to `block[offsets[i]]`, as many as `size[offsets[i]]`, then to the next block of the key,
    up to `offsets[i + 1]`.
    """

    keys: Int64Array
    offsets: Int64Array
    block: Int32Array
    size: Int64Array


def leave_home(rows: Int64Array, blocks: int, slack: float) -> Moves:
    """The keys of these rows that leave home, and where they go; the rows are overwritten.

    >>> moves = leave_home(np.array([7, 7, 7, 7, 8, 9]), 2, 0.0)
    >>> moves.keys, moves.block, moves.size
    (array([7]), array([1, 0], dtype=int32), array([2, 2]))
    """
    rows.sort()
    total, share = len(rows), len(rows) / blocks
    counts = np.empty(_runs(rows), np.int64)
    _fold(rows, counts)
    keys = rows[: len(counts)]
    numbers = np.arange(1, max(2, blocks), dtype=np.int64)
    steps = numbers[np.gcd(numbers, blocks) == 1]  # those by which a walk meets every block
    where = homes(keys, blocks)
    _level(keys, counts, blocks, steps, where)

    full = max(-(-total // blocks), int((1 + slack) * share))
    least = max(1, int(slack * share))
    room, classes = np.full(blocks, full, np.int64), np.zeros((blocks, CLASSES), np.int64)
    _weigh(counts, where, room, classes)
    leaving = np.flatnonzero(_may_leave(counts, where, _lowest(room, classes)))
    leaving = leaving[np.argsort(-counts[leaving], kind="stable")]
    stays = np.empty(len(leaving), np.int64)
    _leave(counts, where, leaving, least, room, stays)
    leaving, stays = leaving[stays < counts[leaving]], stays[stays < counts[leaving]]

    most_parts = 2 * len(leaving) + blocks  # what stays, and parts that end a key or fill a block
    which, block, size = np.empty(most_parts, np.int64), np.empty(most_parts, np.int32), np.empty(most_parts, np.int64)
    found = _place(keys, counts, where, leaving, stays, least, steps, room, which, block, size)
    moved = where != homes(keys, blocks)
    moved[leaving] = False
    whole = np.flatnonzero(moved)
    which = np.concatenate((which[:found], whole))
    order = np.argsort(which, kind="stable")
    block = np.concatenate((block[:found], where[whole]))[order]
    size = np.concatenate((size[:found], counts[whole]))[order]
    listed, parts = np.unique(which, return_counts=True)
    return Moves(keys[listed], np.concatenate(([0], np.cumsum(parts))), block, size)


@lean_kernel
def _runs(rows: Int64Array) -> Int:
    """The number of different keys in sorted rows."""
    found = 1
    for i in range(1, rows.shape[0]):
        found += rows[i] != rows[i - 1]
    return found


@lean_kernel
def _fold(rows: Int64Array, counts: Int64Array) -> None:
    """Move the different keys of sorted rows to the front, and count the rows of each."""
    last = 0
    counts[0] = 1
    for i in range(1, rows.shape[0]):
        if rows[i] != rows[last]:
            last += 1
            rows[last] = rows[i]
            counts[last] = 0
        counts[last] += 1


@inner
def _start(key: Int, blocks: Int) -> Int:
    """The first block of a key's probe order after its home."""
    return pmod(xxhash64_long(key, SEED + 1), blocks)


@inner
def _step(key: Int, steps: Int64Array) -> Int:
    """How far it is from one block of a key's probe order to the next."""
    return steps[pmod(xxhash64_long(key, SEED + 2), steps.shape[0])]


def _level(keys: Int64Array, counts: Int64Array, blocks: int, steps: Int64Array, where: Int32Array) -> None:
    """Send keys from blocks with far more keys than the average to others.

    If about half of the keys came once, most of them are not in other tasks. They are levelled among themselves first,
    in each task for itself. If all keys were levelled at once, each task would make up for the keys that all of them
    have, and eight tasks would do so eight times.
    """
    if np.count_nonzero(counts == 1) > 0.45 * len(counts):
        _level_those(keys, counts, 1, 0.7, blocks, steps, where)
        _level_those(keys, counts, EVERY, 1.0, blocks, steps, where)
    else:
        _level_those(keys, counts, EVERY, 0.7, blocks, steps, where)


def _level_those(
    keys: Int64Array,
    counts: Int64Array,
    rows: int,
    deviations: float,
    blocks: int,
    steps: Int64Array,
    where: Int32Array,
) -> None:
    """Level the keys of at most so many rows; a block may have more than the average by so many standard deviations."""
    cardinalities = np.bincount(where[counts <= rows], minlength=blocks)
    average = cardinalities.mean()
    most = math.ceil(average + deviations * math.sqrt(average))
    if rows == EVERY and average >= MANY:
        # Where chance made all blocks alike, the one with most keys still gives some away: parts of hot keys will come.
        most = max(math.ceil(average), min(most, int(cardinalities.max()) - HOT_PARTS))
    takers = max(1, math.floor(average + 0.3 * math.sqrt(average)))
    over = int(np.maximum(0, cardinalities - most).sum())
    # Each block takes as many as the others, or it would be the one that all tasks send their keys to.
    quota = np.full(blocks, -(-over // max(1, int((cardinalities < takers).sum()))), np.int64)
    _send(keys, counts, rows, most, takers, quota, cardinalities, steps, where)


@lean_kernel
def _send(
    keys: Int64Array,
    counts: Int64Array,
    rows: Int,
    most: Int,
    takers: Int,
    quota: Int64Array,
    cardinalities: Int64Array,
    steps: Int64Array,
    where: Int32Array,
) -> None:
    """Send the first keys of blocks that have more than `most` to blocks that have less than `takers`."""
    blocks = cardinalities.shape[0]
    for k in range(keys.shape[0]):
        home = where[k]
        if cardinalities[home] > most and counts[k] <= rows:
            block, step, seen = _start(keys[k], blocks), _step(keys[k], steps), 0
            # Once around, blocks are only looked at for being less full than `most`, as one of them is.
            while cardinalities[block] >= most or (
                seen < blocks and (cardinalities[block] >= takers or quota[block] == 0)
            ):
                block = (block + step) % blocks
                seen += 1
            cardinalities[home] -= 1
            cardinalities[block] += 1
            quota[block] -= 1
            where[k] = block


@inner
def _class(count: Int) -> Int:
    """The class of a count: how many bits it has."""
    bits = 0
    while count > 0:
        count >>= 1
        bits += 1
    return bits


@lean_kernel
def _weigh(counts: Int64Array, where: Int32Array, room: Int64Array, classes: Int64Array) -> None:
    """Take the rows of every key from the room of its block, and add them to the class of its count there."""
    for k in range(counts.shape[0]):
        room[where[k]] -= counts[k]
        classes[where[k], _class(counts[k])] += counts[k]


@lean_kernel
def _lowest_of(room: Int64Array, classes: Int64Array, lowest: Int64Array) -> None:
    for block in range(room.shape[0]):
        lacking = -room[block]
        while lacking > 0:
            lowest[block] -= 1
            lacking -= classes[block, lowest[block]]


def _lowest(room: Int64Array, classes: Int64Array) -> Int64Array:
    """The lowest class of each block whose keys have to leave, so that the block is not too full."""
    lowest = np.full(len(room), CLASSES, np.int64)
    _lowest_of(room, classes, lowest)
    return lowest


def _may_leave(counts: Int64Array, where: Int32Array, lowest: Int64Array) -> BoolArray:
    """For each key, whether its count is of a class that leaves its block."""
    out = np.empty(len(counts), np.bool_)
    _mark(counts, where, lowest, out)
    return out


@lean_kernel
def _mark(counts: Int64Array, where: Int32Array, lowest: Int64Array, out: BoolArray) -> None:
    for k in range(counts.shape[0]):
        out[k] = _class(counts[k]) >= lowest[where[k]]


@lean_kernel
def _leave(
    counts: Int64Array, where: Int32Array, leaving: Int64Array, least: Int, room: Int64Array, stays: Int64Array
) -> None:
    """Say how many rows of each of these keys stay where they are, until no block lacks room."""
    for i in range(leaving.shape[0]):
        k = leaving[i]
        stays[i] = counts[k]
        lacking = -room[where[k]]
        if lacking > 0:
            # A key that would leave only a few rows behind leaves none: they would be a fragment for nothing.
            stays[i] = counts[k] - lacking if counts[k] - lacking >= least else 0
            room[where[k]] += counts[k] - stays[i]


@lean_kernel
def _place(
    keys: Int64Array,
    counts: Int64Array,
    where: Int32Array,
    leaving: Int64Array,
    stays: Int64Array,
    least: Int,
    steps: Int64Array,
    room: Int64Array,
    which: Int64Array,
    block: Int32Array,
    size: Int64Array,
) -> Int:
    """Give the rows that leave to blocks with room, each key in its own order; return the number of parts."""
    blocks, found = room.shape[0], 0
    for i in range(leaving.shape[0]):
        k = leaving[i]
        if stays[i] > 0:
            which[found], block[found], size[found] = k, where[k], stays[i]
            found += 1
        rest, enough, seen = counts[k] - stays[i], least, 0
        here, step = _start(keys[k], blocks), _step(keys[k], steps)
        while rest > 0:
            if room[here] >= min(rest, enough):
                taken = min(rest, room[here])
                which[found], block[found], size[found] = k, here, taken
                found += 1
                room[here] -= taken
                rest -= taken
            here = (here + step) % blocks
            seen += 1
            if seen == blocks:
                enough = 1  # rounding may leave nothing but small rooms
    return found
