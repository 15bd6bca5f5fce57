"""Which of a key's candidates got the key in the window: the memory behind cAM and CM.

It is a hash table as in `open_addressing`, with an entry for each key of the window: the key, and for each of its d
candidates the last slide that sent the key there. Nothing has to be removed at the end of a slide: a slide that has
left the window no longer counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner
from skewless.sketch.open_addressing import HELD, find, full, is_full, put, roomier
from skewless.split.sliding import LENGTH, SEEN, SlidingSplitter, slide_length

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
        Tuples in a slide, and slides in the window. Without a number of tuples, a slide ends with a call of
        `end_slide`, as slides of time do.
    candidates
        The number of workers that a key may go to.
    """

    def __init__(self, workers: int = 1, *, slide: int | None = 100_000, slides: int = 10, candidates: int = 2) -> None:
        super().__init__(workers)
        for parameter, value in (("slide", slide), ("slides", slides), ("candidates", candidates)):
            if value is not None and value < 1:
                raise SkewlessError(f"{parameter} is {value}; give at least 1")
        self.slide, self.slides, self.candidates = slide, slides, candidates
        meta = np.zeros(META, dtype=np.int64)
        meta[[SLIDE, LENGTH, SLIDES]] = 1, slide_length(slide), slides
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
        table, meta[USED] = roomier(table, table[:, LAST:].max(axis=1) >= oldest)
        self.seen = SeenState(table, meta)

    def _begin_batch(self, seen: Counts) -> None:
        """Start a new window: a micro-batch is a window of its own."""
        self.seen.table[:] = 0
        self.seen.meta[[SLIDE, SEEN, USED]] = 1, 0, 0


@inner
def seen_row(seen: SeenState, key: Int) -> Int:
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
def last_gone(seen: SeenState) -> Int:
    """The last slide that has left the window, 0 if none has: a candidate got a key in the window if it did later."""
    return max(0, seen.meta[SLIDE] - seen.meta[SLIDES])
