"""Correlation clustering on a cluster: work that grows with the square of a key's tuples.

A combiner compares each tuple with the others of its key in the window (VOTE). A reducer gets the clusters of a key
from all combiners that hold it, and compares their members (GREEDY): all pairs of tuples that were on different
combiners, or, if clusters are compared by one member each, all pairs of clusters. Keys on one combiner are forwarded
or, without forwarding, cost their reducer nothing, as there is nothing to compare.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from experiments.costs import MEASURED, SLOWER
from experiments.dalton.rivals import Rival
from experiments.dalton.word_count import Setup
from skewless.core.arrays import FloatArray, Int64Array
from skewless.simulate import Source
from skewless.simulate.arrivals import Keys
from skewless.simulate.fragments import reducers_of
from skewless.simulate.partitioners import Partitioners

PAIR = SLOWER * MEASURED["pair"]  # seconds to compare two texts
CLUSTERS = 5  # of a key on a combiner


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


def window_work(keys: Int64Array, workers: Int64Array, combiners: int, reducers: int) -> tuple[float, float, float]:
    """Seconds of the busiest combiner, and of the busiest reducer by members and by clusters.

    >>> [round(each / PAIR) for each in window_work(np.array([7, 7, 7, 7]), np.array([0, 0, 1, 1]), 2, 1)]
    [1, 4, 25]
    """
    distinct, which = np.unique(keys, return_inverse=True)
    held, counts = np.unique(which * combiners + workers, return_counts=True)
    key, combiner = held // combiners, held % combiners
    own = counts * (counts - 1) / 2
    every = np.bincount(which) * (np.bincount(which) - 1) / 2
    across = every - np.bincount(key, own)
    fragments = np.bincount(key)
    between = CLUSTERS**2 * fragments * (fragments - 1) / 2
    at = reducers_of(distinct, reducers)
    busiest = (np.bincount(combiner, own).max(), np.bincount(at, across).max(), np.bincount(at, between).max())
    combined, members, clusters = (float(PAIR * each) for each in busiest)
    return combined, members, clusters
