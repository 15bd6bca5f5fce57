"""The bases of the splitters that find the hot keys and route only these differently from the tail."""

from __future__ import annotations

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel
from skewless.core.policy import Policy
from skewless.sketch import ExactCounts
from skewless.split.base import as_keys
from skewless.split.held import LOAD, WindowState, new_window, window_forget, window_release, window_slide, with_rows
from skewless.split.hot import (
    LAST_COUNT,
    MISSING,
    RELEASED,
    RELEASED_ROW,
    STATS_LENGTH,
    STATS_SEEN,
    THRESHOLD,
    WITH_SLIDE,
    HotKeys,
    HotState,
    hot_find,
    hot_next_window,
    hot_promote,
    threshold,
)
from skewless.split.sliding import NEVER, SEEN, SlidingSplitter


class HotSplitter(SlidingSplitter):
    """Finds the hot keys by their counts in the last slides, and routes them and the tail by different rules.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide
        Tuples in a slide of the window, None if slides end with calls of `end_slide`.
    slides
        Slides in the window.
    stats_window
        Tuples in a statistics window; "slide" if every slide is one, None if they end with calls of `end_stats_window`.
    hot_at
        Share of a worker's fair load from which a key is hot.
    statistics
        How keys are counted: "exact", "countmin" or "switch".
    """

    def __init__(
        self,
        workers: int,
        *,
        slide: int | None,
        slides: int,
        hot_at: float,
        statistics: str,
        stats_window: int | str | None = "slide",
    ) -> None:
        super().__init__(workers)
        check_whole("slides", slides)
        self.slide, self.slides, self.stats_window = slide, slides, stats_window
        self.hot = HotKeys(workers, window=slide, hot_at=hot_at, statistics=statistics, stats_window=stats_window)

    @property
    def hot_keys(self) -> int:
        """Keys that are hot right now."""
        return len(self.hot.keys)

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with counts like `seen`, which is a statistics window of its own."""
        meta = self._progress
        length, meta[STATS_LENGTH] = meta[STATS_LENGTH], NEVER
        try:
            return super().plan(seen)
        finally:
            meta[STATS_LENGTH], meta[STATS_SEEN] = length, 0

    def take_hot(self) -> Int64Array:
        """The keys that were hot at any time since the last call; all others have only been on their homes."""
        return self.hot.take()

    def end_stats_window(self) -> None:
        """End a statistics window that is neither a slide nor of a number of tuples."""
        if self.stats_window is not None:
            raise SkewlessError(
                f"stats_window is {self.stats_window!r}; give stats_window=None to end statistics windows yourself"
            )
        self._end_stats_window()

    @property
    def _progress(self) -> Int64Array:
        return self.hot.state.meta

    def _begin_slide(self) -> None:
        super()._begin_slide()
        if self._progress[STATS_SEEN] == self._progress[STATS_LENGTH]:
            self._end_stats_window()

    def _end_slide(self) -> None:
        if self._progress[STATS_LENGTH] == WITH_SLIDE:
            self._end_stats_window()
        self._progress[SEEN] = 0

    def _end_stats_window(self) -> None:
        hot_next_window(self.hot.state, self._progress[STATS_SEEN])

    def _begin_batch(self, seen: Counts) -> None:
        """The last micro-batch was a statistics window; the frequent keys of this one are known beforehand."""
        hot_next_window(self.hot.state, seen.total)
        self._promote(seen)

    def _promote(self, seen: Counts) -> None:
        """Make the frequent keys of a micro-batch hot before any of it is routed."""
        hot = seen.counts >= self.hot.state.meta[THRESHOLD]
        self._make_room(int(hot.sum()) + 1)
        _promote(self.hot.state, seen.keys[hot], seen.counts[hot])

    def _make_room(self, needed: int = 1) -> None:
        self.hot.make_room(needed)


class HeldSplitter(HotSplitter):
    """Knows the loads of the window, and on which workers the tuples of each hot key are.

    For the parameters see `HotSplitter`.
    """

    def __init__(
        self,
        workers: int,
        *,
        slide: int | None,
        slides: int,
        hot_at: float,
        statistics: str,
        stats_window: int | str | None = "slide",
    ) -> None:
        super().__init__(
            workers, slide=slide, slides=slides, hot_at=hot_at, statistics=statistics, stats_window=stats_window
        )
        self.window: WindowState = new_window(workers, slides, self.hot.capacity)

    @property
    def loads(self) -> Int64Array:
        """Tuples of the window on each worker."""
        loads: Int64Array = self.window.loads[LOAD]
        return loads

    def route_batch(self, keys: Int64Array) -> Int32Array:
        """A worker for each tuple of a whole micro-batch, whose frequent keys are known before any of it is routed.

        A micro-batch is a slide, so the splitter is made with slide=None. Fragments are those of the one micro-batch,
        as each merges its partial results by itself; loads are those of the window, whose last slide it becomes.
        """
        if len(keys) == 0:
            return np.zeros(0, dtype=np.int32)
        self.end_slide()
        window_forget(self.window)
        hot, counts = self.hot.state, ExactCounts()
        counts.add(as_keys(keys))
        hot.meta[THRESHOLD] = threshold(hot.hot_at, len(keys), self.workers)
        self._promote(Counts(*counts.heavy(hot.hot_at / self.workers), len(keys)))
        return self.route(keys)

    def _end_slide(self) -> None:
        super()._end_slide()
        window_slide(self.window)

    def _end_stats_window(self) -> None:
        held_next_stats(self.hot.state, self.window)

    def _make_room(self, needed: int = 1) -> None:
        super()._make_room(needed)
        if self.hot.capacity > len(self.window.fragments):
            self.window = with_rows(self.window, self.hot.capacity)


@lean_kernel
def held_next_stats(hot: HotState, window: WindowState) -> None:
    """End the current statistics window; the window forgets the keys that are no longer hot."""
    hot_next_window(hot, hot.meta[STATS_SEEN])
    for j in range(hot.meta[RELEASED]):
        window_release(window, hot.rows[j, RELEASED_ROW])


@lean_kernel
def _promote(hot: HotState, keys: Int64Array, counts: Int64Array) -> None:
    for i in range(keys.shape[0]):
        row = hot_find(hot, keys[i])
        if row == MISSING:
            row = hot_promote(hot, keys[i], 0)
        hot.rows[row, LAST_COUNT] = counts[i]  # the share of the key is known beforehand
