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
from skewless.operators.process.calls import TIME, EachKey, Kept, ManyKeys, step_of
from skewless.operators.process.processor import Key, Row

KEYS = pa.schema([("user", pa.string())])
FIELDS = pa.schema([("total", pa.int64()), ("name", pa.string())])
RESULT = pa.schema([("user", pa.string()), ("total", pa.int64())])
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
    """The result as tuples, and what is then kept."""
    step = step_of(processor, KEYS, FIELDS, RESULT)
    users = [user for user, prices in rows.items() for _price in prices]
    prices = [price for prices in rows.values() for price in prices]
    batch = pa.RecordBatch.from_arrays([pa.array(users, pa.string()), pa.array(prices, pa.int64())], schema=INPUT)
    bounds = np.cumsum([0, *map(len, rows.values())])
    result, kept = step.rows(batch, bounds, kept_of(list(rows), totals or [None] * len(rows)))
    assert result.schema == RESULT
    return list(zip(*(column.to_pylist() for column in result.columns), strict=True)), kept


def total(key: Key, rows: Rows, state: State) -> int:
    state["total"] = (state["total"] or 0) + sum(rows["price"])
    return int(state["total"])


def as_tuples(key: Key, rows: Rows, state: State) -> list[Row]:
    return [(*key, total(key, rows, state))]


def as_dictionaries(key: Key, rows: Rows, state: State) -> list[Row]:
    return [{"total": total(key, rows, state), "user": key[0]}]


def as_generator(key: Key, rows: Rows, state: State) -> Iterable[Row]:
    yield [*key, total(key, rows, state)]


@pytest.mark.parametrize("process", [as_tuples, as_dictionaries, as_generator])
def test_rows_of_the_result_may_be_given_as(process: Process) -> None:
    found, kept = run(Made(process), {"ann": [1, 2], None: [5], "bob": [7]}, [10, None, 20])
    assert found == [("ann", 13), (None, 5), ("bob", 27)]
    assert kept.fields[0].to_pylist() == [13, 5, 27]


def test_a_processor_may_give_nothing_and_names_left_out_are_null() -> None:
    def some(key: Key, rows: Rows, state: State) -> list[Row] | None:
        return None if key == ("ann",) else [{"user": key[0]}]

    found, kept = run(Made(some), {"ann": [1], "bob": [1]})
    assert found == [("bob", None)]
    assert kept.fields[0].to_pylist() == [None, None]


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
        yield (*key, state["total"])

    step = step_of(Made(as_tuples, expire), KEYS, FIELDS, RESULT)
    result, kept = step.expire(kept_of(["ann", "bob"], [1, 2], [5, 6]))
    assert result.to_pydict() == {"user": ["ann", "bob"], "total": [1, 2]}
    assert kept.timers.to_pylist() == [None, int(NOON.timestamp()) * 1_000_000]
    silent = step_of(Made(as_tuples), KEYS, FIELDS, RESULT)
    assert silent.expire(kept_of(["ann"], [1], [5]))[0].num_rows == 0


def gives(*rows: Any) -> Process:
    return lambda key, seen, state: rows


def keeps(name: str, value: Any) -> Process:
    return lambda key, rows, state: state.__setitem__(name, value)


def waits(timer: Any) -> Process:
    return lambda key, rows, state: setattr(state, "timer", timer)


