"""What scheduling a micro-batch costs, as measured on Spark, and the schedulers that pay it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figure import Scale, Scaled
from experiments.prompt.rivals import partitioner
from experiments.prompt.setting import Setting
from experiments.prompt.throughput import highest
from skewless.core.arrays import FloatArray
from skewless.elastic import Parallelism, Scaler
from skewless.simulate import Followed, GroupAhead, Groups, OneAtATime, Scheduling, Source, follow
from skewless.simulate.arrivals import Keys
from skewless.simulate.map_reduce import Partitioner
from skewless.simulate.profiles import SHORT_LIVED, Profile
from skewless.simulate.schedule import Scheduler

FILE = Path(__file__).parents[2] / "docs" / "results" / "micro-batches.json"
GROUP = 10
ONE, GROUPS, AHEAD = "one at a time", "groups", "group-ahead"
SCHEDULERS = (ONE, GROUPS, AHEAD)


@dataclass(frozen=True)
class Measured:
    """The fixed cost of Spark's micro-batches: points that were measured, and the line through them."""

    tasks: FloatArray
    seconds: FloatArray
    cost: Scheduling
    spark: str
    slots: int


@cache
def data() -> Any:
    """What `make bench-batches` has measured."""
    return json.loads(FILE.read_text())


def fast(batches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of the fastest third: what slows the others down is mostly another program on the same machine.

    >>> fast([{"total": 3.0}, {"total": 1.0}, {"total": 9.0}, {"total": 2.0}, {"total": 5.0}, {"total": 6.0}])
    {'total': 1.5}
    """
    fastest = sorted(batches, key=lambda each: each["total"])[: max(1, len(batches) // 3)]
    return {name: float(np.mean([each[name] for each in fastest])) for name in fastest[0]}


@cache
def measured(part: str = "total") -> Measured:
    """Of micro-batches that do nothing in Python, all time or a part of it: the least squares of relative errors."""
    found = data()
    points = [(each["tasks"], fast(each["batches"])[part] / 1e3) for each in found["fixed"] if not each["python"]]
    tasks, seconds = np.array(points).T
    message, task = np.polynomial.Polynomial.fit(tasks, seconds, 1, w=1 / seconds).convert().coef
    cost = Scheduling(message=max(0.0, float(message)), task=max(0.0, float(task)))
    return Measured(tasks, seconds, cost, found["spark"], found["slots"])


def setting_of(scale: Scale) -> Setting:
    """The cluster of chapter 3: smaller than that of chapter 2, as its runs are longer."""
    return Setting(scale, blocks=32, reducers=32, slower={"small": 2.5, "full": 10.0}[scale])


def scheduler(
    name: str,
    cost: Scheduling,
    tasks: Parallelism,
    group: int = GROUP,
    lead: float | None = None,
    adjust: float | None = None,
    report: float = 0.0,
) -> Scheduler:
    """The scheduler of this name; of group-ahead, its windows may be given, and how late workers report."""
    if name == ONE:
        return OneAtATime(cost, tasks)
    if name == GROUPS:
        return Groups(cost, tasks, group)
    return GroupAhead(cost, tasks, group, lead=lead, adjust=adjust, report=report)


def divides(name: str, setting: Setting, candidates: int = 2) -> Callable[[Parallelism], Partitioner]:
    """The partitioner of this name, for any numbers of tasks."""

    def made(tasks: Parallelism) -> Partitioner:
        return partitioner(name, replace(setting, blocks=tasks.map, reducers=tasks.reduce), candidates)

    return made


@dataclass(frozen=True)
class Case:
    """A stream of keys at any rate, and what runs it."""

    keys: Keys
    setting: Setting
    technique: str
    interval: float
    tasks: Parallelism
    cost: Scheduling
    group: int = GROUP
    candidates: int = 2
    profile: Profile = SHORT_LIVED
    lead: float | None = None  # group-ahead's scheduling window; what a message takes if not given
    adjust: float | None = None  # its adjustment window; the same
    report: float = 0.0  # seconds until it has heard of a micro-batch that is done

    def run(
        self,
        name: str,
        source: Source,
        batches: int,
        scaler: Scaler | None = None,
        failures: Collection[int] = (),
    ) -> Followed:
        """So many micro-batches by this scheduler."""
        return follow(
            source,
            divides(self.technique, self.setting, self.candidates),
            scheduler(name, self.cost, self.tasks, self.group, self.lead, self.adjust, self.report),
            self.setting.costs,
            self.interval,
            batches * self.interval,
            tasks=self.tasks,
            scaler=scaler,
            profile=self.profile,
            failures=failures,
        )

    def highest(self, name: str, start: float, below: float = 1.0, tolerance: float = 0.01) -> float:
        """The highest constant rate at which the work of a group takes at most this part of its time."""
        batches = max(self.group, 4)

        def demand_at(rate: float) -> float:
            return self.run(name, Source(self.keys, rate), batches).demand / below

        return highest(demand_at, start, tolerance)

    @property
    def share(self) -> float:
        """The part of the interval that scheduling takes, one micro-batch at a time."""
        return self.cost.seconds(self.tasks) / self.interval


def expected(share: float, group: int) -> float:
    """The time that groups leave for work, over what one at a time leaves: (1 - o/G) / (1 - o).

    >>> round(expected(0.5, 10), 2)
    1.9
    """
    return (1 - share / group) / (1 - share)


def lines(scale: Scale, setting: Setting) -> tuple[Scaled, ...]:
    """The lines of a setup that the figures of chapter 3 share."""
    found, slower = measured(), setting.costs
    return (
        Scaled(
            "scheduling a micro-batch",
            "Spark 2.0, not said",
            f"{found.cost.message * 1e3:.0f} ms and {found.cost.task * 1e3:.1f} ms a task: the fixed cost of "
            f"micro-batches measured on Spark {found.spark}, {found.slots} local slots (`make bench-batches`)",
        ),
        Scaled(
            "costs of a tuple, of emitting and of merging a partial result",
            "those of Spark 2.0, not said",
            f"{slower.tuple * 1e6:,.0f}, {slower.emit * 1e6:,.0f} and {slower.partial * 1e6:,.0f} µs, as in the "
            "figures "
            "of chapter 2",
        ),
    )
