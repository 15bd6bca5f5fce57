"""Who starts the tasks of a micro-batch, and when: a central scheduler for each one, or for groups of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, SupportsFloat

from skewless.core.errors import SkewlessError
from skewless.elastic import Parallelism


@dataclass(frozen=True)
class Scheduling:
    """Seconds that a central scheduler takes for one message to the workers.

    A message has the tasks of one micro-batch, or of a whole group that runs with the same numbers of tasks, and takes
    equally long for both: the plan is made, serialized and sent once.

    Attributes
    ----------
    message
        For a message, whatever is in it.
    task
        More for each task of a micro-batch.

    Examples
    --------
    >>> Scheduling(message=0.5, task=0.125).seconds(Parallelism(4, 6))
    1.75
    """

    message: float = 0.0
    task: float = 0.0

    def __post_init__(self) -> None:
        """Refuse costs below nothing."""
        for name in ("message", "task"):
            _at_least_0(name, getattr(self, name))

    def seconds(self, tasks: Parallelism) -> float:
        """For micro-batches with these numbers of tasks."""
        return self.message + self.task * (tasks.map + tasks.reduce)


class Start(NamedTuple):
    """When the tasks of a micro-batch start, how many, and how long they waited for a message that they could have had.

    `scheduling` counts only the time in which the micro-batch was complete and the workers had nothing else to do.
    """

    at: float
    tasks: Parallelism
    scheduling: float


class Scheduler(Protocol):
    """Starts micro-batches, one after the other, numbered from 1.

    Attributes
    ----------
    tasks
        The numbers of tasks in force.
    last
        The number of the micro-batch that was started last; 0 if there was none.
    """

    tasks: Parallelism
    last: int

    def start(self, batch: int, heartbeat: float, free: float) -> Start:
        """Start a micro-batch.

        Parameters
        ----------
        batch
            Its number.
        heartbeat
            When its interval ends, so that it is complete.
        free
            When the workers are done with the one before it.
        """

    def share(self, tasks: Parallelism) -> float:
        """Seconds of scheduling that a micro-batch stands for: those of its message over all that are in it."""

    def change(self, at: float, tasks: Parallelism) -> None:
        """Have other numbers of tasks, as decided when the workers reported at this time."""


class OneAtATime:
    """Schedules a micro-batch when it is complete and the one before is done, as Spark does.

    Every micro-batch waits for its message. New numbers of tasks are in the next one.

    Parameters
    ----------
    cost
        Of a message.
    tasks
        The numbers of tasks at the beginning.

    Examples
    --------
    >>> one = OneAtATime(Scheduling(message=0.2), Parallelism(4, 2))
    >>> one.start(batch=1, heartbeat=1.0, free=0.0)
    Start(at=1.2, tasks=Parallelism(map=4, reduce=2), scheduling=0.2)
    """

    def __init__(self, cost: Scheduling, tasks: Parallelism) -> None:
        self.cost, self.tasks = cost, tasks
        self.last = 0

    def start(self, batch: int, heartbeat: float, free: float) -> Start:
        """Send a message now, and start when it has come."""
        self.last = batch
        seconds = self.cost.seconds(self.tasks)
        return Start(max(heartbeat, free) + seconds, self.tasks, seconds)

    def share(self, tasks: Parallelism) -> float:
        """All of the message."""
        return self.cost.seconds(tasks)

    def change(self, at: float, tasks: Parallelism) -> None:
        """In force with the next message."""
        self.tasks = tasks


class Groups:
    """Schedules a group of micro-batches with one message, when the group before is done, as Drizzle does.

    The first micro-batch of a group waits for the message, the others are in the queues of the workers. New numbers of
    tasks wait for the next group.

    Parameters
    ----------
    cost
        Of a message.
    tasks
        The numbers of tasks at the beginning.
    group
        Micro-batches in a message, the paper's G.

    Examples
    --------
    >>> groups = Groups(Scheduling(message=0.2), Parallelism(4, 2), group=10)
    >>> [groups.start(batch, float(batch), free=0.0).at for batch in (1, 2)]
    [1.2, 2.0]

    References
    ----------
    S. Venkataraman, A. Panda, K. Ousterhout, M. Armbrust, A. Ghodsi, M. J. Franklin, B. Recht, I. Stoica: Drizzle: fast
    and adaptable stream processing at scale. SOSP 2017.
    """

    def __init__(self, cost: Scheduling, tasks: Parallelism, group: int) -> None:
        self.cost, self.group = cost, _group(group)
        self.tasks = self._wanted = tasks
        self.last = 0

    def start(self, batch: int, heartbeat: float, free: float) -> Start:
        """Send a message if this is the first of a group."""
        self.last = batch
        at, seconds = max(heartbeat, free), 0.0
        if (batch - 1) % self.group == 0:
            self.tasks = self._wanted
            seconds = self.cost.seconds(self.tasks)
        return Start(at + seconds, self.tasks, seconds)

    def share(self, tasks: Parallelism) -> float:
        """The message over the group."""
        return self.cost.seconds(tasks) / self.group

    def change(self, at: float, tasks: Parallelism) -> None:
        """In force with the next group."""
        self._wanted = tasks


class GroupAhead:
    """Schedules the next group before the current one ends, and changes groups that are already sent (Prompt+).

    One message carries a group of micro-batches. It is sent so long before the first of them is complete that workers
    have it when they need it: this lead is the *scheduling window*. Local schedulers at the workers keep the tasks in
    queues and start them when their data is there. What they report arrives later and stops nobody. If the numbers of
    tasks are to change, an update is sent at once, also for micro-batches that are in the queues. It is in force for
    those that start after the *adjustment window*, and interrupts none. The central scheduler makes one message after
    the other, and updates beside them.

    The queues are simulated as one queue of the whole cluster. No slot has a queue of its own: where stages block, the
    next micro-batch starts when the last reduce task of the one before is done, also on slots that have long been idle,
    so that one slow task holds up all of them. Local schedulers of the paper could start there sooner.

    Parameters
    ----------
    cost
        Of a message.
    tasks
        The numbers of tasks at the beginning.
    group
        Micro-batches in a message, the paper's G.
    lead
        The scheduling window in seconds; what a message takes if not given.
    adjust
        The adjustment window in seconds; what a message takes if not given.
    report
        Seconds until the central scheduler has heard of a micro-batch that is done.

    Examples
    --------
    An update that is decided at 16.9, while micro-batch 16 starts, is in force for micro-batch 17:

    >>> ahead = GroupAhead(Scheduling(message=0.2), Parallelism(4, 2), group=10)
    >>> ahead.start(15, 15.0, free=15.0).at
    15.0
    >>> ahead.change(16.9, Parallelism(8, 4))
    >>> ahead.start(16, 16.0, free=16.9)
    Start(at=16.9, tasks=Parallelism(map=4, reduce=2), scheduling=0.0)
    >>> ahead.start(17, 17.0, free=17.8)
    Start(at=17.8, tasks=Parallelism(map=8, reduce=4), scheduling=0.0)

    References
    ----------
    A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
    2021. Section 3.4, figures 3.3 and 3.4.
    """

    def __init__(
        self,
        cost: Scheduling,
        tasks: Parallelism,
        group: int,
        *,
        lead: float | None = None,
        adjust: float | None = None,
        report: float = 0.0,
    ) -> None:
        self.cost, self.group = cost, _group(group)
        for name, value in (("lead", lead), ("adjust", adjust), ("report", report)):
            _at_least_0(name, 0.0 if value is None else value)
        self.lead, self.adjust, self.report = lead, adjust, report
        self.tasks = tasks
        self.last = 0
        self._sent = -math.inf  # when workers have the message of this group
        self._number = -1  # of this group
        self._waited = 0.0  # what its first micro-batch has waited for the message
        self._updates: list[tuple[float, float, Parallelism]] = []  # heard of at, in force from, numbers

    def start(self, batch: int, heartbeat: float, free: float) -> Start:
        """Start when the workers have the message of its group, in good time or not."""
        self.last = batch
        number = (batch - 1) // self.group
        first = number != self._number
        if first:
            self._number = number
            self._send(heartbeat)
        at = max(heartbeat, free)
        start = max(at, self._sent)
        if first:
            self._waited = start - at
        while self._updates and self._updates[0][1] <= start:
            self.tasks = self._updates.pop(0)[2]
        return Start(start, self.tasks, start - at)

    def share(self, tasks: Parallelism) -> float:
        """What the group has waited for its message, over the group: nothing if it came in time."""
        return self._waited / self.group

    def change(self, at: float, tasks: Parallelism) -> None:
        """Send an update as soon as it is heard of."""
        heard = at + self.report
        window = self.cost.seconds(tasks) if self.adjust is None else self.adjust
        self._updates.append((heard, heard + window, tasks))

    def _send(self, heartbeat: float) -> None:
        """Make the message of a group whose first micro-batch is complete then; what is heard of by now is in it."""
        lead = self.cost.seconds(self.tasks) if self.lead is None else self.lead
        begun = max(heartbeat - lead, self._sent)
        while self._updates and self._updates[0][0] <= begun:
            self.tasks = self._updates.pop(0)[2]
        self._sent = begun + self.cost.seconds(self.tasks)


def _group(group: int) -> int:
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise SkewlessError(f"group is {group!r}; give a whole number of micro-batches, at least 1")
    return group


def _at_least_0(name: str, value: float) -> None:
    if not isinstance(value, SupportsFloat):
        raise SkewlessError(f"{name} is {value!r}; give seconds as a number, such as 0.1")
    if not (math.isfinite(value) and value >= 0):
        raise SkewlessError(f"{name} is {value} seconds; give a finite number of at least 0")
