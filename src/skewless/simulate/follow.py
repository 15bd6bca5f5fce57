"""Micro-batches over time: scheduled, queued, run by an engine, and followed by the numbers of tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.elastic import Observation, Parallelism
from skewless.simulate.arrivals import Source
from skewless.simulate.cluster import Costs
from skewless.simulate.early_release import EarlyRelease
from skewless.simulate.map_reduce import Intake, Partitioner, intervals
from skewless.simulate.profiles import SHORT_LIVED, Profile, Slots
from skewless.simulate.schedule import Scheduler

Divides = Callable[[Parallelism], Partitioner]
"""A partitioner for these numbers of map and reduce tasks."""


class Follows(Protocol):
    """Decides after every micro-batch with how many tasks to go on, as `skewless.elastic.Scaler` does."""

    parallelism: Parallelism

    def observe(self, seen: Observation) -> Parallelism:
        """The numbers of tasks from now on, after one more micro-batch."""


@dataclass(frozen=True, eq=False)
class Followed:
    """What became of the micro-batches of a stream: an entry for each.

    Attributes
    ----------
    interval
        Seconds between heartbeats. The first micro-batch is complete at the first heartbeat.
    tuples, keys
        Tuples of each micro-batch, and distinct keys if somebody follows them, else 0.
    starts, finishes
        When its tasks started, and when the last one was done.
    scheduling
        Seconds that it waited for a message, when it could have started otherwise.
    ratios
        W, as the scaler is told: what was queued before it, its share of the scheduling, and the time of its stages,
        over the interval. Where tasks have stopped, what arrived meanwhile is queued.
    map_tasks, reduce_tasks
        How many it ran with.
    busy
        Seconds of work of the busiest task; of all micro-batches with their scheduling, where one ends before the next
        starts.
    """

    interval: float
    tuples: Int64Array
    keys: Int64Array
    starts: FloatArray
    finishes: FloatArray
    scheduling: FloatArray
    ratios: FloatArray
    map_tasks: Int64Array
    reduce_tasks: Int64Array
    busy: float

    @property
    def heartbeats(self) -> FloatArray:
        """When each micro-batch was complete."""
        return np.arange(1, len(self.tuples) + 1) * np.float64(self.interval)

    @property
    def delays(self) -> FloatArray:
        """From a micro-batch's heartbeat to its end, in intervals. Up to 1, no micro-batch waits for another."""
        return np.asarray((self.finishes - self.heartbeats) / self.interval)

    @property
    def violations(self) -> float:
        """The share of micro-batches that were not done when the next one was complete."""
        return float((self.delays > 1 + 1e-9).mean())

    @property
    def demand(self) -> float:
        """Work of the busiest over the time that there was for it; up to 1, no queue grows.

        It is of use where the numbers of tasks have stayed as they were.
        """
        return self.busy / (self.interval * len(self.tuples))

    def throughput(self, batches: int) -> FloatArray:
        """Tuples a second that were done, in stretches of so many intervals, from the first heartbeat on."""
        edges = self.interval * np.arange(1, len(self.tuples) + 2, batches)
        done = np.histogram(self.finishes, edges, weights=self.tuples.astype(np.float64))[0]
        return np.asarray(done / (batches * self.interval))


