"""Scan: places the frequent keys one after the other, each where its utility is best (Gedik, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skewless.core.arrays import Float, Int, Int32Array, Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.place.penalty import NOBODY, Balance, rank, rho, utility
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

    def assign_items(self, problem: Problem) -> Int32Array:
        """A channel for each item, placed one after the other."""
        return place_in_order(problem, self.code)


def place_in_order(problem: Problem, code: int) -> Int32Array:
    """A channel for each item, placed in falling order of frequency by the utility of this code."""
    return place_each(_scan, problem, code)


def place_each(
    kernel: Callable[[Problem, Balance, int, Int64Array, Int32Array], None], problem: Problem, code: int
) -> Int32Array:
    """A channel for each item by this kernel, which gets the items in falling order of frequency."""
    where = np.full(len(problem.frequencies), NOBODY, np.int32)
    order = np.argsort(-problem.frequencies, kind="stable")
    kernel(problem, problem.balance(problem.floor.copy()), code, order, where)
    return where


@inner
def best_channel(
    problem: Problem, balance: Balance, code: Int, moved: Float, item: Int, volume: Float
) -> tuple[Int, Float, Float]:
    """The best channel for a new item, the utility for its volume there, and the load that decides among equals."""
    resources, channels = balance.loads.shape
    for k in range(resources):
        balance.allowed[k] = problem.thetas[k] * (balance.totals[k] + balance.weights[k, item]) / channels
    best, best_value, best_load = NOBODY, np.inf, np.inf
    for channel in range(channels):
        stays = channel == problem.before[item]
        cost = moved if stays else moved + problem.state[item]
        value = utility(code, rho(balance, NOBODY, channel, item, NOBODY), cost / problem.ideal) / volume
        if value > best_value:
            continue
        load = -1.0
        if not stays:
            load = 0.0
            for k in range(resources):
                load += balance.loads[k, channel]
        if value < best_value or load < best_load:
            best, best_value, best_load = channel, value, load
    return best, best_value, best_load


@inner
def put(problem: Problem, balance: Balance, item: Int, channel: Int) -> Float:
    """Add the item to the loads of the channel, and return the state that has to move."""
    for k in range(balance.loads.shape[0]):
        balance.loads[k, channel] += balance.weights[k, item]
    return 0.0 if channel == problem.before[item] else problem.state[item]


@lean_kernel
def _scan(problem: Problem, balance: Balance, code: Int, order: Int64Array, where: Int32Array) -> None:
    moved = problem.moved
    for i in range(order.shape[0]):
        item = order[i]
        rank(balance)
        where[item] = best_channel(problem, balance, code, moved, item, 1.0)[0]
        moved += put(problem, balance, item, where[item])
