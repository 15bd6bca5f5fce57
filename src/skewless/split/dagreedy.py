"""DAGreedy: every tuple of a hot key goes where load and affinity are best at the moment."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.kernel import lean_kernel
from skewless.split.held import HEAD, HOLDER, LOAD, TOTAL, WindowState, window_clear, window_fragment
from skewless.split.hot import FULL, MISSING, HotState, hot_advance, hot_end, hot_observe
from skewless.split.hot_splitter import HeldSplitter
from skewless.split.least import least_add, least_loaded, least_reset, new_least
from skewless.split.two_choices import candidate


class DAGreedy(HeldSplitter):
    """Hashes the tail; sends each tuple of a hot key to the worker with the best score of affinity and load.

    The score of a worker is half its affinity, 1 if it holds the key in the window and 0 if not, less half of how far
    its load is above the average, relative to the average. The best worker is found without scoring all of them: it is
    the least loaded of those that hold the key, or the least loaded of all.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide, slides
        Tuples in a slide, and slides in the window of the loads and fragments. Without a number of tuples, a slide ends
        with a call of `end_slide`, as slides of time do.
    hot_at
        Share of a worker's fair load from which a key is hot.
    statistics
        "exact", "countmin" or "switch".
    stats_window
        Tuples in a statistics window; "slide" if every slide is one, None if they end with calls of `end_stats_window`.

    Examples
    --------
    >>> keys = np.random.default_rng(1).zipf(1.5, 100_000)
    >>> loads = np.bincount(DAGreedy(8, slide=10_000).route(keys), minlength=8)
    >>> float(round(loads.max() / loads.mean(), 1))
    1.3

    References
    ----------
    A. Pacaci, M. T. Özsu: Distribution-aware stream partitioning for distributed stream processing systems.
    BeyondMR 2018.
    """

    name: ClassVar[str] = "dagreedy"

    def __init__(
        self,
        workers: int = 1,
        *,
        slide: int | None = 100_000,
        slides: int = 10,
        hot_at: float = 1.0,
        statistics: str = "switch",
        stats_window: int | str | None = "slide",
    ) -> None:
        super().__init__(
            workers, slide=slide, slides=slides, hot_at=hot_at, statistics=statistics, stats_window=stats_window
        )
        self._least = new_least(self.loads)

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self._least, self.hot.state, self.window, keys, weights, out))

    def _end_slide(self) -> None:
        super()._end_slide()
        least_reset(self._least, self.loads)

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        window_clear(self.window, seen.tail_loads(self.workers))
        least_reset(self._least, self.loads)


@lean_kernel
def _route(
    least: Int64Array, hot: HotState, window: WindowState, keys: Int64Array, weights: Int64Array, out: Int32Array
) -> Int:
    """Route to the end of the slide, or until there may be no room for the next tuple."""
    loads = window.loads
    workers = loads.shape[1]
    step = np.int64(weights.shape[0] > 1)
    end = hot_end(hot.meta, keys.shape[0])
    for i in range(end):
        key, weight = keys[i], weights[i * step]
        row = hot_observe(hot, key, weight)
        if row == FULL:
            return hot_advance(hot.meta, i)
        if row == MISSING:
            worker = candidate(key, 0, workers)
        else:
            worker = least_loaded(least)
            holder = np.int64(MISSING)
            for j in range(window.fragments[row]):
                other = np.int64(window.held[row, HOLDER, j])
                if holder == MISSING or loads[LOAD, other] < loads[LOAD, holder]:
                    holder = other
            # 1/2 - 1/2 (L(holder) - avg)/avg >= -1/2 (L(worker) - avg)/avg
            if holder != MISSING and (loads[LOAD, holder] - loads[LOAD, worker]) * workers <= window.meta[TOTAL]:
                worker = holder
            window_fragment(window, window.meta[HEAD], row, worker)
        loads[LOAD, worker] += weight
        window.meta[TOTAL] += weight
        least_add(least, worker, weight)
        out[i] = worker
    return hot_advance(hot.meta, end)
