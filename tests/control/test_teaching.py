"""The loop of a stream whose policy goes on learning, without Spark and without a school."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from skewless.control.loop import Chosen, Observed
from skewless.control.policy_file import PolicyFile
from skewless.control.teaching import Taught, times_of
from skewless.core.counts import Counts
from skewless.split import PartLy
from skewless.split.teacher import TaskTime
from skewless.split.weights import Weights

WORKERS = 4


class Listening:
    """A teacher that keeps what it hears, and has other weights after the first micro-batch."""

    def __init__(self, first: Weights, then: Weights) -> None:
        self.weights, self._then = first, then
        self.heard: list[tuple[Counts, int, Sequence[TaskTime]]] = []

    def hear(self, seen: Counts, workers: int, tasks: Sequence[TaskTime]) -> None:
        self.heard.append((seen, workers, tasks))
        self.weights = self._then

    def describe(self) -> str:
        return f"{len(self.heard)} heard"


def observed(batch: int, notes: tuple[tuple[int, ...], ...]) -> Observed:
    keys = np.random.default_rng(batch).zipf(1.4, 2_000) % 30
    return Observed("q", "r", batch, counts=Counts.of(keys), notes=notes, rows=2_000)


def test_a_task_that_was_run_twice_counts_once_and_other_notes_are_none_of_its() -> None:
    notes = ((1, 50, 9, 3_000), (0, 40, 8, 2_500), (1, 50, 9, 4_000), (2, 7))
    assert times_of(observed(0, notes)) == [TaskTime(0, 40, 8, 0.0025), TaskTime(1, 50, 9, 0.004)]


def test_the_teacher_hears_of_the_times_and_plans_go_by_its_weights(tmp_path: Path) -> None:
    shipped = Weights.load()
    other = Weights({name: -layer for name, layer in shipped.layers.items()}, {})
    teacher = Listening(shipped, other)
    file = PolicyFile(f"file://{tmp_path}", "1f3a")
    loop = Taught("clicks", PartLy(WORKERS, hot=20), file, Chosen("partly", "as asked"), teacher)
    notes = tuple((worker, 500, 12, 1_000 * (worker + 1)) for worker in range(WORKERS))
    seen = observed(0, notes)
    assert loop.hear(seen)
    ((counts, workers, tasks),) = teacher.heard
    assert (counts, workers) == (seen.counts, WORKERS)
    assert [task.seconds for task in tasks] == [0.001, 0.002, 0.003, 0.004]
    assert loop.loads == dict.fromkeys(range(WORKERS), 500)
    plans = [PartLy(WORKERS, hot=20) for _ in range(2)]
    plans[1].weights = other
    lanes = [plan.plan(seen.counts).lanes.tolist() for plan in plans]
    assert lanes[0] != lanes[1] == loop.policy.lanes.tolist()
    assert loop.describe()[-1] == "1 heard"


def test_without_times_there_is_nothing_to_teach(tmp_path: Path) -> None:
    teacher = Listening(Weights.load(), Weights.load())
    file = PolicyFile(f"file://{tmp_path}", "1f3a")
    loop = Taught("clicks", PartLy(WORKERS), file, Chosen("partly", "as asked"), teacher)
    assert loop.hear(observed(0, ()))
    assert not teacher.heard
    assert loop.policy.version == 1
