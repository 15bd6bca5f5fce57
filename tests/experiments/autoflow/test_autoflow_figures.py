"""AutoFlow's figures: the workloads have the shares they say, and what is measured is found in runs."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments.autoflow import figure_5, reducers
from experiments.autoflow import trace as trace_of
from experiments.autoflow.setting import FIXED, SPIKES, WANDERING, Case, first, rate, stream
from experiments.autoflow.trace import Trace, in_batches, of_batches, simulated, spread
from experiments.picture import LARGEST, save
from skewless.simulate.dataflow import Flow, Network, flow
from skewless.workload import HotSpot


def shares(case: Case, start: float, end: float) -> np.ndarray:
    rows = stream(case)
    mine = rows.slot[(rows.at >= start) & (rows.at < end)]
    loads = np.bincount(first(case.workers).tail[mine], minlength=case.workers)
    return loads / loads.sum()


def short(case: Case, seconds: float) -> Case:
    return replace(case, seconds=seconds)


@pytest.mark.parametrize(("number", "share"), [(0, 0.5), (1, 0.8), (2, 0.6), (3, 0.8)])
def test_hot_reducers_have_the_share_of_the_paper_with_what_they_have_anyway(number, share) -> None:
    case = short(FIXED[number], 36.0)
    assert shares(case, 0, 30) == pytest.approx([1 / case.workers] * case.workers, abs=0.04)
    assert shares(case, 30, 36)[list(case.hot)].sum() == pytest.approx(share, abs=0.03)
    assert len(stream(case)) == pytest.approx(36 * rate(case.workers), rel=0.01)


def test_a_spike_comes_and_goes_and_a_hot_spot_wanders() -> None:
    spike = short(SPIKES[1], 24.0)
    assert shares(spike, 0, 10)[1] == pytest.approx(1 / 3, abs=0.04)
    assert shares(spike, 10, 20)[1] == pytest.approx(0.8, abs=0.03)
    assert shares(spike, 20, 24)[1] < 0.5
    turns = WANDERING[1].spots
    assert [spot.workers[0] for spot in turns] == [0, 1, 2, 0]
    assert all(one.end == other.start for one, other in pairwise(turns))


def test_without_moving_latency_rises_and_with_autoflow_it_does_not() -> None:
    case = replace(short(FIXED[1], 16.0), spots=(HotSpot(0.8, (1,)),))
    off = simulated(reducers.run_tuples(case, "off", 1e-3), case, 1.0)
    on = simulated(reducers.run_tuples(replace(case, window_length=1), "autoflow", 1e-3), case, 1.0)
    assert off.rising(1, parts=3) > 0.3
    assert off.spread > 0.8
    assert off.settled() is None
    assert off.until_no_rise((1,)) == np.inf
    assert on.peak < off.peak / 2
    assert on.spread < 0.25
    assert on.kept > 0


def trace(latency: list[float], rows: list[list[float]], changed: list[float]) -> Trace:
    time = np.arange(1.0, len(latency) + 1)
    points = (time, np.array(latency))
    at = np.array(changed)
    return Trace(float(len(latency)), (points, points), (points, points), time, np.array(rows), at, at)


def test_the_periods_until_latency_stops_rising_are_counted_from_the_move_that_levels() -> None:
    latency = [1.0, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2, 1, 1]
    rows = [[90.0, 10.0]] * 5 + [[50.0, 50.0]] * 11
    found = trace(latency, rows, changed=[2.0, 5.0])
    assert found.settled() == 1
    # Over five periods the line through the points from the sixth on, 6 7 8 7 6, is level.
    assert found.until_no_rise((0,)) == 1
    assert found.rising(0, parts=2) < 0
    never = trace(latency, [[90.0, 10.0]] * 16, changed=[2.0])
    assert never.settled() is None
    assert never.until_no_rise((0,)) == np.inf


def test_the_spike_of_a_move_is_compared_with_the_latency_just_before_it() -> None:
    latency = [1.0, 2, 2, 3, 6, 9, 4, 4, 4, 4, 4, 4, 4, 4]
    found = trace(latency, [[50.0, 50.0]] * 14, changed=[4.0, 12.0])
    assert found.over_before((0,), since=3.5) == 3.0  # 9 s over 3 s
    assert found.over_before((0,), since=9.0) == 1.0
    assert found.over_before((0,), since=13.0) == np.inf


def test_the_fewest_micro_batches_on_spark_are_counted() -> None:
    few, many = trace([1.0] * 25, [[1.0, 1.0]] * 25, changed=[]), trace([1.0] * 31, [[1.0, 1.0]] * 31, changed=[])
    runs = [reducers.Runs(case, {}, {}, {"autoflow": found}) for case, found in zip(FIXED, (many, few), strict=False)]
    (check,) = reducers.enough(runs)
    assert (check.value, check.holds) == (25, False)
    assert check.why.startswith("5gh was measured for 25 s")
    assert reducers.enough(runs[:1])[0].holds
    assert reducers.enough([reducers.Runs(FIXED[0], {}, {}, {})]) == []


def test_only_what_comes_after_a_hot_spot_has_begun_counts() -> None:
    latency = [5.0, 4, 3, 1, 2, 3, 4, 5, 6, 6]
    found = trace(latency, [[50.0, 50.0]] * 10, changed=[1.0, 6.0])
    assert found.settled() == 0
    assert found.settled(since=4.0) == 1
    assert found.settled(since=7.0) is None
    assert found.rising(0, parts=1) == pytest.approx(0.261, abs=0.001)
    # The stamps are -4, -2, 0, 3, 3, 3, 3, 3, 3, 4: what is done at 3 was stamped before the hot spot began.
    assert found.rising(0, parts=1, since=3.0) == pytest.approx(0.893, abs=0.001)


def test_a_micro_batch_of_rows_from_before_the_hot_spot_does_not_count_when_latency_has_to_rise() -> None:
    ends = [31.0, 37.0, 48.0, 69.0, 108.0]
    stamps = [[26.0, 30.9], [29.9, 36.0], [30.0, 36.9], [37.0, 47.0], [48.0, 68.0]]
    batches = [
        {"began": end - 5, "commit": end, "force": 0, "announced": False, "rows": [9], "at": [at]}
        for end, at in zip(ends, stamps, strict=True)
    ]
    found = of_batches(batches, Case("a b", 1, (HotSpot(0.8, (0,), 30.0),), 110.0, 1), np.zeros(0))
    assert found.by_moment(0, since=30.0)[0].tolist() == [48.0, 69.0, 108.0]
    # Three moments are too few for two parts: one of them would have no slope.
    assert found.rising(0, parts=2, since=30.0) == found.rising(0, parts=1, since=30.0) > 0.3
    assert np.isnan(found.rising(0, parts=2, since=40.0))


def test_a_run_on_spark_counts_without_even_but_not_without_moving() -> None:
    case, one = FIXED[0], trace([1.0, 2.0], [[1.0, 1.0]] * 2, changed=[])
    whole = {"off": one, "autoflow": one}
    assert "Spark" in reducers.kinds(reducers.Runs(case, whole, whole, whole))
    assert "Spark" not in reducers.kinds(reducers.Runs(case, whole, whole, {}))
    found = reducers.peaks([reducers.Runs(short(case, 2.0), whole, whole, whole)]).rows
    assert found[-1][2:] == (2.0, 2.0, 2.0, "not measured")


def test_reasons_are_of_the_rows_of_their_scale_and_on_spark_of_its_own() -> None:
    assert reducers.work_of(reducers.TUPLES, "full") == reducers.work_of(reducers.BATCHES, "full") == 2.5e-4
    assert reducers.work_of(reducers.SPARK, "full") == reducers.work_of(reducers.BATCHES, "small") == 1e-3
    case, none = short(SPIKES[1], 16.0), {}
    runs = reducers.Runs(case, none, none, none)
    said = {scale: reducers.shorter(runs, reducers.BATCHES, scale) for scale in ("small", "full")}
    assert said["small"] != said["full"]
    assert reducers.shorter(runs, reducers.SPARK, "full") == said["small"]


def test_the_longest_latencies_are_of_the_time_that_all_runs_have() -> None:
    off, on = trace([1.0, 2.0], [[1.0, 1.0]] * 2, changed=[]), trace([1.0, 1.5, 9.0], [[1.0, 1.0]] * 3, changed=[])
    whole = {"off": off, "autoflow": on}
    # The row that takes 9 seconds and is done at 3 came before all rows that are looked at, and has waited for 8 at 2.
    runs = reducers.Runs(short(FIXED[0], 2.0), whole, whole, {})
    assert reducers.longest(runs, reducers.TUPLES) == {"off": 2.0, "autoflow": 8.0}
    assert reducers.peaks([runs]).rows[0][2:] == (2.0, 2.0, 8.0, "not measured")


def test_what_still_waits_counts_with_what_it_has_waited() -> None:
    """A micro-batch from 2 s on runs until 9 s: with what is done alone it would seem that no row takes over 1 s."""
    done = np.repeat([2.0, 9.0], [400, 400])
    at = np.concatenate([np.linspace(1.0, 1.9, 400), np.linspace(2.0, 8.0, 400)])
    found = Flow(at, done, np.zeros(800, np.int64), np.zeros(800), (), ({},))
    ended = in_batches(found, Case("a b", 1, (), 8.0, 1))
    assert ended.seconds == 2.0
    assert ended.waiting.tolist() == pytest.approx(at[499::100].tolist())
    assert ended.peak == pytest.approx(8.0 - at[499])
    assert ended.peak_within(0.0, 5.0) == pytest.approx(5.0 - at[499])
    later = in_batches(found, Case("a b", 1, (), 10.0, 1))
    assert later.peak_within(0.0, 5.0) == pytest.approx(5.0 - at[499])
    assert later.peak == pytest.approx(9.0 - at[499])


def test_on_spark_the_sampled_rows_that_no_micro_batch_took_still_wait() -> None:
    case = Case("a b", 1, (), 8.0, 1)
    batches = [{"began": 0.0, "commit": 3.0, "force": 0, "announced": False, "rows": [300], "at": [[0.5, 1.5, 2.0]]}]
    found = of_batches(batches, case, np.array([0.501, 1.502, 2.0, 2.5, 6.0]))
    assert found.waiting.tolist() == [2.5, 6.0]
    assert found.peak == found.peak_within(0.0, 8.0) == 5.5
    assert found.peak_within(0.0, 3.5) == 2.5


@pytest.mark.parametrize("case", [*FIXED, *SPIKES, *WANDERING], ids=lambda case: case.off)
def test_the_rows_that_were_sampled_on_spark_are_those_of_the_workload(case: Case) -> None:
    came = trace_of._sampled(case)
    for batches in trace_of.measured()["runs"][case.name].values():
        taken = np.sort([at for batch in batches for stamps in batch["at"] for at in stamps])[: len(came)]
        assert taken == pytest.approx(came[: len(taken)], abs=0.006)


def test_each_placer_has_its_latency_and_its_throughput_drawn() -> None:
    case = FIXED[0]
    flat = trace([1.0, 2.0], [[1.0, 1.0]] * 2, changed=[])
    paced = {
        name: replace(flat, throughput=((np.array([1.0, 2.0]), np.array([rate, rate])),) * 2)
        for name, rate in (("off", 100.0), ("autoflow", 200.0), ("even", 300.0))
    }
    figure = Figure(layout="constrained")
    spark = {name: paced[name] for name in ("off", "autoflow")}
    reducers.draw(figure, [reducers.Runs(case, paced, paced, spark)])
    grid = np.array(figure.axes).reshape(3, 6)
    assert [axes.get_title() for axes in grid[0]] == [
        *("off: latency, s", "autoflow: latency, s", "even: latency, s"),
        *("off: rows/s", "autoflow: rows/s", "even: rows/s"),
    ]
    assert [axes.lines[0].get_ydata().tolist() for axes in grid[0][3:]] == [[100.0] * 2, [200.0] * 2, [300.0] * 2]
    # The seconds of a column are written once, below it, so that all of its panels have the same.
    longer = {**paced, "autoflow": replace(paced["autoflow"], seconds=9.0)}
    again = Figure(layout="constrained")
    reducers.draw(again, [reducers.Runs(case, longer, paced, {})])
    assert [axes.get_xlim()[1] for axes in again.axes] == [2.0, 9.0, 2.0] * 4
    assert [axes.axison for axes in grid[2]] == [True, True, False, True, True, False]  # `even` was not measured


def test_a_picture_of_all_runs_is_small_enough_to_be_committed(tmp_path: Path) -> None:
    rng, time = np.random.default_rng(1), np.linspace(1.0, 105.0, 200)

    def one(case: Case) -> reducers.Runs:
        points = tuple((time, rng.random(200)) for _ in range(case.workers))
        still = Trace(105.0, points, points, time, rng.random((200, case.workers)), time[:0], time[:0])
        few = {"off": still, "autoflow": replace(still, moved=time[::20]), "even": replace(still, moved=time[::10])}
        return reducers.Runs(case, {**few, "even": replace(still, moved=time)}, few, few)

    save(lambda figure: reducers.draw(figure, [one(case) for case in FIXED]), tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_size <= 155_000 < LARGEST


def test_a_short_peak_is_drawn_as_high_as_it_is() -> None:
    time = np.linspace(0.1, 20.0, 200)
    low, peak = np.full(200, 0.1), np.where(np.arange(200) == 77, 5.0, 0.1)
    one = replace(trace([1.0], [[1.0, 1.0]], changed=[]), seconds=20.0, latency=((time, low), (time, peak)))
    both = {"off": one, "autoflow": one}
    figure = Figure(layout="constrained")
    reducers.draw(figure, [reducers.Runs(short(FIXED[0], 20.0), both, both, {})])
    *means, highest = figure.axes[1].lines
    assert max(line.get_ydata().max() for line in means) < 1.0
    assert highest.get_ydata().max() == 5.0
    assert highest.get_xdata()[highest.get_ydata().argmax()] == pytest.approx(7.8, abs=0.28)


def test_throughput_is_compared_over_the_last_third() -> None:
    time = np.array([1.0, 2.0, 5.0, 6.0])
    found = replace(
        trace([1.0] * 6, [[1.0, 1.0]] * 6, changed=[]),
        throughput=((time, np.array([9.0, 9.0, 20.0, 40.0])), (time, np.array([50.0, 50.0, 10.0, 30.0]))),
    )
    assert found.rate(0) == 25.0  # 20 rows a second for three seconds, then 40 for one
    assert found.over_others((0,)) == pytest.approx(25.0 / 15.0)


def test_why_nothing_settles_is_what_the_run_shows() -> None:
    case = replace(FIXED[0], spots=(HotSpot(0.5, (1,), 4.0),))
    skewed, level = [[90.0, 10.0]], [[50.0, 50.0]]
    reason = {
        "": trace([1.0] * 12, skewed * 6 + level * 6, changed=[6.0]),
        "No placement came while the hot spot lasted. ": trace([1.0] * 12, skewed * 12, changed=[2.0]),
        "The run ended before a placement could be judged. ": trace([1.0] * 12, skewed * 12, changed=[11.0]),
        "No placement brought the loads within the factor before the run ended. ": trace(
            [1.0] * 12, skewed * 12, changed=[6.0]
        ),
    }
    assert {why: figure_5._never(found, case) for why, found in reason.items()} == {why: why for why in reason}


@pytest.mark.long
@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.on)
def test_a_limit_of_the_source_and_short_micro_batches_isolate(case: Case) -> None:
    limited, free, cheap = figure_5._isolating(case, "autoflow", 1e-3).values()
    for found in (limited, cheap):
        assert found.until_no_rise(case.hot, case.start) <= 5
        assert found.spread <= 0.2
    assert limited.trend(case.hot) <= figure_5.LEVEL
    assert cheap.trend(case.hot) <= 4 * figure_5.LEVEL  # of a latency of a second, in which noise is much
    assert free.peak >= limited.peak


def test_how_fast_a_backlog_goes_down_is_told_from_micro_batches_that_are_as_large_as_the_source_lets_them_be() -> None:
    case = replace(FIXED[0], workers=2, most=2.0)
    whole = 2.0 * rate(2)
    rows = [[whole / 2, whole / 2]] * 9 + [[whole / 4, whole / 4]] * 3
    ends = np.cumsum([1.5] * 9 + [1.0] * 3)
    found = replace(trace([1.0] * 12, rows, changed=[]), ends=ends, seconds=float(ends[-1]))
    said = figure_5.room(case, found)
    assert said.startswith("In the last third 2 micro-batches are as large as")
    assert said.endswith("the rows of 2.0 s and take 1.5 s, so that a backlog goes down by 25% of the time. ")
    assert figure_5.room(case, replace(found, ends=2 * ends, seconds=33.0)).endswith("a backlog does not go down. ")
    assert figure_5.room(replace(case, most=None), found) == ""


def test_loads_are_apart_by_the_difference_over_the_largest() -> None:
    assert spread(np.array([[100.0, 50.0]])) == 0.5
    assert np.isnan(spread(np.zeros((0, 2))))


def test_micro_batches_of_spark_become_a_trace() -> None:
    batches = [
        {"began": 0.0, "commit": 2.0, "force": 0, "announced": False, "rows": [900, 100], "at": [[0.5, 1.5], [1.0]]},
        {"began": 2.0, "commit": 5.0, "force": 0, "announced": True, "rows": [900, 100], "at": [[3.0], []]},
        {"began": 5.0, "commit": 6.0, "force": 1, "announced": False, "rows": [500, 500], "at": [[5.0], [5.5]]},
    ]
    found = of_batches(batches, Case("a b", 2, (), 6.0, 1), np.zeros(0))
    assert found.latency[0][1].tolist() == [1.5, 0.5, 2.0, 1.0]
    assert found.changed.tolist() == [5.0]
    assert found.moved.tolist() == [5.0]
    times, rates = found.throughput[0]
    assert times.tolist() == [5.0]  # the first commit by which a thousand rows were done
    assert rates.tolist() == [360.0]
    assert found.peak == 2.0
    assert found.peak_within(5.5, 7.0) == 1.0
    assert np.isnan(found.peak_within(6.5, 7.0))


def test_rows_of_a_simulated_micro_batch_are_done_at_once_and_its_rate_is_that_of_the_time_between_commits() -> None:
    done = np.repeat([2.0, 6.0], [4000, 2000])
    found = Flow(done - 1, done, np.arange(6000) % 2, np.zeros(6000), (), ({}, {}))
    made = in_batches(found, Case("a b", 2, (), 8.0, 1))
    for worker in range(2):
        times, rates = made.throughput[worker]
        assert (times.tolist(), rates.tolist()) == ([2.0, 6.0], [1000.0, 250.0])
    assert made.rows.tolist() == [[2000.0, 2000.0], [1000.0, 1000.0]]


def test_what_is_done_after_the_last_row_came_is_left_out() -> None:
    case = short(FIXED[1], 4.0)
    found = flow(stream(case), first(3).tail.tolist(), 3, Network(1e-3))
    assert found.done.max() > 4.0
    assert max(time.max() for time, _ in simulated(found, case, 1.0).latency) <= 4.0


@pytest.mark.long
@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_figure_is_made(number) -> None:
    outcome = import_module(f"experiments.autoflow.figure_{number}").FIGURE.run("small", lambda _: None)
    essential = [check for check in outcome.checks if check.essential and check.name.find(reducers.TUPLES) >= 0]
    # All that the paper says holds tuple at a time, except by how much more is left of the short spike.
    assert len(essential) >= 3
    assert [check.name for check in essential if not check.holds] == (
        [f"{reducers.TUPLES}: 6d over 6c, over 6b over 6a, smallest of three seeds"] if number == 6 else []
    )
    assert all(check.why for check in outcome.checks if not check.holds)
    figure = Figure(layout="constrained")
    outcome.draw(figure)
    assert len(figure.axes) == 6 * len(outcome.tables[0].rows)
