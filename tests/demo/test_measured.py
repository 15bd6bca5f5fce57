from __future__ import annotations

import pytest

from skewless.demo.measured import Batch, Comparison, Run


def run(*batches: Batch) -> Run:
    return Run("dalton", batches)


def test_the_first_batch_does_not_count_for_the_speed() -> None:
    assert run(Batch(0, 1000, 100.0), Batch(1, 1000, 4.0), Batch(2, 1000, 1.0)).rate == 400


def test_a_batch_that_only_closes_windows_takes_time_too() -> None:
    assert run(Batch(0, 1000, 1.0), Batch(1, 1000, 1.0), Batch(2, 0, 1.0)).rate == 500


def test_imbalance_is_that_of_the_first_and_the_last_batch_with_loads() -> None:
    batches = [Batch(0, 8, 1.0, (6, 2)), Batch(1, 8, 1.0, (8, 0)), Batch(2, 8, 1.0, (4, 4)), Batch(3, 0, 1.0)]
    assert (run(*batches).before, run(*batches).after) == (1.5, 1.0)


def test_a_run_without_loads_has_no_imbalance() -> None:
    own = run(Batch(0, 8, 1.0), Batch(1, 8, 1.0))
    assert (own.before, own.after) == (None, None)
    assert Batch(0, 0, 1.0, (0, 0)).imbalance is None


def test_a_worker_without_rows_counts_for_the_average() -> None:
    assert Batch(0, 8, 1.0, (4, 4, 0, 0)).imbalance == 2.0


def test_the_ratio_is_over_sparks_own() -> None:
    slow, fast = (run(Batch(0, 1, 1.0), Batch(1, 1000, seconds)) for seconds in (5.0, 2.0))
    assert Comparison(slow, fast, identical=True).ratio == pytest.approx(2.5)
