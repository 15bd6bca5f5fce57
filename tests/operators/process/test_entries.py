"""Entries of keys in several parts against a dictionary."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.arrays import Int64Array
from skewless.core.hashing import xxhash64
from skewless.operators.process.entries import GONE, Layout, find, newest

Key = tuple[Any, ...]
Part = list[tuple[Key, int | None]]  # a key and its state, None if it is gone

FIELDS = pa.schema([("n", pa.int64())])
floats = st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan, math.inf, None])
numbers = st.sampled_from([0, 1, 2, None])
KINDS: dict[str, tuple[list[pa.DataType], st.SearchStrategy[Key]]] = {
    "composite": ([pa.int64(), pa.int64()], st.tuples(numbers, numbers)),
    "text and float": ([pa.string(), pa.float64()], st.tuples(st.sampled_from(["", "a", "b", None]), floats)),
    "nested": (
        [pa.list_(pa.float64()), pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int64()))])],
        st.tuples(
            st.none() | st.lists(floats, max_size=2),
            st.none() | st.fixed_dictionaries({"x": floats, "y": st.none() | st.lists(numbers, max_size=2)}),
        ),
    ),
}


def normal(value: Any) -> Any:
    """One form for all values that are the same key to Spark."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (list, tuple)):
        return tuple(normal(each) for each in value)
    if isinstance(value, dict):
        return tuple((name, normal(each)) for name, each in sorted(value.items()))
    return value


def hashes_of(keys: list[Key]) -> Int64Array:
    """Just three, so that many keys share one."""
    return np.array([zlib.crc32(repr(normal(key)).encode()) % 3 - 1 for key in keys], dtype=np.int64)


def columns_of(layout: Layout, keys: list[Key]) -> list[pa.Array]:
    return [pa.array([key[i] for key in keys], type=kind) for i, kind in enumerate(layout.keys.types)]


def entries_of(layout: Layout, part: Part) -> pa.RecordBatch:
    keys, states = [key for key, _state in part], pa.array([state for _key, state in part], pa.int64())
    none, there = pa.nulls(len(part), pa.int64()), np.ones(len(part), dtype=bool)
    return layout.entries(hashes_of(keys), columns_of(layout, keys), [states], none, none, there)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layout, list[Part], list[Key]]:
    """Some parts, in each of which a key comes once, and keys to look for."""
    types, keys = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    layout = Layout(pa.schema([(f"key {i}", kind) for i, kind in enumerate(types)]), FIELDS)
    entry = st.tuples(keys, st.none() | st.integers(0, 99))
    parts = st.lists(st.lists(entry, max_size=8, unique_by=lambda each: normal(each[0])), min_size=1, max_size=5)
    return layout, draw(parts), draw(st.lists(keys, max_size=8, unique_by=normal))


@given(cases())
def test_the_newest_entries_are_those_of_a_dictionary_that_was_updated_part_by_part(
    case: tuple[Layout, list[Part], list[Key]],
) -> None:
    layout, parts, _asked = case
    model = {normal(key): state for part in parts for key, state in part}
    entries = newest([entries_of(layout, part) for part in parts], layout)
    keys = list(zip(*(column.to_pylist() for column in layout.keys_of(entries)), strict=True))
    found = list(zip(map(normal, keys), layout.fields_of(entries)[0].to_pylist(), strict=True))
    assert len(found) == len(dict(found))
    assert dict(found) == {key: state for key, state in model.items() if state is not None}
    hashes = np.asarray(entries.column(0))
    assert hashes.tolist() == sorted(hashes_of(keys).tolist())


@given(cases())
def test_keys_are_found_as_in_a_dictionary(case: tuple[Layout, list[Part], list[Key]]) -> None:
    layout, parts, asked = case
    model = {normal(key): state for part in parts for key, state in part}
    batches = [entries_of(layout, part) for part in parts]
    entries, at = find(batches, layout, hashes_of(asked), columns_of(layout, asked))
    assert entries.num_rows == sum(map(len, parts))
    assert [place >= 0 for place in at.tolist()] == [normal(key) in model for key in asked]
    for key, place in zip(asked, at.tolist(), strict=True):
        if place >= 0:
            assert layout.fields_of(entries)[0][place].as_py() == model[normal(key)]
            assert entries.column(GONE)[place].as_py() == (model[normal(key)] is None)


def test_keys_of_one_hash_are_told_apart() -> None:
    layout = Layout(pa.schema([("a", pa.int64()), ("b", pa.int64())]), FIELDS)
    keys = [pa.array([1, None, 2]), pa.array([None, 1, None])]
    hashes = xxhash64(*keys)
    assert hashes[0] == hashes[1]
    none, there = pa.nulls(2, pa.int64()), np.zeros(2, dtype=bool)
    states = [pa.array([10, 20])]
    entries = layout.entries(hashes[:2], [key[:2] for key in keys], states, none, none, there)
    found, at = find([layout.empty(), entries], layout, hashes[[1, 2, 0]], [key.take([1, 2, 0]) for key in keys])
    assert at[1] == -1
    assert layout.fields_of(found)[0].take(at[[0, 2]]).to_pylist() == [20, 10]


def test_a_key_with_nothing_to_keep_is_said_to_be_gone_only_if_it_was_there() -> None:
    layout = Layout(pa.schema([("a", pa.int64())]), FIELDS)
    keys, none = [pa.array([1, 2, 3, 4])], pa.nulls(4, pa.int64())
    timers = pa.array([None, None, None, 7], pa.int64())
    there = np.array([True, False, True, False])
    states = pa.array([None, None, 5, None], pa.int64())
    entries = layout.entries(np.array([4, 3, 2, 1]), keys, [states], timers, none, there)
    assert layout.keys_of(entries)[0].to_pylist() == [4, 3, 1]
    assert entries.column(GONE).to_pylist() == [False, False, True]


@pytest.mark.parametrize("other", [("key", pa.int32()), ("user", pa.int64())])
def test_the_mark_tells_another_name_or_type(other: tuple[str, pa.DataType]) -> None:
    one, another = pa.schema([("key", pa.int64())]), pa.schema([other])
    assert Layout(one, FIELDS).mark == Layout(one, FIELDS).mark
    assert Layout(one, FIELDS).mark != Layout(another, FIELDS).mark
    assert Layout(FIELDS, one).mark != Layout(FIELDS, another).mark
