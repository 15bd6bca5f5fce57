from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.place import Move, Placement, moves

HASHES = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


@st.composite
def placements(draw: st.DrawFn, slots: int | None = None) -> Placement:
    workers = draw(st.integers(1, 5))
    worker = st.integers(0, workers - 1)
    slots = slots or draw(st.integers(1, 9))
    tail = draw(st.lists(worker, min_size=slots, max_size=slots))
    own = draw(st.dictionaries(HASHES, worker, max_size=12))
    return Placement.of(workers, tail, own, version=draw(st.integers(0, 9)))


def owner(placement: Placement, key: int) -> tuple[str, int]:
    """The slot and worker of a key, by a plain dictionary."""
    own = dict(zip(placement.keys.tolist(), placement.own.tolist(), strict=True))
    if key in own:
        return f"k{key}", own[key]
    slot = key % placement.tail_slots
    return f"t{slot}", int(placement.tail[slot])


@given(placements(), st.lists(HASHES))
def test_look_ups_agree_with_a_dictionary(placement: Placement, others: list[int]) -> None:
    hashes = np.array([*others, *placement.keys], np.int64)
    names = [placement.name(slot) for slot in placement.slot_of(hashes)]
    workers = placement.worker_of(hashes)
    assert workers.dtype == np.int32
    assert list(zip(names, workers.tolist(), strict=True)) == [owner(placement, key) for key in hashes.tolist()]


@given(placements())
def test_json_brings_back_the_same_placement(placement: Placement) -> None:
    again = Placement.from_json(placement.to_json())
    assert again == placement
    assert hash(again) == hash(placement)
    assert again.with_version(placement.version + 1) != placement
    assert again.with_version(placement.version + 1).same_owners(placement)


@given(placements(), st.integers(0, 300))
def test_a_json_cut_short_is_refused(placement: Placement, length: int) -> None:
    text = placement.to_json()
    with pytest.raises(SkewlessError, match="this is no placement"):
        Placement.from_json(text[: min(length, len(text) - 1)])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"workers": 1}, "a slot lies on worker 1; the 1 workers are 0 to 0"),
        ({"workers": "2"}, "workers has '2', which is no int32"),
        ({"workers": 0}, "workers is 0; give at least 1"),
        ({"version": True}, "version has True, which is no int32"),
        ({"version": -1}, "versions count up from 0"),
        ({"format": 2}, "this placement has format 2, and this version of skewless reads 1"),
        ({"tail": []}, "at least 1 tail slot"),
        ({"tail": {"0": 1}}, "tail is a JSON dict, not a list"),
        ({"tail": [0, 2**31]}, "tail has 2147483648, which is no int32"),
        ({"own": [0]}, "2 keys but 1 owners"),
        ({"own": [0, -1]}, "a slot lies on worker -1"),
        ({"keys": [7, 7]}, "keys must rise, each listed once"),
        ({"keys": [7, 2**63]}, "keys has 9223372036854775808, which is no int64"),
        ({"keys": [7, 8.5]}, "keys has 8.5, which is no int64"),
    ],
)
def test_a_damaged_placement_is_refused(change: dict[str, object], says: str) -> None:
    fields = json.loads(Placement.of(2, [0, 1], {7: 0, 8: 1}).to_json())
    with pytest.raises(SkewlessError, match=re.escape(says)):
        Placement.from_json(json.dumps(fields | change))


def test_a_missing_field_is_named() -> None:
    with pytest.raises(SkewlessError, match="it lacks tail, own; write placements with"):
        Placement.from_json('{"format": 1, "version": 0, "workers": 1, "keys": []}')
    with pytest.raises(SkewlessError, match="it is a JSON list, not an object"):
        Placement.from_json("[]")


def test_a_placement_cannot_be_changed() -> None:
    tail = np.array([0, 1], np.int32)
    placement = Placement(2, tail)
    tail[0] = 1
    assert placement.tail.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        placement.tail[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        placement.owners[0] = 1


def test_hashes_must_be_whole_numbers() -> None:
    with pytest.raises(SkewlessError, match=r"hashes are float64 of shape \(1,\)"):
        Placement.of(1, [0]).worker_of(np.array([1.5]))


def test_there_is_no_slot_beyond_the_last() -> None:
    with pytest.raises(SkewlessError, match="there is no slot 2; they are 0 to 1"):
        Placement.of(1, [0], {5: 0}).name(2)


@given(st.integers(1, 6).flatmap(lambda slots: st.tuples(placements(slots), placements(slots))))
def test_moves_are_those_of_looking_at_every_slot(pair: tuple[Placement, Placement]) -> None:
    before, after = pair
    expected = set()
    for slot in range(before.tail_slots):
        if before.tail[slot] != after.tail[slot]:
            expected.add(Move(f"t{slot}", int(before.tail[slot]), int(after.tail[slot]), "move"))
    for key in {*before.keys.tolist(), *after.keys.tolist()}:
        (was, source), (now, target) = owner(before, key), owner(after, key)
        if was == now and source != target:
            expected.add(Move(f"k{key}", source, target, "move"))
        elif was != now:
            expected.add(Move(f"k{key}", source, target, "split" if now.startswith("k") else "merge"))
    found = moves(before, after)
    assert set(found) == expected
    assert len(found) == len(expected)


@given(placements())
def test_nothing_moves_to_the_same_placement(placement: Placement) -> None:
    assert moves(placement, placement.with_version(placement.version + 1)) == ()


def test_another_number_of_tail_slots_is_refused() -> None:
    with pytest.raises(SkewlessError, match="have 1 and 2 tail slots"):
        moves(Placement.of(1, [0]), Placement.of(1, [0, 0]))
