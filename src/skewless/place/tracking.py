"""What `Scan`, `Redist` and `Readj` share: which keys they track, what they know about each, and how they use it."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from math import ceil
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.base import SLOTS, Owners
from skewless.place.consistent import LAST, Consistent
from skewless.place.penalty import NOBODY, RANKS, UTILITIES, Balance
from skewless.place.placement import Placement
from skewless.place.resources import Resources, Tolerance, beta, is_number
from skewless.place.threshold import delta, theta

DOMAIN = 1_000_000  # keys that a stream is taken to have as long as they are not counted


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
    exponents, thetas, alphas
        For each resource, its part in the geometric mean of equation 20, how far a load may be from the average
        (eq. 15), and the ratio of loads from which that follows.
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
    alphas: FloatArray
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
        members: FloatArray | None = None,
    ) -> Problem:
        """The problem of placing items of these frequencies.

        `dropped` are the items that are no longer tracked: frequency, channel before, channel now. `rest` are groups of
        untracked items whose load counts too: frequency, number of items (taken to be alike) and channel; None ignores
        their load, as the paper does. An item may be a group too, of so many `members`; each is one if not given.
        """
        members = np.ones(len(frequencies)) if members is None else members
        pairs = zip(resources.letters, alpha, strict=True)
        counted = Counter((letter, tolerated) for letter, tolerated in pairs if letter != "C")
        weights = np.zeros((len(counted), len(frequencies)))
        floor = np.zeros((len(counted), channels))
        for k, (letter, _) in enumerate(counted):
            weights[k] = members * beta(letter, frequencies / members)
            if rest is not None:
                shares, sizes, where = rest
                floor[k] = np.bincount(where, sizes * beta(letter, shares / sizes), channels)
            total = weights[k].sum() + floor[k].sum()
            weights[k] /= total or 1.0
            floor[k] /= total or 1.0
        state = members * beta(resources.state, frequencies / members)
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
            np.array([tolerated for _, tolerated in counted]),
            floor,
            moved,
            (total_state / channels) or 1.0,
        )

    @property
    def channels_before(self) -> int:
        """How many channels there were, as far as items were on them."""
        return int(self.before.max(initial=NOBODY)) + 1

    def opened(self, channels: int, before: Int32Array) -> Problem:
        """The same items, now on these channels `before`, when only the first `channels` channels are open."""
        return self._replace(
            channels=channels,
            before=before,
            fallback=self.fallback % np.int32(channels),
            thetas=np.array([theta(float(tolerated), channels) for tolerated in self.alphas]),
            floor=np.ascontiguousarray(self.floor[:, :channels]),
            ideal=self.ideal * self.channels / channels,
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
    tail
        Whether tail slots are items too, beside the tracked keys: those whose rows were counted are placed by the same
        utility, and the ring has only slots without rows. In the paper only keys are. It balances better and takes
        longer: under `Readj`, the square of the number of slots.
    """

    def __init__(
        self,
        slots: int = SLOTS,
        replicas: int = 1000,
        resources: Resources | str = "LCL",
        alpha: float | tuple[float, float, float] | Tolerance = 1.2,
        sigma: float = 0.1,
        utility: str = "APM",
        tail: bool = False,
    ) -> None:
        super().__init__(slots, replicas)
        self.resources = resources if isinstance(resources, Resources) else Resources(resources)
        self.alpha = Tolerance.of(alpha)
        if not (is_number(sigma) and 0 < sigma <= 1):
            raise SkewlessError(f"sigma is {sigma!r}; give a number above 0 and up to 1, such as 0.1")
        self.sigma = sigma
        if utility not in UTILITIES:
            raise SkewlessError(f"no utility {utility!r}; there are {', '.join(UTILITIES)}")
        self.utility = utility
        self.code = UTILITIES.index(utility)
        if not isinstance(tail, bool):
            raise SkewlessError(f"tail is {tail!r}; give True if tail slots are to move as keys do, or False")
        self.tail = tail

    def assign(self, problem: Problem, more: bool = False) -> Int32Array:
        """A channel for each item. Several new channels are opened one by one, and each gets its share.

        The balance penalty sees only the largest and the smallest load. While two channels are empty, it does not
        change when one of them gets an item, and the migration penalty keeps the items where they are.

        Parameters
        ----------
        problem
            The items.
        more
            Whether many more channels are to come.
        """
        were, where = problem.channels_before, problem.before
        first = were + 1 if 0 < were < problem.channels else problem.channels
        for channels in range(first, problem.channels + 1):
            step = self.open_channel if more or problem.channels - channels >= LAST else self.assign_items
            where = step(problem.opened(channels, where))
        return where

    def open_channel(self, problem: Problem) -> Int32Array:
        """A channel for each item, where one was opened and many more are to come."""
        return self.assign_items(problem)

    @abstractmethod
    def assign_items(self, problem: Problem) -> Int32Array:
        """A channel for each item, by the algorithm as it is in the paper."""

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

    def watched(self, workers: int) -> int:
        """As many keys as can have the frequency delta, in a domain of a million.

        >>> from skewless.place import Scan
        >>> Scan().watched(16), Scan(resources="LQL").watched(16)
        (865, 29394)
        """
        if workers == 1 or set(self.resources.letters) == {"C"}:
            return 0
        return ceil(1 / delta(self.resources, self.alpha, self.sigma, workers, DOMAIN))

    def _open(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        return self._owners(seen, previous, workers, more=True)

    def _change(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        return self._owners(seen, previous, workers)

    def _owners(self, seen: Counts, previous: Placement | None, workers: int, more: bool = False) -> Owners:
        tail = super()._change(seen, previous, workers).tail
        kept = self.tracked(seen.shares, workers, seen.domain)
        keys, slots = seen.keys[kept], seen.keys[kept] % self.slots
        frequencies, fallback, members = seen.shares[kept], tail[slots], np.ones(len(keys))
        before = np.full(len(keys), NOBODY, np.int32)
        rest = dropped = None
        if previous is not None:
            before = previous.worker_of(keys)
            gone = ~np.isin(previous.keys, keys)
            lost = previous.keys[gone]
            dropped = (frequency_of(lost, seen.keys, seen.shares), previous.own[gone], tail[lost % self.slots])
        groups = self._groups(seen, kept)
        mine = np.zeros(0, np.int64)
        if groups is not None:
            shares, sizes = groups
            rest = (shares, sizes, tail)
            if self.tail and workers > 1:
                mine, rest = np.flatnonzero(shares), None
                frequencies, members = np.append(frequencies, shares[mine]), np.append(members, sizes[mine])
                fallback = np.append(fallback, tail[mine])
                there = np.full(len(mine), NOBODY, np.int32) if previous is None else previous.tail[mine]
                before = np.append(before, there)
        problem = Problem.of(self.resources, self.alpha, workers, frequencies, before, fallback, dropped, rest, members)
        where = self.assign(problem, more)
        tail[mine] = where[len(keys) :]
        return Owners(tail, keys, where[: len(keys)])

    def _groups(self, seen: Counts, kept: BoolArray) -> tuple[FloatArray, FloatArray] | None:
        """The share of the rows that the untracked keys of each tail slot have, and their number; None if not counted.

        Keys that were not told apart are taken to be as many in each slot.
        """
        if seen.tail is None or not seen.total:
            return None
        slots, shares = seen.keys[~kept] % self.slots, seen.shares[~kept]
        others = max(1.0, (seen.domain - len(seen.keys)) / self.slots)
        told: FloatArray = np.bincount(slots, shares, self.slots).astype(np.float64)
        sizes: FloatArray = np.bincount(slots, minlength=self.slots).astype(np.float64)
        return told + seen.tail / seen.total, sizes + others


def frequency_of(wanted: Int64Array, items: Int64Array, frequencies: FloatArray) -> FloatArray:
    """The frequency of each wanted item, 0 for one that is not listed.

    >>> frequency_of(np.array([5, 6]), np.array([7, 5]), np.array([0.2, 0.1]))
    array([0.1, 0. ])
    """
    listed = np.isin(items, wanted)
    known = dict(zip(items[listed].tolist(), frequencies[listed].tolist(), strict=True))
    return np.array([known.get(item, 0.0) for item in wanted.tolist()])
