"""D-choices: two workers for a key of the tail, as many as needed for a hot one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from skewless.core.arrays import FloatArray, Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.kernel import lean_kernel
from skewless.split.hot import (
    COUNT,
    FULL,
    MISSING,
    STATS_SEEN,
    THRESHOLD,
    UNTIL,
    HotState,
    hot_advance,
    hot_end,
    hot_observe,
)
from skewless.split.hot_splitter import HotSplitter
from skewless.split.least import least_add, least_loaded, least_reset, new_least
from skewless.split.two_choices import candidate, less_loaded

TOLERANCE = 1e-4  # the authors' epsilon: imbalance that `choices_needed` accepts


class DChoices(HotSplitter):
    """Two choices for the tail; the least loaded of d choices for hot keys, with the smallest d that can balance them.

    d is computed again after each statistics window from the shares of the hot keys. If it reaches the number of
    workers, a hot key goes to the least loaded of all, as in `WChoices`.

    Parameters
    ----------
    workers
        Workers that share the load.
    slide
        Tuples in a statistics window; None if it ends with a call of `end_slide`.
    hot_at
        Share of a worker's fair load from which a key is hot: the authors' 1 / (5 workers) of all tuples.
    statistics
        "exact", "countmin" or "switch".

    Examples
    --------
    >>> keys = np.random.default_rng(1).zipf(1.5, 100_000)
    >>> splitter = DChoices(16, slide=10_000)
    >>> loads = np.bincount(splitter.route(keys), minlength=16)
    >>> float(round(loads.max() / loads.mean(), 1)), splitter.choices
    (1.0, 11)

    References
    ----------
    M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini: When two choices are not enough: balancing at
    scale in distributed stream processing. ICDE 2016.
    """

    name: ClassVar[str] = "d-choices"

    def __init__(
        self, workers: int = 1, *, slide: int | None = 100_000, hot_at: float = 0.2, statistics: str = "switch"
    ) -> None:
        super().__init__(workers, slide=slide, slides=1, hot_at=hot_at, statistics=statistics)
        self.loads: Int64Array = np.zeros(workers, dtype=np.int64)
        self.choices = self._needed(np.zeros(0))
        self._least = new_least(self.loads)

    def _needed(self, shares: FloatArray) -> int:
        """The choices of a hot key when the hot keys have these shares of all tuples."""
        return choices_needed(shares, self.workers)

    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        return int(_route(self.choices, self.loads, self._least, self.hot.state, keys, weights, out))

    def _end_stats_window(self) -> None:
        rows, load = self.hot.state.rows, max(1, int(self._progress[STATS_SEEN]))
        self.choices = self._needed(rows[rows[:, UNTIL] != MISSING, COUNT] / load)
        super()._end_stats_window()

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        hot = seen.counts >= self.hot.state.meta[THRESHOLD]
        self.choices = self._needed(seen.counts[hot] / seen.total)
        self.loads[:] = seen.tail_loads(self.workers)
        least_reset(self._least, self.loads)


def choices_needed(shares: FloatArray, workers: int) -> int:
    """The fewest choices d that can balance hot keys with these shares of all tuples; `workers` if no d can.

    For every prefix of h hot keys, most frequent first, the workers that they may reach, about b = n - n (1 - 1/n)^(h
    d), must be able to hold these keys and what else goes there: sum of the prefix + (b/n)^d of the other hot keys +
    (b/n)^2 of the tail <= b (1/n + epsilon).

    >>> choices_needed(np.array([0.38, 0.13, 0.07]), 8)
    8
    >>> choices_needed(np.array([0.05, 0.04]), 16)
    2
    """
    shares = np.sort(shares)[::-1]
    prefix = np.cumsum(shares)
    hot = prefix[-1] if len(shares) else 0.0
    h = np.arange(1, len(shares) + 1)
    for d in range(2, workers):
        reached = workers - workers * (1 - 1 / workers) ** (h * d)
        falls = reached / workers
        load = prefix + falls**d * (hot - prefix) + falls**2 * (1 - hot)
        if np.all(load <= reached * (1 / workers + TOLERANCE)):
            return d
    return workers


@lean_kernel
def _route(
    choices: Int,
    loads: Int64Array,
    least: Int64Array,
    hot: HotState,
    keys: Int64Array,
    weights: Int64Array,
    out: Int32Array,
) -> Int:
    """Route to the end of the statistics window, or until there may be no room for the next tuple."""
    workers = loads.shape[0]
    step = np.int64(weights.shape[0] > 1)
    end = hot_end(hot.meta, keys.shape[0])
    for i in range(end):
        key, weight = keys[i], weights[i * step]
        row = hot_observe(hot, key, weight)
        if row == FULL:
            return hot_advance(hot.meta, i)
        if row == MISSING:
            worker = less_loaded(loads, candidate(key, 0, workers), candidate(key, 1, workers))
        elif choices >= workers:
            worker = least_loaded(least)
        else:
            worker = candidate(key, 0, workers)
            for j in range(1, choices):
                worker = less_loaded(loads, worker, candidate(key, j, workers))
        loads[worker] += weight
        least_add(least, worker, weight)
        out[i] = worker
    return hot_advance(hot.meta, end)
