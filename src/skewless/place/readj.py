"""Readj: the keys stay where they are, except for the moves and swaps that help most (Gedik, Algorithm 4)."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import BoolArray, Float, Int, Int32Array, Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.place.base import SLOTS, whole
from skewless.place.penalty import NOBODY, Balance, rank, rho, rho_now, utility
from skewless.place.resources import Resources, Tolerance
from skewless.place.scan import place_in_order
from skewless.place.tracking import Problem, TrackingPlacer

LEAST_GAIN = 1e-12  # smallest gain that counts, as a share of the balance penalty: less is rounding


class Readj(TrackingPlacer):
    """Starts from where the tracked keys are, and moves one key or swaps two as long as that improves the balance.

    Among all moves and swaps that lower the balance penalty, the one with the highest gain in utility for the volume
    moved, or the smallest loss, goes next. As in the paper's listing, balance is worth any migration, and the utility
    only chooses. A key whose worker was removed starts where consistent hashing puts it. In a first placement no key is
    anywhere yet, so all start where `Scan` puts them.

    All gains are measured from the utility before the step. The paper's listing measures each gain from the best
    candidate so far, so that the order in which candidates are tried matters; it reaches the same balance with up to
    2.5 times the migration.

    The balance penalty sees only the largest and the smallest load. If two workers have the smallest load, as two new
    ones do, an item that moves to one of them leaves the penalty as it was, and the paper's listing ends there. Here,
    when nothing lowers the penalty, the move goes next that leaves it as it is and most lowers the sum of the squared
    loads, if there is one.

    Only a pair that includes a worker of the largest or smallest load can lower the penalty, so no other pairs are
    tried: about 4/N of the R^2 pairs of R keys on N workers.

    Parameters
    ----------
    slots, replicas, resources, alpha, sigma, utility, tail
        See `TrackingPlacer`.
    most_moves
        How often one key may be moved or swapped.

    Examples
    --------
    >>> from skewless.place import Counts
    >>> seen = Counts(np.array([11, 12, 13, 14]), np.array([40, 30, 20, 10]), total=100)
    >>> placer = Readj()
    >>> two = placer.place(seen, None, workers=2)
    >>> np.bincount(two.own, seen.counts)
    array([50., 50.])
    >>> three = placer.place(seen, two, workers=3)
    >>> np.sort(np.bincount(three.own, seen.counts))
    array([30., 30., 40.])

    Reference
    ---------
    Gedik. Partitioning functions for stateful data parallelism in stream processing. VLDB Journal 23(4), 2014.
    """

    name = "readj"

    def __init__(
        self,
        slots: int = SLOTS,
        replicas: int = 1000,
        resources: Resources | str = "LCL",
        alpha: float | tuple[float, float, float] | Tolerance = 1.2,
        sigma: float = 0.1,
        utility: str = "APM",
        most_moves: int = 5,
        tail: bool = False,
    ) -> None:
        super().__init__(slots, replicas, resources, alpha, sigma, utility, tail)
        self.most_moves = whole("most_moves", most_moves, 0, advice=", such as 5")

    def assign_items(self, problem: Problem) -> Int32Array:
        """A channel for each item, most of them the one that it was on."""
        return self.readjust(problem)[0]

    def open_channel(self, problem: Problem) -> Int32Array:
        """As `Scan`, whose time grows least with the items."""
        return place_in_order(problem, self.code)

    def readjust(self, problem: Problem, steps: int | None = None) -> tuple[Int32Array, Int64Array]:
        """A channel for each item, and how often each was moved or swapped, after so many steps or all there are."""
        there = (problem.before >= 0) & (problem.before < problem.channels)
        where = np.where(there, problem.before, problem.fallback).astype(np.int32)
        if (problem.before == NOBODY).all():
            where = place_in_order(problem, self.code)
        loads = problem.floor.copy()
        for k, weights in enumerate(problem.weights):
            loads[k] += np.bincount(where, weights, problem.channels)
        times = np.zeros(len(where), np.int64)
        extreme = np.zeros(problem.channels, np.bool_)
        moved = problem.moved + float(problem.state[~there].sum())
        most = np.iinfo(np.int64).max if steps is None else steps
        _readjust(problem, problem.balance(loads), self.code, moved, self.most_moves, most, extreme, where, times)
        return where, times


@inner
def _cost(problem: Problem, giver: Int, taker: Int, item: Int) -> Float:
    """Equation 22: the item's state if it was on the giver before, and less than 0 if it returns to the taker."""
    if problem.before[item] == giver:
        return problem.state[item]
    if problem.before[item] == taker:
        return -problem.state[item]
    return 0.0


