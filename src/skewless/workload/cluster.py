"""Events of a cluster's tasks, after the Google cluster trace: jobs of one task, and jobs of thousands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.stream import check_lengths

MOST_TASKS = 4_000  # of a job
CLASSES = (0.075, 0.078, 0.413, 0.434)  # shares of the jobs in the four scheduling classes

_JOBS = 1_000  # that are drawn at a time
_SCALE, _TAIL = 0.5, 0.72  # a job has x tasks or more with probability (0.5 / x)^0.72
_CPU, _CPU_SPREAD = 0.031, 1.1  # the median of what jobs ask for, and the standard deviation of its logarithm


@dataclass(frozen=True, eq=False)
class TaskEvents:
    """Submissions of tasks in order of time, one array per column.

    Parameters
    ----------
    time
        Seconds since the start.
    job, task
        The number of the job, and of the task in it.
    category
        The scheduling class of the job, 0 to 3.
    cpu
        The share of the largest machine that the task asks for.
    """

    time: FloatArray
    job: Int64Array
    task: Int64Array
    category: Int32Array
    cpu: FloatArray

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> TaskEvents:
        return TaskEvents(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True)
class Cluster:
    """A stream of task submissions; the queries sum the CPU of each job, or of each scheduling class.

    Half of all jobs have one task, and a few have thousands, which are submitted together: the hot key of a micro-batch
    is another one each time, and never comes again.

    Parameters
    ----------
    tasks_per_second
        How many tasks are submitted in a second, on average.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> events = Cluster(seed=1).take(10_000)
    >>> tasks = np.sort(np.bincount(events.job))[::-1]
    >>> bool(tasks[0] > 1000), int(np.median(tasks))
    (True, 1)

    References
    ----------
    C. Reiss, J. Wilkes, J. L. Hellerstein: Google cluster-usage traces: format and schema. Google, 2011.
    """

    tasks_per_second: float = 100.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the rate."""
        if not self.tasks_per_second > 0:
            raise SkewlessError(f"tasks_per_second is {self.tasks_per_second}; give more than 0")

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[TaskEvents]:
        """The first `n` events, at most `block` of them at a time."""
        check_lengths(n, block)
        ready, part, now = _join([]), 0, 0.0
        while n > 0:
            wanted = min(block, n)
            while len(ready) < wanted:
                new = self._events(part, now)
                ready, part, now = _join([ready, new]), part + 1, float(new.time[-1])
            yield ready[:wanted]
            ready, n = ready[wanted:], n - wanted

    def take(self, n: int) -> TaskEvents:
        """The first `n` events."""
        return next(self.blocks(n, max(n, 1)), _join([]))

    def _events(self, part: int, now: float) -> TaskEvents:
        """All tasks of the next jobs."""
        draw = np.random.default_rng([self.seed, part])
        tasks = np.clip(_SCALE * (1 - draw.random(_JOBS)) ** (-1 / _TAIL), 1, MOST_TASKS).astype(np.int64)
        category = np.searchsorted(np.cumsum(CLASSES), draw.random(_JOBS), side="right").astype(np.int32)
        cpu = np.minimum(1.0, _CPU * np.exp(_CPU_SPREAD * draw.standard_normal(_JOBS)))
        which = np.repeat(np.arange(_JOBS), tasks)
        number = np.arange(len(which)) - np.repeat(np.cumsum(tasks) - tasks, tasks)
        # The tasks of a job are submitted at once, and the next job comes when as many could have been.
        gaps = draw.standard_exponential(_JOBS) * tasks / self.tasks_per_second
        return TaskEvents((now + gaps.cumsum())[which], part * _JOBS + which, number, category[which], cpu[which])


def _join(pieces: list[TaskEvents]) -> TaskEvents:
    none = TaskEvents(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))
    pieces = [none, *pieces]
    columns = (np.concatenate([getattr(piece, column.name) for piece in pieces]) for column in fields(TaskEvents))
    return TaskEvents(*columns)
