"""The ways in which PartLy may divide a key, and the keys of a micro-batch as it meets them, one after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array

SHARES: FloatArray = np.array(
    [
        [1, 0, 0, 0, 0],
        [1 / 2, 1 / 2, 0, 0, 0],
        [1 / 3, 1 / 3, 1 / 3, 0, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0],
        [1 / 5, 1 / 5, 1 / 5, 1 / 5, 1 / 5],
        [3 / 4, 1 / 4, 0, 0, 0],
        [7 / 8, 1 / 8, 0, 0, 0],
        [1 / 2, 1 / 4, 1 / 4, 0, 0],
        [1 / 2, 1 / 4, 1 / 8, 1 / 8, 0],
    ]
)
"""For each way, what part of a key the first block gets, and each of the blocks after it."""
PARTS: Int64Array = (SHARES > 0).sum(axis=1)
"""For each way, how many blocks share the key."""
STAGES = (2, 5, len(SHARES))
"""How many of the ways are open in each stage of training: halves; up to five equal parts; parts that differ."""
MOST_PARTS = SHARES.shape[1]


class Pieces(NamedTuple):
    """What PartLy places: a key, or a piece of one that is too large for any way.

    Attributes
    ----------
    which
        The key of each piece, as its place among the counts; the pieces of a key are adjacent.
    size
        The tuples of each piece.
    """

    which: Int64Array
    size: Int64Array


def pieces(counts: Int64Array, blocks: int, tail: Int64Array | None = None) -> Pieces:
    """The keys of a micro-batch in turn; those of more than five blocks are cut.

    No way divides a key into more than five parts, so a key of more than five blocks has no place that it fits. It is
    first cut into as few equal pieces as fit a block that also holds its share of the tail and of the smallest keys.
    Keys that are smaller stay whole: dividing them is what PartLy learns.

    Parameters
    ----------
    counts
        Tuples of each key, most frequent first.
    blocks
        Blocks of the micro-batch.
    tail
        Tuples of other keys that are in each block in any case.

    >>> pieces(np.array([700, 120, 100, 50, 20, 10]), blocks=10).size
    array([100, 100, 100, 100, 100, 100, 100, 120, 100,  50,  20,  10])
    """
    total = int(counts.sum()) + (0 if tail is None else int(tail.sum()))
    capacity = total / blocks
    beside = len(counts) // blocks
    room = capacity - int(counts[len(counts) - beside :].sum()) - (0 if tail is None else int(tail.mean()))
    fits = max(1.0, capacity / 2, room)
    number = np.where(counts > MOST_PARTS * capacity, np.ceil(counts / fits).astype(np.int64), 1)
    which = np.repeat(np.arange(len(counts)), number)
    place = np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)
    each, more = np.divmod(counts, number)
    return Pieces(which, each[which] + (place < more[which]))
