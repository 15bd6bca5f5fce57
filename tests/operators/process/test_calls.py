"""What a processor may give and keep, key by key and for many keys at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.operators.process import Processor, Rows, SlotProcessor, State
from skewless.operators.process.calls import TIME, EachKey, Kept, ManyKeys, calls_of
from skewless.operators.process.processor import Key, Row

KEYS = pa.schema([("user", pa.string())])
FIELDS = pa.schema([("total", pa.int64()), ("name", pa.string())])
RESULT = pa.schema([("total", pa.int64()), ("note", pa.string())])
INPUT = pa.schema([("user", pa.string()), ("price", pa.int64())])
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
Process = Callable[[Key, Rows, State], Any]


class Made(Processor):
    """Of a function."""

    state = "total long, name string"

    def __init__(self, process: Process, expire: Callable[[Key, State], Any] | None = None) -> None:
        self._process, self._expire = process, expire

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        return self._process(key, rows, state)  # type: ignore[no-any-return]  # what users give is the question

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        return self._expire(key, state) if self._expire else ()


def kept_of(users: list[str | None], totals: list[int | None], timers: list[int | None] | None = None) -> Kept:
    names = pa.nulls(len(users), pa.string())
    fields = [pa.array(totals, pa.int64()), names]
    return Kept([pa.array(users, pa.string())], fields, pa.array(timers or [None] * len(users), pa.int64()))


def run(
    processor: Processor, rows: dict[str | None, list[int]], totals: list[int | None] | None = None
) -> tuple[list[tuple[Any, ...]], Kept]:
    """The result as tuples, the key first, and what is then kept."""
    calls = calls_of(processor, KEYS, FIELDS, RESULT)
    users = [user for user, prices in rows.items() for _price in prices]
    prices = [price for prices in rows.values() for price in prices]
    batch = pa.RecordBatch.from_arrays([pa.array(users, pa.string()), pa.array(prices, pa.int64())], schema=INPUT)
    bounds = np.cumsum([0, *map(len, rows.values())])
    result, kept = calls.rows(batch, bounds, kept_of(list(rows), totals or [None] * len(rows)))
    assert result.schema.types == [*KEYS.types, *RESULT.types]
    return list(zip(*(column.to_pylist() for column in result.columns), strict=True)), kept


def total(key: Key, rows: Rows, state: State) -> int:
    state["total"] = (state["total"] or 0) + sum(rows["price"])
    return int(state["total"])


def as_tuples(key: Key, rows: Rows, state: State) -> list[Row]:
    return [(total(key, rows, state), "x")]


def as_dictionaries(key: Key, rows: Rows, state: State) -> list[Row]:
    return [{"note": "x", "total": total(key, rows, state)}]


def as_generator(key: Key, rows: Rows, state: State) -> Iterable[Row]:
    yield [total(key, rows, state), "x"]


@pytest.mark.parametrize("process", [as_tuples, as_dictionaries, as_generator])
def test_rows_of_the_result_may_be_given_as(process: Process) -> None:
    found, kept = run(Made(process), {"ann": [1, 2], None: [5], "bob": [7]}, [10, None, 20])
    assert found == [("ann", 13, "x"), (None, 5, "x"), ("bob", 27, "x")]
    assert kept.fields[0].to_pylist() == [13, 5, 27]


def test_a_processor_may_give_nothing_and_names_left_out_are_null() -> None:
    def some(key: Key, rows: Rows, state: State) -> list[Row] | None:
        return None if key == ("ann",) else [{"note": "x"}]

    found, kept = run(Made(some), {"ann": [1], "bob": [1]})
    assert found == [("bob", None, "x")]
    assert kept.fields[0].to_pylist() == [None, None]


def test_every_row_has_the_key_it_was_given_for() -> None:
    def several(key: Key, rows: Rows, state: State) -> list[Row]:
        return [(price, None) for price in rows["price"]]

    found, _kept = run(Made(several), {"ann": [], "bob": [3, 1], None: [2], "cid": [4, 4, 5]})
    assert found == [
        *[("bob", 3, None), ("bob", 1, None), (None, 2, None)],
        *[("cid", 4, None), ("cid", 4, None), ("cid", 5, None)],
    ]


def test_rows_are_seen_as_columns_and_as_dictionaries() -> None:
    seen = []

    def look(key: Key, rows: Rows, state: State) -> None:
        seen.append((len(rows), rows["price"], list(rows), state.new, dict(state), state.timer))

    run(Made(look), {"ann": [1, 2], "bob": [3]}, [None, 4])
    assert seen == [
        (
            2,
            [1, 2],
            [{"user": "ann", "price": 1}, {"user": "ann", "price": 2}],
            True,
            {"total": None, "name": None},
            None,
        ),
        (1, [3], [{"user": "bob", "price": 3}], False, {"total": 4, "name": None}, None),
    ]


def test_a_forgotten_key_keeps_nothing() -> None:
    def forget(key: Key, rows: Rows, state: State) -> None:
        state.timer = NOON
        state["name"] = "x"
        state.forget()

    _found, kept = run(Made(forget), {"ann": [1]}, [4])
    assert [column.to_pylist() for column in [*kept.fields, kept.timers]] == [[None], [None], [None]]


def test_a_timer_is_kept_in_microseconds_whatever_its_zone() -> None:
    def wait(key: Key, rows: Rows, state: State) -> None:
        state.timer = NOON.astimezone(timezone(timedelta(hours=rows["price"][0])))

    _found, kept = run(Made(wait), {"ann": [2], "bob": [-7], "cid": [0]})
    assert kept.timers.to_pylist() == [int(NOON.timestamp()) * 1_000_000] * 3


def test_a_key_whose_timer_is_due_has_none_and_may_set_another() -> None:
    def expire(key: Key, state: State) -> Iterable[Row]:
        assert state.timer is None
        state.timer = NOON if key == ("bob",) else None
        yield (state["total"], "late")

    calls = calls_of(Made(as_tuples, expire), KEYS, FIELDS, RESULT)
    result, kept = calls.expire(kept_of(["ann", "bob"], [1, 2], [5, 6]), watermark=6)
    assert result.to_pydict() == {"0": ["ann", "bob"], "1": [1, 2], "2": ["late", "late"]}
    assert kept.timers.to_pylist() == [None, int(NOON.timestamp()) * 1_000_000]
    silent = calls_of(Made(as_tuples), KEYS, FIELDS, RESULT)
    assert silent.expire(kept_of(["ann"], [1], [5]), watermark=6)[0].num_rows == 0


def gives(*rows: Any) -> Process:
    return lambda key, seen, state: rows


def keeps(name: str, value: Any) -> Process:
    return lambda key, rows, state: state.__setitem__(name, value)


def waits(timer: Any) -> Process:
    return lambda key, rows, state: setattr(state, "timer", timer)


WRONG = {
    "too few values": (gives((1,)), r"a row of the result is \(1,\); give 2 values, total, note"),
    "too many values": (gives((1, "x", 2)), r"a row of the result is \(1, 'x', 2\); give 2 values, total, note"),
    "the key as well": (
        gives(("ann", 1, "x")),
        r"a row of the result is \('ann', 1, 'x'\); give 2 values, total, note",
    ),
    "an unknown name": (gives({"note": "x", "totl": 1}), r"'totl': 1.*; give 2 values, total, note"),
    "a column of the key": (gives({"user": "ann", "total": 1}), r"'user': 'ann'.*; give 2 values, total, note"),
    "values instead of rows": (gives("ab"), r"a row of the result is 'ab'; give 2 values, total, note, as a tuple"),
    "a number instead of a row": (gives(7), r"a row of the result is 7; give 2 values"),
    "text for a number": (
        gives((1, "x"), ("x", "x")),
        r"column 'total' is 'x', which is no int64.*declare another",
    ),
    "a number for text": (gives((1, 5)), r"column 'note' is 5, which is no string .*declare another"),
    "a fraction for a whole number": (gives((2.5, "x")), r"column 'total' is 2\.5, which is no int64"),
    "a number too large": (gives((2**70, "x")), r"column 'total' is 1180591620717411303424, which is no int64"),
    "state of the wrong type": (keeps("total", "x"), r"state field 'total' is 'x', which is no int64"),
    "a fraction in the state": (keeps("total", 0.5), r"state field 'total' is 0\.5, which is no int64"),
    "an undeclared field": (keeps("last", 1), r"the state has last, which `state` does not declare; keep total, name"),
    "a lost field": (lambda key, rows, state: state.pop("name"), r"the state lacks name; keep total, name, None where"),
    "a renamed field": (
        lambda key, rows, state: state.__setitem__("last", state.pop("name")),
        r"the state has last, which `state` does not declare; keep total, name",
    ),
    "a naive timer": (
        waits(datetime(2024, 5, 1)),
        r"state.timer is datetime.datetime\(2024, 5, 1, 0, 0\), without a time zone; add one, such as tzinfo=",
    ),
    "a timer that is no time": (waits(5), r"state.timer is 5; give a datetime, or None for no timer"),
    "a timer of nought": (waits(0), r"state.timer is 0; give a datetime, or None for no timer"),
}


@pytest.mark.parametrize("what", WRONG)
def test_refused_with_the_value_and_what_to_do(what: str) -> None:
    process, message = WRONG[what]

    def given_back(key: Key, rows: Rows, state: State) -> Any:
        given = process(key, rows, state)
        return given if isinstance(given, tuple) else ()

    with pytest.raises(SkewlessError, match=message):
        run(Made(given_back), {"ann": [1]})


def test_a_whole_number_as_a_float_is_a_whole_number() -> None:
    found, kept = run(Made(lambda key, rows, state: [(3.0, "x"), (np.int32(4), "x"), (None, "x")]), {"ann": [1]})
    assert found == [("ann", 3, "x"), ("ann", 4, "x"), ("ann", None, "x")]
    assert kept.fields[0].to_pylist() == [None]


class Each(Processor):
    """A running total, and a timer as many seconds after noon as it is; a key is forgotten at 0."""

    state = "total long, name string"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        amount = total(key, rows, state)
        state["name"], state.timer = f"of {len(rows)}", NOON + timedelta(seconds=amount)
        if amount == 0:
            state.forget()
        yield (amount, f"of {len(rows)}")

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        yield (-1, key[0])


class Many(SlotProcessor):
    """The same, for all keys at once."""

    state = Each.state
    expire = Each.expire

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        sums = rows.group_by("group").aggregate([("price", "sum"), ("price", "count")]).sort_by("group")
        amount = pc.add(states["total"].fill_null(0), sums["price_sum"])
        nil = pc.equal(amount, 0)
        name = pc.binary_join_element_wise("of", sums["price_count"].cast(pa.string()), " ")
        timer = pc.add(pa.scalar(NOON, TIME), pc.multiply(amount, 1_000_000).cast(pa.duration("us")))
        columns = {"timer": timer, "name": name, "total": amount}
        states = pa.table({key: pc.if_else(nil, None, column) for key, column in columns.items()})
        return pa.table({"note": name, "total": amount}), states


@given(
    st.lists(
        st.tuples(st.none() | st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=4)),
        min_size=1,
        max_size=6,
    )
)
def test_all_keys_at_once_give_and_keep_what_they_do_one_by_one(data: list[tuple[int | None, list[int]]]) -> None:
    rows: dict[str | None, list[int]] = {str(i): prices for i, (_total, prices) in enumerate(data)}
    totals = [total for total, _prices in data]
    each, many = run(Each(), rows, totals), run(Many(), rows, totals)
    assert many[0] == each[0]
    assert many[1].timers.equals(each[1].timers)
    assert [column.to_pylist() for column in many[1].fields] == [column.to_pylist() for column in each[1].fields]
    assert many[1].keys[0].to_pylist() == list(rows)


def test_the_fastest_way_is_taken() -> None:
    assert type(calls_of(Many(), KEYS, FIELDS, RESULT)) is ManyKeys
    assert type(calls_of(Each(), KEYS, FIELDS, RESULT)) is EachKey
    result, _kept = calls_of(Many(), KEYS, FIELDS, RESULT).expire(kept_of(["ann"], [1], [5]), watermark=6)
    assert result.to_pylist() == [{"0": "ann", "1": -1, "2": "ann"}]


def slot(result: dict[str, Any], states: dict[str, Any]) -> SlotProcessor:
    class Fixed(SlotProcessor):
        state = Each.state

        def process_slot(self, rows: pa.Table, _states: pa.Table) -> tuple[pa.Table, pa.Table]:
            return pa.table(result), pa.table(states)

    return Fixed()


GIVEN: dict[str, list[Any]] = {"total": [1, 2], "note": ["x", None]}
STATE: dict[str, Any] = {"total": [1, 2], "name": ["x", None]}
WRONG_TABLES = {
    "too few states": (
        slot(GIVEN, {"total": [1], "name": ["x"]}),
        "process_slot gave states for 1 keys where 2 came; give a row for each key, in the order they came",
    ),
    "too many states": (slot(GIVEN, {"total": [1, 2, 3], "name": ["x"] * 3}), "states for 3 keys where 2 came"),
    "a state field left out": (slot(GIVEN, {"total": [1, 2]}), r"the states of process_slot lack name; .*\['total'\]"),
    "a column left out": (slot({"note": ["x", "y"]}, STATE), r"the result of process_slot lack total; .*\['note'\]"),
    "text for a number": (slot({**GIVEN, "total": ["x", "x"]}, STATE), "total in the result.*no int64.*'x'"),
    "a list for a number": (slot(GIVEN, {**STATE, "total": [[1], [2]]}), "total in the states.*no int64"),
    "a fraction for a whole number": (
        slot(GIVEN, {**STATE, "total": [1.5, 2.0]}),
        "total in the states.*no int64.*1.5",
    ),
    "naive timers": (
        slot(GIVEN, {**STATE, "timer": [datetime(2024, 5, 1), None]}),
        r"timer in the states of process_slot is timestamp\[us\]; give a timestamp with a time zone",
    ),
    "rows of no key": (
        slot({"total": [1], "note": ["x"]}, STATE),
        "process_slot gave 1 rows for 2 keys; add a column 'group' with the number of each row's key in `states`",
    ),
    "a row of a key that did not come": (slot({**GIVEN, "group": [0, 2]}, STATE), "has group 2; there are 2 keys"),
    "a row of a key before all": (slot({**GIVEN, "group": [-1, 1]}, STATE), "has group -1; there are 2 keys"),
    "a row that names no key": (slot({**GIVEN, "group": [None, 1]}, STATE), "has group null; there are 2 keys"),
    "text for the number of a key": (slot({**GIVEN, "group": ["a", "b"]}, STATE), "group in the result.*no int64"),
    "timers that are no times": (slot(GIVEN, {**STATE, "timer": [5, None]}), "timer in the states.* is int64; give a"),
}


@pytest.mark.parametrize("what", WRONG_TABLES)
def test_tables_are_refused_with_the_value_and_what_to_do(what: str) -> None:
    processor, message = WRONG_TABLES[what]
    with pytest.raises(SkewlessError, match=message):
        run(processor, {"ann": [1], "bob": [2]})


def test_tables_may_have_more_columns_and_timers_of_nulls() -> None:
    found, kept = run(
        slot({"more": [0, 0], **GIVEN}, {"more": [0, 0], **STATE, "timer": [None, None]}), {"ann": [1], "bob": [2]}
    )
    assert found == [("ann", 1, "x"), ("bob", 2, None)]
    assert kept.timers.to_pylist() == [None, None]
    assert kept.fields[1].to_pylist() == ["x", None]


def test_rows_of_a_table_have_the_key_whose_number_they_name() -> None:
    given_rows = {"total": [1, 2, 3, 4], "note": ["x"] * 4, "group": [1, 1, 0, 1]}
    found, _kept = run(slot(given_rows, STATE), {"ann": [1], "bob": [2]})
    assert found == [("bob", 1, "x"), ("bob", 2, "x"), ("ann", 3, "x"), ("bob", 4, "x")]
    none = {"total": pa.nulls(0, pa.int64()), "note": pa.nulls(0, pa.string()), "group": pa.nulls(0, pa.int64())}
    assert run(slot(none, STATE), {"ann": [1], "bob": [2]})[0] == []
