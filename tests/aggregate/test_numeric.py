from __future__ import annotations

import math
import statistics
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import aggregate as A
from skewless.core.errors import SkewlessError

N = 4
SEEDS = st.integers(0, 2**32)
LONG = 2**63
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
DECIMALS = [pa.decimal128(*digits) for digits in ((5, 2), (18, 0), (19, 4), (38, 0), (38, 38))]
WIDE = Context(prec=200)
examples = settings(max_examples=40)


def rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[int, Any]]]:
    """Rows of a group and a value or null."""
    return st.lists(st.tuples(st.integers(0, N - 1), st.none() | values), max_size=40)


def integers_of(kind: pa.DataType) -> st.SearchStrategy[int]:
    limits = np.iinfo(kind.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)
    return st.integers(low, high) | st.sampled_from([low, high]) | st.integers(0, 9)


def decimals_of(kind: pa.DataType) -> st.SearchStrategy[Decimal]:
    most = 10**kind.precision - 1
    unscaled = st.integers(-most, most) | st.sampled_from([most, -most]) | st.integers(-9, 9)
    return unscaled.map(lambda value: Decimal(value).scaleb(-kind.scale, WIDE))


def columns(data: list[tuple[int, Any]], kind: pa.DataType) -> tuple[list[int], pa.Array]:
    return [group for group, _ in data], pa.array([value for _, value in data], type=kind)


def grouped(data: list[tuple[int, Any]]) -> list[list[Any]]:
    """The values of each group that are not null."""
    return [[value for at, value in data if at == group and value is not None] for group in range(N)]


@examples
@given(rows(st.floats()), SEEDS)
def test_count_is_of_rows_or_of_values(pieced, data, seed):
    groups, column = columns(data, pa.float64())
    assert pieced(A.count().bind([]), groups, N, seed=seed) == [groups.count(group) for group in range(N)]
    assert pieced(A.count("x").bind([column.type]), groups, N, column, seed=seed) == [len(v) for v in grouped(data)]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_sums_and_means_of_integers_are_exact(pieced, kind):
    @settings(max_examples=25)
    @given(rows(integers_of(kind)), SEEDS)
    def check(data, seed):
        groups, column = columns(data, kind)
        totals = [sum(values) if values else None for values in grouped(data)]
        means = [float(Fraction(sum(values), len(values))) if values else None for values in grouped(data)]
        assert pieced(A.mean("x").bind([kind]), groups, N, column, seed=seed) == means
        kernel = A.sum("x").bind([kind])
        if all(total is None or -LONG <= total < LONG for total in totals):
            assert pieced(kernel, groups, N, column, seed=seed) == totals
        else:
            with pytest.raises(SkewlessError, match="does not fit into a long"):
                pieced(kernel, groups, N, column, seed=seed)

    check()


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
def test_sums_and_means_of_decimals_are_exact(pieced, kind):
    @settings(max_examples=25)
    @given(rows(decimals_of(kind)), SEEDS)
    def check(data, seed):
        groups, column = columns(data, kind)
        totals, means = [], []
        mean = A.mean("x").bind([kind])
        for values in grouped(data):
            total = Decimal(0)
            for value in values:
                total = WIDE.add(total, value)
            totals.append(total if values else None)
            quotient = WIDE.divide(total, Decimal(max(len(values), 1)))
            step = Decimal(1).scaleb(-mean.result.scale)
            means.append(quotient.quantize(step, ROUND_HALF_UP, WIDE) if values else None)
        for kernel, wanted in ((A.sum("x").bind([kind]), totals), (mean, means)):
            most = Decimal(10) ** (kernel.result.precision - kernel.result.scale)
            if all(value is None or value.copy_abs() < most for value in wanted):
                assert pieced(kernel, groups, N, column, seed=seed) == wanted
            else:
                with pytest.raises(SkewlessError, match="does not fit into decimal128"):
                    pieced(kernel, groups, N, column, seed=seed)

    check()


def test_a_decimal_sum_may_pass_its_precision_on_the_way_but_not_at_the_end(pieced):
    kind, most = pa.decimal128(38, 0), Decimal(10**38 - 1)
    kernel = A.sum("x").bind([kind])
    assert pieced(kernel, [0, 0, 0], 1, pa.array([most, most, most.copy_negate()], type=kind)) == [most]
    with pytest.raises(SkewlessError, match="decimal128\\(38, 0\\)"):
        pieced(kernel, [0, 0], 1, pa.array([most, 1], type=kind))


def test_a_sum_of_more_rows_than_a_double_counts_exactly():
    n = (1 << 21) + 5
    kernel = A.sum("x").bind([pa.int64()])
    column = pa.array(np.full(n, 2**32 - 1))
    assert kernel.finish(kernel.partial(np.zeros(n, dtype=np.int64), 1, [column])).to_pylist() == [n * (2**32 - 1)]


def test_a_sliced_column_is_summed_from_its_start():
    for kind in (pa.int64(), pa.decimal128(38, 2)):
        kernel = A.sum("x").bind([kind])
        column = pa.array([100, None, 7, 1], type=pa.int64()).cast(kind).slice(1)
        assert kernel.finish(kernel.partial(np.zeros(3, dtype=np.int64), 1, [column])).to_pylist() == [8]


