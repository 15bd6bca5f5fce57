"""Feeds a stream through a splitter and measures the result."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

from skewless import metrics
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.metrics import PromptCosts
from skewless.simulate.cluster import Costs


class Router(Protocol):
    """What a replay needs of a splitter."""

    def route(self, keys: Int64Array) -> Int32Array:
        """A worker for each tuple."""

    @property
    def hot_keys(self) -> int:
        """The number of keys that are split or watched right now."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The measurements of one splitter on one stream.

    Parameters
    ----------
    loads, cardinalities
        Tuples, and distinct keys, of each worker in each measured window: arrays of windows x workers.
    fragments_per_key, hot_fragments, top_fragments
        The number of workers that hold a key in each measured window, on average over all keys, on average over those
        that have a worker's fair load or more (NaN if none has), and of the most frequent key.
    gamma
        Dalton's Gamma in each measured window, with as many reducers as workers: partial results that the busiest of
        them has to merge.
    total
        Tuples of each worker in the whole stream.
    hot_keys
        The number of keys that the splitter splits or watches at the end of the stream.
    window, slide
        A measured window holds `window` tuples, or the whole stream if that is shorter; a window ends every `slide`
        tuples.
    seconds
        Seconds spent in routing alone.
    """

    loads: Int64Array
    cardinalities: Int64Array
    fragments_per_key: FloatArray
    hot_fragments: FloatArray
    top_fragments: Int64Array
    gamma: Int64Array
    total: Int64Array
    hot_keys: int
    window: int
    slide: int
    seconds: float

    @property
    def tuples(self) -> int:
        """Length of the stream."""
        return int(self.total.sum())

    @property
    def max_over_avg(self) -> float:
        """Busiest worker over the average one, over the whole stream."""
        return float(self.total.max() / self.total.mean())

    @property
    def window_max_over_avg(self) -> FloatArray:
        """Busiest worker over the average one, in each measured window."""
        ratios: FloatArray = self.loads.max(axis=1) / self.loads.mean(axis=1)
        return ratios

    @property
    def mean_window(self) -> float:
        """Busiest worker over the average one, as the mean of all windows."""
        return float(self.window_max_over_avg.mean())

    @property
    def worst_window(self) -> float:
        """Busiest worker over the average one, in the worst window."""
        return float(self.window_max_over_avg.max())

    @property
    def last_window(self) -> float:
        """Busiest worker over the average one in the last window, when the splitter has learned what it can."""
        return float(self.window_max_over_avg[-1])

    @property
    def mean_fragments(self) -> float:
        """Fragments per key of a window, on average, rounded as they are shown."""
        return round(float(self.fragments_per_key.mean()), 2)

    @property
    def mean_hot_fragments(self) -> float:
        """Workers that hold a hot key, on average over the windows that have one; NaN if none has."""
        there = self.hot_fragments[~np.isnan(self.hot_fragments)]
        return float(there.mean()) if len(there) else float("nan")

    @property
    def most_top_fragments(self) -> int:
        """Workers that hold the most frequent key, in the window where they are most."""
        return int(self.top_fragments.max())

    @property
    def mean_imbalance(self) -> float:
        """Dalton's I: tuples by which the busiest worker of a window exceeds the average; the mean of all windows."""
        return float(_over_average(self.loads).mean())

    @property
    def mean_gamma(self) -> float:
        """Dalton's Gamma: partial results that the busiest reducer merges in a window; the mean of all windows."""
        return float(self.gamma.mean())

    @property
    def prompt_costs(self) -> PromptCosts:
        """Prompt's BSI, BCI, KSR and MPI with workers for blocks; the mean of all windows."""
        bsi, bci, ksr = (
            float(each.mean())
            for each in (_over_average(self.loads), _over_average(self.cardinalities), self.fragments_per_key)
        )
        return PromptCosts(bsi, bci, ksr, (bsi + bci + ksr) / 3)

    def mean_makespan(self, costs: Costs) -> float:
        """Seconds of the longest map task and then of the longest reduce task (eq. 2.1); the mean of all windows.

        A worker is a map task, which emits a partial result for each of its keys, and there are as many reduce tasks.
        """
        maps: FloatArray = costs.tuple * self.loads + costs.emit * self.cardinalities
        reduces: FloatArray = costs.partial * self.gamma.astype(np.float64)
        return float(np.mean([metrics.makespan(*each) for each in zip(maps, reduces[:, None], strict=True)]))

    @property
    def tuples_per_second(self) -> float:
        """Tuples routed in a second."""
        return self.tuples / self.seconds if self.seconds > 0 else float("inf")


