"""Distinct values, quantiles and most frequent values: approximate answers in little memory, by Apache DataSketches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.aggregate.kernel import Fields, Kernel, ObjectKernel, objects
from skewless.aggregate.measure import NUMBERS, Measure
from skewless.aggregate.order import COMPARABLE, is_ranked, ranks, unranked
from skewless.core.errors import SkewlessError


class Distinct(Measure):
    """The approximate number of different values; nulls do not count.

    It is a HyperLogLog. The standard error is 1.04 / sqrt(2^lg_k) after states were joined, which is 1.6% for the
    default, and 0.83 / sqrt(2^lg_k) before. For up to a few hundred values the answer is exact, except for rare hash
    collisions.

    Parameters
    ----------
    column
        A column of numbers, text, bytes, dates or times.
    lg_k
        The base-2 logarithm of the size of a state, from 4 to 21; a state takes at most 2^lg_k bytes.
    """

    heavy: ClassVar[bool] = True

    def __init__(self, column: str, lg_k: int = 12) -> None:
        super().__init__(column)
        _check(4 <= lg_k <= 21, f"lg_k is {lg_k}; give distinct a value from 4 to 21")
        self.lg_k = lg_k

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type that is not nested."""
        return DistinctKernel(self.check(types[0], *COMPARABLE), self.lg_k)


class Quantile(Measure):
    """The approximate value below which a share of the values lies; null if there are none. Nulls and NaN are skipped.

    It is a KLL sketch. The answer is one of the values, and its rank is off by at most 1.33% of the number of values
    for the default `k`, with a confidence of 99%; the error falls nearly as 1 / k. For up to `k` values the answer is
    exact. The sketch draws random numbers, so the answers of two runs may differ within the bound. Values are read as
    doubles.

    Parameters
    ----------
    column
        A column of numbers.
    q
        The share, from 0 (the smallest value) to 1 (the largest); a list of shares gives a list of values.
    k
        The size of a state, from 8 to 65535.
    """

    heavy: ClassVar[bool] = True

    def __init__(self, column: str, q: float | Sequence[float], k: int = 200) -> None:
        super().__init__(column)
        shares = [q] if isinstance(q, (int, float)) else list(q)
        for share in shares:
            _check(0 <= share <= 1, f"{share} is no quantile; give a share from 0 to 1, such as 0.5 for the median")
        _check(len(shares) > 0, "quantile got no shares; give at least one, such as 0.5 for the median")
        _check(8 <= k <= 65535, f"k is {k}; give quantile a value from 8 to 65535")
        self.shares, self.many, self.k = shares, not isinstance(q, (int, float)), k

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any number, and reads it as a double."""
        self.check(types[0], *NUMBERS)
        return QuantileKernel(self.shares, self.k, many=self.many)


class Top(Measure):
    """The approximate most frequent values and their counts, highest count first, ties by value; nulls do not count.

    It is a frequent items sketch. A count is never too small, and too large by at most 3.5 / 2^lg_max_k of the number
    of values, which is 0.34% for the default; every value more frequent than this is found. For up to 0.75 * 2^lg_max_k
    different values the answer is exact.

    Parameters
    ----------
    column
        A column of numbers, text, bytes, dates or times.
    k
        How many values to return.
    lg_max_k
        The base-2 logarithm of the number of values that a state has room for, from 3 to 26.
    """

    heavy: ClassVar[bool] = True

    def __init__(self, column: str, k: int = 10, lg_max_k: int = 10) -> None:
        super().__init__(column)
        _check(3 <= lg_max_k <= 26, f"lg_max_k is {lg_max_k}; give top a value from 3 to 26")
        room = 3 * 2**lg_max_k // 4
        _check(1 <= k <= room, f"top cannot give {k} values; ask for 1 to {room}, or raise lg_max_k above {lg_max_k}")
        self.k, self.lg_max_k = k, lg_max_k

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type that is not nested."""
        return TopKernel(self.check(types[0], *COMPARABLE), self.k, self.lg_max_k)


class SketchKernel(ObjectKernel):
    """Keeps a sketch for each group, and sends and stores it as bytes.

    Parameters
    ----------
    size
        What a new sketch is given.
    """

    types = (pa.binary(),)
    sketch: ClassVar[Any]
    """The class of the sketches."""

    def __init__(self, size: int) -> None:
        self.size = size

    def merged(self, a: Any, b: Any) -> Any:
        """A new sketch of the values of both."""
        both = self.sketch(self.size)
        both.merge(a)
        both.merge(b)
        return both

    def pack(self, sketch: Any) -> bytes:
        """The sketch as bytes."""
        return bytes(sketch.serialize())

    def dump(self, fields: Fields) -> list[pa.Array]:
        """The sketches as bytes."""
        packed = [None if sketch is None else self.pack(sketch) for sketch in fields[0]]
        return [pa.array(packed, type=pa.binary())]

    def load(self, arrays: Sequence[pa.Array]) -> Fields:
        """The sketches that `dump` gave."""
        packed = arrays[0].to_pylist()
        return (objects(None if each is None else self.sketch.deserialize(each) for each in packed),)


