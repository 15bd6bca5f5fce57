"""Slots in a store against dictionaries, and how much is written for them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.store import MemoryStore
from skewless.operators.process.entries import TIMER, TOUCHED, Layout, find
from skewless.operators.process.slots import MOST_PARTS, SlotStore, live

Entry = tuple[int | None, int | None, int]  # state, timer, when it was last touched

LAYOUT = Layout(pa.schema([("key", pa.int64())]), pa.schema([("n", pa.int64())]))
NAMES = ["t0", "t1", "k-5"]


def entries_of(entries: dict[int, Entry]) -> pa.RecordBatch:
    states, timers, touched = ([entry[i] for entry in entries.values()] for i in range(3))
    return LAYOUT.entries(
        np.array([key % 4 for key in entries], dtype=np.int64),
        [pa.array(list(entries), pa.int64())],
        [pa.array(states, pa.int64())],
        pa.array(timers, pa.int64()),
        pa.array(touched, pa.int64()),
        np.ones(len(entries), dtype=bool),
    )


def held(entries: pa.RecordBatch) -> dict[int, Entry]:
    names = ["k0", "s0", TIMER, TOUCHED]
    rows = zip(*(entries.column(name).to_pylist() for name in names), strict=True)
    return {key: (state, timer, touched) for key, state, timer, touched in rows}


def kept(entries: dict[int, Entry]) -> dict[int, Entry]:
    return {key: entry for key, entry in entries.items() if entry[:2] != (None, None)}


maybe = st.none() | st.integers(0, 50)
some = st.dictionaries(st.integers(0, 12), st.tuples(maybe, maybe, st.integers(0, 9)), min_size=1, max_size=6)
changes = st.tuples(st.sampled_from(NAMES), some, st.sampled_from(["add"] * 6 + ["replace", "empty"]))


@given(st.lists(changes, max_size=30))
def test_slots_hold_what_dictionaries_hold(changes: list[tuple[str, dict[int, Entry], str]]) -> None:
    store, model = MemoryStore(), {name: dict[int, Entry]() for name in NAMES}
    notes = "{}"
    for name, entries, how in changes:
        slots = SlotStore(LAYOUT, store, json.loads(notes))
        if how == "add":
            slots.add(name, entries_of(entries), slots.read(name))
            model[name] = kept(model[name] | entries)
        else:
            model[name] = kept(entries) if how == "replace" else {}
            slots.replace(name, entries_of(model[name]))
        notes = json.dumps(slots.notes())
        for each, wanted in model.items():
            assert held(slots.whole(each)) == wanted
            timers = [timer for _state, timer, _touched in wanted.values() if timer is not None]
            wake, oldest = slots[each].wake, slots[each].oldest
            assert not timers or (wake is not None and wake <= min(timers))
            assert not wanted or (oldest is not None and oldest <= min(touched for *_, touched in wanted.values()))
        parts = {f"{each}/{number}" for each in slots.names for number, _rows in slots[each].parts}
        assert set(store.blobs) == parts


class Counting(MemoryStore):
    """How many bytes and blobs were put."""

    written = 0
    puts = 0

    def put(self, name: str, data: bytes) -> None:
        self.written += len(data)
        self.puts += 1
        super().put(name, data)


def touch(slots: SlotStore, keys: Iterable[int], count: int, value: int, before: int | None = None) -> None:
    """Write keys, all of one size, into the slots they lie in."""
    every = np.fromiter(keys, dtype=np.int64)
    for slot in range(count):
        here = every[every % count == slot]
        if len(here):
            column = pa.array(np.full(len(here), value, dtype=np.int64))
            there = np.ones(len(here), dtype=bool)
            entries = LAYOUT.entries(here, [pa.array(here)], [column], column, column, there)
            slots.add(f"t{slot}", entries, slots.read(f"t{slot}"), before)


def written_per_batch(held_keys: int, touched: int, count: int, batches: int) -> float:
    store, rng = Counting(), np.random.default_rng(3)
    slots = SlotStore(LAYOUT, store)
    touch(slots, range(held_keys), count, 0)
    store.written = 0
    for batch in range(batches):
        touch(slots, np.sort(rng.choice(held_keys, touched, replace=False)), count, batch)
    assert sum(slots.whole(name).num_rows for name in slots.names) == held_keys
    return store.written / batches


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_what_is_written_goes_by_the_keys_touched_and_not_by_those_held(count: int) -> None:
    few = written_per_batch(1_000, 1_000, count, 200)
    assert written_per_batch(50_000, 1_000, count, 200) <= 2 * few


@pytest.mark.slow
def test_a_slot_has_few_parts_however_little_changes() -> None:
    slots, most = SlotStore(LAYOUT, MemoryStore()), 0
    touch(slots, range(5_000), 1, 0)
    for batch in range(1, 2 * MOST_PARTS):
        touch(slots, [batch], 1, batch)
        most = max(most, len(slots["t0"].parts))
    assert most == MOST_PARTS
    assert held(slots.whole("t0"))[200] == (200, 200, 200)


def test_what_a_slot_has_in_parts_is_at_most_five_times_what_it_holds() -> None:
    slots, rng = SlotStore(LAYOUT, MemoryStore()), np.random.default_rng(4)
    for batch in range(300):
        touch(slots, rng.choice(100, 30, replace=False), 4, batch)
        for name in slots.names:
            assert sum(rows for _number, rows in slots[name].parts) <= 5 * 25 + 30


def test_expired_entries_go_when_a_slot_is_written_as_one() -> None:
    store = MemoryStore()
    slots = SlotStore(LAYOUT, store)
    slots.add("t0", entries_of({1: (1, None, 10), 2: (2, None, 20), 3: (3, None, 30)}), [])
    slots.replace("t0", slots.whole("t0"), before=20)
    assert held(slots.whole("t0")) == {2: (2, None, 20), 3: (3, None, 30)}
    assert slots["t0"].oldest == 20
    slots.add(
        "t0", entries_of({3: (4, None, 40), 4: (4, None, 40), 5: (5, None, 40), 6: (6, None, 40)}), slots.read("t0"), 35
    )
    assert sorted(held(slots.whole("t0"))) == [3, 4, 5, 6]
    slots.replace("t0", slots.whole("t0"), before=41)
    assert slots.names == []
    assert store.blobs == {}


def test_only_entries_that_are_neither_gone_nor_expired_are_live() -> None:
    parts = [
        entries_of({1: (1, None, 10), 2: (2, None, 20), 3: (3, None, 30)}),
        entries_of({3: (None, None, 40), 4: (4, None, 40)}),
    ]
    asked = np.array([1, 2, 3, 4, 5], dtype=np.int64)
    entries, at = find(parts, LAYOUT, asked % 4, [pa.array(asked)])
    assert live(entries, at, None).tolist() == [True, True, False, True, False]
    assert live(entries, at, 20).tolist() == [False, True, False, True, False]
    nothing, at = find([LAYOUT.empty()], LAYOUT, asked % 4, [pa.array(asked)])
    assert not live(nothing, at, 20).any()
