"""What was counted of a stream: how often its most frequent keys came, and how many rows the others had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of the keys that were told apart, and the total.

    Attributes
    ----------
    keys, counts
        The hashes of the keys told apart, and how often each came.
    total
        All rows, those of other keys included.
    tail
        The rows of the other keys, if that was counted: on each worker that is their home, or in each slot. Without it
        they are taken to be spread evenly.
    distinct
        The number of different keys, if it is known. Without it every row of the rest is taken for a key of its own.
    tail_keys
        How many other keys there are in each place of `tail`, if that was counted too.

    Examples
    --------
    >>> seen = Counts.of(np.array([5, 5, 5, 8]))
    >>> seen.keys, seen.counts, seen.total, seen.shares
    (array([5, 8]), array([3, 1]), 4, array([0.75, 0.25]))
    >>> Counts(np.array([5]), np.array([3]), total=11).tail_loads(4)
    array([2, 2, 2, 2])
    >>> Counts.of(np.array([5, 5, 5, 8]), told=1, slots=4).by_slot(4)
    array([1., 3., 0., 0.])
    """

    keys: Int64Array
    counts: Int64Array | FloatArray
    total: float
    tail: Int64Array | FloatArray | None = None
    distinct: int | None = None
    tail_keys: Int64Array | None = None

    def __post_init__(self) -> None:
        """Refuse counts that contradict each other."""
        if self.keys.shape != self.counts.shape or self.keys.ndim != 1:
            raise SkewlessError(f"{self.keys.shape} keys but {self.counts.shape} counts; give one count for each key")
        if len(np.unique(self.keys)) != len(self.keys):
            raise SkewlessError("a key is listed twice; add its counts up first")
        if len(self.counts) and not self.counts.min() > 0:
            raise SkewlessError(f"a count is {self.counts.min()}; list only keys that came at least once")
        listed = float(self.counts.sum())
        if listed > self.total * (1 + 1e-9):  # sums of shares round
            raise SkewlessError(f"the counts add up to {listed:g}, more than the total of {self.total:g}")
        if self.tail is not None and (self.tail.ndim != 1 or (len(self.tail) and self.tail.min() < 0)):
            raise SkewlessError("tail has the rows of the other keys in each place: a flat array of at least 0 each")
        if self.tail_keys is not None and (self.tail is None or (self.tail_keys > self.tail).any()):
            raise SkewlessError("tail_keys has more keys than tail has rows; give both for the same places")

    @classmethod
    def of(cls, keys: Int64Array, told: int | None = None, slots: int | None = None) -> Counts:
        """The exact counts of these rows, most frequent key first.

        Parameters
        ----------
        keys
            The key of each row.
        told
            How many of the most frequent keys to tell apart; all if not given.
        slots
            How many slots the rows of the other keys are counted in; they are not counted if this is not given.
        """
        distinct, counts = np.unique(keys, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        listed, others = order[:told], order[len(order[:told]) :]
        tail = None if slots is None else np.bincount(distinct[others] % slots, counts[others], slots)
        return cls(distinct[listed], counts[listed].astype(np.int64), len(keys), tail, len(distinct))

    @classmethod
    def sum(cls, parts: Sequence[Counts]) -> Counts:
        """The counts of rows that were counted in parts; keys not told apart in a part are taken to be spread evenly.

        >>> seen = Counts.sum([Counts.of(np.array([5, 5, 8])), Counts.of(np.array([5]))])
        >>> seen.keys, seen.counts, seen.total
        (array([5, 8]), array([3, 1]), 4)
        """
        keys, where = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
        counts = np.bincount(where, np.concatenate([part.counts for part in parts]), len(keys))
        return cls(keys, counts.round().astype(np.int64), sum(part.total for part in parts))

    @classmethod
    def none(cls) -> Counts:
        """No rows at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0), 0)

    @property
    def shares(self) -> FloatArray:
        """The part of all rows that each key told apart has."""
        shares: FloatArray = self.counts / self.total if self.total else np.zeros(0)
        return shares

    @property
    def whole(self) -> Int64Array:
        """The counts as whole numbers."""
        return self.counts.astype(np.int64)

    @property
    def domain(self) -> int:
        """The number of different keys, as far as it is known."""
        if self.distinct is not None:
            return max(self.distinct, len(self.keys), 1)
        return max(1, len(self.keys) + int(self.total - self.counts.sum()))

    def tail_loads(self, workers: int) -> Int64Array:
        """The rows of the keys not told apart, on each worker."""
        if self.tail is not None:
            return self._counted_tail(workers, "workers").astype(np.int64)
        rest = int(self.total) - int(self.counts.sum())
        return np.full(workers, rest // workers, dtype=np.int64) + (np.arange(workers) < rest % workers)

    def by_slot(self, slots: int) -> FloatArray:
        """All rows in each slot, as if no key had a slot of its own."""
        if self.tail is None:
            tail = np.full(slots, max(0.0, self.total - float(self.counts.sum())) / slots)
        else:
            tail = self._counted_tail(slots, "slots").astype(np.float64)
        both: FloatArray = tail + np.bincount(self.keys % slots, self.counts, slots)
        return both

    def heavier_than(self, least: float, workers: int) -> Counts:
        """The same rows with only the keys of at least `least` told apart; the others join the tail, at home."""
        heavy = self.counts >= least
        light = homes(self.keys[~heavy], workers)
        tail = self.tail_loads(workers) + np.bincount(light, self.counts[~heavy], workers).astype(np.int64)
        return Counts(self.keys[heavy], self.counts[heavy], self.total, tail, self.distinct)

    def _counted_tail(self, places: int, what: str) -> Int64Array | FloatArray:
        assert self.tail is not None  # or it was not counted
        if len(self.tail) != places:
            raise SkewlessError(f"the tail was counted in {len(self.tail)} {what}, but there are {places}")
        return self.tail


def quanta(counts: Int64Array, quantum: int) -> tuple[Int64Array, Int64Array]:
    """A short stream that stands for a long one: which key comes when, and the tuples that each coming stands for.

    A key of count c comes ceil(c / quantum) times, at even distances, so that at any time about the same share of every
    key has come.

    >>> quanta(np.array([6, 3]), 2)
    (array([0, 1, 0, 1, 0]), array([2, 2, 2, 1, 2]))
    """
    times = -(-counts // quantum)
    which = np.repeat(np.arange(len(counts)), times)
    turn = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    weights = counts[which] // times[which] + (turn < counts[which] % times[which])
    order = np.lexsort((which, (turn + 0.5) / times[which]))
    return which[order], weights[order]
