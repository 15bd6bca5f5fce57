"""Redist: each step chooses the key and the worker with the best utility for the volume placed (Gedik, Algorithm 3)."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.place.penalty import NOBODY, UTILITIES, rank, rho, utility
from skewless.place.tracking import Problem, TrackingPlacer


class Redist(TrackingPlacer):
    """Places the tracked keys in no fixed order: the pair of key and worker with the best utility per row goes next.

    Frequent keys tend to come early, as in `Scan`, but a key that does not help yet may wait. Ties are decided as in
    `Scan`. R keys on N workers take R^2 N / 2 steps.

    For the parameters see `TrackingPlacer`.

    Examples
    --------
    >>> from skewless.place import Counts
    >>> seen = Counts(np.array([11, 12, 13]), np.array([50, 30, 20]), total=100)
    >>> placement = Redist().place(seen, None, workers=2)
    >>> np.bincount(placement.own, seen.counts)
    array([50., 50.])

    Reference
    ---------
    Gedik. Partitioning functions for stateful data parallelism in stream processing. VLDB Journal 23(4), 2014.
    """

    name = "redist"

    def assign(self, problem: Problem) -> Int32Array:
        """A channel for each item."""
        where = np.full(len(problem.frequencies), NOBODY, np.int32)
        _redist(
            np.argsort(-problem.frequencies, kind="stable"),
            problem.frequencies,
            problem.weights,
            problem.state,
            problem.before,
            problem.thetas,
            problem.exponents,
            problem.floor.copy(),
            *problem.extremes,
            np.empty(len(problem.weights)),
            np.empty(len(problem.weights)),
            UTILITIES.index(self.utility),
            problem.moved,
            problem.ideal,
            where,
        )
        return where


@lean_kernel
def _redist(
    order: Int64Array,
    frequencies: FloatArray,
    weights: FloatArray,
    state: FloatArray,
    before: Int32Array,
    thetas: FloatArray,
    exponents: FloatArray,
    loads: FloatArray,
    highest: Int64Array,
    lowest: Int64Array,
    totals: FloatArray,
    allowed: FloatArray,
    code: Int,
    moved: Float,
    ideal: Float,
    where: Int32Array,
) -> None:
    channels = loads.shape[1]
    resources = loads.shape[0]
    for _ in range(order.shape[0]):
        rank(loads, highest, lowest)
        for k in range(resources):
            totals[k] = 0.0
            for channel in range(channels):
                totals[k] += loads[k, channel]
        chosen = NOBODY
        best = NOBODY
        best_value = np.inf
        best_load = np.inf
        for i in range(order.shape[0]):
            item = order[i]
            if where[item] != NOBODY:
                continue
            for k in range(resources):
                allowed[k] = thetas[k] * (totals[k] + weights[k, item]) / channels
            for channel in range(channels):
                stays = channel == before[item]
                balance = rho(loads, highest, lowest, allowed, exponents, weights, NOBODY, channel, item, NOBODY)
                cost = moved if stays else moved + state[item]
                value = utility(code, balance, cost / ideal) / frequencies[item]
                if value > best_value:
                    continue
                load = -1.0
                if not stays:
                    load = 0.0
                    for k in range(resources):
                        load += loads[k, channel]
                if value < best_value or load < best_load:
                    chosen, best, best_value, best_load = item, channel, value, load
        where[chosen] = best
        if best != before[chosen]:
            moved += state[chosen]
        for k in range(resources):
            loads[k, best] += weights[k, chosen]
