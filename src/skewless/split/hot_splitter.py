"""The bases of the splitters that find the hot keys and route only these differently from the tail."""

from __future__ import annotations

from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel
from skewless.split.held import LOAD, WindowState, new_window, window_release, window_slide, with_rows
from skewless.split.hot import (
    LAST_COUNT,
    MISSING,
    RELEASED,
    RELEASED_ROW,
    THRESHOLD,
    HotKeys,
    HotState,
    hot_find,
    hot_next_window,
    hot_promote,
)
from skewless.split.sliding import LENGTH, SlidingSplitter


class HotSplitter(SlidingSplitter):
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

    @property
    def _progress(self) -> Int64Array:
        return self.hot.state.meta

    def _end_slide(self) -> None:
        hot_next_window(self.hot.state, self.slide)

    def _begin_batch(self, seen: Counts) -> None:
        """The last micro-batch was a statistics window; the frequent keys of this one are known beforehand."""
        hot_next_window(self.hot.state, seen.total)
        hot = seen.counts >= self.hot.state.meta[THRESHOLD]
        self._make_room(int(hot.sum()) + 1)
        _promote(self.hot.state, seen.keys[hot], seen.counts[hot])

    def _make_room(self, needed: int = 1) -> None:
        self.hot.make_room(needed)


class HeldSplitter(HotSplitter):
    """Knows the loads of the window, and on which workers the tuples of each hot key are.

    For the parameters see `HotSplitter`.
    """

    def __init__(self, workers: int, *, slide: int, slides: int, hot_at: float, statistics: str) -> None:
        super().__init__(workers, slide=slide, slides=slides, hot_at=hot_at, statistics=statistics)
        self.window: WindowState = new_window(workers, slides, self.hot.capacity)

    @property
    def loads(self) -> Int64Array:
        """Tuples of the window on each worker."""
        loads: Int64Array = self.window.loads[LOAD]
        return loads

    def _end_slide(self) -> None:
        held_next_slide(self.hot.state, self.window)

    def _make_room(self, needed: int = 1) -> None:
        super()._make_room(needed)
        if self.hot.capacity > len(self.window.fragments):
            self.window = with_rows(self.window, self.hot.capacity)


@lean_kernel
def held_next_slide(hot: HotState, window: WindowState) -> None:
    """End the current slide, which is full; the window forgets the keys that are no longer hot."""
    hot_next_window(hot, hot.meta[LENGTH])
    for j in range(hot.meta[RELEASED]):
        window_release(window, hot.rows[j, RELEASED_ROW])
    window_slide(window)


@lean_kernel
def _promote(hot: HotState, keys: Int64Array, counts: Int64Array) -> None:
    for i in range(keys.shape[0]):
        row = hot_find(hot, keys[i])
        if row == MISSING:
            row = hot_promote(hot, keys[i], 0)
        hot.rows[row, LAST_COUNT] = counts[i]  # the share of the key is known beforehand
