"""How evenly windows that end together fall to workers, against the assignment itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import BatchModel, Costs, Tuner, Windows, choose
from skewless.chop.assignment import BatchAssignment
from skewless.chop.evenness import evenness
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

SIZES = (1, 2, 5, 10, 25, 50, 100, 200, 400)
ROWS_COST = Costs(update=1.77e-6, open_close=0.0, other=23.2e-6)


def loads(batch: int, windows: int, workers: int, weights: FloatArray, hashes: np.ndarray, start: int) -> FloatArray:
    """The work of each worker, for keys of these weights and hashes."""
    assignment = BatchAssignment.of(Windows(10, 1), workers, batch)
    ended = np.arange(start, start + windows)
    owners = assignment.worker_of(np.repeat(hashes, windows), np.tile(ended, len(weights)))
    return np.bincount(owners, np.repeat(weights, windows), workers)


@given(st.integers(1, 40), st.integers(1, 300), st.integers(2, 9), st.integers(1, 6), st.floats(0, 2))
def test_it_is_what_the_assignment_does_wherever_a_micro_batch_begins(
    batch: int, windows: int, workers: int, keys: int, skew: float
) -> None:
    batch *= 8  # so that it is looked at where windows begin
    weights = 1 / np.arange(1, keys + 1) ** skew
    hashes = np.random.default_rng(keys).integers(0, 2**40, keys)
    begins = [batch * workers * eighth // 8 for eighth in range(8)]
    each = [loads(batch, windows, workers, weights, hashes, begin) for begin in begins]
    true = np.mean([load.mean() / load.max() for load in each])
    starts = np.bincount(hashes % workers, weights, workers)
    assert float(evenness(batch, windows, workers, starts.tolist())) == pytest.approx(true)
    if keys == 1:
        assert float(evenness(batch, windows, workers)) == pytest.approx(true)


def test_many_keys_are_even_whatever_the_size_of_batches() -> None:
    assert evenness(SIZES, 40, 4, [5.0] * 4) == pytest.approx(np.ones(len(SIZES)))


def test_windows_that_end_one_by_one_are_even() -> None:
    assert evenness(SIZES, np.inf, 4).tolist() == [1.0] * len(SIZES)
    assert evenness(7, 3, 1).tolist() == 1.0


def test_a_batch_is_no_larger_than_workers_can_share() -> None:
    of = BatchModel(100, 1, 5000, 4, ROWS_COST)
    assert choose(of, latency=1.0, period=10).batch > 300
    one = BatchModel(100, 1, 5000, 4, ROWS_COST, together=400)
    assert choose(one, latency=1.0, period=10).batch == 100
    many = BatchModel(100, 1, 5000, 4, ROWS_COST, together=400, starts=(1.0,) * 4)
    assert choose(many, latency=1.0, period=10).batch > 200


def test_the_tuner_goes_by_what_ended_together() -> None:
    tuner = Tuner(100, 1, workers=4, latency=1.0, period=1)
    for second in range(10):
        batch = tuner.tune(now=second, arrived=1000 * second)
        rows, updates = 100 + batch - 1, 100 * batch
        tuner.add(updates, batch, rows, ROWS_COST.of(updates, batch, rows))
        tuner.ended(0, [1, 0, 0, 0])  # says nothing
        tuner.ended(40, [0, 0, 0, 0])  # nor does this
        tuner.ended(400, [0, 7, 0, 0])
    assert tuner.batch == 100
    for second in range(10, 60):
        tuner.ended(400, [7, 7, 7, 7])
        tuner.tune(now=second, arrived=1000 * second)
    assert tuner.batch > 200


def test_a_gap_in_time_is_one_micro_batch_of_many() -> None:
    tuner = Tuner(100, 1, workers=2, latency=1.0)
    for windows in (40, 1_000_000, 40, 41):
        tuner.ended(windows, [1, 1])
    assert tuner.together == 40.5


def test_what_cannot_end_together_is_refused() -> None:
    with pytest.raises(SkewlessError, match="0 windows of a key end together"):
        BatchModel(100, 1, 1.0, 1, ROWS_COST, together=0)
    for starts in ((1.0,), (1.0, -1.0), (0.0, 0.0)):
        with pytest.raises(SkewlessError, match=r"starts is .* each of 2 workers"):
            BatchModel(100, 1, 1.0, 2, ROWS_COST, starts=starts)
