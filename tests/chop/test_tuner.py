from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments.sliding.partition import ByBatch
from experiments.sliding.tasks import sustained
from skewless.chop import BatchModel, Costs, Tuner, Windows, choose
from skewless.chop.tuner import first_batch
from skewless.core.errors import SkewlessError

MIXES = {
    "rows": Costs(update=1.77e-6, open_close=0.0, other=23.2e-6),
    "updates": Costs(update=5e-6, open_close=5e-6, other=2e-6),
    "windows": Costs(update=0.2e-6, open_close=400e-6, other=5e-6),
}
EVERY_MIX = pytest.mark.parametrize("costs", MIXES.values(), ids=MIXES)
SIZE, SLIDE, WORKERS, LATENCY, PERIOD, HEADROOM = 100, 1, 4, 0.05, 10.0, 0.1
SWEEP = [1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 181, 256, 362, 512]


def swept(costs: Costs) -> dict[int, float]:
    """The rate that each batch size sustains in the simulated cluster."""
    batches = {batch: ByBatch(SIZE, SLIDE, batch, rows=True) for batch in SWEEP}
    return {batch: sustained(by, costs, WORKERS, LATENCY, HEADROOM) for batch, by in batches.items()}


@EVERY_MIX
@pytest.mark.parametrize("pressure", [0.8, 0.95, 1.5, 4.0])
def test_the_choice_sustains_nearly_what_the_best_size_does(costs: Costs, pressure: float) -> None:
    best = max(swept(costs).values())
    model = BatchModel(SIZE, SLIDE, pressure * best, WORKERS, costs, HEADROOM)
    choice = choose(model, LATENCY, PERIOD)
    chosen = sustained(ByBatch(SIZE, SLIDE, choice.batch, rows=True), costs, WORKERS, LATENCY, HEADROOM)
    assert chosen >= 0.85 * best
    assert choice.kept == (pressure < 1)


@EVERY_MIX
def test_a_tuner_that_measures_its_costs_ends_near_the_best_size(costs: Costs) -> None:
    best = max(swept(costs).values())
    tuner = Tuner(SIZE, SLIDE, WORKERS, LATENCY, period=1.0, headroom=HEADROOM)
    noise = np.random.default_rng(3)
    rate = 0.9 * best
    for second in range(20):
        batch = tuner.tune(second, second * rate)
        for _ in range(10):
            rows, updates = SIZE + (batch - 1) * SLIDE, SIZE * batch
            tuner.add(updates, batch, rows, costs.of(updates, batch, rows) * np.exp(0.03 * noise.standard_normal()))
    found = sustained(ByBatch(SIZE, SLIDE, tuner.batch, rows=True), costs, WORKERS, LATENCY, HEADROOM)
    assert found >= 0.85 * best


def test_no_size_does_better_by_more_than_a_little_within_the_bound() -> None:
    model = BatchModel(SIZE, SLIDE, 2000.0, WORKERS, MIXES["rows"], HEADROOM)
    sizes = np.arange(1, 1001)
    kept = model.latency(sizes, PERIOD) <= LATENCY
    choice = choose(model, LATENCY, PERIOD)
    assert choice.kept
    assert kept[choice.batch - 1]
    assert model.throughput(choice.batch) >= 0.98 * model.throughput(sizes[kept]).max()


def test_without_a_solution_the_backlog_grows_least() -> None:
    model = BatchModel(SIZE, SLIDE, 1e6, WORKERS, MIXES["rows"], HEADROOM)
    choice = choose(model, LATENCY, PERIOD)
    sizes = np.arange(1, 1001)
    possible = sizes[model.waiting(sizes) + model.running(sizes) <= LATENCY]
    assert not choice.kept
    assert model.excess(choice.batch) == model.excess(possible).min()


def test_where_even_an_idle_worker_is_too_slow_the_bound_is_exceeded_by_least() -> None:
    model = BatchModel(SIZE, SLIDE, 100.0, WORKERS, MIXES["windows"], HEADROOM)
    assert choose(model, 1e-6, PERIOD).batch == 1


def test_where_the_backlog_makes_small_batches_late_the_least_late_size_is_a_larger_one() -> None:
    model, sizes = BatchModel(SIZE, SLIDE, 20_000.0, WORKERS, MIXES["rows"], HEADROOM), np.arange(1, 1001)
    choice = choose(model, 1e-6, PERIOD)
    assert choice.batch == sizes[model.latency(sizes, PERIOD).argmin()] > 1
    assert not choice.kept


