"""A range of workers that follows the load, as a stream is asked for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.elastic.parallelism import Parallelism, Side
from skewless.elastic.scaler import Scaler


@dataclass(frozen=True)
class Range:
    """The fewest and the most workers of a stream, and how their number follows the load.

    `keyed(df, "page", workers=(2, 16), interval="1 second")` is short for
    `keyed(df, "page", workers=Range(2, 16, "1 second"))`.

    Parameters
    ----------
    least, most
        The bounds of the number of workers.
    interval
        The time from one micro-batch to the next, such as "1 second": that of the query's trigger, which no program
        can ask Spark for. Under `availableNow` the number stays only if two micro-batches fit into an interval;
        otherwise it cannot be told from a trigger that falls behind, and climbs.
    stride, d, thres, step
        As for `Scaler`.

    Examples
    --------
    >>> print(Range(2, 16, "1 second", stride="one", d=2))
    2 to 16 workers
    >>> Range(16, 2, "1 second")
    Traceback (most recent call last):
        ...
    skewless.core.errors.SkewlessError: workers is (16, 2); give the smaller number first, and at least 1
    """

    least: int
    most: int
    interval: str
    stride: str = "straight"
    d: int = 3
    thres: float = 0.9
    step: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what is no range, and what the scaler would refuse."""
        both = (self.least, self.most)
        if not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in both):
            raise SkewlessError(f"workers is {both}; give two whole numbers, such as (2, 16)")
        for name, number in (("least", int), ("most", int), ("d", int), ("thres", float), ("step", float)):
            self._plain(name, number)
        if not 1 <= self.least <= self.most:
            raise SkewlessError(f"workers is {both}; give the smaller number first, and at least 1")
        try:
            microseconds(self.interval)
        except SkewlessError as error:
            raise SkewlessError(f"interval: {error}") from error
        self.scaler("map", self.least)

    def _plain(self, name: str, number: type[int] | type[float]) -> None:
        """Have a number of numpy as Python's own: the range is written in words and in JSON, and compared in both."""
        value = getattr(self, name)
        if isinstance(value, np.integer if number is int else np.integer | np.floating):
            object.__setattr__(self, name, number(value))

    def __str__(self) -> str:
        return f"{self.least} to {self.most} workers"

    @property
    def seconds(self) -> float:
        """The interval in seconds."""
        return microseconds(self.interval) / 1e6

    def nearest(self, workers: int) -> int:
        """The number within the bounds that is nearest to the given one."""
        return min(max(workers, self.least), self.most)

    def scaler(self, side: Side, start: int) -> Scaler:
        """What decides the number of the tasks of one side, from this one on; the other side is always one task."""
        one = Parallelism(1, 1)
        least, most, now = (one.changed(side, number) for number in (self.least, self.most, start))
        return Scaler(least, most, now, stride=self.stride, d=self.d, thres=self.thres, step=self.step)