WRONG = {
    "too few values": (gives(("ann",)), r"a row of the result is \('ann',\); give 2 values, user, total"),
    "too many values": (gives(("ann", 1, 2)), r"a row of the result is \('ann', 1, 2\); give 2 values, user, total"),
    "an unknown name": (gives({"user": "ann", "totl": 1}), r"'totl': 1.*; give 2 values, user, total"),
    "values instead of rows": (gives("ab"), r"a row of the result is 'ab'; give 2 values, user, total, as a tuple"),
    "a number instead of a row": (gives(7), r"a row of the result is 7; give 2 values"),
    "text for a number": (
        gives(("ann", 1), ("ann", "x")),
        r"column 'total' is 'x', which is no int64.*declare another",
    ),
    "a number for text": (gives((5, 1)), r"column 'user' is 5, which is no string .*declare another"),
    "a fraction for a whole number": (gives(("ann", 2.5)), r"column 'total' is 2\.5, which is no int64"),
    "a number too large": (gives(("ann", 2**70)), r"column 'total' is 1180591620717411303424, which is no int64"),
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
    found, kept = run(Made(lambda key, rows, state: [("ann", 3.0), ("ann", np.int32(4)), ("ann", None)]), {"ann": [1]})
    assert found == [("ann", 3), ("ann", 4), ("ann", None)]
    assert kept.fields[0].to_pylist() == [None]


class Each(Processor):
    """A running total, and a timer as many seconds after noon as it is; a key is forgotten at 0."""

    state = "total long, name string"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        amount = total(key, rows, state)
        state["name"], state.timer = f"of {len(rows)}", NOON + timedelta(seconds=amount)
        if amount == 0:
            state.forget()
        yield (*key, amount)

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        yield (*key, -1)


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
        return pa.table({"user": sums["group"].cast(pa.string()), "total": amount}), states


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
    assert type(step_of(Many(), KEYS, FIELDS, RESULT)) is ManyKeys
    assert type(step_of(Each(), KEYS, FIELDS, RESULT)) is EachKey
    result, _kept = step_of(Many(), KEYS, FIELDS, RESULT).expire(kept_of(["ann"], [1], [5]))
    assert result.to_pylist() == [{"user": "ann", "total": -1}]


def slot(result: dict[str, list[Any]], states: dict[str, Any]) -> SlotProcessor:
    class Fixed(SlotProcessor):
        state = Each.state

        def process_slot(self, rows: pa.Table, _states: pa.Table) -> tuple[pa.Table, pa.Table]:
            return pa.table(result), pa.table(states)

    return Fixed()


ONE: dict[str, list[Any]] = {"user": ["ann"], "total": [1]}
STATE: dict[str, Any] = {"total": [1, 2], "name": ["x", None]}
WRONG_TABLES = {
    "too few states": (
        slot(ONE, {"total": [1], "name": ["x"]}),
        "process_slot gave states for 1 keys where 2 came; give a row for each key, in the order they came",
    ),
    "too many states": (slot(ONE, {"total": [1, 2, 3], "name": ["x"] * 3}), "states for 3 keys where 2 came"),
    "a state field left out": (slot(ONE, {"total": [1, 2]}), r"the states of process_slot lack name; .*\['total'\]"),
    "a column left out": (slot({"user": ["ann"]}, STATE), r"the result of process_slot lack total; .*\['user'\]"),
    "text for a number": (slot({"user": ["ann"], "total": ["x"]}, STATE), "total in the result.*no int64.*'x'"),
    "a list for a number": (slot(ONE, {**STATE, "total": [[1], [2]]}), "total in the states.*no int64"),
    "a fraction for a whole number": (slot(ONE, {**STATE, "total": [1.5, 2.0]}), "total in the states.*no int64.*1.5"),
    "naive timers": (
        slot(ONE, {**STATE, "timer": [datetime(2024, 5, 1), None]}),
        r"timer in the states of process_slot is timestamp\[us\]; give a timestamp with a time zone",
    ),
    "timers that are no times": (slot(ONE, {**STATE, "timer": [5, None]}), "timer in the states.* is int64; give a"),
}


@pytest.mark.parametrize("what", WRONG_TABLES)
def test_tables_are_refused_with_the_value_and_what_to_do(what: str) -> None:
    processor, message = WRONG_TABLES[what]
    with pytest.raises(SkewlessError, match=message):
        run(processor, {"ann": [1], "bob": [2]})


def test_tables_may_have_more_columns_and_timers_of_nulls() -> None:
    found, kept = run(
        slot({"more": [0], **ONE}, {"more": [0, 0], **STATE, "timer": [None, None]}), {"ann": [1], "bob": [2]}
    )
    assert found == [("ann", 1)]
    assert kept.timers.to_pylist() == [None, None]
    assert kept.fields[1].to_pylist() == ["x", None]
