"""What `Scan`, `Redist` and `Readj` share: which keys they track, what they know about each, and how they use it."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.base import SLOTS, Owners
from skewless.place.consistent import Consistent
from skewless.place.penalty import NOBODY, RANKS, UTILITIES, Balance
from skewless.place.placement import Placement
from skewless.place.resources import Resources, Tolerance, beta
from skewless.place.threshold import delta, theta


class Problem(NamedTuple):
    """Items that each need a channel, with all that the utility of a choice depends on.

    Constant resources are left out, because the other items balance them (section 4.4), and two resources that are
    alike become one that counts twice. Loads are shares of the total of their resource.

    Attributes
    ----------
    channels
        The number of channels from now on.
    frequencies, state
        The frequency of each item, and what moving it costs: 0 for one that has no state yet.
    before, fallback
        The channel that each item was on (-1 for none), and the one that consistent hashing gives it now.
    weights
        The load of each item on each resource: a row for each resource.
    exponents, thetas
        For each resource, its part in the geometric mean of equation 20, and the imbalance allowed (eq. 15).
    floor
        The load of each channel on each resource before any item is placed.
    moved, ideal
        The state that moves because items are no longer tracked, and the ideal migration (the parts of eq. 18).
    """

    channels: int
    frequencies: FloatArray
    state: FloatArray
    before: Int32Array
    fallback: Int32Array
    weights: FloatArray
    exponents: FloatArray
    thetas: FloatArray
    floor: FloatArray
    moved: float = 0.0
    ideal: float = 1.0

    @classmethod
    def of(
        cls,
        resources: Resources,
        alpha: Tolerance,
        channels: int,
        frequencies: FloatArray,
        before: Int32Array,
        fallback: Int32Array,
        dropped: tuple[FloatArray, Int32Array, Int32Array] | None = None,
        rest: tuple[FloatArray, FloatArray, Int32Array] | None = None,
    ) -> Problem:
        """The problem of placing items of these frequencies.

        `dropped` are the items that are no longer tracked: frequency, channel before, channel now. `rest` are groups of
        untracked items whose load counts too: frequency, number of items (taken to be alike) and channel; None ignores
        their load, as the paper does.
        """
        pairs = zip(resources.letters, alpha, strict=True)
        counted = Counter((letter, tolerated) for letter, tolerated in pairs if letter != "C")
        weights = np.zeros((len(counted), len(frequencies)))
        floor = np.zeros((len(counted), channels))
        for k, (letter, _) in enumerate(counted):
            weights[k] = beta(letter, frequencies)
            if rest is not None:
                shares, members, where = rest
                floor[k] = np.bincount(where, members * beta(letter, shares / members), channels)
            total = weights[k].sum() + floor[k].sum()
            weights[k] /= total or 1.0
            floor[k] /= total or 1.0
        state = beta(resources.state, frequencies)
        moved, total_state = 0.0, float(state.sum())
        if dropped is not None:
            lost, was, now = dropped
            dropped_state = beta(resources.state, lost)
            moved = float(dropped_state[was != now].sum())
            total_state += float(dropped_state.sum())
        times = np.array(list(counted.values()), np.float64)
        return cls(
            channels,
            np.ascontiguousarray(frequencies, np.float64),
            np.where(before == NOBODY, 0.0, state),
            np.ascontiguousarray(before, np.int32),
            np.ascontiguousarray(fallback, np.int32),
            weights,
            times / times.sum(),
            np.array([theta(tolerated, channels) for _, tolerated in counted]),
            floor,
            moved,
            (total_state / channels) or 1.0,
        )

    def balance(self, loads: FloatArray) -> Balance:
        """What the balance penalty depends on, for a map with these loads of each resource on each channel."""
        totals = loads.sum(axis=1)
        highest, lowest = np.empty((2, len(loads), RANKS), np.int64)
        allowed = self.thetas * totals / self.channels
        return Balance(loads, self.weights, self.exponents, allowed, totals, highest, lowest)


class TrackingPlacer(Consistent):
    """Tracks the frequent keys and gives each a channel by a utility of balance and migration; a ring has the others.

    If the rows of each tail slot were counted, their load counts too. Otherwise the penalties are those of the tracked
    keys alone, as in the paper, which relies on the ring to spread the others.

    Parameters
    ----------
    slots, replicas
        The number of tail slots, and of points that each worker has on the ring that places them.
    resources
        The resource functions of state, computation and communication.
    alpha
        The imbalance tolerated, the largest load over the smallest: one number, or one for each resource.
    sigma
        The part of that imbalance that a single untracked key may cause. A lower value tracks more keys.
    utility
        How balance (A) and migration (M) are combined: "A", "APM" (plus), "APLM" (plus the logarithm), "ATM" (times),
        "ATLM" (times the logarithm).
    """

    def __init__(
        self,
        slots: int = SLOTS,
        replicas: int = 1000,
        resources: Resources | str = "LCL",
        alpha: float | tuple[float, float, float] | Tolerance = 1.2,
        sigma: float = 0.1,
        utility: str = "APM",
    ) -> None:
        super().__init__(slots, replicas)
        self.resources = Resources(resources) if isinstance(resources, str) else resources
        self.alpha = Tolerance.of(alpha)
        if not 0 < sigma <= 1:
            raise SkewlessError(f"sigma is {sigma}; give a number above 0 and up to 1, such as 0.1")
        self.sigma = sigma
        if utility not in UTILITIES:
            raise SkewlessError(f"no utility {utility!r}; there are {', '.join(UTILITIES)}")
        self.utility = utility
        self.code = UTILITIES.index(utility)

    @abstractmethod
    def assign(self, problem: Problem) -> Int32Array:
        """A channel for each item."""

    def tracked(self, frequencies: FloatArray, channels: int, domain: int) -> BoolArray:
        """Whether each item is worth an entry of its own: it passes delta, and the second filter if there is one.

        A single channel is always balanced, so nothing is tracked there.

        >>> from skewless.place import Scan
        >>> Scan().tracked(np.array([0.4, 0.001]), channels=10, domain=1000)
        array([ True, False])
        """
        if channels == 1 or set(self.resources.letters) == {"C"}:
            return np.zeros(len(frequencies), bool)
        asked = (self.resources, self.alpha, self.sigma, channels, domain)
        kept: BoolArray = frequencies >= delta(*asked)
        if "Q" in self.resources.letters:
            kept &= frequencies >= delta(*asked, frequencies[kept])
        return kept

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        tail = super()._place(seen, previous, workers).tail
        shares, slots = seen.shares, seen.keys % self.slots
        kept = self.tracked(shares, workers, seen.domain)
        keys = seen.keys[kept]
        rest = dropped = None
        before = np.full(len(keys), NOBODY, np.int32)
        if seen.tail is not None and seen.total:
            others = max(1.0, (seen.domain - len(shares)) / self.slots)  # other keys in a tail slot, on average
            rest = (
                np.concatenate([seen.tail / seen.total, shares[~kept]]),
                np.concatenate([np.full(self.slots, others), np.ones(np.count_nonzero(~kept))]),
                np.concatenate([tail, tail[slots[~kept]]]),
            )
        if previous is not None:
            before = previous.worker_of(keys)
            gone = ~np.isin(previous.keys, keys)
            lost = previous.keys[gone]
            dropped = (frequency_of(lost, seen.keys, shares), previous.own[gone], tail[lost % self.slots])
        problem = Problem.of(
            self.resources, self.alpha, workers, shares[kept], before, tail[slots[kept]], dropped, rest
        )
        return Owners(tail, keys, self.assign(problem))


def frequency_of(wanted: Int64Array, items: Int64Array, frequencies: FloatArray) -> FloatArray:
    """The frequency of each wanted item, 0 for one that is not listed.

    >>> frequency_of(np.array([5, 6]), np.array([7, 5]), np.array([0.2, 0.1]))
    array([0.1, 0. ])
    """
    listed = np.isin(items, wanted)
    known = dict(zip(items[listed].tolist(), frequencies[listed].tolist(), strict=True))
    return np.array([known.get(item, 0.0) for item in wanted.tolist()])
