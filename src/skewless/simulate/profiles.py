"""How engines run the tasks of a micro-batch: short-lived ones that are scheduled, or ones that live on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, SupportsFloat

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError
from skewless.elastic import Parallelism
from skewless.simulate.cluster import Costs
from skewless.simulate.map_reduce import Divided


@dataclass(frozen=True)
class Profile:
    """What an engine does around the work on tuples: the design features of chapter 5 that change a micro-batch's time.

    Attributes
    ----------
    name
        Of the engine.
    continuous
        Whether tasks live on. They are not scheduled again for a micro-batch; what ends it is a control event that
        every map task sends to every reduce task. A reduce task starts when it has all of them, because buffers between
        the two block until then, while map tasks go on with the next micro-batch. Short-lived tasks are started by a
        scheduler, and a stage by the end of the one before.
    place
        Seconds for a tuple to be put where tasks read it, shared evenly by all map slots before the map stage.
    steps
        Operations that a reduce task is made of; each after the first goes over all partial results, and takes as long
        for each as emitting it.
    event
        Seconds of a reduce task for the control event of one map task.
    rescale
        Seconds for which all tasks stop when their numbers change; None if the numbers cannot change.
    recovers
        What is done again when a task fails: that "task", or the whole "batch".

    References
    ----------
    A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
    2021. Chapter 5.
    """

    name: str
    continuous: bool = False
    place: float = 0.0
    steps: int = 1
    event: float = 0.0
    rescale: float | None = 0.0
    recovers: Literal["task", "batch"] = "task"

    def __post_init__(self) -> None:
        """Refuse what no engine has."""
        if not isinstance(self.steps, int) or isinstance(self.steps, bool) or self.steps < 1:
            raise SkewlessError(f"a reduce task of {self.steps!r} operations; give a whole number of at least 1")
        for name in ("place", "event", "rescale"):
            value: object = getattr(self, name)
            if value is None and name == "rescale":
                continue
            if not isinstance(value, SupportsFloat):
                raise SkewlessError(f"{name} is {value!r}; give seconds as a number, such as 0.1")
            if not (math.isfinite(value) and float(value) >= 0):
                raise SkewlessError(f"{name} is {value} seconds; give a finite number of at least 0")
        if self.recovers not in ("task", "batch"):
            raise SkewlessError(
                f'recovers is {self.recovers!r}; give "task" if a task that fails is run again, or "batch" if the '
                "whole micro-batch is"
            )

    def times(self, divided: Divided, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Seconds of each map and each reduce task."""
        placed = self.place * float(divided.sizes.sum()) / len(divided.sizes)
        passes = (self.steps - 1) * costs.emit * divided.partials
        events = self.event * len(divided.sizes)
        return placed + divided.map_times(costs), divided.reduce_times(costs) + passes + events


SHORT_LIVED = Profile("short-lived tasks")
"""Tasks that are scheduled for every micro-batch, and nothing else that costs: as `process` has them."""


@dataclass(frozen=True, eq=False)
class Ran:
    """What became of a micro-batch: when its last task was done, and the longest work of a task of both stages."""

    finish: float
    map_time: float
    reduce_time: float


class Slots:
    """The tasks of an engine, and when each will have done what it was given.

    Examples
    --------
    Two map tasks and one reduce task. Of tasks that live on, the map tasks take the next micro-batch meanwhile:

    >>> divided = Divided(np.array([3, 1]), np.array([1, 1]), np.array([2]))
    >>> costs = Costs(tuple=1.0, partial=1.0)
    >>> for profile in (SHORT_LIVED, Profile("continuous", continuous=True)):
    ...     slots = Slots(profile, costs, Parallelism(2, 1))
    ...     print([slots.run(divided, start, False).finish for start in (0.0, 3.0)], slots.free)
    [5.0, 8.0] 8.0
    [5.0, 8.0] 6.0
    """

    def __init__(self, profile: Profile, costs: Costs, tasks: Parallelism) -> None:
        self.profile, self.costs, self.tasks = profile, costs, tasks
        self._map, self._reduce = np.zeros(tasks.map), np.zeros(tasks.reduce)
        self._last = 0.0
        self.busy = 0.0
        """Seconds of work of the busiest task since the numbers of tasks are what they are; of all micro-batches, where
        one ends before the next starts."""
        self._busy = np.zeros(0)

    @property
    def free(self) -> float:
        """When the next micro-batch can be started."""
        return float(self._map.max()) if self.profile.continuous else self._last

    def change(self, at: float, tasks: Parallelism) -> float:
        """Have other numbers of tasks from now on, or when all are done; when they are there."""
        rescale = self.profile.rescale
        if rescale is None:
            raise SkewlessError(f"the numbers of tasks of {self.profile.name} cannot change")
        if self.profile.continuous:
            at = max(at, float(self._map.max()), float(self._reduce.max())) + rescale
        self.tasks = tasks
        self._map, self._reduce = np.full(tasks.map, at), np.full(tasks.reduce, at)
        return at

    def run(self, divided: Divided, start: float, failed: bool) -> Ran:
        """Do a micro-batch from `start` on, and what is lost a second time if a task fails."""
        maps, reduces = self.profile.times(divided, self.costs)
        if len(maps) != self.tasks.map or len(reduces) != self.tasks.reduce:
            raise SkewlessError(
                f"{len(maps)} blocks and {len(reduces)} buckets for {self.tasks.map} map and {self.tasks.reduce} "
                "reduce tasks; a partitioner makes as many as it was asked for"
            )
        if failed and self.profile.recovers == "batch":
            maps, reduces = 2 * maps, 2 * reduces
        elif failed:
            longest = int(np.argmax(maps))
            maps = maps.copy()
            maps[longest] *= 2
        self._count(maps, reduces)
        if not self.profile.continuous:
            self._last = start + float(maps.max()) + float(reduces.max())
            return Ran(self._last, float(maps.max()), float(reduces.max()))
        self._map = np.maximum(self._map, start) + maps
        self._reduce = np.maximum(self._reduce, float(self._map.max())) + reduces
        return Ran(float(self._reduce.max()), float(maps.max()), float(reduces.max()))

    def _count(self, maps: FloatArray, reduces: FloatArray) -> None:
        if not self.profile.continuous:
            self.busy += float(maps.max()) + float(reduces.max())
            return
        work = np.concatenate([maps, reduces])
        if len(work) != len(self._busy):
            self._busy = np.zeros(len(work))
        self._busy += work
        self.busy = float(self._busy.max())
