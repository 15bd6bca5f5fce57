"""What is known of a micro-batch when it is done."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsFloat

from skewless.core.errors import SkewlessError
from skewless.elastic.parallelism import SIDES, Parallelism, Side

_MEASURED = ("processing", "rows", "keys", "map_time", "reduce_time", "stopped")
_CLOCKS = 1e-6  # relative: parts that are timed apart may add up to so much more than the whole


@dataclass(frozen=True)
class Observation:
    """A micro-batch that is done: how long it took, and how much there was to do.

    Parameters
    ----------
    interval
        Seconds from one micro-batch to the next, the batch interval.
    processing
        Seconds that the micro-batch took.
    rows
        Rows of the micro-batch.
    keys
        Distinct keys of the micro-batch; an estimate will do.
    map_time, reduce_time
        Seconds of the two stages, one after the other. Give both of them, or neither if they are not known.
    ran
        The numbers of tasks that the micro-batch ran with. Give them if a decision takes some micro-batches to come
        into force: the micro-batches until then say nothing about the new numbers, and are passed over. If not given,
        the micro-batch ran with the numbers that were decided last.
    stopped
        The part of `processing` that is left of a stop: some engines stop all tasks to change their numbers, and what
        arrived meanwhile waits. No tasks are added because of it, as that would be another stop, and none are given
        up until it is worked off.

    Examples
    --------
    >>> seen = Observation(interval=2.0, processing=1.5, rows=3000, keys=40, map_time=0.8, reduce_time=0.5)
    >>> seen.ratio, seen.rate
    (0.75, 1500.0)
    >>> round(seen.scaled(Parallelism(4, 2), Parallelism(8, 2)).processing, 6)
    1.1
    """

    interval: float
    processing: float
    rows: float
    keys: float
    map_time: float | None = None
    reduce_time: float | None = None
    ran: Parallelism | None = None
    stopped: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot have been measured."""
        for name in ("interval", *_MEASURED):
            value = getattr(self, name)
            optional = value is None and name in ("map_time", "reduce_time")
            if not optional and not isinstance(value, SupportsFloat):
                raise SkewlessError(f"{name} is {value!r}; give a number, such as 1.0")
        if not (math.isfinite(self.interval) and self.interval > 0):
            raise SkewlessError(f"an interval of {self.interval} seconds; give a finite number above 0")
        if (self.map_time is None) != (self.reduce_time is None):
            raise SkewlessError(
                f"map_time is {self.map_time} and reduce_time is {self.reduce_time}; give both, or neither if one is "
                "not known"
            )
        for name in _MEASURED:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise SkewlessError(f"{name} is {value}; give a finite number of at least 0")
        whole = self.processing * (1 + _CLOCKS)
        if self.map_time is not None and self.reduce_time is not None and self.map_time + self.reduce_time > whole:
            raise SkewlessError(
                f"map_time is {self.map_time} and reduce_time is {self.reduce_time} of a processing time of "
                f"{self.processing}; give parts of it, or neither if stages go on at the same time"
            )
        if self.stopped > whole:
            raise SkewlessError(
                f"stopped is {self.stopped} of a processing time of {self.processing}; give a part of it"
            )
        if self.ran is not None and not isinstance(self.ran, Parallelism):
            raise SkewlessError(
                f"ran is {self.ran!r}; give the numbers of map and of reduce tasks, such as Parallelism(2, 1)"
            )

    @property
    def ratio(self) -> float:
        """Processing time over interval, the paper's W. Above 1, micro-batches queue."""
        return self.processing / self.interval

    @property
    def unstopped(self) -> Observation:
        """The same without what is left of a stop.

        >>> Observation(interval=1.0, processing=2.5, rows=10, keys=1, stopped=2.0).unstopped.ratio
        0.5
        """
        return replace(self, processing=max(0.0, self.processing - self.stopped), stopped=0.0)

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.interval

    @property
    def staged(self) -> bool:
        """Whether the times of the two stages are known."""
        return self.map_time is not None

    def load(self, side: Side) -> float:
        """What a side follows: the map side the rate, and the reduce side the number of keys."""
        return self.rate if side == "map" else self.keys

    def time(self, side: Side) -> float:
        """Seconds of a stage. If they are not known: all seconds, as they might all be of this stage."""
        known = self.map_time if side == "map" else self.reduce_time
        return self.processing if known is None else known

    def scaled(self, before: Parallelism, after: Parallelism) -> Observation:
        """What the same rows would have taken with other numbers of tasks.

        The time of a stage is taken to be inversely proportional to its number of tasks, and the time outside of the
        stages to stay as it is. If the times of the stages are not known, it is the longest time that is possible when
        no stage gets more tasks.
        """
        factors = {side: before.of(side) / after.of(side) for side in SIDES}
        if not self.staged:
            return replace(self, processing=self.processing * max(factors.values()))
        times = {side: self.time(side) * factors[side] for side in SIDES}
        outside = max(0.0, self.processing - self.time("map") - self.time("reduce"))
        return replace(
            self, processing=outside + sum(times.values()), map_time=times["map"], reduce_time=times["reduce"]
        )
