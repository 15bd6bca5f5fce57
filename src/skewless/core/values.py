"""Python's values as a column, or an error: never another value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as a column of this type.

    >>> array([1, 2.0, None], pa.int64()).to_pylist()
    [1, 2, None]
    >>> array([1.5], pa.int64())
    Traceback (most recent call last):
    ValueError: 1.5 is not a whole number
    """
    if pa.types.is_integer(kind) and set(map(type, values)) - {int, type(None)}:
        for value in values:
            if value is not None and value != int(value):  # Arrow would cut what comes after the point
                raise ValueError(f"{value} is not a whole number")
    return pa.array(values, type=kind, from_pandas=False)
