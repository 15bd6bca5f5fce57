from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import aggregate as A
from skewless.core.errors import SkewlessError

N = 3
SEEDS = st.integers(0, 2**32)
KINDS = {
    pa.int64(): st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]),
    pa.uint64(): st.sampled_from([0, 1, 2**63, 2**64 - 1]),
    pa.float64(): st.sampled_from([0.0, 1.5, -1.5, math.inf]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(date(2024, 1, 1), date(2024, 1, 9)),
    pa.timestamp("us", "UTC"): st.integers(1, 9).map(lambda day: datetime(2024, 1, day, tzinfo=timezone.utc)),
    pa.decimal128(20, 2): st.integers(-3, 12).map(lambda value: Decimal(value).scaleb(-2)),
    pa.string(): st.sampled_from(["", "a", "A", "é", "a\0b", "10", "9"]),
    pa.binary(): st.sampled_from([b"", b"\0", b"\xff", b"a"]),
}


def rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[int, Any]]]:
    return st.lists(st.tuples(st.integers(0, N - 1), st.none() | values), max_size=40)


def columns(data: list[tuple[int, Any]], kind: pa.DataType) -> tuple[list[int], pa.Array]:
    return [group for group, _ in data], pa.array([value for _, value in data], type=kind)


def grouped(data: list[tuple[int, Any]]) -> list[list[Any]]:
    """The values of each group that are not null."""
    return [[value for at, value in data if at == group and value is not None] for group in range(N)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_few_values_are_counted_exactly(pieced, kind):
    @settings(max_examples=25)
    @given(rows(KINDS[kind]), SEEDS)
    def check(data, seed):
        groups, column = columns(data, kind)
        found = pieced(A.distinct("x").bind([kind]), groups, N, column, seed=seed)
        assert found == [len(set(values)) for values in grouped(data)]
        tops = pieced(A.top("x", k=3).bind([kind]), groups, N, column, seed=seed)
        for top, values in zip(tops, grouped(data), strict=True):
            wanted = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))[:3]
            assert [(each["item"], each["count"]) for each in top] == wanted

    check()


def test_zeros_and_nans_are_one_value_each(pieced):
    negative_nan = np.array([-1], dtype=np.int64).view(np.float64)[0]
    column = pa.array([0.0, -0.0, math.nan, negative_nan, 1.0])
    assert pieced(A.distinct("x").bind([column.type]), [0] * 5, 1, column) == [3]
    (top,) = pieced(A.top("x").bind([column.type]), [0] * 5, 1, column)
    assert [each["count"] for each in top] == [2, 2, 1]
    assert top[0]["item"] == 0.0
    assert math.isnan(top[1]["item"])


@pytest.mark.parametrize("lg_k", [8, 12])
def test_many_distinct_values_stay_within_the_bound(pieced, lg_k):
    truth = [200, 3000, 20000]
    groups = [group for group, n in enumerate(truth) for i in range(n) for _ in range(2)]
    values = [i for n in truth for i in range(n) for _ in range(2)]
    found = pieced(A.distinct("x", lg_k).bind([pa.int64()]), groups, N, pa.array(values))
    bound = -datasketches.hll_sketch.get_rel_err(True, True, lg_k, 3)
    assert bound < 4 * 1.04 / math.sqrt(2**lg_k)
    for estimate, n in zip(found, truth, strict=True):
        assert abs(estimate - n) <= bound * n + 0.5


@settings(max_examples=40)
@given(
    rows(st.floats(allow_nan=True, allow_infinity=False) | st.sampled_from([1.0, 2.0])),
    st.lists(st.floats(0, 1) | st.sampled_from([0, 0.25, 0.5, 1]), min_size=1, max_size=3),
    SEEDS,
)
def test_quantiles_of_few_values_are_exact(pieced, data, shares, seed):
    groups, column = columns(data, pa.float64())
    wanted = []
    for values in grouped(data):
        ordered = sorted(value for value in values if not math.isnan(value))
        ranks = [max(0, math.ceil(share * len(ordered)) - 1) for share in shares]
        wanted.append([ordered[rank] for rank in ranks] if ordered else None)
    assert pieced(A.quantile("x", shares).bind([column.type]), groups, N, column, seed=seed) == wanted
    one = pieced(A.quantile("x", shares[0]).bind([column.type]), groups, N, column, seed=seed)
    assert one == [values and values[0] for values in wanted]


@pytest.mark.parametrize("k", [50, 200])
def test_quantiles_of_many_values_stay_within_the_bound(pieced, k):
    n = 30_000
    shares = [0.01, 0.25, 0.5, 0.75, 0.99]
    values = np.random.default_rng(k).permutation(n)
    (found,) = pieced(A.quantile("x", shares, k=k).bind([pa.int64()]), [0] * n, 1, pa.array(values))
    # The bound holds with 99%; twice the bound all but always.
    bound = 2 * datasketches.kll_doubles_sketch.get_normalized_rank_error(k, False)
    for value, share in zip(found, shares, strict=True):
        assert abs((value + 1) / n - share) <= bound + 1 / n


