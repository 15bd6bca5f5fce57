"""Which of a key's candidates got the key in the window: the memory behind cAM and CM, and how they choose by it.

It is a hash table as in `open_addressing`, with an entry for each key of the window: the key, and for each of its d
candidates the last slide that sent the key there. Nothing has to be removed at the end of a slide: a slide that has
left the window no longer counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Bool, Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.open_addressing import HELD, find, full, is_full, move, put
from skewless.split.base import weight_of
from skewless.split.sliding import LENGTH, SEEN, SlidingSplitter, advance, slide_end
from skewless.split.two_choices import candidate

LAST = 2  # the first column of `table` with the last slide of a candidate
# What `meta` holds after SEEN and LENGTH.
SLIDE = 2  # number of the current slide, from 1
USED = 3  # entries taken
SLIDES = 4  # slides in the window
META = 5

FULL = -1


class SeenState(NamedTuple):
    """The arrays of the memory, to be handed to kernels."""

    table: Int64Array
    meta: Int64Array


class CandidateSplitter(SlidingSplitter):
    """The base of the splitters that choose among d candidates by what each of them has seen in the window.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide, slides
        Tuples in a slide, and slides in the window.
    candidates
        The number of workers that a key may go to.
    """

    def __init__(self, workers: int = 1, *, slide: int = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers)
        for parameter, value in (("slide", slide), ("slides", slides), ("candidates", candidates)):
            if value < 1:
                raise SkewlessError(f"{parameter} is {value}; give at least 1")
        self.slide, self.slides, self.candidates = slide, slides, candidates
        meta = np.zeros(META, dtype=np.int64)
        meta[[SLIDE, LENGTH, SLIDES]] = 1, slide, slides
        self.seen = SeenState(np.zeros((1 << 10, LAST + candidates), dtype=np.int64), meta)

    @property
    def _progress(self) -> Int64Array:
        return self.seen.meta

    def _end_slide(self) -> None:
        self.seen.meta[SEEN] = 0
        self.seen.meta[SLIDE] += 1

    def _make_room(self) -> None:
        """If the table is full, drop the keys that left the window, and double it if many stay."""
        table, meta = self.seen
        if not full(table, meta[USED]):
            return
        oldest = meta[SLIDE] - self.slides + 1
        live = table[(table[:, HELD] != 0) & (table[:, LAST:].max(axis=1) >= oldest)]
        size = len(table)
        while 4 * (len(live) + 1) > size:
            size *= 2
        self.seen = SeenState(np.zeros((size, table.shape[1]), dtype=np.int64), meta)
        move(live, self.seen.table)
        meta[USED] = len(live)

    def _begin_batch(self, seen: Counts) -> None:
        """Start a new window: a micro-batch is a window of its own."""
        self.seen.table[:] = 0
        self.seen.meta[[SLIDE, SEEN, USED]] = 1, 0, 0


@inner
def _row(seen: SeenState, key: Int) -> Int:
    """The entry of `key`, which is taken now if it had none; FULL if there may be no room for it."""
    table, meta = seen
    if is_full(table, meta[USED]):
        return FULL
    row = find(table, key)
    if table[row, HELD] == 0:
        put(table, key, 1, row)
        meta[USED] += 1
    return row


@inner
def _has(seen: SeenState, row: Int, j: Int) -> Bool:
    """Whether the j-th candidate got the key of entry `row` in the window."""
    return seen.table[row, LAST + j] > max(0, seen.meta[SLIDE] - seen.meta[SLIDES])


@lean_kernel
def route(
    burden: Int64Array, affinity: Bool, seen: SeenState, keys: Int64Array, weights: Int64Array, out: Int32Array
) -> Int:
    """Send each key to the candidate with the least burden, the first among equals.

    With affinity, the first candidate that has the key comes before, and the burden of a worker is its tuples. Without,
    it is its distinct keys.
    """
    workers = burden.shape[0]
    end = slide_end(seen.meta, keys.shape[0])
    for i in range(end):
        row = _row(seen, keys[i])
        if row == FULL:
            return advance(seen.meta, i)
        chosen, worker = np.int64(-1), np.int64(0)
        for j in range(seen.table.shape[1] - LAST):
            other = candidate(keys[i], j, workers)
            if affinity and _has(seen, row, j):
                chosen, worker = np.int64(j), other
                break
            if chosen < 0 or burden[other] < burden[worker]:
                chosen, worker = np.int64(j), other
        if affinity:
            burden[worker] += weight_of(weights, i)
        elif not _has(seen, row, chosen):
            burden[worker] += 1
        seen.table[row, LAST + chosen] = seen.meta[SLIDE]
        out[i] = worker
    return advance(seen.meta, end)
