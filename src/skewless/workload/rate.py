"""How many tuples a second arrive: constant, as a sine, or with spikes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from skewless.core.errors import SkewlessError


class Rate(ABC):
    """Tuples a second as a function of the time in seconds."""

    @abstractmethod
    def __call__(self, time: float) -> float:
        """Tuples a second at this time."""

    @abstractmethod
    def before(self, time: float) -> float:
        """Tuples from time 0 until this time; less than 0 for a time before 0."""

    def between(self, start: float, stop: float) -> float:
        """Tuples between two times: the exact integral of the rate, which need not be a whole number."""
        if stop < start:
            raise SkewlessError(f"tuples between {start} and {stop}: give the earlier time first")
        return self.before(stop) - self.before(start)


@dataclass(frozen=True)
class Constant(Rate):
    """The same rate at all times.

    Parameters
    ----------
    rate
        Tuples a second.

    Examples
    --------
    >>> Constant(100).between(2, 5)
    300.0
    """

    rate: float

    def __post_init__(self) -> None:
        """Check the rate."""
        _check_rate("rate", self.rate)

    def __call__(self, time: float) -> float:
        """Tuples a second at this time."""
        return float(self.rate)

    def before(self, time: float) -> float:
        """Tuples from time 0 until this time."""
        return float(self.rate * time)


@dataclass(frozen=True)
class Sine(Rate):
    """A rate that rises and falls as a sine does, around its mean.

    Parameters
    ----------
    mean
        Tuples a second on average over a period.
    amplitude
        Tuples a second by which the rate is above and below the mean, at most the mean.
    period
        Seconds from one maximum to the next.
    phase
        Seconds by which the rate is ahead; with 0 it starts at its mean and rises.

    Examples
    --------
    >>> rate = Sine(mean=100, amplitude=50, period=60)
    >>> rate(15), rate(45), rate.between(0, 60)
    (150.0, 50.0, 6000.0)
    """

    mean: float
    amplitude: float
    period: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        """Check that the rate is never below 0."""
        _check_rate("mean", self.mean)
        if not 0 <= self.amplitude <= self.mean:
            raise SkewlessError(
                f"amplitude is {self.amplitude}; give 0 to the mean of {self.mean}, as no rate is below 0"
            )
        if not self.period > 0:
            raise SkewlessError(f"period is {self.period} seconds; give more than 0")

    def __call__(self, time: float) -> float:
        """Tuples a second at this time."""
        return self.mean + self.amplitude * math.sin(self._angle(time))

    def before(self, time: float) -> float:
        """Tuples from time 0 until this time."""
        waves = math.cos(self._angle(0.0)) - math.cos(self._angle(time))
        return self.mean * time + self.amplitude * self.period / (2 * math.pi) * waves

    def _angle(self, time: float) -> float:
        return 2 * math.pi * (time + self.phase) / self.period


@dataclass(frozen=True)
class Spikes(Rate):
    """A constant rate with spikes at regular times.

    Parameters
    ----------
    base
        Tuples a second between spikes.
    peak
        Tuples a second in a spike, at least the base.
    every
        Seconds from the start of a spike to the start of the next.
    lasts
        Seconds that a spike lasts, at most `every`.
    first
        The time at which the first spike starts; there are none before it.

    Examples
    --------
    >>> rate = Spikes(base=100, peak=200, every=60, lasts=10, first=30)
    >>> rate(29), rate(30), rate(40), rate.between(0, 60)
    (100.0, 200.0, 100.0, 7000.0)
    """

    base: float
    peak: float
    every: float
    lasts: float
    first: float = 0.0

    def __post_init__(self) -> None:
        """Check the rates and the times."""
        _check_rate("base", self.base)
        if not self.peak >= self.base:
            raise SkewlessError(f"peak is {self.peak}; give at least the base of {self.base}")
        if not 0 < self.lasts <= self.every:
            raise SkewlessError(f"lasts is {self.lasts} seconds; give more than 0, up to every={self.every}")

    def __call__(self, time: float) -> float:
        """Tuples a second at this time."""
        since = time - self.first
        return float(self.peak if since >= 0 and since % self.every < self.lasts else self.base)

    def before(self, time: float) -> float:
        """Tuples from time 0 until this time."""
        return self.base * time + (self.peak - self.base) * (self._spiked(time) - self._spiked(0.0))

    def _spiked(self, time: float) -> float:
        """Seconds of spikes until this time."""
        since = max(0.0, time - self.first)
        return since // self.every * self.lasts + min(since % self.every, self.lasts)


def _check_rate(name: str, rate: float) -> None:
    if not 0 <= rate < math.inf:
        raise SkewlessError(f"{name} is {rate} tuples a second; give a number from 0")