@pytest.mark.parametrize("kind", [pa.int32(), pa.float32(), pa.decimal128(10, 1)], ids=str)
def test_quantiles_are_of_any_number(pieced, kind):
    column = pa.array([3, 1, 2], type=kind)
    assert pieced(A.quantile("x", 0.5).bind([kind]), [0, 0, 0], 1, column) == [2.0]


def test_quantiles_take_longs_that_no_double_holds(pieced):
    assert pieced(A.quantile("x", 1).bind([pa.int64()]), [0], 1, pa.array([2**63 - 1])) == [2.0**63]


def test_the_most_frequent_of_many_values_are_found(pieced):
    rng = np.random.default_rng(5)
    values = rng.zipf(1.3, 40_000) % 20_000
    truth = Counter(values.tolist())
    (top,) = pieced(A.top("x", k=5, lg_max_k=8).bind([pa.int64()]), [0] * len(values), 1, pa.array(values))
    off = datasketches.frequent_strings_sketch.get_epsilon_for_lg_size(8) * len(values)
    assert len(truth) > 2**8
    assert off == pytest.approx(3.5 / 2**8 * len(values))
    assert len(top) == 5
    for each in top:
        assert truth[each["item"]] <= each["count"] <= truth[each["item"]] + off
    least = top[-1]["count"]
    assert {item for item, count in truth.items() if count > least} <= {each["item"] for each in top}
    assert [each["count"] for each in top] == sorted((each["count"] for each in top), reverse=True)


def test_nothing_has_no_values(pieced):
    kinds = pa.string(), pa.array([None, None], type=pa.string())
    assert pieced(A.distinct("x").bind(kinds[:1]), [0, 1], N, kinds[1]) == [0, 0, 0]
    assert pieced(A.top("x").bind(kinds[:1]), [0, 1], N, kinds[1]) == [[], [], []]
    assert pieced(A.quantile("x", 0.5).bind([pa.int64()]), [0], 2, pa.array([None], type=pa.int64())) == [None, None]
    assert pieced(A.quantile("x", 0.5).bind([pa.float64()]), [0, 0], 1, pa.array([math.nan, math.nan])) == [None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: A.quantile("x", 1.1), "1.1 is no quantile"),
        (lambda: A.quantile("x", [0.5, -0.1]), "-0.1 is no quantile"),
        (lambda: A.quantile("x", math.nan), "nan is no quantile"),
        (lambda: A.quantile("x", []), "no shares"),
        (lambda: A.quantile("x", 0.5, k=7), "k is 7"),
        (lambda: A.distinct("x", lg_k=3), "lg_k is 3"),
        (lambda: A.distinct("x", lg_k=22), "lg_k is 22"),
        (lambda: A.top("x", k=0), "cannot give 0 values"),
        (lambda: A.top("x", k=769), "ask for 1 to 768"),
        (lambda: A.top("x", lg_max_k=2), "lg_max_k is 2"),
        (lambda: A.quantile("x", 0.5).bind([pa.string()]), "wants numbers"),
        (lambda: A.distinct("x").bind([pa.list_(pa.int64())]), "wants numbers, text"),
        (lambda: A.top("x").bind([pa.list_(pa.int64())]), "wants numbers, text"),
    ],
)
def test_what_no_sketch_can_do_is_refused(make, message):
    with pytest.raises(SkewlessError, match=message):
        make()


COLLECTED = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text("ab", max_size=2),
    pa.list_(pa.int64()): st.lists(st.integers(0, 3), max_size=2),
}


@pytest.mark.parametrize("kind", COLLECTED, ids=str)
def test_collect_gives_every_value_once(pieced, kind):
    @settings(max_examples=30)
    @given(rows(COLLECTED[kind]), SEEDS)
    def check(data, seed):
        groups, column = columns(data, kind)
        found = pieced(A.collect("x").bind([kind]), groups, N, column, seed=seed)
        assert [sorted(values) for values in found] == [sorted(values) for values in grouped(data)]

    check()


def test_only_what_has_an_answer_to_nothing_is_never_null():
    never = A.count(), A.distinct("x"), A.top("x"), A.collect("x")
    assert not any(measure.bind([pa.int64()]).nullable for measure in never)
    assert all(measure.bind([pa.int64()]).nullable for measure in (A.sum("x"), A.min("x"), A.quantile("x", 0.5)))


def test_collect_keeps_the_order_of_one_batch():
    kernel = A.collect("x").bind([pa.int64()])
    fields = kernel.partial(np.array([1, 0, 1, 1]), 2, [pa.array([9, 8, None, 1])])
    assert kernel.finish(fields).to_pylist() == [[8], [9, 1]]
