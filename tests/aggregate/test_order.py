from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import aggregate as A
from skewless.aggregate.measure import TIME
from skewless.core.errors import SkewlessError

N = 3
SEEDS = st.integers(0, 2**32)
LONG = 2**63
UTC = timezone.utc
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))

KINDS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-LONG, LONG - 1) | st.sampled_from([-LONG, LONG - 1, LONG - 2]),
    pa.uint64(): st.integers(0, 2 * LONG - 1) | st.sampled_from([2 * LONG - 1, LONG, LONG - 1]),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.duration("us"): st.timedeltas(timedelta(-(10**8)), timedelta(10**8)),
    pa.time64("us"): st.times(),
    pa.decimal128(38, 3): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda value: Decimal(f"{value}E-3")),
    pa.string(): st.text("ab~é\0\U0001f600\uffff", max_size=4),
    pa.large_string(): st.text("ab", max_size=3),
    pa.binary(): st.binary(max_size=4),
    pa.binary(2): st.binary(min_size=2, max_size=2),
}
NESTED = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
BYS = {
    pa.int32(): st.integers(0, 3),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf]),
    pa.date32(): st.dates(date(2024, 1, 1), date(2024, 1, 3)),
    pa.timestamp("us", "UTC"): st.integers(0, 3).map(lambda s: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=s)),
}


