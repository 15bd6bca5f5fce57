"""Minimum and maximum, first and last: each keeps the one value that comes before all others in some order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel, drop_nulls, objects
from skewless.aggregate.measure import TIME, Measure
from skewless.core.arrays import BoolArray, Int64Array

_TOP_BIT = np.int64(-(1 << 63))
_OTHER_BITS = np.int64((1 << 63) - 1)


class Min(Measure):
    """The smallest of the values that are not null; null if all values are null.

    The order is Spark's: NaN comes after all other numbers, text is compared by its bytes.
    """

    largest: ClassVar[bool] = False

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type that has an order; nested types have none."""
        return ExtremeKernel(values_of(self.check(types[0], *COMPARABLE)), largest=self.largest)


class Max(Min):
    """The largest of the values that are not null; null if all values are null, and NaN if one of them is NaN."""

    largest = True


class First(Measure):
    """The value of the earliest row; null if there is no row.

    If several rows have the earliest time, the smallest value wins; null is smaller than any value, as in Spark's order
    of structs. So the answer does not depend on the order in which rows arrive. Nested values have no order: among
    them, the one whose text comes first wins.

    Parameters
    ----------
    column
        The column whose value is taken.
    by
        The column to order by: numbers, dates or timestamps. Rows where it is null are skipped. If it is not given,
        rows are ordered by their time.
    ignore_nulls
        Whether to skip rows whose value is null.
    """

    last: ClassVar[bool] = False

    def __init__(self, column: str, by: str | None = None, ignore_nulls: bool = False) -> None:
        super().__init__(column, TIME if by is None else by)
        self.ignore_nulls = ignore_nulls

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any value, ordered by numbers, dates or timestamps."""
        kind, by = types
        timelike = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_timestamp)
        self.check(by, "numbers, dates or timestamps to order by", *timelike)
        return EdgeKernel(values_of(kind), last=self.last, ignore_nulls=self.ignore_nulls)

    def __repr__(self) -> str:
        column, by = self.columns
        return f"{type(self).__name__.lower()}({column}{'' if by == TIME else f', by={by}'})"


class Last(First):
    """The value of the latest row; null if there is no row.

    If several rows have the latest time, the largest value wins; null is smaller than any value. The parameters are
    those of `First`.
    """

    last = True


class Values:
    """How the values of a column are held in an array and compared: as Python objects, which suits any type.

    Parameters
    ----------
    kind
        The column's type.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.stored = kind
        """The type in which the values are sent and stored."""

    def best(self, groups: Int64Array, n: int, column: pa.Array, *, largest: bool) -> tuple[Any, BoolArray]:
        """The smallest or largest value that is not null in each of `n` groups, and whether there is one."""
        groups, column = drop_nulls(groups, column)
        values, seen = np.empty(n, dtype=object), np.zeros(n, dtype=bool)
        if is_ordered(self.kind):  # Arrow knows the order, and compares faster
            function = "max" if largest else "min"
            best = pa.table({"group": groups, "value": column}).group_by("group").aggregate([("value", function)])
            at = np.asarray(best["group"])
            values[at], seen[at] = objects(best[f"value_{function}"].to_pylist()), True
            return values, seen
        for group, value in zip(groups.tolist(), column.to_pylist(), strict=True):
            if not seen[group] or self._before(value, values[group], largest):
                values[group], seen[group] = value, True
        return values, seen

    def wins(self, a: Any, b: Any, where: BoolArray, *, largest: bool) -> BoolArray:
        """Where `a` is smaller than `b`, or larger if `largest`; false wherever `where` is false."""
        won = np.zeros(len(a), dtype=bool)
        for i in np.flatnonzero(where):
            won[i] = self._before(a[i], b[i], largest)
        return won

    def array(self, values: Any, seen: BoolArray) -> pa.Array:
        """The values in the column's type, null where `seen` is false."""
        return pa.array(list(np.where(seen, values, None)), type=self.kind)

    def _before(self, a: Any, b: Any, largest: bool) -> bool:
        if not is_ordered(self.kind):
            a, b = repr(a), repr(b)
        return bool(a > b if largest else a < b)


class Ranked(Values):
    """Numbers, times and booleans, held as 64-bit integers in the same order, which are faster to compare."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.stored = pa.int64()

    def best(self, groups: Int64Array, n: int, column: pa.Array, *, largest: bool) -> tuple[Any, BoolArray]:
        """Compares the values by their ranks."""
        groups, column = drop_nulls(groups, column)
        return _extremes(groups, n, ranks(column, zeros_differ=True), largest=largest)

    def wins(self, a: Any, b: Any, where: BoolArray, *, largest: bool) -> BoolArray:
        """Compares the values by their ranks."""
        better: BoolArray = where & ((a > b) if largest else (a < b))
        return better

    def array(self, values: Any, seen: BoolArray) -> pa.Array:
        """The values that the ranks stand for."""
        return unranked(values, seen, self.kind)


class ExtremeKernel(Kernel):
    """Keeps the smallest or the largest value.

    Parameters
    ----------
    values
        How the values are held and compared.
    largest
        Whether to keep the largest value; otherwise the smallest is kept.
    """

    def __init__(self, values: Values, *, largest: bool) -> None:
        self.values, self.largest = values, largest
        self.types = (values.stored, pa.bool_())
        self.result = values.kind

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The best value of each group."""
        return self.values.best(groups, n, columns[0], largest=self.largest)

    def join(self, a: Fields, b: Fields) -> Fields:
        """The better of the two values."""
        (value, seen), (other, other_seen) = a, b
        wins = self.values.wins(other, value, seen & other_seen, largest=self.largest)
        return np.where(wins | ~seen, other, value), seen | other_seen

    def finish(self, fields: Fields) -> pa.Array:
        """The value, or null if there is none."""
        return self.values.array(*fields)


