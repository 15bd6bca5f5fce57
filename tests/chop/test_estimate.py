from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import BatchModel, CostEstimator, Costs
from skewless.core.errors import SkewlessError

NUMBERS = st.floats(0, 1e-4)


def feed(estimator: CostEstimator, truth: Costs, size: int, batches: list[int], noise: float = 0.0) -> None:
    draw = np.random.default_rng(1)
    for batch in batches:
        rows, updates = size + batch - 1, batch * size
        seconds = truth.of(updates, batch, rows) * np.exp(noise * draw.standard_normal())
        estimator.add(updates, batch, rows, seconds)


@given(NUMBERS, NUMBERS, st.floats(1e-7, 1e-4))
def test_costs_are_found_where_windows_differ_in_size(update: float, open_close: float, other: float) -> None:
    truth = Costs(update, open_close, other)
    estimator = CostEstimator()
    for size in (20, 50, 100):
        feed(estimator, truth, size, [1, 3, 10, 40])
    found = estimator.costs
    for name in ("update", "open_close", "other"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=1e-2, abs=3e-7)
    assert estimator.resolved


@given(NUMBERS, NUMBERS, st.floats(1e-7, 1e-4))
def test_with_two_batch_sizes_the_cost_of_all_is_known(update: float, open_close: float, other: float) -> None:
    truth = Costs(update, open_close, other)
    estimator = CostEstimator()
    feed(estimator, truth, 100, [1, 2])
    sizes = np.arange(1, 500)
    found, expected = (BatchModel(100, 1, 1e4, 4, costs).cost(sizes) for costs in (estimator.costs, truth))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_batches_of_one_size_leave_the_others_open() -> None:
    estimator = CostEstimator()
    truth = Costs(2e-6, 1e-5, 2e-5)
    assert not estimator.resolved
    feed(estimator, truth, 100, [4] * 20)
    assert not estimator.resolved
    found = estimator.costs.of(400, 4, 103)
    assert found == pytest.approx(truth.of(400, 4, 103), rel=1e-6)
    feed(estimator, truth, 100, [8])
    assert estimator.resolved


def test_no_cost_is_below_zero_however_noisy_the_times() -> None:
    estimator = CostEstimator()
    truth = Costs(0.0, 0.0, 2e-5)
    feed(estimator, truth, 100, [1, 2, 5, 10, 20] * 20, noise=0.3)
    found = estimator.costs
    assert min(found.update, found.open_close, found.other) >= 0
    assert found.other == pytest.approx(2e-5, rel=0.15)


def test_old_times_fade() -> None:
    before, after = Costs(1e-6, 1e-5, 1e-5), Costs(5e-6, 5e-5, 5e-5)
    estimator = CostEstimator(memory=0.9)
    feed(estimator, before, 100, [1, 5, 20] * 30)
    feed(estimator, after, 100, [1, 5, 20] * 20)
    assert estimator.costs.of(500, 5, 104) == pytest.approx(after.of(500, 5, 104), rel=0.1)
    feed(estimator, before, 100, [5] * 100)
    assert estimator.costs.of(500, 5, 104) == pytest.approx(before.of(500, 5, 104), rel=0.1)


def test_what_other_sizes_cost_is_not_forgotten() -> None:
    truth = Costs(1e-6, 1e-5, 1e-5)
    estimator = CostEstimator(memory=0.9)
    feed(estimator, truth, 100, [1, 2])
    feed(estimator, truth, 100, [50] * 1000)
    assert estimator.resolved
    assert estimator.costs.of(100, 1, 100) == pytest.approx(truth.of(100, 1, 100), rel=1e-2)


def test_nothing_is_known_before_the_first_batch() -> None:
    estimator = CostEstimator()
    estimator.add(0, 0, 0, 0.5)
    assert estimator.costs == Costs(0, 0, 0)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SkewlessError, match="memory is 2"):
        CostEstimator(2)
    with pytest.raises(SkewlessError, match="at least 0"):
        CostEstimator().add(-1, 0, 1, 1)
