"""Count, sum, mean, variance and standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.aggregate import limbs
from skewless.aggregate.kernel import Fields, Kernel, drop_nulls
from skewless.aggregate.measure import NUMBERS, Measure
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError

_CONTEXT = Context(prec=76)
_EXACT_ROWS = 1 << 20  # this many limbs of 32 bits add up exactly in a double
_NO_WARNINGS = np.errstate(over="ignore", invalid="ignore")  # sums of doubles may well be infinite or NaN


class Count(Measure):
    """The number of rows, or of rows whose column is not null."""

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type."""
        return CountKernel()


class Sum(Measure):
    """The sum of the values that are not null; null if all values are null."""

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """A kernel that is exact for integers and decimals."""
        kind = self.check(types[0], *NUMBERS)
        return FloatSumKernel() if pa.types.is_floating(kind) else ExactSumKernel(kind)


class Mean(Measure):
    """The average of the values that are not null; null if all values are null."""

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Decimals stay decimals, everything else gives a double."""
        kind = self.check(types[0], *NUMBERS)
        return FloatMeanKernel() if pa.types.is_floating(kind) else ExactMeanKernel(kind)


class Var(Measure):
    """The variance of a sample; null for a single value, as in Spark."""

    root = False

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any number, and reads it as a double."""
        self.check(types[0], *NUMBERS)
        return VarKernel(root=self.root)


class Std(Var):
    """The standard deviation of a sample: the square root of its variance."""

    root = True


class WholeKernel(Kernel):
    """Adds up whole numbers, which are subtracted again without an error."""

    inverts = True

    def join(self, a: Fields, b: Fields) -> Fields:
        """Adds field by field."""
        return _add(a, b)

    def leave(self, a: Fields, b: Fields) -> Fields:
        """Subtracts field by field."""
        return tuple(x - y for x, y in zip(a, b, strict=True))


class CountKernel(WholeKernel):
    """Counts rows, or values that are not null."""

    types = (pa.int64(),)
    result = pa.int64()
    nullable = False

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The count of each group."""
        for column in columns:
            if column.null_count:
                groups = groups[np.asarray(column.is_valid())]
        return (np.bincount(groups, minlength=n),)

    def finish(self, fields: Fields) -> pa.Array:
        """The count."""
        return pa.array(fields[0], type=pa.int64())


class FloatSumKernel(Kernel):
    """Sums doubles; it never subtracts, because the rounding errors would add up."""

    types = (pa.float64(), pa.int64())
    result: pa.DataType = pa.float64()

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The sum and the count of each group."""
        groups, values = _doubles(groups, columns[0])
        return np.bincount(groups, weights=values, minlength=n), np.bincount(groups, minlength=n)

    @_NO_WARNINGS
    def join(self, a: Fields, b: Fields) -> Fields:
        """Adds the sums and the counts."""
        return _add(a, b)

    def finish(self, fields: Fields) -> pa.Array:
        """The sum, or null if there are no values."""
        return pa.array(fields[0], mask=fields[1] == 0)


class FloatMeanKernel(FloatSumKernel):
    """Averages doubles."""

    def finish(self, fields: Fields) -> pa.Array:
        """The average, or null if there are no values."""
        total, n = fields
        return pa.array(total / np.maximum(n, 1), mask=n == 0)


class ExactSumKernel(WholeKernel):
    """Sums integers and decimals limb by limb.

    Parameters
    ----------
    kind
        The column's type.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.types = (pa.int64(),) * (limbs.limbs_of(kind) + 1)
        decimals = pa.types.is_decimal(kind)
        self.result = pa.decimal128(min(38, kind.precision + 10), kind.scale) if decimals else pa.int64()

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The sums of limbs and the count of each group."""
        (column,) = columns
        total = self.empty(n)
        for start in range(0, len(column), _EXACT_ROWS):
            rows, part = groups[start : start + _EXACT_ROWS], column.slice(start, _EXACT_ROWS)
            sums = [np.bincount(rows, weights=limb, minlength=n).astype(np.int64) for limb in limbs.split(part)]
            seen = rows[np.asarray(part.is_valid())] if part.null_count else rows
            total = _add(total, (*sums, np.bincount(seen, minlength=n)))
        return total

    def finish(self, fields: Fields) -> pa.Array:
        """The sum, or null if there are no values; a sum that does not fit is an error, as in Spark's ANSI mode."""
        *parts, n = fields
        if pa.types.is_decimal(self.result):
            return _decimals(limbs.whole(tuple(parts)), n, self.result)
        total, outside = limbs.whole64(tuple(parts))
        if outside.any():
            raise SkewlessError("a sum does not fit into a long; cast the column to decimal(38, 0) to sum it")
        return pa.array(total, mask=n == 0)


