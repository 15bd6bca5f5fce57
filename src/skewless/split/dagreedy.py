"""DAGreedy: every tuple of a hot key goes where load and affinity are best at the moment."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import lean_kernel
from skewless.sketch.switch import counts_next_window
from skewless.split.held import (
    HEAD,
    HOLDER,
    LOAD,
    TOTAL,
    WindowState,
    new_window,
    window_clear,
    window_fragment,
    window_release,
    window_slide,
    with_rows,
)
from skewless.split.hot import (
    FULL,
    LENGTH,
    MISSING,
    RELEASED,
    RELEASED_ROW,
    SEEN,
    hot_next_window,
    hot_observe,
)
from skewless.split.hot_splitter import NEVER, HotSplitter
from skewless.split.least import least_add, least_loaded, least_reset, new_least


class DAGreedy(HotSplitter):
    """Hashes the tail; sends each tuple of a hot key to the worker with the best score of affinity and load.

    The score of a worker is half its affinity, 1 if it holds the key in the window and 0 if not, less half of how far
    its load is above the average, relative to the average. The best worker is found without scoring all of them: it is
    the least loaded of those that hold the key, or the least loaded of all.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide, slides
        Tuples in a slide, and slides in the window of the loads and fragments. A slide is a statistics window too.
    hot_at
        Share of a worker's fair load from which a key is hot.
    statistics
        "exact", "countmin" or "switch".

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
        slide: int = 100_000,
        slides: int = 10,
        hot_at: float = 1.0,
        statistics: str = "switch",
    ) -> None:
        super().__init__(workers, slide=slide, slides=slides, hot_at=hot_at, statistics=statistics)
        self.window: WindowState = new_window(workers, slides, self.hot.capacity)
        self._least = new_least(self.loads)

    @property
    def loads(self) -> Int64Array:
        """Tuples of the window on each worker."""
        loads: Int64Array = self.window.loads[LOAD]
        return loads

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        if self.hot.state.meta[SEEN] == self.hot.state.meta[LENGTH]:
            self._end_slide()
        state = (self._least, *self.hot.state, *self.hot.counts.state, *self.window)
        return int(_route(*state, keys, weights, out))

    def _end_slide(self) -> None:
        index, rows, meta = self.hot.state
        hot_next_window(index, rows, meta, self.hot.hot_at, self.slide, self.workers)
        counts_next_window(*self.hot.counts.state)
        for row in rows[: meta[RELEASED], RELEASED_ROW]:
            window_release(self.window.bits, self.window.held, self.window.fragments, row)
        window_slide(*self.window)
        least_reset(self._least, self.loads)

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        window_clear(*self.window, seen.tail_loads(self.workers))
        least_reset(self._least, self.loads)

    def _grow_rows(self, rows: int) -> None:
        self.window = with_rows(self.window, rows)


@lean_kernel
def _route(
    least: Int64Array,
    index: Int64Array,
    rows: Int64Array,
    hot: Int64Array,
    table: Int64Array,
    cells: Int64Array,
    counting: Int64Array,
    loads: Int64Array,
    bits: Int64Array,
    held: Int32Array,
    fragments: Int64Array,
    window: Int64Array,
    keys: Int64Array,
    weights: Int64Array,
    out: Int32Array,
) -> Int:
    """Route to the end of the slide, or until there may be no room for the next tuple."""
    workers = loads.shape[1]
    step = np.int64(weights.shape[0] > 1)
    end = keys.shape[0]
    if hot[LENGTH] != NEVER:
        end = min(end, hot[LENGTH] - hot[SEEN])
    for i in range(end):
        key, weight = keys[i], weights[i * step]
        row = hot_observe(index, rows, hot, table, cells, counting, key, weight)
        if row == FULL:
            end = i
            break
        if row == MISSING:
            worker = pmod(xxhash64_long(key, SEED), workers)
        else:
            worker = least_loaded(least)
            holder = np.int64(MISSING)
            for j in range(fragments[row]):
                other = np.int64(held[row, HOLDER, j])
                if holder == MISSING or loads[LOAD, other] < loads[LOAD, holder]:
                    holder = other
            # 1/2 - 1/2 (L(holder) - avg)/avg >= -1/2 (L(worker) - avg)/avg
            if holder != MISSING and (loads[LOAD, holder] - loads[LOAD, worker]) * workers <= window[TOTAL]:
                worker = holder
            window_fragment(bits, held, fragments, window[HEAD], row, worker)
        loads[LOAD, worker] += weight
        window[TOTAL] += weight
        least_add(least, worker, weight)
        out[i] = worker
    hot[SEEN] += end
    return end
