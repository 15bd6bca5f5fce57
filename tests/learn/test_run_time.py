from __future__ import annotations

import numpy as np
import pytest

from skewless.core.counts import Counts
from skewless.learn.batches import batch_of
from skewless.learn.environment import Environment
from skewless.learn.run_time import Lesson, RunTime, plan_of
from skewless.learn.teacher import FEWEST, RunTimeTeacher, TaskModel
from skewless.split.blocks import BlockPlan
from skewless.split.teacher import TaskTime
from skewless.split.ways import SHARES
from skewless.split.weights import Weights

BLOCKS = 6


def micro_batches(number: int, keys: int = 40) -> list[Counts]:
    return [Counts.of(np.random.default_rng(seed).zipf(1.5, 3_000) % keys) for seed in range(number)]


def by_rows(plan: BlockPlan) -> tuple[np.ndarray, np.ndarray]:
    return plan.sizes.astype(float), np.zeros(0)


def test_a_played_plan_has_every_tuple_once_and_the_parts_of_its_ways() -> None:
    school = RunTime(Weights.load(), BLOCKS, keys=24, plans=2)
    seen = micro_batches(1)[0]
    pieces = int((np.asarray(batch_of(school.env, seen).sizes) > 0).sum())
    rng = np.random.default_rng(1)
    lanes = np.array([rng.permutation(BLOCKS)[:5] for _ in range(pieces)])
    ways = np.zeros(pieces, np.int64)
    ways[0] = 7  # a half and two quarters
    plan = plan_of(school.env, seen, lanes, ways)
    assert plan.sizes.sum() == plan.counts.sum() == seen.total
    np.testing.assert_array_equal(np.bincount(plan.which, plan.size), plan.counts)
    first = {int(block): int(size) for block, size in zip(plan.block, plan.size, strict=True) if block in lanes[0][:3]}
    assert set(lanes[0][:3]) <= set(first)
    share = plan.size[(plan.which == 0) & (plan.block == lanes[0][0])][0] / plan.counts[0]
    if plan.counts[0] <= 5 * seen.total / BLOCKS:  # else it was cut, and has more pieces
        assert share == pytest.approx(SHARES[7][0], abs=0.01)


def test_lessons_lower_the_variance_that_the_judge_finds() -> None:
    """A judge to whom keys cost much more than rows, which is not what the policy was trained for."""

    def by_keys(plan: BlockPlan) -> tuple[np.ndarray, np.ndarray]:
        return plan.sizes + 60.0 * plan.cardinalities, np.zeros(0)

    weights, seen = Weights.load(), micro_batches(4)
    school = RunTime(weights, BLOCKS, keys=40, plans=8, rate=2e-3, near=1.0, seed=1)
    before = school.measured(weights, seen, by_keys)
    for _ in range(12):
        lesson = school.lesson(seen, by_keys)
        assert lesson.near
    after = school.measured(school.weights(), seen, by_keys)
    assert after.variance < before.variance


def test_far_from_the_cost_model_its_cost_is_the_reward() -> None:
    def against(plan: BlockPlan) -> tuple[np.ndarray, np.ndarray]:
        return -(plan.sizes.astype(float) ** 2), np.zeros(0)

    one, two = (RunTime(Weights.load(), BLOCKS, keys=24, plans=4, near=-1.0, seed=1) for _ in range(2))
    seen = micro_batches(2)
    assert not one.lesson(seen, by_rows).near
    two.lesson(seen, against)
    assert all((one.parameters[name] == two.parameters[name]).all() for name in one.parameters)


def test_the_larger_variance_counts_and_unknown_tasks_do_not() -> None:
    school = RunTime(Weights.load(), BLOCKS, keys=24, plans=2, seed=1)
    seen = micro_batches(1)
    plain = school.measured(Weights.load(), seen, by_rows)
    both = school.measured(Weights.load(), seen, lambda plan: (plan.sizes.astype(float), 9.0 * plan.sizes))
    assert both.variance == pytest.approx(81 * plain.variance)


def test_a_task_model_leaves_out_what_costs_nothing() -> None:
    rng = np.random.default_rng(1)
    tasks = [TaskTime(0, rows, rows // 9, 2e-6 * rows) for rows in rng.integers(50, 900, 40).tolist()]
    model = TaskModel.fitted(tasks)
    assert model.row == pytest.approx(2e-6, rel=0.05)
    assert min(model.fixed, model.row, model.state) >= 0


def test_a_teacher_learns_beside_whoever_tells_it_and_takes_what_is_better() -> None:
    weights = Weights.load()
    teacher = RunTimeTeacher(weights, lessons=2)
    assert "no lesson yet" in teacher.describe()
    for number, seen in enumerate(micro_batches(FEWEST + 1)):
        loads = np.random.default_rng(number).multinomial(seen.total, [1 / BLOCKS] * BLOCKS)
        tasks = [TaskTime(i, int(n), int(n) // 50, 1e-3 + 5e-6 * int(n)) for i, n in enumerate(loads)]
        teacher.hear(seen, BLOCKS, tasks)
        assert (number < FEWEST - 1) == (teacher._thread is None)
        teacher.wait()
    assert len(teacher.lessons) == 4
    assert teacher.model is not None
    assert teacher.model.row == pytest.approx(5e-6, rel=0.2)
    assert f"new weights {teacher.taken} times" in teacher.describe()
    assert (teacher.weights is weights) == (teacher.taken == 0)


class School:
    """Lessons with a given end."""

    def __init__(self, variance: float, cost: float) -> None:
        self.env, self.better = Environment(blocks=BLOCKS, keys=24), Lesson(True, variance, cost, 0.01)
        self.learned = Weights.load()

    def lesson(self, seen: object, judge: object) -> Lesson:
        return self.better

    def measured(self, weights: Weights, seen: object, judge: object) -> Lesson:
        return self.better if weights is self.learned else Lesson(True, 1.0, 1.0, 0.01)

    def weights(self) -> Weights:
        return self.learned


@pytest.mark.parametrize(
    ("variance", "cost", "taken"), [(0.9, 1.0, 1), (0.9, 1.015, 1), (0.9, 1.03, 0), (1.0, 0.5, 0), (1.1, 0.9, 0)]
)
def test_new_weights_are_taken_only_if_tasks_are_more_equal_and_the_cost_is_no_higher(
    variance: float, cost: float, taken: int
) -> None:
    school, weights = School(variance, cost), Weights.load()
    teacher = RunTimeTeacher(weights)
    teacher._school = school  # type: ignore[assignment]
    for seen in micro_batches(FEWEST):
        teacher.hear(seen, BLOCKS, [TaskTime(0, 100, 10, 1.0), TaskTime(1, 300, 20, 2.5)])
    teacher.wait()
    assert len(teacher.lessons) == 1
    assert teacher.taken == taken
    assert teacher.weights is (school.learned if taken else weights)


def test_a_lesson_that_fails_leaves_the_weights(caplog: pytest.LogCaptureFixture) -> None:
    weights = Weights.load()
    teacher = RunTimeTeacher(weights)
    for seen in micro_batches(FEWEST):
        teacher.hear(seen, BLOCKS, [])  # no times to fit
        teacher.wait()
    assert teacher.weights is weights
    assert "nothing is learned" in caplog.text