def test_a_higher_bound_never_chooses_less_throughput() -> None:
    model = BatchModel(SIZE, SLIDE, 3000.0, WORKERS, MIXES["rows"], HEADROOM)
    found = [model.throughput(choose(model, bound, PERIOD).batch) for bound in (0.01, 0.03, 0.1, 0.3, 1.0)]
    assert all(after >= 0.98 * before for before, after in pairwise(found))


def test_the_size_changes_only_once_a_period() -> None:
    tuner = Tuner(100, 1, 4, 0.5, period=10.0)
    assert tuner.tune(0.0, 0) == 1
    assert tuner.tune(9.9, 1000) == 1
    assert tuner.tune(10.0, 1000) == 2  # nothing measured yet: try another size
    assert tuner.tune(15.0, 2000) == 2
    assert tuner.tune(20.0, 1000) == 2  # nothing arrived: nothing to tune for


def test_as_long_as_nothing_is_measured_sizes_stay_small() -> None:
    assert [Tuner(100, 1, 4, 0.5, most=1, period=1.0).tune(float(t), t) for t in range(3)] == [1, 1, 1]
    tuner = Tuner(100, 1, 4, 0.5, period=1.0)
    assert [tuner.tune(float(t), t) for t in range(5)] == [1, 2, 1, 2, 1]


def test_sizes_that_look_alike_are_passed_over_until_costs_are_known() -> None:
    truth, (size, slide, workers) = Costs(1e-6, 0, 20e-6), (100, 1, 4)
    tuner = Tuner(size, slide, workers, latency=1.0, period=1.0, once=True)
    tried = []
    for second in range(6):
        batch = tuner.tune(float(second), 1000 * second)
        tried.append(batch)
        rows = min(size + batch - 1, workers * batch)  # small batches need all rows, a share of the rows for each
        tuner.add(size * batch, batch, rows, truth.of(size * batch, batch, rows))
    assert tried[:2] == [1, 68]  # with 33 and fewer, every worker has every row
    assert tuner.estimator.resolved
    assert tuner.batch == choose(BatchModel(100, 1, 1000, 4, truth, once=True), 1.0, 1.0).batch > 200


def test_a_single_worker_has_batches_of_one() -> None:
    assert choose(BatchModel(100, 1, 1000, 1, MIXES["rows"], once=True), 1.0, 10.0).batch == 1


def test_tumbling_windows_stay_single() -> None:
    tuner = Tuner(100, 100, 4, 0.5, period=1.0)
    for second in range(10):
        assert tuner.tune(float(second), 1000 * second) == 1
        tuner.add(100, 1, 100, 1e-3)


def test_a_size_that_was_kept_for_long_is_kept_on() -> None:
    costs = MIXES["rows"]
    tuner = Tuner(SIZE, SLIDE, WORKERS, LATENCY, period=1.0)
    sizes = []
    for second in range(3000):
        batch = tuner.tune(second, second * 5000)
        sizes.append(batch)
        tuner.add(SIZE * batch, batch, SIZE + batch - 1, costs.of(SIZE * batch, batch, SIZE + batch - 1))
    assert len(set(sizes[2:])) == 1


def test_windows_of_time_hold_the_rows_that_arrive_in_them() -> None:
    by_time, by_rows = (
        Tuner(60_000_000, 1_000_000, 4, 5.0, unit=1e-6, period=1.0),
        Tuner(60_000, 1000, 4, 5.0, period=1.0),
    )
    for tuner in (by_time, by_rows):
        tuner.tune(0.0, 0)
        tuner.tune(10.0, 10_000)
    assert by_time.model is not None
    assert by_rows.model is not None
    assert by_time.model.size == pytest.approx(by_rows.model.size)
    assert by_time.model == replace(by_rows.model, size=by_time.model.size, slide=by_time.model.slide)


def tuned_once(**given: object) -> BatchModel:
    """The model of the first choice."""
    tuner = Tuner(**{"size": 100, "slide": 10, "workers": 4, "latency": 1.0, "period": 1.0} | given)
    tuner.tune(0.0, 0)
    tuner.tune(1.0, 5_000)
    assert tuner.model is not None
    return tuner.model


