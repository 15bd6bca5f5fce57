"""Windows and rows dealt to workers, against one window at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import SkewlessError
from skewless.chop.assignment import BatchAssignment, KeyAssignment, mine
from skewless.core.windows import BEFORE_ALL, Windows

LENGTHS = st.integers(1, 20)
TIMED = st.tuples(LENGTHS, LENGTHS).map(lambda pair: Windows(max(pair), min(pair)))
WINDOWS = st.tuples(LENGTHS, LENGTHS, st.booleans()).map(
    lambda three: Windows(max(three[:2]), min(three[:2]), three[2])
)
HASHES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), -1, 0, 2**63 - 1]))


@st.composite
def deals(draw: st.DrawFn) -> BatchAssignment:
    """Batches whose size changes now and then."""
    deal = BatchAssignment.of(draw(WINDOWS), draw(st.integers(1, 9)), draw(st.integers(1, 7)))
    window = -30
    for _ in range(draw(st.integers(0, 3))):
        window += draw(st.integers(1, 25))
        deal = deal.changed(draw(st.integers(1, 7)), window)
    return deal


def worker(deal: BatchAssignment, key: int, window: int) -> int:
    return int(deal.worker_of(np.array([key]), np.array([window]))[0])


@given(deals(), st.lists(st.tuples(HASHES, st.integers(-100, 300)), min_size=1, max_size=20))
def test_a_row_goes_once_to_each_worker_that_has_a_window_of_it(
    deal: BatchAssignment, rows: list[tuple[int, int]]
) -> None:
    hashes, times = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    which, workers = deal.copies(hashes, times)
    copies = list(zip(which.tolist(), workers.tolist(), strict=True))
    assert len(copies) == len(set(copies))
    assert (np.diff(which) >= 0).all()  # a row's copies come one after another
    assert (np.bincount(which, minlength=len(rows)) <= deal.workers).all()
    lowest = 0 if deal.windows.rows else -1000
    wanted = {
        (row, worker(deal, key, window))
        for row, (key, time) in enumerate(rows)
        for window in range(
            max(lowest, (time - deal.windows.size) // deal.windows.slide), time // deal.windows.slide + 1
        )
        if deal.windows.span(window)[0] <= time < deal.windows.span(window)[1]
    }
    assert set(copies) == wanted


@given(deals(), HASHES)
def test_every_window_has_one_worker_that_of_its_batch(deal: BatchAssignment, key: int) -> None:
    window = -60
    while window < 90:
        batch = deal.batch_of(window)
        assert window in batch
        assert 1 <= len(batch) <= max(size for _start, size in deal.sizes)
        assert all(deal.batch_of(each) == batch for each in batch)
        workers = deal.worker_of(np.full(len(batch), key), np.array(batch))
        assert len(set(workers.tolist())) == 1
        assert 0 <= workers[0] < deal.workers
        window = batch.stop


@given(TIMED, st.integers(1, 9), st.integers(1, 7), HASHES)
def test_consecutive_batches_are_of_consecutive_workers(windows: Windows, workers: int, batch: int, key: int) -> None:
    deal = BatchAssignment.of(windows, workers, batch)
    turns = deal.worker_of(np.full(50, key), np.arange(-25, 25) * batch)
    assert set(np.diff(turns) % workers) <= {1 % workers}


@given(TIMED, st.integers(1, 9), st.integers(1, 7), HASHES, st.integers(-50, 50))
def test_the_next_window_of_a_worker(windows: Windows, workers: int, batch: int, key: int, window: int) -> None:
    deal = BatchAssignment.of(windows, workers, batch)
    for each in range(workers):
        found = deal.next_of(each, np.array([key]), np.array([window]))[0]
        wanted = next(w for w in range(window, window + workers * batch + 1) if worker(deal, key, w) == each)
        assert found == wanted


@given(TIMED, st.integers(1, 12))
def test_rows_are_copied_as_often_as_batches_overlap(windows: Windows, batch: int) -> None:
    deal = BatchAssignment.of(windows, 1000, batch)
    turn = batch * windows.slide
    which, _workers = deal.copies(np.zeros(7 * turn, np.int64), np.arange(-3 * turn, 4 * turn))
    assert len(which) == 7 * (windows.size + (batch - 1) * windows.slide)  # of 7 batch slide rows


@given(deals(), st.integers(1, 7), st.integers(-20, 60), HASHES)
def test_a_change_leaves_earlier_windows_where_they_are(
    deal: BatchAssignment, batch: int, window: int, key: int
) -> None:
    later = deal.changed(batch, window)
    assert later.batch == batch
    before = np.arange(window - 40, window)
    keys = np.full(len(before), key)
    assert later.worker_of(keys, before).tolist() == deal.worker_of(keys, before).tolist()
    assert later.batch_of(window) == range(window, window + batch)


def test_sizes_of_windows_that_are_over_are_left_out() -> None:
    windows = Windows(10, 5)
    deal = BatchAssignment.of(windows, 3, 2).changed(4, 10).changed(1, 20).changed(5, 33)
    short = deal.from_window(25)
    assert short.sizes == (deal.sizes[0], (20, 1), (33, 5))
    later, hashes = np.arange(25, 80), np.full(55, 11)
    assert (short.worker_of(hashes, later) == deal.worker_of(hashes, later)).all()
    assert deal.from_window(5) == deal
    assert BatchAssignment.of(windows, 3, 2).from_window(100) == BatchAssignment.of(windows, 3, 2)


@given(st.integers(1, 9), st.lists(HASHES, min_size=1), st.integers(-5, 5))
def test_by_key_a_row_has_one_worker(workers: int, keys: list[int], window: int) -> None:
    hashes = np.array(keys, np.int64)
    which, given_to = KeyAssignment(workers).copies(hashes, np.zeros(len(keys), np.int64))
    assert which.tolist() == list(range(len(keys)))
    assert given_to.tolist() == [key % workers for key in keys]
    assert KeyAssignment(workers).batch_of(window) == range(window, window + 1)
    owned = sum(mine(KeyAssignment(workers), each, hashes, np.full(len(keys), window)) for each in range(workers))
    assert np.all(owned == 1)


def test_what_cannot_be_dealt_is_refused() -> None:
    windows = Windows(10, 5)
    with pytest.raises(SkewlessError, match="workers must be at least 1, not 0"):
        BatchAssignment.of(windows, 0, 1)
    with pytest.raises(SkewlessError, match="a batch of 0 windows"):
        BatchAssignment.of(windows, 1, 0)
    for sizes in ((), ((0, 1),), ((BEFORE_ALL, 1), (5, 2), (5, 3)), ((BEFORE_ALL, 1), (5, 2), (4, 3))):
        with pytest.raises(SkewlessError, match="sizes of batches start at"):
            BatchAssignment(windows, 2, sizes)