def order(value: Any) -> Any:
    """Spark's order: NaN comes last, False before True; zeros are equal."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def same(found: list[Any], wanted: list[Any]) -> bool:
    """Equal, where NaN equals NaN."""
    return [None if v is None else order(v) for v in found] == [None if v is None else order(v) for v in wanted]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_min_and_max_follow_sparks_order(pieced, kind):
    @settings(max_examples=25)
    @given(st.lists(st.tuples(st.integers(0, N - 1), st.none() | KINDS[kind]), max_size=30), SEEDS)
    def check(data, seed):
        groups, column = [group for group, _ in data], pa.array([value for _, value in data], type=kind)
        values = [[v for at, v in data if at == group and v is not None] for group in range(N)]
        for measure, best in ((A.min, min), (A.max, max)):
            kernel = measure("x").bind([kind])
            assert kernel.result == kind
            found = pieced(kernel, groups, N, column, seed=seed)
            assert same(found, [best(those, key=order) if those else None for those in values])

    check()


def test_nan_is_greater_than_everything(pieced):
    column = pa.array([math.nan, math.inf, math.nan, None])
    assert same(pieced(A.min("x").bind([column.type]), [0, 0, 1, 2], 3, column), [math.inf, math.nan, None])
    assert same(pieced(A.max("x").bind([column.type]), [0, 0, 1, 2], 3, column), [math.nan, math.nan, None])


def test_neighbouring_longs_are_told_apart(pieced):
    column = pa.array([LONG - 2, LONG - 1, -LONG, 1 - LONG])
    assert pieced(A.max("x").bind([column.type]), [0, 0, 1, 1], 2, column) == [LONG - 1, 1 - LONG]
    assert pieced(A.min("x").bind([column.type]), [0, 0, 1, 1], 2, column) == [LONG - 2, -LONG]


@pytest.mark.parametrize("measure", [A.min, A.max], ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), NESTED, pa.null(), pa.month_day_nano_interval()], ids=str)
def test_what_has_no_order_has_no_least(measure, kind):
    with pytest.raises(SkewlessError, match=rf"{measure.__name__}\(x\) wants numbers, text"):
        measure("x").bind([kind])


def edge(data: list[tuple[int, Any, Any]], group: int, last: bool, ignore_nulls: bool, text: bool) -> Any:
    """First or last of a group, by sorting its rows."""
    rows = [(by, v) for at, v, by in data if at == group and by is not None and not (ignore_nulls and v is None)]
    rows.sort(key=lambda row: (order(row[0]), row[1] is not None, repr(row[1]) if text else row[1]))
    return rows[-1 if last else 0][1] if rows else None


@pytest.mark.parametrize("by", BYS, ids=str)
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), NESTED], ids=str)
def test_first_and_last_are_by_time_then_by_value(pieced, kind, by):
    values = {
        pa.int64(): st.sampled_from([-LONG, -1, 0, 1, LONG - 1]),
        pa.string(): st.sampled_from(["", "a", "b", "é"]),
        NESTED: st.builds(lambda a, b: {"a": a, "b": b}, st.integers(0, 2), st.none() | st.just(["x"])),
    }[kind]
    row = st.tuples(st.integers(0, N - 1), st.none() | values, st.none() | BYS[by])

    @settings(max_examples=15)
    @given(st.lists(row, max_size=30), SEEDS)
    def check(data, seed):
        groups, column, times = ([row[i] for row in data] for i in range(3))
        arrays = pa.array(column, type=kind), pa.array(times, type=by)
        for measure, last in ((A.first, False), (A.last, True)):
            for ignore_nulls in (False, True):
                kernel = measure("x", by="t", ignore_nulls=ignore_nulls).bind([kind, by])
                found = pieced(kernel, groups, N, *arrays, seed=seed)
                assert found == [edge(data, group, last, ignore_nulls, kind == NESTED) for group in range(N)]

    check()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not pa.types.is_floating(kind)], ids=str)
def test_first_gives_back_any_type(pieced, kind):
    @settings(max_examples=5)
    @given(st.lists(KINDS[kind], min_size=1, max_size=8), SEEDS)
    def check(values, seed):
        kernel = A.first("x").bind([kind, pa.int64()])
        times = pa.array(range(len(values)), type=pa.int64())
        assert pieced(kernel, [0] * len(values), 1, pa.array(values, type=kind), times, seed=seed) == values[:1]

    check()


def test_the_first_zero_keeps_its_sign(pieced):
    column, times = pa.array([-0.0, 0.0]), pa.array([1, 2])
    (first,) = pieced(A.first("x").bind([column.type, times.type]), [0, 0], 1, column, times)
    assert math.copysign(1, first) == -1


def test_nulls_of_the_same_time_lose_to_values_only_in_last(pieced):
    column, times = pa.array([None, 5]), pa.array([1, 1])
    assert pieced(A.first("x").bind([column.type, times.type]), [0, 0], 1, column, times) == [None]
    assert pieced(A.last("x").bind([column.type, times.type]), [0, 0], 1, column, times) == [5]
    assert pieced(A.first("x", ignore_nulls=True).bind([column.type, times.type]), [0, 0], 1, column, times) == [5]


def test_extremes_and_edges_agree_with_duckdb(pieced):
    rng = np.random.default_rng(3)
    groups, times = rng.integers(0, N, 3000), rng.permutation(3000)
    words = np.array([f"w{i}" for i in rng.integers(0, 500, 3000)])
    seen = duckdb.from_arrow(pa.table({"g": groups, "t": times, "w": words}))
    wanted = seen.aggregate("g, min(w), max(w), arg_min(w, t), arg_max(w, t)").order("g").fetchall()
    word, time = pa.array(words), pa.array(times)
    found = [
        pieced(A.min("w").bind([word.type]), groups.tolist(), N, word),
        pieced(A.max("w").bind([word.type]), groups.tolist(), N, word),
        pieced(A.first("w", by="t").bind([word.type, time.type]), groups.tolist(), N, word, time),
        pieced(A.last("w", by="t").bind([word.type, time.type]), groups.tolist(), N, word, time),
    ]
    assert list(zip(range(N), *found, strict=True)) == wanted


def test_without_a_column_to_order_by_it_is_the_time_of_the_row():
    assert A.first("x").columns == ("x", TIME)
    assert A.last("x", by="t").columns == ("x", "t")
    assert (repr(A.first("x")), repr(A.last("x", by="t"))) == ("first(x)", "last(x, by=t)")


@pytest.mark.parametrize("by", [pa.string(), pa.bool_(), pa.decimal128(5, 2), NESTED], ids=str)
def test_rows_are_ordered_only_by_what_is_like_time(by):
    with pytest.raises(SkewlessError, match="to order by"):
        A.first("x", by="t").bind([pa.int64(), by])
