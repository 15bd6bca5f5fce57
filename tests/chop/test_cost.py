from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import BatchModel, Costs, Windows
from skewless.chop.assignment import BatchAssignment
from skewless.core.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (max(pair), min(pair)))
COSTS = Costs(update=2e-6, open_close=50e-6, other=10e-6)


def counted(size: int, slide: int, batch: int) -> tuple[int, int]:
    """Rows and window updates of a batch, by going through its rows."""
    start, end = Windows(size, slide, rows=True).batches(batch).span(3)
    windows = range(3 * batch, 4 * batch)
    updates = sum(w * slide <= row < w * slide + size for row in range(start, end) for w in windows)
    return end - start, updates


@given(SHAPES, st.integers(1, 12))
def test_updates_are_counted_exactly(shape: tuple[int, int], batch: int) -> None:
    model = BatchModel(*shape, rate=1.0, workers=1, costs=COSTS)
    assert (float(model.rows(batch)), float(model.updates(batch))) == counted(*shape, batch)


def test_cost_and_rate_are_the_papers_equations() -> None:
    w, s, b, d, rate = 100, 4, 7, 3, 5000.0
    model = BatchModel(w, s, rate, d, COSTS, headroom=0.2)
    rows = w + (b - 1) * s
    cost = b * w / rows * 2e-6 + b / rows * 50e-6 + 10e-6
    assert model.cost(b) == pytest.approx(cost)
    assert model.load(b) == pytest.approx(rate / d * rows / (b * s))
    assert model.capacity(b) == pytest.approx(0.8 / cost)
    assert model.excess(b) == pytest.approx(model.load(b) - 0.8 / cost)
    assert model.waiting(b) == pytest.approx(6 * 4 / 5000)
    assert model.running(b) == pytest.approx(rows * cost / 0.8)
    assert model.latency(b, 10.0) == pytest.approx(model.waiting(b) + model.running(b) + model.backlog(b, 10.0))


@given(SHAPES, st.integers(1, 50))
def test_at_its_throughput_a_batch_size_is_just_kept_up_with(shape: tuple[int, int], batch: int) -> None:
    throughput = float(BatchModel(*shape, 1000.0, 4, COSTS).throughput(batch))
    just = BatchModel(*shape, throughput, 4, COSTS)
    assert just.excess(batch) == pytest.approx(0, abs=1e-6 * float(just.load(batch)))
    assert BatchModel(*shape, throughput * 0.9, 4, COSTS).backlog(batch, 10.0) == 0
    # A tenth too much piles up a tenth of the time as work.
    assert BatchModel(*shape, throughput * 1.1, 4, COSTS).backlog(batch, 10.0) == pytest.approx(1.0)


@given(SHAPES)
def test_exactly_counted_a_larger_batch_carries_no_less(shape: tuple[int, int]) -> None:
    throughput = BatchModel(*shape, 1000.0, 4, COSTS).throughput(np.arange(1, 300))
    assert (np.diff(throughput) >= -1e-9 * throughput[1:]).all()


@given(SHAPES, st.integers(1, 30), st.integers(1, 8))
def test_where_a_worker_gets_a_row_once_its_rows_are_those_of_the_assignment(
    shape: tuple[int, int], batch: int, workers: int
) -> None:
    size, slide = shape
    turns = BatchAssignment.of(Windows(size, slide, rows=True), workers, batch)
    times = np.arange(1000 * size, 1000 * size + workers * batch * slide)  # a turn of all workers
    rows, owners = turns.copies(np.zeros(len(times), np.int64), times)
    assert len(rows) == len(set(zip(rows.tolist(), owners.tolist(), strict=True)))
    model = BatchModel(size, slide, 1000.0, workers, COSTS, once=True)
    assert np.bincount(owners, minlength=workers).mean() == pytest.approx(float(model.rows(batch)))
    assert float(model.load(batch)) == pytest.approx(1000 * float(model.rows(batch)) / len(times))


@given(SHAPES, st.integers(1, 12), st.integers(1, 15))
def test_a_batch_that_does_not_end_together_is_read_in_pieces(
    shape: tuple[int, int], batch: int, together: int
) -> None:
    size, slide = shape
    read = 0
    for start in range(together):  # where the first micro-batch ends
        pieces = np.bincount((np.arange(batch) + start) // together)
        read += sum(size + (windows - 1) * slide for windows in pieces.tolist() if windows)
    model = BatchModel(size, slide, 1000.0, 4, COSTS, together=together)
    assert float(model.rows(batch)) == pytest.approx(read / together)


def test_where_a_worker_gets_a_row_once_it_reads_a_micro_batch_no_more_than_once() -> None:
    """Ten windows that end together are in 109 rows, and four workers read all of them."""
    model = BatchModel(100, 1, 1000.0, 4, COSTS, together=10, once=True)
    assert float(model.rows(1)) == pytest.approx(4 * 109 / 10)
    assert float(model.rows(2)) == pytest.approx(4 * 109 / 10 * 2)
    assert float(model.rows(10)) == pytest.approx(100 * 1.9 + 9 * 1 - 0.9 * 1)  # two pieces, nine times in ten


def test_work_that_costs_nothing_has_no_limit() -> None:
    assert BatchModel(10, 1, 1000.0, 4, Costs(0, 0, 0)).throughput(3) == np.inf


def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(SkewlessError, match="slide from 0 to the size"):
        BatchModel(100, 200, 1.0, 1, COSTS)
    with pytest.raises(SkewlessError, match="rate is 0"):
        BatchModel(100, 1, 0.0, 1, COSTS)
    with pytest.raises(SkewlessError, match="workers must be at least 1"):
        BatchModel(100, 1, 1.0, 0, COSTS)
    with pytest.raises(SkewlessError, match="headroom is 1"):
        BatchModel(100, 1, 1.0, 1, COSTS, headroom=1.0)
    with pytest.raises(SkewlessError, match="seconds of at least 0"):
        Costs(-1e-6, 0, 0)
    with pytest.raises(SkewlessError, match="seconds of at least 0"):
        Costs(1e-6, np.nan, 0)
    with pytest.raises(SkewlessError, match="workers must be at least 1, not nan"):
        BatchModel(100, 1, 1.0, np.nan, COSTS)


@pytest.mark.parametrize("name", ["rows", "updates", "work", "cost", "load", "capacity", "throughput", "waiting"])
@pytest.mark.parametrize(("batch", "said"), [(-3, "-3"), (0, "0"), ([1, 0.5], "0.5"), (np.nan, "nan")])
def test_a_batch_without_a_window_is_refused(name: str, batch: object, said: str) -> None:
    with pytest.raises(SkewlessError, match=f"a batch of {said} windows; give at least 1"):
        getattr(BatchModel(100, 1, 1000.0, 4, COSTS), name)(batch)
