"""When tuples arrive: a rate over time, and the keys that come at that rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from skewless import workload
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError

Rate: TypeAlias = Callable[[FloatArray], FloatArray]

STEPS = 16  # in which a rate is taken to be constant, within a stretch of time that is asked for
BLOCK = 1 << 18
ENDLESS = 1 << 62
ROUNDING = 1e-6  # of a tuple: sums of a rate may miss a whole number by so much


class Keys(Protocol):
    """What a source needs of a workload."""

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Keys that are repeated again and again.

    >>> [block.tolist() for block in Recorded(np.array([1, 2, 3])).blocks(5, block=2)]
    [[1, 2], [3, 1], [2]]
    """

    keys: Int64Array

    def blocks(self, n: int, block: int) -> Iterator[Int64Array]:
        """The first `n` keys, at most `block` of them at a time."""
        if len(self.keys) == 0:
            raise SkewlessError("there are no keys to repeat; give at least one")
        for start in range(0, n, block):
            yield self.keys[np.arange(start, min(n, start + block)) % len(self.keys)]


@dataclass(frozen=True)
class Source:
    """Keys, and the rate at which they arrive.

    Attributes
    ----------
    keys
        A workload of `skewless.workload`, or `Recorded` keys.
    rate
        Tuples a second: a number, or a function of an array of times, such as `steps`, `sine` and `varying` make.

    Examples
    --------
    >>> from skewless.workload import Zipf
    >>> feed = Source(Zipf(1.0, keys=100), rate=2.0).feed()
    >>> keys, times = feed.until(1.5)
    >>> len(keys), times.tolist()
    (3, [0.0, 0.5, 1.0])
    """

    keys: Keys
    rate: float | Rate

    def __post_init__(self) -> None:
        """Refuse a rate at which nothing could arrive."""
        if not callable(self.rate) and not 0 <= self.rate < np.inf:
            raise SkewlessError(f"the rate is {self.rate} tuples a second; give a finite number, at least 0")

    def feed(self) -> Feed:
        """The stream from its beginning."""
        return Feed(self)

    def at(self, factor: float) -> Source:
        """The same keys at so many times the rate.

        >>> Source(Recorded(np.array([1])), rate=3.0).at(2).rate
        6.0
        """
        rate = self.rate
        if callable(rate):
            return Source(self.keys, lambda times: factor * rate(times))
        return Source(self.keys, factor * rate)


class Feed:
    """What has arrived of a source so far."""

    def __init__(self, source: Source) -> None:
        self._rate = source.rate
        self._blocks = source.keys.blocks(ENDLESS, BLOCK)
        self._rest: Int64Array = np.zeros(0, dtype=np.int64)
        self._now = 0.0
        self._due = 0.0  # tuples that the rate has made until now, and parts of one
        self._given = 0

    def until(self, end: float) -> tuple[Int64Array, FloatArray]:
        """The keys that arrive before `end` and have not been given yet, and when each of them arrives."""
        edges, due = self._made(end)
        last = int(np.ceil(due[-1] - ROUNDING))
        numbers = np.arange(self._given, last)
        times = np.interp(numbers, due, edges)
        self._now, self._due, self._given = end, float(due[-1]), max(self._given, last)
        return self._take(len(numbers)), times

    def _made(self, end: float) -> tuple[FloatArray, FloatArray]:
        """Times from now to `end`, and how many tuples the rate has made until each of them."""
        if not callable(self._rate):
            return np.array([self._now, end]), np.array([self._due, self._rate * end])
        edges = np.linspace(self._now, end, STEPS + 1)
        rates = np.asarray(self._rate((edges[1:] + edges[:-1]) / 2), dtype=np.float64)
        if not (rates >= 0).all():
            raise SkewlessError(f"the rate is {rates.min()} tuples a second near {self._now} s; give at least 0")
        return edges, self._due + np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])

    def _take(self, n: int) -> Int64Array:
        parts, there = [self._rest], len(self._rest)
        while there < n:
            parts.append(next(self._blocks))
            there += len(parts[-1])
        every = np.concatenate(parts) if len(parts) > 1 else parts[0]
        self._rest = every[n:]
        return every[:n]


def steps(*changes: tuple[float, float]) -> Rate:
    """A rate that changes at once: pairs of a time and the rate from then on, in the order of time.

    >>> steps((0, 100), (10, 500))(np.array([0.0, 9.9, 10.0]))
    array([100., 100., 500.])
    """
    times, rates = np.array(changes, dtype=np.float64).T
    if (np.diff(times) <= 0).any() or times[0] > 0:
        raise SkewlessError(f"the steps are at {times.tolist()}; give times that rise from 0 on")
    return lambda at: rates[np.searchsorted(times, at, side="right") - 1]


def sine(mean: float, amplitude: float, period: float) -> Rate:
    """A rate that swings around its mean, by `amplitude` either way, once in `period` seconds.

    >>> sine(100, 50, period=4)(np.array([0.0, 1.0, 3.0]))
    array([100., 150.,  50.])
    """
    return varying(workload.Sine(mean, amplitude, period))


def varying(rate: workload.Rate) -> Rate:
    """A rate of `skewless.workload` for a source: a sine, or spikes.

    >>> varying(workload.Spikes(base=100, peak=200, every=60, lasts=10))(np.array([5.0, 15.0]))
    array([200., 100.])
    """
    return np.vectorize(rate, otypes=[np.float64])
