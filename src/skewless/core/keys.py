"""Rows that share a key, whatever its columns: numbers instead of values, in order of first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.core.arrays import Int64Array


def codes(columns: Sequence[pa.Array]) -> tuple[Int64Array, Int64Array]:
    """A number for each row, the same for equal keys, counted by first appearance; and each number's first row.

    Nulls are values like any other, as are NaNs, and -0.0 is 0.0: what Spark's `groupBy` does.

    Examples
    --------
    >>> numbers, first = codes([pa.array(["b", "a", None, "b"]), pa.array([1, 1, 1, 1])])
    >>> numbers.tolist(), first.tolist()
    ([0, 1, 2, 0], [0, 1, 2])
    """
    number = _encode(columns[0])
    for column in columns[1:]:
        other = _encode(column)
        width = int(other.max(initial=0)) + 1
        number = _encode(pa.array(number * width + other))
    return number, np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1) > 0)


def normal(column: pa.Array) -> pa.Array:
    """The column with one form for values that are equal: 0.0 for -0.0, and one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(column.fill_null(0)) + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, type=column.type, mask=np.asarray(column.is_null()) if column.null_count else None)


def _encode(column: pa.Array) -> Int64Array:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_nested(kind):
        seen: dict[str, int] = {}
        texts = (repr(_normal_value(value)) for value in column.to_pylist())
        return np.array([seen.setdefault(text, len(seen)) for text in texts], dtype=np.int64)
    encoded = pc.dictionary_encode(normal(column), null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _normal_value(value: Any) -> Any:
    """A value of a nested type in the form of all that are equal to it."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [_normal_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _normal_value(each) for name, each in value.items()}
    return value