def test_a_tuner_goes_by_the_rows_in_a_unit_of_time_where_it_is_told_them() -> None:
    tuner = Tuner(60_000_000, 1_000_000, 4, 5.0, unit=1e-6, period=1.0)
    tuner.tune(0.0, 0)
    tuner.tune(1.0, 5_000, density=0.002)  # the clock says 0.005 rows in a microsecond
    assert tuner.model is not None
    assert (tuner.model.size, tuner.model.slide) == pytest.approx((120_000, 2_000))
    assert tuner.model.rate == 5_000


@pytest.mark.parametrize("once", [False, True])
def test_a_tuner_expects_copies_as_it_was_told(once: bool) -> None:
    assert tuned_once(once=once).once is once
    model = tuned_once(workers=3, headroom=0.25)
    assert (model.size, model.slide, model.workers, model.headroom) == (100, 10, 3, 0.25)


def test_how_many_windows_end_together_is_the_median_of_the_newest_micro_batches() -> None:
    tuner = Tuner(100, 1, 2, 1.0)
    for windows in (400, 410, 3):  # the last one came after a gap
        tuner.ended(windows, [1.0, 0.0])
    assert tuner.together == 400
    for _ in range(5):
        tuner.ended(20, [1.0, 0.0])
    assert tuner.together == 20
    tuner.ended(0, [1.0, 0.0])  # nothing ended
    assert tuner.together == 20


def test_where_turns_start_is_what_the_newest_micro_batches_say_together() -> None:
    tuner = Tuner(100, 1, 2, 1.0)
    tuner.ended(10, [5.0, 0.0])
    tuner.ended(10, [0.0, 3.0])
    assert tuner.starts == (5.0, 3.0)
    for _ in range(8):
        tuner.ended(10, [0.0, 1.0])
    assert tuner.starts == (0.0, 11.0)  # the first of ten is forgotten
    tuner.ended(10, [0.0, 0.0])  # no work
    assert tuner.starts == (0.0, 11.0)


def test_the_first_batch_of_windows_of_rows_waits_for_a_second_and_of_time_for_a_window() -> None:
    rows = Windows(100, 1, rows=True)
    assert first_batch(rows, 16) == first_batch(rows, 16, latency=1.0) > first_batch(rows, 16, latency=0.001)
    times = Windows(60_000_000, 1_000_000)
    assert first_batch(times, 16) == first_batch(times, 16, latency=60.0) > first_batch(times, 16, latency=1.0)


@pytest.mark.parametrize("latency", [0, -1.0, np.nan])
def test_a_first_batch_that_may_not_wait_is_refused(latency: float) -> None:
    with pytest.raises(SkewlessError, match="give seconds above 0"):
        first_batch(Windows(100, 1, rows=True), 4, latency)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers is 0; give a whole number from 1"),
        ({"workers": 2.5}, "workers is 2.5; give a whole number from 1"),
        ({"most": 0}, "most is 0; give a whole number from 1"),
        ({"latency": -1}, "latency -1 and period 1.0; give seconds above 0"),
        ({"latency": np.nan}, "latency nan and period 1.0; give seconds above 0"),
        ({"period": 0}, "latency 1.0 and period 0; give seconds above 0"),
        ({"period": np.nan}, "latency 1.0 and period nan; give seconds above 0"),
        ({"headroom": 1.0}, "headroom is 1.0; give a share of a worker's time from 0 to below 1"),
        ({"headroom": np.nan}, "headroom is nan; give a share of a worker's time from 0 to below 1"),
    ],
)
def test_a_tuner_that_could_choose_nothing_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        Tuner(**{"size": 100, "slide": 10, "workers": 4, "latency": 1.0, "period": 1.0} | given)


def test_what_cannot_be_tuned_is_refused() -> None:
    model = BatchModel(SIZE, SLIDE, 1e6, WORKERS, MIXES["rows"])
    with pytest.raises(SkewlessError, match="seconds above 0"):
        choose(model, 0.0, 1.0)
    with pytest.raises(SkewlessError, match="at least 1 window, not 0"):
        choose(model, 1.0, 1.0, most=0)
    with pytest.raises(SkewlessError, match="slide from 1 to the size"):
        Tuner(1, 2, 4, 0.5)
    with pytest.raises(SkewlessError, match="a unit of 0"):
        Tuner(2, 1, 4, 0.5, unit=0)
