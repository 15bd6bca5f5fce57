"""What holds for placements, whoever makes them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import place
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.place import Placement, moves
from skewless.place.base import MOST_SLOTS
from skewless.workload import Zipf

EVERY = pytest.mark.parametrize("name", place.NAMES)
TRACKING = pytest.mark.parametrize("name", ["scan", "redist", "readj"])
NOTHING = Counts(np.zeros(0, np.int64), np.zeros(0), total=0)


def zipf(keys: int = 20_000, told: int = 500, slots: int = 256, counted: bool = True) -> Counts:
    """A Zipf stream of a million rows, whose most frequent keys were told apart."""
    hashes, counts = xxhash64(np.arange(keys)), 1e6 * Zipf(1.0, keys=keys).frequencies
    tail: FloatArray = np.bincount(hashes[told:] % slots, counts[told:], slots).astype(np.float64)
    return Counts(hashes[:told], counts[:told], 1e6, tail if counted else None, distinct=keys)


def loads(placement: Placement, keys: int = 20_000) -> FloatArray:
    hashes: Int64Array = xxhash64(np.arange(keys))
    found: FloatArray = np.bincount(
        placement.worker_of(hashes), Zipf(1.0, keys=keys).frequencies, placement.workers
    ).astype(np.float64)
    return found


@EVERY
@settings(max_examples=30)
@given(
    counts=st.dictionaries(st.integers(-100, 100), st.integers(1, 1000), max_size=20),
    rest=st.integers(0, 1000),
    workers=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    counted=st.booleans(),
)
def test_every_slot_is_on_a_worker_there_is(
    name: str, counts: dict[int, int], rest: int, workers: list[int], counted: bool
) -> None:
    hashes, seen = np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64)
    tail = np.array([rest, 0, 0, 0, 0]) if counted else None
    placer = place.make(name, slots=5)
    previous = None
    for version, n in enumerate(workers):
        placement = placer.place(Counts(hashes, seen, int(seen.sum()) + rest, tail), previous, n)
        assert placement.workers == n
        assert placement.tail_slots == 5
        assert placement.version <= version
        assert set(placement.keys) <= set(hashes)
        assert placement.owners.max() < n
        if previous is not None and placement is previous:
            assert moves(previous, placement) == ()
        previous = placement


@EVERY
def test_without_rows_there_is_a_placement(name: str) -> None:
    placement = place.make(name).place(NOTHING, None, 4)
    assert len(placement.keys) == 0
    assert np.array_equal(np.unique(placement.tail), np.arange(4))
    assert placement.version == 0


@EVERY
def test_workers_that_go_keep_nothing(name: str) -> None:
    placer, seen = place.make(name, slots=256), zipf()
    eight = placer.place(seen, None, 8)
    five = placer.place(seen, eight, 5)
    assert np.array_equal(np.unique(five.owners), np.arange(5))
    assert five.version == eight.version + 1
    found = moves(eight, five)
    forced = {eight.name(int(slot)) for slot in np.flatnonzero(eight.owners >= 5)}
    gone = {move.slot for move in found if move.kind == "merge"}
    assert forced <= {move.slot for move in found} | gone
    assert all(move.target < 5 for move in found)
    if name != "uniform":
        moved = loads(eight)[5:].sum()
        state = sum(share_of(move.slot, seen) for move in found if move.source != move.target)
        assert state < 2 * moved


def share_of(slot: str, seen: Counts) -> float:
    """The part of the rows that are in this slot; a key told apart counts in its own only."""
    if slot.startswith("k"):
        return float(seen.shares[seen.keys == int(slot[1:])].sum())
    assert seen.tail is not None
    mine = (seen.keys % len(seen.tail) == int(slot[1:])) & (seen.shares < 0.002)
    return float(seen.tail[int(slot[1:])]) / seen.total + float(seen.shares[mine].sum())


@TRACKING
def test_frequent_keys_get_slots_of_their_own(name: str) -> None:
    placer, seen = place.make(name, slots=256), zipf()
    placement = placer.place(seen, None, 8)
    assert np.isin(seen.keys[:20], placement.keys).all()
    assert len(placement.keys) < 100
    consistent = loads(place.make("consistent", slots=256).place(seen, None, 8))
    assert loads(placement).max() < 0.9 * consistent.max()


@TRACKING
@pytest.mark.parametrize("resources", ["CCC", "CCL", "LLL", "LQL", "QQQ"])
def test_all_resources_can_be_placed_by(name: str, resources: str) -> None:
    placer, seen = place.make(name, slots=256, resources=resources), zipf()
    placement = placer.place(seen, None, 4)
    for workers in (5, 3):
        placement = placer.place(seen, placement, workers)
        assert np.array_equal(np.unique(placement.owners), np.arange(workers))
        assert (len(placement.keys) == 0) == (resources == "CCC")


@TRACKING
def test_counting_the_tail_improves_the_balance(name: str) -> None:
    placer = place.make(name, slots=256)
    blind = loads(placer.place(zipf(counted=False), None, 6))
    seeing = loads(placer.place(zipf(), None, 6))
    assert seeing.max() / seeing.min() < blind.max() / blind.min()
    assert seeing.max() / seeing.min() < 1.25  # the hottest key is on top of a worker's share of the tail


@TRACKING
def test_a_key_that_cools_goes_back_to_its_tail_slot(name: str) -> None:
    placer, seen = place.make(name, slots=256), zipf()
    first = placer.place(seen, None, 8)
    hottest = int(seen.keys[0])
    cooled = Counts(seen.keys[1:], seen.counts[1:], seen.total, seen.tail, distinct=seen.distinct)
    second = placer.place(cooled, first, 8)
    assert hottest in first.keys
    assert hottest not in second.keys
    merged = [move for move in moves(first, second) if move.slot == f"k{hottest}"]
    assert [move.kind for move in merged] == ["merge"]
    assert merged[0].target == second.tail[hottest % 256]


@EVERY
def test_a_placement_that_stays_is_the_same_one(name: str) -> None:
    placer, seen = place.make(name, slots=256, **({"factor": 1.0} if name == "autoflow" else {})), zipf()
    placement = placer.place(seen, None, 8)
    for _ in range(8):
        previous, placement = placement, placer.place(seen, placement, 8)
    assert placement is previous


@EVERY
def test_what_does_not_fit_is_refused(name: str) -> None:
    placer = place.make(name, slots=4)
    with pytest.raises(SkewlessError, match="workers is 0; give a whole number from 1"):
        placer.place(NOTHING, None, 0)
    with pytest.raises(SkewlessError, match="has 2 tail slots and this placer 4; make the placer with slots=2"):
        placer.place(NOTHING, Placement.of(1, [0, 0]), 1)
    counted = Counts(np.zeros(0, np.int64), np.zeros(0), total=3, tail=np.array([1, 2]))
    with pytest.raises(SkewlessError, match="the tail was counted in 2 slots, but there are 4"):
        placer.place(counted, None, 1)
    with pytest.raises(SkewlessError, match=f"slots is 0; give a whole number from 1 to {MOST_SLOTS}"):
        place.make(name, slots=0)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"counts": np.array([1])}, "(2,) keys but (1,) counts"),
        ({"keys": np.array([7, 7])}, "a key is listed twice"),
        ({"counts": np.array([1, 0])}, "a count is 0; list only keys that came at least once"),
        ({"counts": np.array([1.0, np.nan])}, "a count is nan"),
        ({"total": 2}, "the counts add up to 3, more than the total of 2"),
        ({"tail": np.array([-1, 1])}, "a flat array of at least 0 each"),
    ],
)
def test_frequencies_that_contradict_each_other_are_refused(fields: dict[str, object], says: str) -> None:
    given = {"keys": np.array([7, 8]), "counts": np.array([1, 2]), "total": 9} | fields
    with pytest.raises(SkewlessError, match=re.escape(says)):
        Counts(**given)  # type: ignore[arg-type]  # a dictionary of what is refused


def test_an_uncounted_rest_is_taken_to_be_even() -> None:
    seen = Counts(np.array([6]), np.array([4]), total=12)
    assert seen.by_slot(4).tolist() == [2, 2, 6, 2]
    assert seen.domain == 9


def test_exact_frequencies_tell_the_most_frequent_apart() -> None:
    seen = Counts.of(np.array([5, 5, 5, 8, 8, -3]), slots=4, told=1)
    assert (seen.keys.tolist(), seen.counts.tolist(), seen.total, seen.distinct) == ([5], [3], 6, 3)
    assert seen.tail is not None
    assert seen.tail.tolist() == [2, 1, 0, 0]
