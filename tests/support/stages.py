"""A plain model of micro-batches with two stages, for what follows the load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skewless.elastic import Observation, Parallelism, Scaler


@dataclass(frozen=True)
class Load:
    """Work in seconds of one task, shared by the tasks of each stage, and seconds that no number of tasks shortens."""

    rows: float
    keys: float
    row_cost: float
    key_cost: float
    fixed: float = 0.0

    def ratio(self, now: Parallelism) -> float:
        """W, for an interval of one second."""
        return self.seen(now).processing

    def seen(self, now: Parallelism, *, staged: bool = True) -> Observation:
        """A micro-batch of this load; an interval is one second."""
        map_time = self.rows * self.row_cost / now.map
        reduce_time = self.keys * self.key_cost / now.reduce
        stages = {"map_time": map_time, "reduce_time": reduce_time} if staged else {}
        return Observation(1.0, map_time + reduce_time + self.fixed, self.rows, self.keys, **stages)


@dataclass(frozen=True)
class Step:
    """One micro-batch: the numbers that it ran with, its W, and the numbers decided after it."""

    ran: Parallelism
    ratio: float
    then: Parallelism


@dataclass(frozen=True)
class Clocked:
    """A source without a limit, whose rows come by the clock: a micro-batch gets all that came since the one before.

    Seconds are those since the start, `rise` is when the rate rises to the sixfold, for good.
    """

    interval: float = 6.0
    rate: float = 200_000 / 6
    row_cost: float = 20e-6
    fixed: float = 1.0
    rise: float = 18.0

    def arrived(self, at: float) -> float:
        """The rows that came until then."""
        return self.rate * (at + 5 * max(0.0, at - self.rise))

    def follow(self, scaler: Scaler, until: float, late: int) -> list[tuple[float, Observation]]:
        """The micro-batches and when each began, if decisions come into force so many micro-batches late."""
        decided = [scaler.parallelism] * (late + 1)
        at, read, done = self.interval, 0.0, []
        while at < until:
            ran, rows, read = decided[-late - 1], self.arrived(at) - read, self.arrived(at)
            busy = rows * self.row_cost / ran.map
            seen = Observation(self.interval, busy + self.fixed, rows, 0, busy, 0.0, ran=ran)
            done.append((at, seen))
            decided.append(scaler.observe(seen))
            at = max(at + seen.processing, (at // self.interval + 1) * self.interval)
        return done


def follow(scaler: Scaler, loads: Iterable[Load], *, staged: bool = True) -> list[Step]:
    """The micro-batches of these loads, each with the numbers that were decided after the one before."""
    steps = []
    for load in loads:
        ran = scaler.parallelism
        seen = load.seen(ran, staged=staged)
        steps.append(Step(ran, seen.ratio, scaler.observe(seen)))
    return steps
