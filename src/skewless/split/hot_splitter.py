"""The base of the splitters that find the hot keys and route only these differently from the tail."""

from __future__ import annotations

from abc import abstractmethod

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel
from skewless.core.policy import Policy
from skewless.sketch.switch import counts_next_window
from skewless.split.base import Splitter
from skewless.split.hot import (
    LAST_COUNT,
    LENGTH,
    MISSING,
    SEEN,
    THRESHOLD,
    HotKeys,
    hot_find,
    hot_next_window,
    hot_promote,
)

NEVER = -1  # no count of tuples seen ever equals it


class HotSplitter(Splitter):
    """Finds the hot keys by their counts in the last slides, and routes them and the tail by different rules.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide
        Tuples in a slide of the window, which is a statistics window too.
    slides
        Slides in the window.
    hot_at
        Share of a worker's fair load from which a key is hot.
    statistics
        How keys are counted: "exact", "countmin" or "switch".
    """

    def __init__(self, workers: int, *, slide: int, slides: int, hot_at: float, statistics: str) -> None:
        super().__init__(workers)
        if slides < 1:
            raise SkewlessError(f"slides is {slides}; a window has at least 1")
        self.slide, self.slides = slide, slides
        self.hot = HotKeys(workers, window=slide, hot_at=hot_at, statistics=statistics)

    @property
    def hot_keys(self) -> int:
        """Keys that are hot right now."""
        return len(self.hot.keys)

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with counts like `seen`; fragments and loads are those of the micro-batch."""
        meta = self.hot.state.meta
        length, meta[LENGTH] = meta[LENGTH], NEVER
        try:
            return super().plan(seen)
        finally:
            meta[LENGTH], meta[SEEN] = length, 0

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        done = 0
        while done < len(keys):
            rest = weights if len(weights) == 1 else weights[done:]
            done += self._run(keys[done:], rest, out[done:])
            if done < len(keys):
                self._make_room(1)

    def _begin_batch(self, seen: Counts) -> None:
        """The last micro-batch was a statistics window; the frequent keys of this one are known beforehand."""
        state, counts = self.hot.state, self.hot.counts.state
        hot_next_window(*state, self.hot.hot_at, seen.total, self.workers)
        counts_next_window(*counts)
        hot = seen.counts >= state.meta[THRESHOLD]
        self._make_room(int(hot.sum()) + 1)
        _promote(*self.hot.state, seen.keys[hot], seen.counts[hot])

    def _make_room(self, needed: int) -> None:
        before = self.hot.capacity
        self.hot.make_room(needed)
        if self.hot.capacity > before:
            self._grow_rows(self.hot.capacity)

    @abstractmethod
    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        """Route tuples until all are done or there is no room for another hot key; return how many were routed."""

    def _grow_rows(self, rows: int) -> None:
        """Make room for `rows` hot keys in the arrays that have a row for each."""


@lean_kernel
def _promote(index: Int64Array, rows: Int64Array, meta: Int64Array, keys: Int64Array, counts: Int64Array) -> None:
    for i in range(keys.shape[0]):
        row = hot_find(index, keys[i])
        if row == MISSING:
            row = hot_promote(index, rows, meta, keys[i], 0)
        rows[row, LAST_COUNT] = counts[i]  # the share of the key is known beforehand
