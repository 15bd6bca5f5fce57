"""The figures of chapters 1, 3, 5 and 6: their streams, what they read off a run, and what was measured on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.prompt import figure_3_5, figure_3_6, figure_5_4, gains, lateness, scheduling
from experiments.prompt.engines import ENGINES, FLINK, SPARK, STORM, between, profile
from experiments.prompt.rivals import LEARNERS, PROMPT, partitioner
from experiments.prompt.scheduling import AHEAD, GROUPS, ONE, Case, expected, fast, measured
from experiments.prompt.setting import Setting
from experiments.prompt.shares import Paired, Rounds, Shares, longer, longest, rounds
from skewless import split
from skewless.elastic import Parallelism
from skewless.simulate import Followed, Scheduling, Source
from skewless.workload import Zipf

FEW = Setting("small", blocks=4, reducers=4, slower=10)
TASKS = Parallelism(4, 4)


def case(cost: float, group: int = 10, technique: str = PROMPT) -> Case:
    return Case(gains.Once(), FEW, technique, 1.0, TASKS, Scheduling(message=cost), group)


def test_gains_are_those_of_the_formula_where_work_is_proportional_to_tuples() -> None:
    for group in (2, 5):
        rates = {name: case(0.5, group).highest(name, 500.0) for name in (ONE, GROUPS, AHEAD)}
        assert rates[GROUPS] / rates[ONE] == pytest.approx(expected(0.5, group), rel=0.05)
        assert rates[AHEAD] / rates[ONE] == pytest.approx(2.0, rel=0.05)
        late = replace(case(0.5, group), lead=0.0)  # without a scheduling window somebody waits for the message
        assert late.highest(AHEAD, 500.0) == pytest.approx(rates[GROUPS], rel=0.02)


def test_a_spike_is_acted_on_after_the_adjustment_window_or_the_group() -> None:
    made = Case(Zipf(0.5, keys=300), FEW, PROMPT, 1.0, TASKS, Scheduling(message=0.2))
    acts = {}
    for name in (ONE, GROUPS, AHEAD):
        rate = figure_3_6._calm(made, name, made.highest(name, 500.0, 0.9))
        found = figure_3_6.spiked(made, name, rate)
        assert found.ratios[: figure_3_6.SPIKE - 1].max() <= 0.9
        assert found.tuples[14] == pytest.approx(2 * found.tuples[13], rel=0.01)
        acts[name] = figure_3_6.first_change(found)
        stays = figure_3_6.spiked(made, name, rate, follows=False)
        assert set(stays.map_tasks.tolist()) == {TASKS.map}
        assert figure_3_6.stable_from(stays) > figure_3_6.SPIKE
    assert acts == {ONE: 16, GROUPS: 21, AHEAD: 17}


def _done(delays: list[float], tasks: list[int]) -> Followed:
    n = len(delays)
    beats = np.arange(1, n + 1)
    ones = np.ones(n, np.int64)
    numbers = np.array(tasks)
    return Followed(
        1.0, 100 * ones, ones, beats * 1.0, beats + np.array(delays), 0.0 * ones, ones * 1.0, numbers, numbers, 1.0
    )


def test_what_is_read_off_a_run() -> None:
    delays = [0.9] * 14 + [1.8, 1.5, 1.2, 0.9, 0.9, 1.1] + [0.9] * 6
    found = _done(delays, [4] * 16 + [8] * 10)
    assert figure_3_6.first_change(found) == 17
    assert figure_3_6.stable_from(found) == 21
    assert found.violations == 4 / 26
    assert found.throughput(2)[:3].tolist() == [100.0, 100.0, 100.0]


def test_the_last_late_micro_batch_and_the_changes_after_a_rise_are_read_off() -> None:
    assert figure_5_4.RISES == 10
    found = _done([2.0] * 9 + [0.5, 1.5, 0.5, 1.5, 0.9], [2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 6])
    assert (figure_5_4.recovered(found), figure_5_4.changes(found)) == (3, 2)
    assert figure_5_4.recovered(_done([2.0] * 10 + [0.5] * 4, [4] * 14)) == 0


def test_a_rate_that_doubles_is_followed_where_each_change_stops_all_tasks() -> None:
    made = Case(Zipf(0.5, keys=300), FEW, PROMPT, 1.0, TASKS, Scheduling(), profile=profile(FLINK, FEW))
    rate = figure_5_4.LOAD * made.highest(ONE, 500.0)
    found = figure_5_4.risen(made, rate)
    assert figure_5_4.changes(found) > 0
    assert found.delays[figure_5_4.RISES :].max() > 2  # it is late after a stop of two seconds
    assert (found.map_tasks[-20:] == found.map_tasks[-1]).all()
    assert found.ratios[-1] <= 0.9
    assert found.delays[-1] <= 1
    untold = figure_5_4.risen(made, rate, figure_5_4.Untold)
    assert figure_5_4.changes(untold) > 2 * figure_5_4.changes(found)  # each stop has it change the numbers again


def test_spikes_are_at_the_same_times_whatever_the_rate() -> None:
    at = np.arange(200) + 0.5
    slow, quick = lateness.spikes(1.0, 1.0, 200, 3)(at), lateness.spikes(10.0, 1.0, 200, 3)(at)
    assert (quick == 10 * slow).all()
    assert set(slow) == {1.0, lateness.TIMES}
    assert (slow[:5] == 1.0).all()
    assert 0.05 < (slow > 1).mean() < 0.5
    assert (lateness.spikes(1.0, 1.0, 200, 4)(at) != slow).any()


def test_late_micro_batches_are_compared_over_all_seeds_with_the_error_of_their_ratio() -> None:
    calm, half, all_late = (_done([1.5] * n + [0.5] * (10 - n), [4] * 10) for n in (0, 5, 10))
    same = lateness.fewer([half, all_late], [half, all_late])
    assert (same.mean, same.error) == (1.0, 0.0)
    found = lateness.fewer([calm, half, all_late], [all_late, all_late, all_late])
    assert found.mean == pytest.approx(0.5)
    assert found.error == pytest.approx(np.std([0.0, 0.5, 1.0], ddof=1) / np.sqrt(3))


def test_every_partitioner_divides_all_tuples_of_a_micro_batch() -> None:
    keys = Zipf(1.0, keys=300, seed=1).take(2000)
    times = np.linspace(0.0, 1.0, len(keys), endpoint=False)
    for name in gains.EVERYONE:
        divides = partitioner(name, FEW)
        for _ in range(2):  # those that learn have learned something for the second
            divided = divides(keys, times, 0.0, 1.0)
            assert divided.sizes.sum() == len(keys), name
            assert len(divided.sizes) == FEW.blocks


def test_the_matrix_has_every_partitioner_of_the_library() -> None:
    thesis = {"two-choices": "PK2", "five-choices": "PK5", "cam": "cAM"}
    assert {thesis.get(name, name) for name in split.NAMES} <= set(gains.EVERYONE)


def test_those_that_learn_know_the_hot_keys_of_the_micro_batch_before() -> None:
    keys = np.random.default_rng(1).permutation(np.repeat(np.arange(101), [4000, *[10] * 100]))
    for name in LEARNERS:
        divides = partitioner(name, FEW)
        sizes = [divides(keys, np.zeros(len(keys)), 0.0, 1.0).sizes for _ in range(3)]
        assert sizes[-1].max() < 0.6 * len(keys), name  # by hash the hot key alone would be 0.8 of them


def test_the_number_of_keys_changes_with_the_tuples() -> None:
    (keys,) = figure_3_5.Changing(((0, 10), (5000, 80))).blocks(10_000, 10_000)
    assert len(np.unique(keys[:5000])) == 10
    assert len(np.unique(keys[5000:])) == 80
    parts = list(figure_3_5.Changing(((0, 10), (5000, 80))).blocks(10_000, 3000))
    assert (np.concatenate(parts) == keys).all()


def test_storm_cannot_change_the_numbers_of_its_tasks_and_the_others_can() -> None:
    assert [profile(name, FEW).rescale is None for name in ENGINES] == [name == STORM for name in ENGINES]


def test_the_line_through_what_was_measured_is_near_all_points() -> None:
    found = measured()
    line = found.cost.message + found.cost.task * found.tasks
    assert (np.abs(line / found.seconds - 1) < 0.35).all()
    assert found.cost.message > 0
    assert len(found.tasks) >= 5


def test_shares_add_up_to_all_of_a_micro_batch() -> None:
    assert {way for way, _ in rounds()} >= {"spark", "hash", "prompt", "partly"}
    for those in rounds().values():
        for each in those.each:
            assert each.scheduling + each.communication + each.execution == pytest.approx(each.total, rel=0.01)
            assert min(each.scheduling, each.communication, each.execution) >= 0


def test_the_longest_with_so_much_overhead_is_between_those_that_were_measured() -> None:
    def once(total: float, overhead: float) -> Rounds:
        return Rounds((Shares("x", 1, total, overhead * total, 0.0, (1 - overhead) * total),))

    assert longest([once(100.0, 0.2)], 0.6) == 0.0
    assert longest([once(100.0, 0.8)], 0.6) == 0.1
    few = once(100.0, 0.5)  # that shorter ones have less does not matter
    assert longest([few, once(200.0, 0.7), once(400.0, 0.5)], 0.6) == pytest.approx(0.3)


def test_ratios_are_of_the_same_round_and_medians_of_the_quantity_itself() -> None:
    ours = Rounds(
        tuple(Shares("x", 1, total, share, 0.0, 1 - share) for total, share in ((1, 0.9), (2, 0.1), (9, 0.5)))
    )
    theirs = Rounds(tuple(Shares("y", 1, total, 0.5, 0.0, 0.5) for total in (2, 1, 9)))
    assert (ours.total, ours.overhead) == (2, 0.5)
    assert Paired.of(ours, theirs, lambda one: one.total) == Paired((0.5, 2.0, 1.0))
    assert Paired.of(ours, theirs, lambda one: one.total).median == 1.0


def test_rounds_on_both_sides_of_one_tell_nothing_apart_and_parts_of_a_difference_add_up() -> None:
    assert "do not tell the two apart" in Paired((1.2, 0.9, 1.3)).told
    assert "do not tell the two apart" in Paired((1.2, 1.0)).told
    assert Paired((0.8, 0.9)).told.endswith("below 1 in all 2 rounds.")
    assert Paired((1.2,)).told.endswith("above 1 in the one round that there is.")
    by_hash = Rounds((Shares("hash", 1, 50.0, 20.0, 10.0, 20.0), Shares("hash", 1, 70.0, 40.0, 10.0, 20.0)))
    planned = Rounds((Shares("partly", 1, 80.0, 10.0, 10.0, 60.0), Shares("partly", 1, 60.0, 30.0, 10.0, 20.0)))
    assert longer(planned, by_hash).startswith("10 ms longer on average of the rounds: -10 ms of scheduling, 0 ms of")
    assert longer(planned, by_hash).endswith("20 ms of execution")


def test_scheduling_alone_is_less_than_the_fixed_cost_of_a_micro_batch() -> None:
    whole, alone = measured().cost, measured("scheduling").cost
    tasks = Parallelism(32, 32)
    assert 0.5 * whole.seconds(tasks) < alone.seconds(tasks) < whole.seconds(tasks)
    assert (0 < alone.message < whole.message, 0 < alone.task < whole.task) == (True, True)
    assert 1 / (1 - whole.seconds(tasks) / gains.fourfold(whole.seconds(tasks))) == pytest.approx(gains.FACTOR)


def test_the_guide_has_both_costs_and_what_they_mean_for_the_gain() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text()
    for what, part in (("all fixed cost, as the simulator has it", "total"), ("scheduling alone", "scheduling")):
        seconds = measured(part).cost.seconds(Parallelism(32, 32))
        gain, interval = 1 / (1 - seconds), gains.fourfold(seconds)
        assert f"| {what} | {seconds * 1e3:.0f} ms | {seconds:.2f} | {gain:.2f} | {interval:.2f} s |" in guide
    whole, alone = measured().cost, measured("scheduling").cost
    assert f"{whole.message * 1e3:.0f} ms for a micro-batch and {whole.task * 1e3:.1f} ms more for each task" in guide
    assert f"{alone.message * 1e3:.1f} ms and {alone.task * 1e3:.2f} ms for each task" in guide


def test_the_features_between_two_engines_go_from_one_to_the_other() -> None:
    cost = Scheduling(message=0.2)
    _, first, paid = between(FEW, cost)[0]
    _, last, unpaid = between(FEW, cost)[-1]
    assert (first, paid) == (profile(SPARK, FEW), cost)
    assert (last, unpaid) == (profile(FLINK, FEW), Scheduling())


def test_only_merging_takes_longer_where_merging_does() -> None:
    made = case(0.0)
    before, after = made.setting.costs, figure_5_4._merging(made, 20.0).setting.costs
    assert after == replace(before, partial=20 * before.partial)


def test_the_fastest_third_counts() -> None:
    batches = [{"total": float(n), "execution": n / 2} for n in (9, 1, 8, 2, 7, 3, 6, 5, 4)]
    assert fast(batches) == {"total": 2.0, "execution": 1.0}
    assert fast(batches[:1]) == {"total": 9.0, "execution": 4.5}
    assert scheduling.FILE.is_file()


def test_the_work_of_a_run_does_not_depend_on_the_scheduler() -> None:
    found = {name: case(0.0).run(name, Source(gains.Once(), 300.0), 5) for name in (ONE, GROUPS, AHEAD)}
    assert found[ONE].ratios.tolist() == found[GROUPS].ratios.tolist() == found[AHEAD].ratios.tolist()


def test_group_ahead_hears_of_micro_batches_as_late_as_workers_report() -> None:
    made = Case(Zipf(0.5, keys=300), FEW, PROMPT, 1.0, TASKS, Scheduling(message=0.2))
    rate = figure_3_6._calm(made, AHEAD, made.highest(AHEAD, 500.0, 0.9))
    acts = [figure_3_6.first_change(figure_3_6.spiked(replace(made, report=each), AHEAD, rate)) for each in (0.0, 2.0)]
    assert acts == [17, 19]


def test_what_makes_group_ahead_later_is_said_by_the_runs_in_which_it_is_taken_away() -> None:
    one, late, less, least = (_done([1.5] * n + [0.5] * (10 - n), [4] * 10) for n in (4, 6, 3, 1))
    ahead = {lateness.ONE: (one,) * 3, lateness.AHEAD: (late,) * 3, lateness.GROUPS: (late,) * 3}
    every = dict.fromkeys(lateness.LOADS, ahead)
    made = lateness.Lateness(
        found=every,
        stay=every,
        soon=dict.fromkeys(lateness.LOADS, (least,) * 3),
        window=dict.fromkeys(lateness.BEYOND, (late,) * 3),
        report=dict.fromkeys(lateness.BEYOND, (less,) * 3),
        floor={**ahead, lateness.AHEAD: (less,) * 3},
        least=Parallelism(3, 2),
        own=ahead,
        more=1.2,
    )
    said = made.reason(lateness.CALM)
    assert "late 1.50 ± 0.00 times as often as one at a time." in said
    assert "0.25 ± 0.00 times as often as one at a time and 0.17 ± 0.00 times as often as with the window" in said
    assert "0.75 ± 0.00 times as often as one at a time and 0.50 ± 0.00 times as often as without that bound" in said
    assert said.endswith("So both count, and how soon tasks are added counts more.")
    assert "both count" not in made.reason(lateness.BEYOND[0])
    shares, ratios = made.tables()
    assert {len(row) for row in shares.rows} == {7}
    of = {row[0]: [each.mean for each in row[1:]] for row in ratios.rows}
    assert of["60% of the highest of one at a time, reports 1 s late"] == [pytest.approx(0.75), pytest.approx(0.5)]
    assert of["45% of its own highest"] == [pytest.approx(1.5), pytest.approx(1.0)]
    assert all(check.bound for check in made.checks())


def test_numbers_of_tasks_follow_or_stay() -> None:
    made = Case(Zipf(0.5, keys=300), FEW, PROMPT, 1.0, TASKS, Scheduling(message=0.05))
    follows, stays = (lateness._run(made, ONE, 50.0, 1, each) for each in (True, False))
    assert set(stays.map_tasks.tolist()) == {4}
    assert follows.map_tasks.min() == 1
    bounded = lateness._run(made, ONE, 50.0, 1, True, Parallelism(3, 2))
    assert (bounded.map_tasks.min(), bounded.reduce_tasks.min()) == (3, 2)
    assert [lateness._mostly((bounded,), side) for side in ("map", "reduce")] == [3, 2]
