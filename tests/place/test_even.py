from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import Even, Placement, moves

SLOTS = 32
NONE = Counts.none()


def counted(tail: list[int], hot: dict[int, int]) -> Counts:
    keys = sorted(hot)
    counts = np.array([hot[key] for key in keys], np.float64)
    return Counts(np.array(keys, np.int64), counts, float(sum(tail) + counts.sum()), np.array(tail))


def loads(placement: Placement, seen: Counts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    assert seen.tail is not None
    rows = np.bincount(placement.tail, seen.tail, placement.workers)
    return rows + np.bincount(placement.worker_of(seen.keys), seen.counts, placement.workers)


@given(
    tail=st.lists(st.integers(0, 100), min_size=SLOTS, max_size=SLOTS),
    hot=st.dictionaries(st.integers(-(2**62), 2**62), st.integers(1, 1000), max_size=10),
    before=st.integers(1, 8),
    workers=st.integers(1, 8),
)
def test_the_busiest_worker_is_above_the_average_by_less_than_one_slot(
    tail: list[int], hot: dict[int, int], before: int, workers: int
) -> None:
    seen = counted(tail, hot)
    first = Even(SLOTS).place(NONE, None, before)
    placed = Even(SLOTS, tolerance=0).place(seen, first, workers)
    rows = loads(placed, seen)
    assert placed.workers == workers
    assert rows.sum() == pytest.approx(seen.total)
    # While it is above, it has no slot that would fit into its distance to the idlest one.
    if rows.max() > rows.mean() + 1e-9:
        own = np.array([hot[key] for key in placed.keys.tolist()], np.float64)
        slots = np.concatenate([seen.by_slot(SLOTS) - np.bincount(placed.keys % SLOTS, own, SLOTS), own])
        mine = slots[(placed.owners == rows.argmax()) & (slots > 0)]
        assert mine.min() >= rows.max() - rows.min() - 1e-9


def test_level_loads_stay_as_they_are() -> None:
    seen = counted([10] * SLOTS, {})
    first = Even(SLOTS).place(NONE, None, 4)
    assert Even(SLOTS).place(seen, first, 4) is first


def test_a_hot_key_leaves_its_slot_and_comes_back_when_it_has_cooled() -> None:
    first = Even(SLOTS).place(NONE, None, 4)
    hot = Even(SLOTS).place(counted([10] * SLOTS, {77: 100}), first, 4)
    assert hot.keys.tolist() == [77]
    # A worker's fair share is about 80 rows: hot from 8, cool below 4.
    warm = Even(SLOTS).place(counted([10] * SLOTS, {77: 5}), hot, 4)
    assert warm.keys.tolist() == [77]
    cold = Even(SLOTS).place(counted([10] * SLOTS, {77: 3}), warm, 4)
    assert not len(cold.keys)
    assert [move.kind for move in moves(warm, cold) if move.slot == "k77"] == ["merge"]


def test_a_new_worker_gets_its_share_and_few_slots_move() -> None:
    seen = counted([10] * SLOTS, {})
    first = Even(SLOTS).place(NONE, None, 3)
    grown = Even(SLOTS).place(seen, first, 4)
    assert np.bincount(grown.tail, minlength=4).tolist() == [8, 8, 8, 8]
    assert len(moves(first, grown)) == 8
    shrunk = Even(SLOTS).place(seen, grown, 2)
    assert np.bincount(shrunk.tail).tolist() == [16, 16]


def test_bad_options_are_refused() -> None:
    with pytest.raises(SkewlessError, match="hot is 0; give a number above 0"):
        Even(hot=0)
    with pytest.raises(SkewlessError, match="tolerance is -1; give at least 0"):
        Even(tolerance=-1)
    with pytest.raises(SkewlessError, match="tolerance is nan; give at least 0"):
        Even(tolerance=float("nan"))
    with pytest.raises(SkewlessError, match="hot is True; give a number above 0"):
        Even(hot=True)
