from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import AutoFlow, Placement
from skewless.place.autoflow import diminish


def rows(*counts: float) -> Counts:
    return Counts(np.zeros(0, np.int64), np.zeros(0), total=sum(counts), tail=np.array(counts))


def test_the_largest_slots_that_fit_half_the_gap_go_to_the_idlest() -> None:
    # Worker 0 has 60 + 25 + 10 + 5 = 100, worker 1 has 60, worker 2 has 20: half the gap is 40.
    before = Placement.of(3, [0, 0, 0, 0, 1, 2])
    after = AutoFlow(slots=6, factor=0.5).place(rows(60, 25, 10, 5, 60, 20), before, 3)
    assert after.tail.tolist() == [0, 2, 2, 2, 1, 2]
    assert after.version == 1


def test_a_slot_that_does_not_fit_is_passed_over() -> None:
    # Half of 100 - 20 is to go: 35 and nothing more, or 30 and 10 where 45 and then 15 are too large.
    owners = np.array([0, 0, 0, 0, 1], np.int32)
    assert diminish(owners, np.array([35.0, 30, 25, 10, 20]), 2, 0.2).tolist() == [0]
    assert diminish(owners, np.array([45.0, 30, 15, 10, 20]), 2, 0.2).tolist() == [1, 3]


def test_a_worker_of_one_hot_slot_keeps_it() -> None:
    before = Placement.of(2, [0, 1])
    assert AutoFlow(slots=2).place(rows(90, 10), before, 2) is before


@pytest.mark.parametrize(("idle", "moves"), [(80.0, True), (81.0, False)])
def test_below_the_factor_nothing_moves(idle: float, moves: bool) -> None:
    owners = np.array([0] * 20 + [1], np.int32)
    counts = np.array([5.0] * 20 + [idle])  # 100 against the idle one: 20 % is just enough
    assert bool(len(diminish(owners, counts, 2, 0.2))) == moves


def test_slots_without_rows_stay() -> None:
    assert diminish(np.array([0, 0, 1], np.int32), np.array([10.0, 0, 0]), 2, 0.2).tolist() == []


def test_rounds_are_summed_over_the_window() -> None:
    before = Placement.of(2, [0, 0, 1, 1])
    spike = rows(50, 30, 10, 10)
    assert AutoFlow(slots=4, factor=0.5).place(spike, before, 2).tail.tolist() == [0, 1, 1, 1]  # half of 80 - 20
    patient = AutoFlow(slots=4, factor=0.5, window_length=3)
    for seen in (rows(10, 10, 10, 10), rows(10, 10, 10, 10)):
        patient.learn(seen)
        assert patient.place(seen, before, 2) is before
    patient.learn(spike)
    for _ask in range(3):  # to be asked adds no round
        assert patient.place(spike, before, 2).tail.tolist() == [0, 0, 1, 1]  # 120 against 60, in slots of 70 and 50
    for _ in range(2):
        patient.learn(spike)
    later = patient.place(spike, before, 2)
    assert later.tail.tolist() == [0, 1, 1, 1]  # 240 against 60: the slot of 90 fits, that of 150 does not


def test_what_has_moved_counts_for_its_new_owner() -> None:
    placer = AutoFlow(slots=4, factor=0.3, window_length=4)
    placement = Placement.of(2, [0, 0, 0, 1])
    tails = []
    for _ in range(4):
        placer.learn(rows(30, 20, 20, 10))
        placement = placer.place(rows(30, 20, 20, 10), placement, 2)
        tails.append(placement.tail.tolist())
    assert tails == [[1, 0, 0, 1]] * 4


def test_keys_told_apart_count_in_their_slots() -> None:
    seen = Counts(np.array([4, 9]), np.array([40, 10]), total=60, tail=np.array([5, 5, 0, 0]))
    after = AutoFlow(slots=4).place(seen, Placement.of(2, [0, 0, 1, 1]), 2)
    assert after.tail.tolist() == [0, 1, 1, 1]  # 45 and 15: half the gap is 30
    assert len(after.keys) == 0


def test_a_new_worker_is_the_idlest() -> None:
    after = AutoFlow(slots=4).place(rows(10, 10, 10, 10), Placement.of(2, [0, 0, 1, 1]), 3)
    assert after.tail.tolist() == [2, 0, 1, 1]


def test_slots_of_a_worker_that_goes_are_spread_by_load() -> None:
    after = AutoFlow(slots=6, factor=1.0).place(rows(10, 30, 25, 8, 7, 6), Placement.of(3, [0, 1, 2, 2, 2, 2]), 2)
    assert after.tail.tolist() == [0, 1, 0, 1, 0, 1]  # 25 to 10, then 8 to 30, 7 to 35, 6 to 38


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), min_size=1, max_size=30), st.floats(0.01, 1))
def test_the_busiest_never_becomes_idler_than_the_idlest(slots: list[tuple[int, int]], factor: float) -> None:
    owners = np.array([owner for owner, _ in slots], np.int32)
    counts = np.array([count for _, count in slots], np.float64)
    loads = np.bincount(owners, counts, 4)
    given_away = diminish(owners, counts, 4, factor)
    assert (owners[given_away] == loads.argmax()).all()
    volume = counts[given_away].sum()
    assert loads.max() - volume >= loads.min() + volume
    assert len(set(given_away.tolist())) == len(given_away)


@pytest.mark.parametrize("options", [{"factor": 0.0}, {"factor": 1.5}, {"window_length": 0}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(SkewlessError, match=next(iter(options))):
        AutoFlow(**options)  # type: ignore[arg-type]  # what is refused
