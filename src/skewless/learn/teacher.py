"""Teaches the policy of a running stream: what a row and a state cost is fitted to the times that its tasks noted."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.counts import Counts
from skewless.learn.run_time import Judge, Lesson, RunTime
from skewless.split.blocks import BlockPlan
from skewless.split.teacher import TaskTime
from skewless.split.weights import Weights

KEPT = 64  # micro-batches whose tasks count
TAUGHT = 8  # micro-batches of a lesson
FEWEST = 3  # micro-batches before the first lesson
MOST_WORSE = 1.02  # the cost of a policy that is taken into use, over that of the one in use

log = logging.getLogger("skewless")


@dataclass(frozen=True)
class TaskModel:
    """The seconds of a task: a fixed part, and more for each row and for each state.

    Examples
    --------
    >>> seen = [TaskTime(0, rows, states, 1.0 + 0.5 * rows + 2.0 * states) for rows, states in ((1, 1), (4, 1), (9, 3))]
    >>> model = TaskModel.fitted(seen)
    >>> round(model.fixed, 6), round(model.row, 6), round(model.state, 6)
    (1.0, 0.5, 2.0)
    """

    fixed: float
    row: float
    state: float

    @classmethod
    def fitted(cls, tasks: Sequence[TaskTime]) -> TaskModel:
        """By least squares; a part that comes out below nothing is left out, and the others are fitted again."""
        table = np.array([(1.0, task.rows, task.states) for task in tasks])
        seconds = np.array([task.seconds for task in tasks])
        used = [0, 1, 2]
        while True:
            found = np.linalg.lstsq(table[:, used], seconds, rcond=None)[0]
            if len(used) == 1 or (found >= 0).all():
                break
            used.pop(int(np.argmin(found)))
        parts = np.zeros(3)
        parts[used] = np.maximum(found, 0)
        return cls(*parts.tolist())

    def judge(self, states_a_key: float) -> Judge:
        """Judges plans by this; nothing is known of reduce tasks."""

        def times(plan: BlockPlan) -> tuple[FloatArray, FloatArray]:
            seconds = self.fixed + self.row * plan.sizes + self.state * states_a_key * plan.cardinalities
            return seconds, np.zeros(0)

        return times


class RunTimeTeacher:
    """Learns in a thread of its own, one lesson at a time, from the newest micro-batches.

    What was learned is taken into use if its plans of the newest micro-batches cost at most 2 % more than those of the
    policy in use, by the cost model, and their tasks would be more equal. Both are plans of a lesson, which place the
    128 most frequent keys at most (four pieces a block where that is more), where the splitter that uses the weights
    places up to its `hot` keys.

    Parameters
    ----------
    weights
        The policy to go on from.
    lessons
        Lessons after each micro-batch.
    """

    def __init__(self, weights: Weights, lessons: int = 1) -> None:
        self.weights = weights
        self.model: TaskModel | None = None
        self.lessons: list[Lesson] = []
        self.taken = 0
        """How often weights were taken into use."""
        self._each = lessons
        self._school: RunTime | None = None
        self._seen: deque[Counts] = deque(maxlen=TAUGHT)
        self._tasks: deque[Sequence[TaskTime]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def hear(self, seen: Counts, workers: int, tasks: Sequence[TaskTime]) -> None:
        """Note a micro-batch, and begin a lesson unless one is under way."""
        with self._lock:
            self._seen.append(seen)
            self._tasks.append(tasks)
            busy = self._thread is not None and self._thread.is_alive()
            if busy or len(self._seen) < FEWEST:
                return
            self._thread = threading.Thread(target=self._learn, args=(workers,), name="skewless-teacher", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait for the lesson that is under way."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def describe(self) -> str:
        """How far the lessons are, in words."""
        if self.model is None:
            return "learning from the times of tasks: no lesson yet"
        row, state = 1e6 * self.model.row, 1e6 * self.model.state
        return (
            f"learning from the times of tasks: {len(self.lessons)} lessons, new weights {self.taken} times; "
            f"a row takes {row:.2g} us and a state {state:.2g} us"
        )

    def _learn(self, workers: int) -> None:
        try:
            self._lessons(workers)
        except Exception:  # whatever it is, the query goes on with the weights it has
            log.exception("nothing is learned from the times of tasks; the weights stay")

    def _lessons(self, workers: int) -> None:
        with self._lock:
            seen, tasks = list(self._seen), [task for each in self._tasks for task in each]
        self.model = TaskModel.fitted(tasks)
        if self._school is None or self._school.env.blocks != workers:
            self._school = RunTime(self.weights, workers)
        states, keys = sum(task.states for task in tasks), sum(len(each.keys) for each in seen)
        judge = self.model.judge(states / max(1, keys) * len(seen) / max(1, len(self._tasks)))
        for _ in range(self._each):
            self.lessons.append(self._school.lesson(seen, judge))
        was, then = (self._school.measured(weights, seen, judge) for weights in (self.weights, self._school.weights()))
        if then.variance < was.variance and then.cost <= MOST_WORSE * was.cost:
            self.weights, self.taken = self._school.weights(), self.taken + 1
