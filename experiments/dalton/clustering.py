"""Correlation clustering on a cluster: work that grows with the square of a key's tuples.

A combiner compares each tuple with the others of its key in the window (VOTE). A reducer gets the clusters of a key
from all combiners that hold it, and compares their members (GREEDY): all pairs of tuples that were on different
combiners, as the code that the authors published does, or, to see what that decides, all pairs of clusters, if clusters
were compared by one member each. Keys on one combiner are forwarded or, without forwarding, cost their reducer nothing,
as there is nothing to compare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import log

import numpy as np

from experiments.costs import MEASURED, SLOWER
from experiments.dalton.rivals import Rival
from experiments.dalton.word_count import Setup
from experiments.figure import Measured
from skewless.core.arrays import FloatArray, Int64Array
from skewless.simulate import Source
from skewless.simulate.arrivals import Keys
from skewless.simulate.fragments import reducers_of
from skewless.simulate.partitioners import Partitioners
from skewless.workload import voters_like

PAIR = SLOWER * MEASURED["pair"]  # seconds to compare two texts
CLUSTERS = 5  # of a key on a combiner, or as many as it has tuples there if these are fewer
NEAR = 0.05  # how near the rate that is found has to be to the one at which tuples were routed
STEPS = 16
LATE = slice(7, 10)  # of the second of three phases, the slides in which the window has nothing of the first
SLIDES = 15


@dataclass(frozen=True)
class Pairs:
    """Slide by slide, the seconds of the busiest combiner, and of the busiest reducer by either way to compare."""

    combiner: FloatArray
    members: FloatArray
    clusters: FloatArray

    def rate(self, at: float, slide: float, *, members: bool, start: int, end: int, merging: float = 1.0) -> float:
        """The rate that keeps the busiest server just busy in these slides, as work grows with its square.

        `merging` is a multiple of what comparing costs a reducer.
        """
        reducer = self.members if members else self.clusters
        busiest = max(self.combiner[start:end].mean(), merging * reducer[start:end].mean())
        return float(at * np.sqrt(slide / busiest))


def pairs(setup: Setup, rival: Rival, keys: Keys, rate: float, slides: int) -> Pairs:
    """Route a stream for so many slides, and compute the work of each window."""
    cluster = setup.cluster(rival)
    n, m = cluster.combiners, cluster.reducers
    team, feed = Partitioners(setup.partitioner(rival)), Source(keys, rate).feed()
    last: deque[tuple[Int64Array, Int64Array]] = deque(maxlen=setup.slides)
    out = np.zeros((3, slides))
    for number in range(slides):
        arrived, times = feed.until((number + 1) * cluster.slide)
        workers = team.route(arrived, times, np.zeros(0, dtype=np.int64))
        last.append((arrived, workers.astype(np.int64)))
        team.end_slide()
        keys_of, workers_of = (np.concatenate(part) for part in zip(*last, strict=True))
        out[:, number] = window_work(keys_of, workers_of, n, m)
    return Pairs(*out)


@dataclass(frozen=True)
class Settled:
    """The rate that keeps the busiest server just busy when tuples are routed at about that rate.

    Attributes
    ----------
    rate
        The mean over seeds, and its error.
    combiner, reducer
        The share of the time that the busiest of each is busy at the rate at which tuples were routed.
    repeats
        The rate that was found over that at which tuples were routed.
    slide
        The tuples of a slide.
    """

    rate: Measured
    combiner: float
    reducer: float
    repeats: float
    slide: float


def settled(
    setup: Setup, rival: Rival, start: float, seeds: Sequence[int], *, members: bool, cheaper: float = 1.0
) -> Settled:
    """Route at ever better guesses of a rate, until the rate that follows repeats it within 5 %.

    Comparing a pair takes `cheaper` times less, so that more tuples come in a slide.
    """
    return _repeated(partial(_once, setup, rival, seeds, members, cheaper), start)


def _once(setup: Setup, rival: Rival, seeds: Sequence[int], members: bool, cheaper: float, rate: float) -> Settled:
    slide = setup.windows.slide / 1e6
    every = round(rate * slide * SLIDES / 3)
    runs = [pairs(setup, rival, voters_like(every, seed), rate, SLIDES) for seed in seeds]
    combiner = np.array([run.combiner[LATE].mean() for run in runs]) / cheaper / slide
    reducer = np.array([(run.members if members else run.clusters)[LATE].mean() for run in runs]) / cheaper / slide
    found = Measured.of(rate / np.sqrt(np.maximum(combiner, reducer)))
    return Settled(found, float(combiner.mean()), float(reducer.mean()), found.mean / rate, rate * slide)


def _repeated(once: Callable[[float], Settled], start: float) -> Settled:
    """The nearest of the rates that were tried; the next guess is by the slope between the two before it."""
    at, tried = log(start), list[tuple[float, float]]()
    best = found = once(start)
    for _ in range(STEPS):
        if abs(best.repeats - 1) <= NEAR:
            return best
        off = log(found.repeats)
        slope = -1.0
        if tried and tried[-1][0] != at:
            slope = (off - tried[-1][1]) / (at - tried[-1][0])
        tried.append((at, off))
        step = -off / slope if slope < -0.1 else off  # a rate that is too high gives a lower one
        at += float(np.clip(step, -1.0, 1.0))
        found = once(float(np.exp(at)))
        best = min((best, found), key=lambda each: abs(each.repeats - 1))
    return best


def window_work(keys: Int64Array, workers: Int64Array, combiners: int, reducers: int) -> tuple[float, float, float]:
    """Seconds of the busiest combiner, and of the busiest reducer by members and by clusters.

    >>> [round(each / PAIR) for each in window_work(np.array([7, 7, 7, 7]), np.array([0, 0, 1, 1]), 2, 1)]
    [1, 4, 4]
    """
    distinct, which = np.unique(keys, return_inverse=True)
    held, counts = np.unique(which * combiners + workers, return_counts=True)
    key, combiner = held // combiners, held % combiners
    own = counts * (counts - 1) / 2
    every = np.bincount(which) * (np.bincount(which) - 1) / 2
    across = every - np.bincount(key, own)
    clustered = np.minimum(CLUSTERS, counts)
    between = (np.bincount(key, clustered) ** 2 - np.bincount(key, clustered**2)) / 2
    at = reducers_of(distinct, reducers)
    busiest = (np.bincount(combiner, own).max(), np.bincount(at, across).max(), np.bincount(at, between).max())
    combined, members, clusters = (float(PAIR * each) for each in busiest)
    return combined, members, clusters