class ExactMeanKernel(ExactSumKernel):
    """Averages integers (as doubles) and decimals (as decimals of four more digits)."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.result = _mean_type(kind)

    def finish(self, fields: Fields) -> pa.Array:
        """The average, or null if there are no values."""
        *parts, n = fields
        total = limbs.whole(tuple(parts))
        if not pa.types.is_decimal(self.result):
            values = [have / max(count, 1) for have, count in zip(total, n.tolist(), strict=True)]
            return pa.array(values, type=pa.float64(), mask=n == 0)
        shift = 10 ** (self.result.scale - self.kind.scale)
        means = [_rounded(have * shift, count) for have, count in zip(total, n.tolist(), strict=True)]
        return _decimals(means, n, self.result)


class VarKernel(Kernel):
    """Keeps count, mean and sum of squared differences, joined by the method of Chan, Golub and LeVeque.

    Parameters
    ----------
    root
        Whether to take the square root at the end.
    """

    types = (pa.float64(), pa.float64(), pa.float64())
    result = pa.float64()

    def __init__(self, *, root: bool) -> None:
        self.root = root

    @_NO_WARNINGS
    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """Makes two passes over the rows."""
        groups, values = _doubles(groups, columns[0])
        count = np.bincount(groups, minlength=n).astype(np.float64)
        mean = np.bincount(groups, weights=values, minlength=n) / np.maximum(count, 1)
        return count, mean, np.bincount(groups, weights=(values - mean[groups]) ** 2, minlength=n)

    @_NO_WARNINGS
    def join(self, a: Fields, b: Fields) -> Fields:
        """Weighs the means by the counts, and adds the difference of the means to the squares."""
        count = a[0] + b[0]
        apart = b[1] - a[1]
        share = b[0] / np.maximum(count, 1)
        # Multiply by the weight first: it may be 0, and the square alone may overflow.
        return count, a[1] + apart * share, a[2] + b[2] + a[0] * share * apart * apart

    def finish(self, fields: Fields) -> pa.Array:
        """The variance or its root; null for fewer than two values."""
        count, _, squares = fields
        values = squares / np.maximum(count - 1, 1)
        return pa.array(np.sqrt(values) if self.root else values, mask=count < 2)


def _add(a: Fields, b: Fields) -> Fields:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _doubles(groups: Int64Array, column: pa.Array) -> tuple[Int64Array, Any]:
    """The values that are not null, as doubles, and their groups."""
    groups, column = drop_nulls(groups, column)
    return groups, np.asarray(pc.cast(column, pa.float64(), safe=False))


def _decimals(values: list[int], n: Any, kind: pa.DataType) -> pa.Array:
    """Unscaled values as decimals, null where `n` is 0; too many digits are an error, as in Spark's ANSI mode."""
    known = [value if count else None for value, count in zip(values, n.tolist(), strict=True)]
    most = 10**kind.precision
    if any(value is not None and abs(value) >= most for value in known):
        raise SkewlessError(f"a sum or mean does not fit into {kind}; cast the column to one of fewer digits")
    return pa.array([value if value is None else Decimal(value).scaleb(-kind.scale, _CONTEXT) for value in known], kind)


def _mean_type(kind: pa.DataType) -> pa.DataType:
    """Spark's type of a mean; of decimals four more digits, all after the decimal point, and at most 38 in all."""
    if not pa.types.is_decimal(kind):
        return pa.float64()
    return pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4))


def _rounded(total: int, count: int) -> int:
    """The quotient, with halves rounded away from zero."""
    if not count:
        return 0
    whole = (2 * abs(total) + count) // (2 * count)
    return whole if total >= 0 else -whole
