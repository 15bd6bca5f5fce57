"""Exact sums of integers and decimals: each value is split into limbs of 32 bits, and each limb has its own sum.

A sum of 32-bit limbs in 64 bits has room for 2^31 values, needs no carries while it runs, and can be subtracted from.
The limbs are combined only for the final value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int64Array

BITS = 32
LOW = (1 << BITS) - 1


def limbs_of(kind: pa.DataType) -> int:
    """How many limbs hold a value of an integer or decimal type; the last one is signed."""
    if pa.types.is_decimal(kind):
        return 2 if kind.precision <= 18 else 4
    return 2 if kind in (pa.int64(), pa.uint32(), pa.uint64()) else 1


def split(array: pa.Array) -> list[Int64Array]:
    """The limbs of each value, lowest first; the limbs of a null are 0."""
    if pa.types.is_decimal(array.type):
        words = _words(array)
        return [_valid(array, words[:, i]) for i in range(limbs_of(array.type))]
    values = np.asarray(array.fill_null(0))
    if values.dtype == np.uint64:
        return [(values & LOW).astype(np.int64), (values >> BITS).astype(np.int64)]
    values = values.astype(np.int64, copy=False)
    return [values] if limbs_of(array.type) == 1 else [values & LOW, values >> BITS]


def whole(limbs: tuple[Any, ...]) -> list[int]:
    """The integers that the limbs stand for."""
    total = [0] * len(limbs[0])
    for i, limb in enumerate(limbs):
        total = [have + (part << (BITS * i)) for have, part in zip(total, limb.tolist(), strict=True)]
    return total


def whole64(limbs: tuple[Any, ...]) -> tuple[Int64Array, Any]:
    """The integers that one or two limbs stand for, modulo 2^64, and which of them do not fit into 64 bits."""
    if len(limbs) == 1:
        return limbs[0], np.zeros(len(limbs[0]), dtype=bool)
    low, high = limbs
    high = high + (low >> BITS)
    fits = (high >= -(1 << 31)) & (high < 1 << 31)
    return (high << BITS) | (low & LOW), ~fits


def _words(array: pa.Array) -> Any:
    """A decimal's 128 bits as four words: three unsigned and a signed one, all as int64."""
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint32, count=4 * (array.offset + len(array)))
    raw = raw.reshape(-1, 4)[array.offset :]
    words = raw.astype(np.int64)
    words[:, 3] = raw[:, 3].astype(np.int32)
    if array.type.precision <= 18:  # the second word carries the sign
        words[:, 1] = raw[:, 1].astype(np.int32)
    return words


def _valid(array: pa.Array, values: Any) -> Int64Array:
    if array.null_count:
        values = np.where(np.asarray(array.is_valid()), values, 0)
    return np.ascontiguousarray(values)
