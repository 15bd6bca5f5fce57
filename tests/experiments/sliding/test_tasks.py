from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.sliding.partition import ByBatch, ByPane, ByWindow
from experiments.sliding.ring import Ring
from experiments.sliding.tasks import run, run_ring, sustained
from skewless.chop import BatchModel, Costs
from skewless.core.errors import SkewlessError

COSTS = Costs(update=1.77e-6, open_close=20e-6, other=23.2e-6)


@given(st.integers(1, 60), st.integers(1, 8), st.integers(1, 30), st.integers(1, 6))
@settings(max_examples=40)
def test_a_cluster_that_is_never_idle_does_what_the_model_says(
    ratio: int, slide: int, batch: int, workers: int
) -> None:
    size = ratio * slide
    simulated = run(ByBatch(size, slide, batch, rows=True), COSTS, workers, tasks=40 * workers)
    model = BatchModel(size, slide, 1.0, workers, COSTS, headroom=0.0)
    assert simulated.throughput == pytest.approx(float(model.throughput(batch)), rel=1e-9)


def test_below_its_limit_results_are_as_late_as_the_model_says() -> None:
    model = BatchModel(100, 2, 3000.0, 4, COSTS, headroom=0.0)
    simulated = run(ByBatch(100, 2, 10, rows=True), COSTS, 4, rate=3000.0)
    assert simulated.latency.max() == pytest.approx(float(model.latency(10, 10.0)))


def test_above_its_limit_results_get_later_and_later() -> None:
    simulated = run(ByWindow(100, 1, rows=True), COSTS, 4, rate=5000.0)
    assert (np.diff(simulated.done[::4]) > 0).all()
    assert simulated.latency[-1] > 10 * simulated.latency[0]


def test_jitter_is_seeded_and_keeps_the_mean() -> None:
    plain, first, again, other = (
        run(ByWindow(10, 1, rows=True), COSTS, 2, tasks=20_000, jitter=jitter, seed=seed)
        for jitter, seed in ((0.0, 1), (0.5, 1), (0.5, 1), (0.5, 2))
    )
    assert first.done.tolist() == again.done.tolist()
    assert first.done.tolist() != other.done.tolist()
    assert first.busy.sum() == pytest.approx(plain.busy.sum(), rel=0.02)


def test_a_ring_shares_the_work_and_waits_for_the_last_pane() -> None:
    ring = Ring(100, 1, 4)
    simulated = run_ring(ring, COSTS, merge=1e-7, rate=1000.0)
    assert (simulated.latency > 0).all()
    assert simulated.busy.max() < 1.1 * simulated.busy.mean()


def test_a_window_of_a_ring_is_done_after_its_panes() -> None:
    # Two panes a window, two workers in turn: pane 0 is the last of a run before the first.
    costs = Costs(update=0, open_close=1.0, other=0)
    simulated = run_ring(Ring(2, 1, 2), costs, merge=0.5, rate=0.1, rounds=1)
    # Window 0 has all rows at 20 and its last pane at 21; merging two results takes a second.
    assert simulated.done.tolist() == [22.0, 32.0]


def test_a_ring_scales_with_its_workers() -> None:
    one, eight = (run_ring(Ring(100, 1, n), COSTS, merge=1e-7, rounds=40).throughput for n in (1, 8))
    assert 7 < eight / one < 8.1


@pytest.mark.parametrize("batch", [1, 10, 100])
def test_the_sustained_rate_is_that_of_workers_who_just_keep_up(batch: int) -> None:
    batches = ByBatch(100, 1, batch, rows=True)
    rate = sustained(batches, COSTS, 4, latency=0.2)
    assert run(batches, COSTS, 4, rate, 800).latency.max() <= 0.2
    assert run(batches, COSTS, 4, rate * 1.05, 8000).latency.max() > 0.2
    assert sustained(batches, COSTS, 4, latency=0.2, headroom=0.25) == pytest.approx(0.75 * rate)


def test_a_batch_that_takes_longer_than_the_bound_sustains_nothing() -> None:
    batches = ByBatch(100, 1, 100, rows=True)
    assert sustained(batches, COSTS, 4, latency=0.02) == 0
    assert all(run(batches, COSTS, 4, rate).latency.max() > 0.02 for rate in (10.0, 100.0, 1000.0, 10_000.0))


def test_a_run_needs_tasks_and_workers() -> None:
    with pytest.raises(SkewlessError, match="1000 tasks for 0 workers"):
        run(ByWindow(3, 1, rows=True), COSTS, 0)
    with pytest.raises(SkewlessError, match="use run_ring"):
        run(ByPane(3, 1, rows=True), COSTS, 1)
