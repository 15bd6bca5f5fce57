"""Scan: places the frequent keys one after the other, each where its utility is best (Gedik, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.place.penalty import NOBODY, UTILITIES, rank, rho, utility
from skewless.place.tracking import Problem, TrackingPlacer


class Scan(TrackingPlacer):
    """Places the tracked keys in falling order of frequency, each on the worker with the best utility.

    Among equally good workers, the one that already has the key's state wins, then the one with the least load. In the
    paper, the lowest number wins. When workers are added under "APM", both rules give the same result. But without
    migration many workers tie, because the balance penalty sees only the largest and the smallest load: in a first
    placement of Zipf-1 keys on 10 workers, the ratio of these loads is 1.7 with our rule, and 2.7 with the paper's.

    With penalties that are kept up to date, R keys on N workers take R N steps after the keys are sorted.

    For the parameters see `TrackingPlacer`.

    Examples
    --------
    >>> from skewless.place import Counts
    >>> seen = Counts(np.array([11, 12, 13, 14]), np.array([40, 30, 20, 10]), total=100)
    >>> placement = Scan().place(seen, None, workers=2)
    >>> placement.keys, placement.own
    (array([11, 12, 13, 14]), array([0, 1, 1, 0], dtype=int32))

    Reference
    ---------
    Gedik. Partitioning functions for stateful data parallelism in stream processing. VLDB Journal 23(4), 2014.
    """

    name = "scan"

    def assign(self, problem: Problem) -> Int32Array:
        """A channel for each item."""
        where = np.full(len(problem.frequencies), NOBODY, np.int32)
        _scan(
            np.argsort(-problem.frequencies, kind="stable"),
            problem.weights,
            problem.state,
            problem.before,
            problem.thetas,
            problem.exponents,
            problem.floor.copy(),
            *problem.extremes,
            np.empty(len(problem.weights)),
            UTILITIES.index(self.utility),
            problem.moved,
            problem.ideal,
            where,
        )
        return where


@lean_kernel
def _scan(
    order: Int64Array,
    weights: FloatArray,
    state: FloatArray,
    before: Int32Array,
    thetas: FloatArray,
    exponents: FloatArray,
    loads: FloatArray,
    highest: Int64Array,
    lowest: Int64Array,
    allowed: FloatArray,
    code: Int,
    moved: Float,
    ideal: Float,
    where: Int32Array,
) -> None:
    channels = loads.shape[1]
    resources = loads.shape[0]
    for i in range(order.shape[0]):
        item = order[i]
        rank(loads, highest, lowest)
        for k in range(resources):
            total = weights[k, item]
            for channel in range(channels):
                total += loads[k, channel]
            allowed[k] = thetas[k] * total / channels
        best = NOBODY
        best_value = np.inf
        best_load = np.inf
        for channel in range(channels):
            stays = channel == before[item]
            balance = rho(loads, highest, lowest, allowed, exponents, weights, NOBODY, channel, item, NOBODY)
            cost = moved if stays else moved + state[item]
            value = utility(code, balance, cost / ideal)
            load = -1.0
            if not stays:
                load = 0.0
                for k in range(resources):
                    load += loads[k, channel]
            if value < best_value or (value == best_value and load < best_load):
                best, best_value, best_load = channel, value, load
        where[item] = best
        if best != before[item]:
            moved += state[item]
        for k in range(resources):
            loads[k, best] += weights[k, item]
