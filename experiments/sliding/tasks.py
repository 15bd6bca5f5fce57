"""Simulates a cluster that runs partitions as tasks: when each window's result is ready, and who is busy."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from experiments.sliding.partition import ByPane, Partitioner
from experiments.sliding.ring import Ring
from skewless.chop.cost import Costs
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import lean_kernel


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a simulated stream.

    Parameters
    ----------
    windows
        The window numbers.
    ended, done
        The time at which the last row of each window came, and the time at which its result was ready, in seconds.
    busy
        Seconds of work of each worker.
    rows
        Rows of the stream, each counted once.
    """

    windows: Int64Array
    ended: FloatArray
    done: FloatArray
    busy: FloatArray
    rows: int

    @property
    def latency(self) -> FloatArray:
        """Seconds from the end of each window to its result."""
        return self.done - self.ended

    @property
    def throughput(self) -> float:
        """Rows that the cluster processed in a second, from the first row to the last result."""
        return self.rows / float(self.done.max())


def run(
    partitioner: Partitioner,
    costs: Costs,
    workers: int,
    rate: float = math.inf,
    tasks: int = 1000,
    jitter: float = 0.0,
    seed: int = 1,
) -> Run:
    """Feed windows of rows to a cluster, a task for each partition, in turn to the workers.

    A task starts when all its rows have come and its worker has finished the tasks before it.

    Parameters
    ----------
    partitioner
        A partitioner by window or by batch, over row numbers.
    costs
        The costs of the work.
    workers
        The number of workers, each of which does one thing at a time.
    rate
        Rows that arrive in a second; infinite if all rows are ready at the start, to see what the cluster can do.
    tasks
        The number of partitions of the stream.
    jitter
        How much tasks of one size vary: the standard deviation of the logarithm of their time.
    seed
        The seed of the jitter.

    Examples
    --------
    >>> from experiments.sliding.partition import ByBatch
    >>> costs = Costs(update=1.77e-6, open_close=0, other=23.2e-6)
    >>> for batch in (1, 10, 50):
    ...     print(round(run(ByBatch(100, 1, batch, rows=True), costs, workers=4).throughput), end=" ")
    1602 9305 16251
    """
    if workers < 1 or tasks < 1:
        raise SkewlessError(f"{tasks} tasks for {workers} workers; give at least 1 of each")
    if isinstance(partitioner, ByPane):
        raise SkewlessError("panes make no window by themselves; use run_ring() with a Ring")
    extents, size = partitioner.extents, partitioner.size
    each = partitioner.windows_of(0)
    work = np.full(tasks, costs.of(len(each) * size, len(each), extents.size))
    work *= _jitter(tasks, jitter, seed)
    worker = partitioner.worker_of(np.arange(tasks), workers)
    ready = (np.arange(tasks) * extents.slide + extents.size) / rate
    done = _in_turn(worker, ready, work, workers)
    windows = np.arange(tasks * len(each))
    ended = (windows * partitioner.slide + size) / rate
    busy = _sums(worker, work, workers)
    return Run(windows, ended, np.repeat(done, len(each)), busy, tasks * extents.slide)


def run_ring(
    ring: Ring, costs: Costs, merge: float, rate: float = math.inf, rounds: int = 20, send: float = 0.0
) -> Run:
    """Feed windows of rows to a ring of pane owners: a task for each pane, and one for each window.

    A pane is a window that each of its rows updates once. A window starts when the results of all its panes are ready:
    those of its own worker, and those passed on by the predecessor.

    Parameters
    ----------
    ring
        The ring, which says who owns each pane and window.
    costs
        The costs of the work on panes.
    merge
        Seconds to merge the result of one pane into a window.
    rate
        Rows that arrive in a second.
    rounds
        How often each worker gets its turn.
    send
        Seconds that a worker spends to pass on the result of one pane.
    """
    count = rounds * ring.workers * ring.run
    windows = np.arange(count)
    panes = np.arange(ring.panes_of(count - 1).stop)
    owner = np.concatenate([ring.owner_of_pane(panes), ring.owner_of_window(windows)])
    pane_work = costs.of(ring.pane, 1, ring.pane) + send * ring.is_passed_on(panes).astype(np.float64)
    work = np.concatenate([pane_work, np.full(count, ring.window_panes * merge)])
    ended = (windows * ring.slide + ring.size) / rate
    ready = np.concatenate([(panes + 1) * ring.pane / rate, ended])
    # A worker does its panes in order, so a window waits for the last of its own and the last of its predecessor's.
    after: dict[int, list[int]] = {}
    for window in range(count):
        needed = ring.panes_of(window)
        own = window // ring.run * ring.run * ring.slide_panes + ring.shared
        for pane in {needed.stop - 1, min(own, needed.stop) - 1}:
            if pane in needed:
                after.setdefault(pane, []).append(len(panes) + window)
    done = _as_ready(owner, ready, work, ring.workers, after)[len(panes) :]
    return Run(windows, ended, done, _sums(owner, work, ring.workers), len(panes) * ring.pane)


