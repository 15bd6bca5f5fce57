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


def follow(scaler: Scaler, loads: Iterable[Load], *, staged: bool = True) -> list[Step]:
    """The micro-batches of these loads, each with the numbers that were decided after the one before."""
    steps = []
    for load in loads:
        ran = scaler.parallelism
        seen = load.seen(ran, staged=staged)
        steps.append(Step(ran, seen.ratio, scaler.observe(seen)))
    return steps
