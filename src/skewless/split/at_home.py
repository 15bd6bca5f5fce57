"""Algorithm 2 with homes: a block for each key of a task by its hash, and for the few keys that find no room there.

Where a key is put depends on its hash as far as possible, and on its count only where the count is so large that every
task agrees on it: tasks that never talk have to come to the same plan, up to what chance makes of their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.home import homes
from skewless.core.kernel import inner, lean_kernel

EVERY = 2**62  # rows of a key: more than any has
RARE = 0.3  # of a task's keys came once: then many of them are in no other task
# Of what a block has above the average in keys: how much it gives away. If frequent keys count for so little that the
# blocks of this task would be less even in keys than by hashing, they count for more.
ONCE, ALL = 0.4, 0.5
OFTEN = 0.12, 0.5
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
    counts = np.empty(_runs(rows), np.int64)
    _fold(rows, counts)
    keys = rows[: len(counts)]
    home = homes(keys, blocks)
    at_home = _cardinalities(counts, home, blocks).sum(axis=0)
    for often in OFTEN:
        which, block, size = _parts(keys, counts, home, blocks, slack, often)
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        listed = which[starts]
        there = at_home - np.bincount(home[listed], minlength=blocks) + np.bincount(block, minlength=blocks)
        if there.max() - there.mean() <= at_home.max() - at_home.mean():
            break
    return Moves(keys[listed], np.append(starts, len(which)), block, size)


def _parts(
    keys: Int64Array, counts: Int64Array, home: Int32Array, blocks: int, slack: float, often: float
) -> tuple[Int64Array, Int32Array, Int64Array]:
    """The parts of keys that are not, or not only, at home, those of a key together: key, block, and rows."""
    numbers = np.arange(1, max(2, blocks), dtype=np.int64)
    steps = numbers[np.gcd(numbers, blocks) == 1]  # those by which a walk meets every block
    where = home.copy()
    _level(keys, counts, steps, blocks, often, where)

    total, share = int(counts.sum()), counts.sum() / blocks
    full = max(-(-total // blocks), int((1 + slack) * share))
    least = max(1, int(slack * share))
    room, classes = np.full(blocks, full, np.int64), np.zeros((blocks, CLASSES), np.int64)
    _weigh(counts, where, room, classes)
    leaving = np.flatnonzero(_may_leave(counts, where, _lowest(room, classes)))
    leaving = leaving[np.argsort(-counts[leaving], kind="stable")]
    stays = np.empty(len(leaving), np.int64)
    _leave(counts, where, leaving, least, room, stays)
    leaving, stays = leaving[stays < counts[leaving]], stays[stays < counts[leaving]]

    # Each key has a part that ends it; others fill a block, and of a block one key at most stays in part.
    most = len(leaving) + 2 * blocks
    which, block, size = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
    found = _place(keys, counts, where, leaving, stays, least, steps, room, which, block, size)
    moved = where != home
    moved[leaving] = False
    whole = np.flatnonzero(moved)
    del home, moved, room, stays, leaving  # whoever moves half of the keys of a task needs the memory
    which = np.concatenate((which[:found], whole))
    order = np.argsort(which, kind="stable")
    which = which[order]
    block = np.concatenate((block[:found], where[whole]))[order]
    size = np.concatenate((size[:found], counts[whole]))[order]
    return which, block, size


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


def _level(
    keys: Int64Array, counts: Int64Array, steps: Int64Array, blocks: int, often: float, where: Int32Array
) -> None:
    """Send keys from blocks that have more of them than the average to blocks that have fewer.

    A task knows its own keys, and not those that only others have. If few of its keys came once, other tasks have
    nearly all of them too, find the same blocks too full, and send the same keys. Otherwise only keys that came once
    are sent, most of which no other task has. Each task makes up for its own part of them, and only for a little of
    what the frequent keys lack, because all tasks see that, and make up for it together.
    """
    cardinalities = _cardinalities(counts, where, blocks)
    frequent, once = cardinalities - cardinalities.mean(axis=1, keepdims=True)
    only_once = cardinalities[1].sum() > RARE * len(counts)
    surplus = ONCE * once + often * frequent if only_once else ALL * (once + frequent)
    there = cardinalities[1] if only_once else cardinalities.sum(axis=0)
    gives = np.minimum(there, np.rint(np.maximum(surplus, 0)).astype(np.int64))
    takes = np.rint(np.maximum(-surplus, 0)).astype(np.int64)
    # What rounding took away goes to those that lack the most.
    lacking = max(0, int(gives.sum() - takes.sum()))
    np.add.at(takes, np.argsort(surplus, kind="stable")[np.arange(lacking) % blocks], 1)
    _send(keys, counts, 1 if only_once else EVERY, gives, takes, steps, where)


def _cardinalities(counts: Int64Array, where: Int32Array, blocks: int) -> Int64Array:
    """How many keys each block has, first of those that came more than once, then of those that came once."""
    out = np.zeros((2, blocks), np.int64)
    _count(counts, where, out)
    return out


@lean_kernel
def _count(counts: Int64Array, where: Int32Array, out: Int64Array) -> None:
    for k in range(counts.shape[0]):
        out[np.int64(counts[k] == 1), where[k]] += 1


@lean_kernel
def _send(
    keys: Int64Array,
    counts: Int64Array,
    rows: Int,
    gives: Int64Array,
    takes: Int64Array,
    steps: Int64Array,
    where: Int32Array,
) -> None:
    """Send the first keys of at most so many rows from blocks that give to the first in their orders that take."""
    blocks = gives.shape[0]
    for k in range(keys.shape[0]):
        if counts[k] <= rows and gives[where[k]] > 0:
            block, step = _start(keys[k], blocks), _step(keys[k], steps)
            while takes[block] == 0:
                block = (block + step) % blocks
            gives[where[k]] -= 1
            takes[block] -= 1
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
