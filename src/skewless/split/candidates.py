"""Which of a key's candidates got the key in the window: the memory behind cAM and CM.

It is a hash table with an entry for each key of the window: the key, and for each of its d candidates the last slide
that sent the key there. Nothing has to be removed at the end of a slide: a slide that has left the window no longer
counts.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Bool, Int, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, xxhash64_long
from skewless.core.kernel import inner, lean_kernel
from skewless.split.sliding import LENGTH, SEEN, SlidingSplitter
from skewless.split.two_choices import candidate

# Columns of `table`; the last slides of the candidates follow. A free entry has 0 in TAKEN.
KEY, TAKEN, LAST = 0, 1, 2
# What `meta` holds after SEEN and LENGTH.
SLIDE = 2  # number of the current slide, from 1
USED = 3  # entries taken
SLIDES = 4  # slides in the window
META = 5

FULL = -1


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

    name: ClassVar[str]

    def __init__(self, workers: int = 1, *, slide: int = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers)
        for parameter, value in (("slide", slide), ("slides", slides), ("candidates", candidates)):
            if value < 1:
                raise SkewlessError(f"{parameter} is {value}; give at least 1")
        self.slide, self.slides, self.candidates = slide, slides, candidates
        self._table: Int64Array = np.zeros((1 << 10, LAST + candidates), dtype=np.int64)
        self._meta: Int64Array = np.zeros(META, dtype=np.int64)
        self._meta[[SLIDE, LENGTH, SLIDES]] = 1, slide, slides

    @property
    def _progress(self) -> Int64Array:
        return self._meta

    def _end_slide(self) -> None:
        self._meta[SEEN] = 0
        self._meta[SLIDE] += 1

    def _make_room(self) -> None:
        """If the table is full, drop the keys that left the window, and double it if many stay."""
        if not full(self._table, self._meta):
            return
        oldest = self._meta[SLIDE] - self.slides + 1
        live = self._table[(self._table[:, TAKEN] != 0) & (self._table[:, LAST:].max(axis=1) >= oldest)]
        size = len(self._table)
        while 4 * (len(live) + 1) > size:
            size *= 2
        self._table = np.zeros((size, self._table.shape[1]), dtype=np.int64)
        _refill(self._table, live)
        self._meta[USED] = len(live)

    def _begin_batch(self, seen: Counts) -> None:
        """Start a new window: a micro-batch is a window of its own."""
        self._table[:] = 0
        self._meta[[SLIDE, SEEN, USED]] = 1, 0, 0


def full(table: Int64Array, meta: Int64Array) -> Bool:
    """Whether the next key may need more room."""
    return 2 * (meta[USED] + 1) > table.shape[0]


_full = inner(full)


@inner
def seen_row(table: Int64Array, meta: Int64Array, key: Int) -> Int:
    """The entry of `key`, which is taken now if it had none; FULL if there may be no room for it."""
    if _full(table, meta):
        return FULL
    mask = table.shape[0] - 1
    row = (xxhash64_long(key, SEED) >> 20) & mask
    while table[row, TAKEN] != 0:
        if table[row, KEY] == key:
            return row
        row = (row + 1) & mask
    table[row, KEY] = key
    table[row, TAKEN] = 1
    meta[USED] += 1
    return row


@inner
def seen_in_window(table: Int64Array, meta: Int64Array, row: Int, j: Int) -> Bool:
    """Whether the j-th candidate got the key of entry `row` in the window."""
    return table[row, LAST + j] > max(0, meta[SLIDE] - meta[SLIDES])


@lean_kernel
def _refill(table: Int64Array, live: Int64Array) -> None:
    mask = table.shape[0] - 1
    for i in range(live.shape[0]):
        row = (xxhash64_long(live[i, KEY], SEED) >> 20) & mask
        while table[row, TAKEN] != 0:
            row = (row + 1) & mask
        for column in range(table.shape[1]):
            table[row, column] = live[i, column]


@lean_kernel
def count_expiring(table: Int64Array, meta: Int64Array, workers: Int, out: Int64Array) -> None:
    """Count the keys that each worker holds only from the slide that leaves the window when the current one ends."""
    leaving = meta[SLIDE] - meta[SLIDES] + 1
    if leaving < 1:
        return
    for row in range(table.shape[0]):
        for j in range(table.shape[1] - LAST):
            if table[row, LAST + j] == leaving:
                out[candidate(table[row, KEY], j, workers)] += 1