def replay(
    splitter: Router, blocks: Iterable[Int64Array], workers: int, window: int, slide: int | None = None
) -> Replay:
    """Route a stream block by block and measure it window by window, holding one window in memory.

    Parameters
    ----------
    splitter
        Routes the tuples, and learns from them as it would in a running job.
    blocks
        The stream, in pieces of any length. The windows do not depend on how it is cut.
    workers
        Workers that the splitter routes to.
    window
        Tuples in a measured window.
    slide
        Tuples from one window to the next, a divisor of `window`; if not given, the windows tumble.

    Examples
    --------
    >>> class Modulo:
    ...     hot_keys = 0
    ...     def route(self, keys):
    ...         return (keys % 2).astype(np.int32)
    >>> result = replay(Modulo(), [np.array([0, 1, 2, 3]), np.array([0, 0])], workers=2, window=3)
    >>> result.loads
    array([[2, 1],
           [2, 1]])
    >>> round(result.worst_window, 3), result.fragments_per_key
    (1.333, array([1., 1.]))
    """
    slide = window if slide is None else slide
    if workers < 1:
        raise SkewlessError(f"workers must be at least 1, not {workers}")
    if slide < 1 or window < slide or window % slide:
        raise SkewlessError(f"the window must be 1, 2, 3, ... slides long, not {window} tuples with a slide of {slide}")
    total = np.zeros(workers, np.int64)
    measured = _Windows(workers, window, slide)
    seconds = 0.0
    for block in blocks:
        if len(block) == 0:
            continue
        start = perf_counter()
        routed = splitter.route(block)
        seconds += perf_counter() - start
        total += metrics.loads(routed, workers)
        measured.add(block, routed)
    return Replay(*measured.finish(), total, splitter.hot_keys, window, slide, seconds)


class _Windows:
    """Cuts a routed stream into slides and measures each window of them when its last slide is full."""

    def __init__(self, workers: int, window: int, slide: int) -> None:
        self.workers = workers
        self.slide = slide
        self.slides = window // slide
        self.filling: list[tuple[Int64Array, Int32Array]] = []
        self.filled = 0
        self.full: deque[tuple[Int64Array, Int32Array]] = deque(maxlen=self.slides)
        self.loads: list[Int64Array] = []
        self.cardinalities: list[Int64Array] = []
        self.fragments: list[tuple[float, float, int, int]] = []

    def add(self, keys: Int64Array, routed: Int32Array) -> None:
        start = 0
        while start < len(keys):
            stop = min(len(keys), start + self.slide - self.filled)
            self.filling.append((keys[start:stop], routed[start:stop]))
            self.filled += stop - start
            start = stop
            if self.filled == self.slide:
                self.full.append(_join(self.filling))
                self.filling, self.filled = [], 0
                if len(self.full) == self.slides:
                    self._measure(self.full)

    def finish(self) -> tuple[Int64Array, Int64Array, FloatArray, FloatArray, Int64Array, Int64Array]:
        if not self.loads:
            whole = [*self.full, *self.filling]
            if not whole:
                raise SkewlessError("the stream is empty: there is nothing to replay")
            self._measure(whole)
        per_key, hot, top, gamma = map(np.array, zip(*self.fragments, strict=True))
        return np.array(self.loads), np.array(self.cardinalities), per_key, hot, top, gamma

    def _measure(self, pieces: Iterable[tuple[Int64Array, Int32Array]]) -> None:
        keys, routed = _join(pieces)
        self.loads.append(metrics.loads(routed, self.workers))
        routing = keys, routed, self.workers
        self.cardinalities.append(metrics.cardinalities(*routing))
        per_key, hot, top = (
            measure(*routing) for measure in (metrics.fragments_per_key, metrics.hot_fragments, metrics.top_fragments)
        )
        self.fragments.append((per_key, hot, int(top), metrics.aggregation_cost(*routing, reducers=self.workers)))


def _over_average(values: Int64Array) -> FloatArray:
    """In each window, what the largest of the workers has above the average."""
    excess: FloatArray = values.max(axis=1) - values.mean(axis=1)
    return excess


def _join(pieces: Iterable[tuple[Int64Array, Int32Array]]) -> tuple[Int64Array, Int32Array]:
    keys, routed = zip(*pieces, strict=True)
    return np.concatenate(keys), np.concatenate(routed)
