"""What was observed of a micro-batch: the counts of its most frequent keys and the size of the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.arrays import Int64Array
from skewless.errors import SkewlessError
from skewless.home import homes


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of the keys that were told apart, and the total.

    Attributes
    ----------
    keys, counts
        The keys told apart and how often each came.
    total
        All tuples, those of other keys included.
    tail
        Tuples of the other keys on each of their homes, if that was counted; None spreads them evenly.

    Examples
    --------
    >>> seen = Histogram.of(np.array([5, 5, 5, 8]))
    >>> seen.keys, seen.counts, seen.total
    (array([5, 8]), array([3, 1]), 4)
    >>> Histogram(np.array([5]), np.array([3]), total=11).tail_loads(4)
    array([2, 2, 2, 2])
    """

    keys: Int64Array
    counts: Int64Array
    total: int
    tail: Int64Array | None = None

    def __post_init__(self) -> None:
        """Refuse counts that contradict each other."""
        if self.keys.shape != self.counts.shape or self.keys.ndim != 1:
            raise SkewlessError(f"{self.keys.shape} keys but {self.counts.shape} counts; give one count for each key")
        if len(np.unique(self.keys)) != len(self.keys):
            raise SkewlessError("a key is listed twice; add its counts up first")
        if len(self.counts) and self.counts.min() < 1:
            raise SkewlessError(f"a count is {self.counts.min()}; list only keys that came at least once")
        if self.counts.sum() > self.total:
            raise SkewlessError(f"the counts add up to {self.counts.sum()}, more than the total of {self.total}")

    @classmethod
    def of(cls, keys: Int64Array) -> Histogram:
        """The exact histogram of these tuples, most frequent key first."""
        distinct, counts = np.unique(keys, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return cls(distinct[order], counts[order].astype(np.int64), len(keys))

    def tail_loads(self, workers: int) -> Int64Array:
        """Tuples of the keys not told apart, on each worker."""
        if self.tail is not None:
            if len(self.tail) != workers:
                raise SkewlessError(f"the tail was counted on {len(self.tail)} workers, but there are {workers}")
            return self.tail
        rest = self.total - int(self.counts.sum())
        return np.full(workers, rest // workers, dtype=np.int64) + (np.arange(workers) < rest % workers)

    def heavier_than(self, least: float, workers: int) -> Histogram:
        """The same tuples with only the keys of at least `least` told apart; the others join the tail, at home."""
        heavy = self.counts >= least
        light = homes(self.keys[~heavy], workers)
        tail = self.tail_loads(workers) + np.bincount(light, self.counts[~heavy], workers).astype(np.int64)
        return Histogram(self.keys[heavy], self.counts[heavy], self.total, tail)


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