class EdgeKernel(Kernel):
    """Keeps the earliest or latest row: its time, whether there is one, its value, and whether that is not null.

    Parameters
    ----------
    values
        How the values are held and compared.
    last
        Whether to keep the latest row; otherwise the earliest is kept.
    ignore_nulls
        Whether to skip rows whose value is null.
    """

    def __init__(self, values: Values, *, last: bool, ignore_nulls: bool) -> None:
        self.values, self.last, self.ignore_nulls = values, last, ignore_nulls
        self.types = (pa.int64(), pa.bool_(), values.stored, pa.bool_())
        self.result = values.kind

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The best time of each group, then the best value of the rows that have it."""
        column, by = columns
        keep = np.asarray(by.is_valid())
        if self.ignore_nulls:
            keep = keep & np.asarray(column.is_valid())
        rows = np.flatnonzero(keep)
        groups, times = groups[rows], ranks(by.take(pa.array(rows)))
        time, seen = _extremes(groups, n, times, largest=self.last)
        ties = times == time[groups]
        groups, column = groups[ties], column.take(pa.array(rows[ties]))
        value, valid = self.values.best(groups, n, column, largest=self.last)
        if not self.last:  # a null is smaller than any value
            valid[groups[~np.asarray(column.is_valid())]] = False
        return time, seen, value, valid

    def join(self, a: Fields, b: Fields) -> Fields:
        """The earlier of the two rows, or the later."""
        (time, seen, value, valid), (other_time, other_seen, other, other_valid) = a, b
        sooner = other_time > time if self.last else other_time < time
        tie = seen & other_seen & (other_time == time)
        null_decides = other_valid & ~valid if self.last else ~other_valid & valid
        value_decides = self.values.wins(other, value, tie & valid & other_valid, largest=self.last)
        wins = other_seen & (~seen | sooner | (tie & (null_decides | value_decides)))
        return tuple(np.where(wins, y, x) for x, y in zip(a, b, strict=True))

    def finish(self, fields: Fields) -> pa.Array:
        """The value, or null if there is none."""
        _, seen, value, valid = fields
        return self.values.array(value, seen & valid)


def values_of(kind: pa.DataType) -> Values:
    """How values of this type are held."""
    return Ranked(kind) if is_ranked(kind) else Values(kind)


def is_ranked(kind: pa.DataType) -> bool:
    """Whether a type's values have ranks of 64 bits."""
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(number or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)))


def is_ordered(kind: pa.DataType) -> bool:
    """Whether Arrow and Python order the values of a type in the same way."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    data = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(text or data or pa.types.is_decimal(kind))


COMPARABLE = ("numbers, text, bytes, dates or times", is_ranked, is_ordered)
"""What `Measure.check` takes after the type of a column whose values must have an order."""


def ranks(column: pa.Array, *, zeros_differ: bool = False) -> Int64Array:
    """Integers in the order of the values, equal where these are equal; NaN comes last. No value may be null.

    -0.0 and 0.0 have the same rank, unless `zeros_differ`: then -0.0 comes first, and `unranked` gives both back.
    """
    kind = column.type
    if pa.types.is_temporal(kind):
        return np.asarray(column.view(_integers(kind))).astype(np.int64)
    values = np.asarray(column)
    if values.dtype == np.uint64:
        return values.view(np.int64) ^ _TOP_BIT
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    doubles = values.astype(np.float64)
    doubles[np.isnan(doubles)] = np.nan  # all NaN get the same sign
    if not zeros_differ:
        doubles += 0.0  # -0.0 + 0.0 is 0.0
    bits = doubles.view(np.int64)
    return np.where(bits < 0, bits ^ _OTHER_BITS, bits)


def unranked(values: Int64Array, seen: BoolArray, kind: pa.DataType) -> pa.Array:
    """The values of these ranks, null where not seen."""
    if pa.types.is_temporal(kind):
        stored = _integers(kind)
        return pa.array(values.astype(stored.to_pandas_dtype()), mask=~seen).view(kind)
    dtype = np.dtype(kind.to_pandas_dtype())
    if dtype == np.uint64:
        values = (values ^ _TOP_BIT).view(np.uint64)
    elif dtype.kind == "f":
        values = np.where(values < 0, values ^ _OTHER_BITS, values).view(np.float64)
    return pa.array(values.astype(dtype), type=kind, mask=~seen)


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if kind.bit_width == 64 else pa.int32()


def _extremes(groups: Int64Array, n: int, values: Int64Array, *, largest: bool) -> tuple[Int64Array, BoolArray]:
    """The smallest or largest of each group, and which groups have one."""
    limits = np.iinfo(np.int64)
    best = np.full(n, limits.min if largest else limits.max)
    (np.maximum if largest else np.minimum).at(best, groups, values)
    seen = np.zeros(n, dtype=bool)
    seen[groups] = True
    best[~seen] = 0
    return best, seen