def test_what_lies_under_a_null_is_not_summed():
    for kind in (pa.int64(), pa.decimal128(38, 0)):
        full = pa.array([1, 2, 4], type=kind)
        validity = pa.py_buffer(bytes([0b101]))
        column = pa.Array.from_buffers(kind, 3, [validity, full.buffers()[1]])
        kernel = A.sum("x").bind([kind])
        assert kernel.finish(kernel.partial(np.zeros(3, dtype=np.int64), 1, [column])).to_pylist() == [5]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_floats_agree_with_exact_arithmetic(pieced, kind):
    @examples
    @given(rows(st.floats(-1e6, 1e6, width=32)), SEEDS)
    def check(data, seed):
        groups, column = columns(data, kind)
        wanted = {
            A.sum: [math.fsum(values) if values else None for values in grouped(data)],
            A.mean: [statistics.fmean(values) if values else None for values in grouped(data)],
            A.var: [statistics.variance(values) if len(values) > 1 else None for values in grouped(data)],
            A.std: [statistics.stdev(values) if len(values) > 1 else None for values in grouped(data)],
        }
        for measure, values in wanted.items():
            found = pieced(measure("x").bind([kind]), groups, N, column, seed=seed)
            assert found == [None if value is None else pytest.approx(value, rel=1e-9, abs=1e-4) for value in values]

    check()


def test_all_of_them_agree_with_duckdb(pieced):
    rng = np.random.default_rng(7)
    groups = rng.integers(0, N, 5000)
    whole, real = rng.integers(-(10**6), 10**6, 5000), rng.normal(1e6, 1, 5000)
    sold = pa.table({"g": groups, "i": whole, "f": real})
    for column, kind in (("i", pa.int64()), ("f", pa.float64())):
        functions = (A.count, A.sum, A.mean, A.var, A.std)
        calls = ", ".join(f"{name}({column})" for name in ("count", "sum", "avg", "var_samp", "stddev_samp"))
        wanted = duckdb.sql(f"select {calls} from sold group by g order by g").fetchall()
        for i, function in enumerate(functions):
            found = pieced(function(column).bind([kind]), groups.tolist(), N, sold[column].combine_chunks())
            assert found == [pytest.approx(float(row[i]), rel=1e-9) for row in wanted]


@pytest.mark.parametrize(
    ("values", "total", "spread"),
    [
        ([1.0, math.nan], math.nan, math.nan),
        ([math.inf, 1.0], math.inf, math.nan),
        ([math.inf, -math.inf], math.nan, math.nan),
        ([1e308, 1e308], math.inf, 0.0),
        ([1e200, 1e200], 2e200, 0.0),
    ],
)
def test_sums_that_are_not_finite_warn_nobody(values, total, spread):
    # Each value is a state of its own, so that it is the join that meets them.
    kernels = A.sum("x").bind([pa.float64()]), A.var("x").bind([pa.float64()])
    for kernel, wanted in zip(kernels, (total, spread), strict=True):
        state = kernel.empty(1)
        for value in values:
            state = kernel.join(state, kernel.partial(np.array([0]), 1, [pa.array([value])]))
        assert kernel.finish(kernel.join(state, kernel.empty(1))).to_pylist() == [pytest.approx(wanted, nan_ok=True)]


def test_variance_takes_longs_that_no_double_holds(pieced):
    found = pieced(A.var("x").bind([pa.int64()]), [0, 0], 1, pa.array([LONG - 1, -LONG]))
    assert found == [pytest.approx(2.0**127)]


@examples
@given(rows(integers_of(pa.int64())), rows(integers_of(pa.int64())), SEEDS)
def test_leave_undoes_join(states, stay, go, seed):
    for measure in (A.count(), A.sum("x"), A.mean("x")):
        for kind in (pa.int64(), pa.decimal128(38, 1)):
            kernel = measure.bind([kind])
            assert kernel.inverts
            kept = states(kernel, *split(stay, kind), seed=seed)
            gone = states(kernel, *split(go, kind), seed=seed + 1)
            back = kernel.leave(kernel.join(kept, gone), gone)
            assert [field.tolist() for field in back] == [field.tolist() for field in kept]


def split(data: list[tuple[int, Any]], kind: pa.DataType) -> tuple[list[int], int, pa.Array]:
    groups, column = columns(data, pa.int64())
    return groups, N, column.cast(kind)


def test_what_cannot_be_undone_says_so():
    for measure in (A.var("x"), A.min("x"), A.sum("x"), A.collect("x")):
        kernel = measure.bind([pa.float64()])
        assert not kernel.inverts
        with pytest.raises(NotImplementedError):
            kernel.leave(kernel.empty(1), kernel.empty(1))


@pytest.mark.parametrize("measure", [A.sum, A.mean, A.var, A.std], ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("kind", [pa.string(), pa.bool_(), pa.date32(), pa.list_(pa.int64())], ids=str)
def test_only_numbers_can_be_added(measure, kind):
    with pytest.raises(SkewlessError, match=rf"{measure.__name__}\(x\) wants numbers"):
        measure("x").bind([kind])


def test_a_column_must_be_a_name():
    with pytest.raises(SkewlessError, match="not the name of a column"):
        A.sum(3)