class ItemKernel(SketchKernel):
    """Sketches values as integers or text; values that are equal in Spark stay equal.

    Parameters
    ----------
    kind
        The column's type.
    size
        The base-2 logarithm of the size of a sketch.
    """

    nullable = False

    def __init__(self, kind: pa.DataType, size: int) -> None:
        super().__init__(size)
        self.kind = kind

    def read(self, column: pa.Array) -> Any:
        """Integers for types that have ranks, otherwise text."""
        if is_ranked(self.kind):
            return ranks(column).tolist()
        values = column.to_pylist()
        if pa.types.is_decimal(self.kind):
            return [str(value) for value in values]
        return [value.hex() if isinstance(value, bytes) else value for value in values]


class DistinctKernel(ItemKernel):
    """Estimates how many different values there are. The parameters are those of `ItemKernel`."""

    sketch = datasketches.hll_sketch
    result = pa.int64()

    def made(self, values: Any) -> Any:
        """A sketch of the different values."""
        sketch = self.sketch(self.size)
        for value in set(values):
            sketch.update(value if isinstance(value, int) else f"={value}")  # the sketch would ignore an empty text
        return sketch

    def merged(self, a: Any, b: Any) -> Any:
        """The union of the two sketches."""
        union = datasketches.hll_union(self.size)
        union.update(a)
        union.update(b)
        return union.get_result(datasketches.HLL_8)

    def pack(self, sketch: Any) -> bytes:
        """The sketch as bytes, in compact form."""
        return bytes(sketch.serialize_compact())

    def finish(self, fields: Fields) -> pa.Array:
        """The estimates as whole numbers, 0 if there are no values."""
        estimates = [0 if sketch is None else round(sketch.get_estimate()) for sketch in fields[0]]
        return pa.array(estimates, type=pa.int64())


class QuantileKernel(SketchKernel):
    """Estimates quantiles.

    Parameters
    ----------
    shares
        The shares that the quantiles belong to.
    k
        The size of a sketch.
    many
        Whether the value is a list.
    """

    sketch = datasketches.kll_doubles_sketch

    def __init__(self, shares: list[float], k: int, *, many: bool) -> None:
        super().__init__(k)
        self.shares, self.many = shares, many
        self.result = pa.list_(pa.float64()) if many else pa.float64()

    def read(self, column: pa.Array) -> Any:
        """The values as doubles, copied because the sketch does not take a read-only array."""
        return np.array(pc.cast(column, pa.float64(), safe=False))

    def made(self, values: Any) -> Any:
        """A sketch of all values at once; None if all of them are NaN."""
        sketch = self.sketch(self.size)
        sketch.update(values)
        return None if sketch.is_empty() else sketch

    def finish(self, fields: Fields) -> pa.Array:
        """The smallest value for which at least the given share of all values is not larger than it."""
        values = [None if sketch is None else sketch.get_quantiles(self.shares, True) for sketch in fields[0]]
        if not self.many:
            values = [value and value[0] for value in values]
        return pa.array(values, type=self.result)


class TopKernel(ItemKernel):
    """Estimates which values are most frequent.

    Parameters
    ----------
    kind
        The column's type.
    k
        How many values to return.
    lg_max_k
        The base-2 logarithm of the number of values that a sketch has room for.
    """

    sketch = datasketches.frequent_strings_sketch

    def __init__(self, kind: pa.DataType, k: int, lg_max_k: int) -> None:
        super().__init__(kind, lg_max_k)
        self.k = k
        self.result = pa.list_(pa.struct([("item", kind), ("count", pa.int64())]))

    def made(self, values: Any) -> Any:
        """A sketch of the different values, each with its count."""
        sketch = self.sketch(self.size)
        for value, count in Counter(values).items():
            sketch.update(str(value), count)
        return sketch

    def finish(self, fields: Fields) -> pa.Array:
        """The values and counts, most frequent first; an empty list if there are no values."""
        tops = [self._top(sketch) for sketch in fields[0]]
        ends = np.cumsum([0, *(len(top) for top in tops)], dtype=np.int32)
        item = self._write([key for top in tops for _, key in top])
        count = pa.array([-below for top in tops for below, _ in top], type=pa.int64())
        pairs = pa.StructArray.from_arrays([item, count], fields=list(self.result.value_type))
        return pa.ListArray.from_arrays(pa.array(ends), pairs, type=self.result)

    def _top(self, sketch: Any) -> list[tuple[int, Any]]:
        """Pairs of a negated count and a key, in rising order."""
        if sketch is None:
            return []
        known = sketch.get_frequent_items(datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES)
        counts = sorted((count for _, count, *_ in known), reverse=True)
        least = counts[min(self.k, len(counts)) - 1]  # most values are below it and need not be parsed
        return sorted((-count, self._key(text)) for text, count, *_ in known if count >= least)[: self.k]

    def _key(self, text: str) -> Any:
        """The value that `str` of an item stands for, in a form that can be ordered."""
        if is_ranked(self.kind):
            return int(text)
        if pa.types.is_decimal(self.kind):
            return Decimal(text)
        return text if pa.types.is_string(self.kind) or pa.types.is_large_string(self.kind) else bytes.fromhex(text)

    def _write(self, keys: list[Any]) -> pa.Array:
        """The values that `_key` gave, in the column's type."""
        if is_ranked(self.kind):
            return unranked(np.array(keys, dtype=np.int64), np.ones(len(keys), dtype=bool), self.kind)
        return pa.array(keys, type=self.kind)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SkewlessError(message)
