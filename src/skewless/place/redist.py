"""Redist: each step chooses the key and the worker with the best utility for the volume placed (Gedik, Algorithm 3)."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.place.penalty import NOBODY, Balance, rank
from skewless.place.scan import best_channel, place_each, put
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

    def assign_items(self, problem: Problem) -> Int32Array:
        """A channel for each item, placed one after the other."""
        return place_each(_redist, problem, self.code)


@lean_kernel
def _redist(problem: Problem, balance: Balance, code: Int, order: Int64Array, where: Int32Array) -> None:
    moved = problem.moved
    for _ in range(order.shape[0]):
        rank(balance)
        chosen, best, best_value, best_load = NOBODY, NOBODY, np.inf, np.inf
        for i in range(order.shape[0]):
            item = order[i]
            if where[item] != NOBODY:
                continue
            channel, value, load = best_channel(problem, balance, code, moved, item, problem.frequencies[item])
            if not value > best_value and (value < best_value or load < best_load):
                chosen, best, best_value, best_load = item, channel, value, load
        where[chosen] = best
        moved += put(problem, balance, chosen, best)