def sustained(partitioner: Partitioner, costs: Costs, workers: int, latency: float, headroom: float = 0.0) -> float:
    """The highest rate, in rows a second, at which every result of a simulated stream is ready in time.

    It is the rate at which the workers just keep up, or 0 if results are late at that rate. A slower stream would not
    help: it takes longer to fill a batch, which then takes no less time to run.

    Parameters
    ----------
    partitioner
        A partitioner by window or by batch, over row numbers.
    costs
        The costs of the work.
    workers
        The number of workers that share the work.
    latency
        Seconds from the end of a window to its result, at most.
    headroom
        Share of the workers' time that is not to be used.
    """
    slower = 1 / (1 - headroom)
    costs = Costs(costs.update * slower, costs.open_close * slower, costs.other * slower)
    rate = run(partitioner, costs, workers, tasks=50 * workers).throughput
    in_time = run(partitioner, costs, workers, rate, tasks=50 * workers).latency.max() <= latency
    return rate if in_time else 0.0


def _sums(worker: Int32Array, work: FloatArray, workers: int) -> FloatArray:
    return np.bincount(worker, work, workers).astype(np.float64)


def _jitter(tasks: int, jitter: float, seed: int) -> FloatArray:
    """Factors around 1, with 1 as their mean."""
    normal = np.random.default_rng(seed).standard_normal(tasks)
    factors: FloatArray = np.exp(jitter * normal - jitter**2 / 2)
    return factors


@lean_kernel
def _start_in_turn(worker: Int32Array, ready: FloatArray, work: FloatArray, free: FloatArray, done: FloatArray) -> None:
    for i in range(len(worker)):
        done[i] = max(ready[i], free[worker[i]]) + work[i]
        free[worker[i]] = done[i]


def _in_turn(worker: Int32Array, ready: FloatArray, work: FloatArray, workers: int) -> FloatArray:
    done = np.empty(len(worker))
    _start_in_turn(worker, ready, work, np.zeros(workers), done)
    return done


def _as_ready(
    worker: Int32Array, ready: FloatArray, work: FloatArray, workers: int, after: dict[int, list[int]]
) -> FloatArray:
    """When each task is done, if a free worker takes the first of its tasks that can start.

    `after` has, for each task, the tasks that wait for it.
    """
    done = np.empty(len(worker))
    blocked = Counter(later for waiting in after.values() for later in waiting)
    queues: list[list[int]] = [[] for _ in range(workers)]
    idle = [True] * workers
    # Events in order of time: a task can start, or (as ~task) is done.
    events = [(float(ready[task]), task) for task in range(len(worker)) if not blocked[task]]
    heapify(events)
    while events:
        now, task = heappop(events)
        if task >= 0:
            heappush(queues[worker[task]], task)
        else:
            task = ~task
            idle[worker[task]] = True
            for later in after.get(task, ()):
                blocked[later] -= 1
                if not blocked[later]:
                    heappush(events, (max(now, float(ready[later])), later))
        own = worker[task]
        if idle[own] and queues[own]:
            idle[own] = False
            first = heappop(queues[own])
            done[first] = now + work[first]
            heappush(events, (float(done[first]), ~first))
    return done