def follow(
    source: Source,
    divides: Divides,
    scheduler: Scheduler,
    costs: Costs,
    interval: float,
    seconds: float,
    *,
    tasks: Parallelism,
    scaler: Follows | None = None,
    profile: Profile = SHORT_LIVED,
    release: EarlyRelease | None = None,
    failures: Collection[int] = (),
) -> Followed:
    """Process micro-batches for so many seconds, a whole number of intervals, one after the other.

    A micro-batch is divided for the numbers of tasks that are in force when it starts, also if it has waited. When it
    is done, the scaler is told, and what it decides goes to the scheduler. W has in it what was queued before the
    micro-batch, be it because of work or because tasks stopped: else tasks would be given up while there is a queue.

    Parameters
    ----------
    source
        What arrives.
    divides
        Makes a partitioner for numbers of tasks.
    scheduler
        Starts micro-batches; a new one, with the same numbers of tasks at the beginning.
    costs
        What the work costs.
    interval
        Seconds of a micro-batch.
    tasks
        The numbers of tasks at the beginning.
    scaler
        Follows the load; the numbers stay if there is none, or if the engine cannot change them.
    profile
        How the engine runs tasks. For tasks that live on, give a scheduler without costs.
    release
        When micro-batches are cut, as in `process`.
    failures
        Numbers of micro-batches, from 1, in which a task fails.

    Examples
    --------
    One message for every micro-batch, and one for four. What scheduling takes away, map tasks cannot use:

    >>> from skewless.simulate import Groups, OneAtATime, Recorded, Scheduling
    >>> from skewless.simulate.map_reduce import Divided
    >>> def shuffle(tasks):
    ...     def route(keys, times, start, length):
    ...         block = np.arange(len(keys), dtype=np.int32) % tasks.map
    ...         return Divided.routed(keys, block, tasks.map, tasks.reduce)
    ...     return route
    >>> two, cost = Parallelism(2, 1), Scheduling(message=0.5)
    >>> source = Source(Recorded(np.array([7])), rate=100.0)
    >>> for scheduler in (OneAtATime(cost, two), Groups(cost, two, group=4)):
    ...     followed = follow(source, shuffle, scheduler, Costs(tuple=0.01, partial=0.0), 1.0, 4.0, tasks=two)
    ...     print(followed.delays.round(2), round(followed.demand, 3))
    [1. 1. 1. 1.] 1.0
    [1.  0.5 0.5 0.5] 0.625
    """
    if scaler is not None and scaler.parallelism != tasks:
        raise SkewlessError(f"the scaler starts with {scaler.parallelism} and the tasks with {tasks}; give the same")
    if scheduler.tasks != tasks:
        raise SkewlessError(f"the scheduler starts with {scheduler.tasks} and the tasks with {tasks}; give the same")
    if scheduler.last:
        raise SkewlessError(f"the scheduler has started {scheduler.last} micro-batches; make a new one for each run")
    batches = intervals(seconds, interval)
    beyond = sorted(number for number in failures if not 1 <= number <= batches)
    if beyond:
        raise SkewlessError(f"a task fails in micro-batch {beyond[0]}; give numbers from 1 to {batches}")
    intake, slots = Intake(source, interval, release), Slots(profile, costs, tasks)
    made, partitioner = tasks, divides(tasks)
    wanted, rows = tasks, []
    busy = queued = stopped = 0.0  # stopped: the part of what is queued that stops have left
    for number in range(1, batches + 1):
        begun = scheduler.start(number, number * interval, slots.free)
        at = begun.at
        if begun.tasks != made:
            made, partitioner = begun.tasks, divides(begun.tasks)
            at = max(at, slots.change(at, made))
            queued, stopped = queued + at - begun.at, stopped + at - begun.at
        batch = intake.take(partitioner)
        ran = slots.run(batch.divided, at + batch.late, number in failures)
        stages = max(ran.map_time, ran.reduce_time) if profile.continuous else ran.map_time + ran.reduce_time
        work = scheduler.share(made) + batch.late + stages
        busy += begun.scheduling + batch.late
        keys = 0
        if scaler is not None:
            keys = len(np.unique(batch.keys))
            # What is queued before it is work of the same kind, which more tasks would have done sooner; a stop is not.
            more = 1 + (queued - stopped) / stages if stages > 0 else 1.0
            seen = Observation(interval, work + queued, len(batch.keys), keys, ran=made, stopped=stopped)
            if not profile.continuous:  # else stages go on at the same time, and are no parts of a sum
                seen = replace(seen, map_time=more * ran.map_time, reduce_time=more * ran.reduce_time)
            then = scaler.observe(seen)
            if then != wanted and profile.rescale is not None:
                wanted = then
                scheduler.change(ran.finish, then)
        ended = (at, ran.finish, begun.scheduling, (work + queued) / interval)
        queued = max(0.0, queued + work - interval)
        stopped = min(stopped, queued)
        rows.append((len(batch.keys), keys, *ended, made.map, made.reduce))
    tuples, distinct, starts, finishes, scheduling, ratios, maps, reduces = np.array(rows, dtype=np.float64).T
    counts = [column.astype(np.int64) for column in (tuples, distinct, maps, reduces)]
    total = slots.busy if profile.continuous else slots.busy + busy
    return Followed(interval, counts[0], counts[1], starts, finishes, scheduling, ratios, counts[2], counts[3], total)