@inner
def _level(
    problem: Problem,
    balance: Balance,
    current: Float,
    extreme: BoolArray,
    most_moves: Int,
    where: Int32Array,
    times: Int64Array,
) -> tuple[Int, Int]:
    """The item and its new channel that level the loads most, at the same penalty; NOBODY if there are none.

    The loads are the more level, the less their squares add up to.
    """
    best, best_channel, most = NOBODY, NOBODY, LEAST_GAIN
    for item in range(where.shape[0]):
        giver = where[item]
        if times[item] >= most_moves:
            continue
        for taker in range(problem.channels):
            if taker == giver or not (extreme[giver] or extreme[taker]):
                continue
            less = 0.0
            for k in range(balance.loads.shape[0]):
                change = balance.weights[k, item]
                less += change * (balance.loads[k, giver] - balance.loads[k, taker] - change)
            if less > most and rho(balance, giver, taker, item, NOBODY) <= current * (1.0 + LEAST_GAIN):
                best, best_channel, most = item, taker, less
    return best, best_channel


@lean_kernel
def _readjust(
    problem: Problem,
    balance: Balance,
    code: Int,
    moved: Float,
    most_moves: Int,
    steps: Int,
    extreme: BoolArray,
    where: Int32Array,
    times: Int64Array,
) -> None:
    frequencies, ideal, loads = problem.frequencies, problem.ideal, balance.loads
    items = frequencies.shape[0]
    resources, channels = loads.shape
    for _ in range(steps):
        rank(balance)
        for channel in range(channels):
            extreme[channel] = False
        for k in range(resources):
            extreme[balance.highest[k, 0]] = True
            extreme[balance.lowest[k, 0]] = True
        current = rho_now(balance)
        limit = current * (1.0 - LEAST_GAIN)
        value = utility(code, current, moved / ideal)
        best, best_other, best_channel = NOBODY, NOBODY, NOBODY
        best_gain = -np.inf
        best_cost = 0.0
        for item in range(items):
            if times[item] >= most_moves:
                continue
            giver = where[item]
            for taker in range(channels):
                if taker == giver or not (extreme[giver] or extreme[taker]):
                    continue
                penalty = rho(balance, giver, taker, item, NOBODY)
                if not penalty < limit:
                    continue
                cost = _cost(problem, giver, taker, item)
                gain = (value - utility(code, penalty, (moved + cost) / ideal)) / frequencies[item]
                if gain > best_gain:
                    best, best_other, best_channel, best_gain, best_cost = item, NOBODY, taker, gain, cost
            for other in range(item + 1, items):
                taker = where[other]
                if taker == giver or not (extreme[giver] or extreme[taker]) or times[other] >= most_moves:
                    continue
                volume = abs(frequencies[item] - frequencies[other])
                if volume == 0.0:
                    continue
                penalty = rho(balance, giver, taker, item, other)
                if not penalty < limit:
                    continue
                cost = _cost(problem, giver, taker, item) + _cost(problem, taker, giver, other)
                gain = (value - utility(code, penalty, (moved + cost) / ideal)) / volume
                if gain > best_gain:
                    best, best_other, best_channel, best_gain, best_cost = item, other, taker, gain, cost
        if best == NOBODY:
            best, best_channel = _level(problem, balance, current, extreme, most_moves, where, times)
            if best == NOBODY:
                return
            best_cost = _cost(problem, where[best], best_channel, best)
        giver = where[best]
        for k in range(resources):
            change = balance.weights[k, best]
            if best_other != NOBODY:
                change -= balance.weights[k, best_other]
            loads[k, giver] -= change
            loads[k, best_channel] += change
        where[best] = best_channel
        times[best] += 1
        if best_other != NOBODY:
            where[best_other] = giver
            times[best_other] += 1
        moved += best_cost
