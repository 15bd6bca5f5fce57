"""Spark's own hashes, bit for bit: `xxhash64(...)`, `hash(...)` (murmur3) and `pmod`, over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, kernel

if TYPE_CHECKING:
    import pyarrow as pa

    Fold: TypeAlias = Callable[..., None]  # a kernel that hashes values, each with the hash in place as its seed
    Column: TypeAlias = npt.NDArray[Any] | pa.Array | pa.ChunkedArray | Sequence[Any]

SEED = 42  # Spark's seed for both hash() and xxhash64()
MOST_PARTITIONS = 1 << 24  # with many more partitions, some of them may have no int that hashes to them

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)


def xxhash64(*columns: Column, seed: int = SEED) -> Int64Array:
    """Spark's `xxhash64(columns...)`, one hash per row.

    A column is a numpy array, an Arrow array (chunked or not), or any sequence `pyarrow.array` takes. Its type decides
    the hash, as in Spark: 2 as an int and 2 as a bigint differ, and so does a decimal of another precision.

    >>> xxhash64([1, 2, None])
    array([-7001672635703045582, -3341702809300393011,                   42])
    >>> xxhash64(["Spark"], np.array([123], np.int32), np.array([2], np.int32))
    array([5602566077635097486])
    """
    return _hash(columns, np.dtype(np.int64), seed, _xxhash64_words, _xxhash64_texts)


def murmur3(*columns: Column, seed: int = SEED) -> Int32Array:
    """Spark's `hash(columns...)`, one hash per row; `xxhash64` says what a column may be.

    >>> murmur3(["Spark"], np.array([123], np.int32), np.array([2], np.int32))
    array([-1321691492], dtype=int32)
    """
    return _hash(columns, np.dtype(np.int32), seed, _murmur3_words, _murmur3_texts)


def preimages(n: int) -> Int32Array:
    """For each of `n` partitions, the smallest non-negative int that Spark shuffles to it.

    Spark sends a row to partition `pmod(hash(key), n)`: grouping by `preimages(n)[p]` sends it to `p`.

    >>> wanted = preimages(4)
    >>> wanted
    array([12,  6,  2,  0], dtype=int32)
    >>> murmur3(wanted) % 4
    array([0, 1, 2, 3], dtype=int32)
    """
    if not 1 <= n <= MOST_PARTITIONS:
        raise SkewlessError(f"preimages of {n} partitions: ask for 1 to {MOST_PARTITIONS}")
    found = np.full(n, -1, dtype=np.int32)
    _find_preimages(found)
    return found


@inner
def pmod(hash: Int, n: Int) -> Int:  # noqa: A002 - Spark's own name for it
    """Spark's `pmod(hash, n)` for n >= 1, for use inside kernels: from 0 to n - 1 whatever the sign of `hash`.

    >>> pmod(-7, 3), pmod(7, 3)
    (2, 1)
    """
    # ~hash is -1 - hash, whose remainder counts from the other end; an unsigned division needs no correction of signs
    remainder = np.int64(np.uint64(hash if hash >= 0 else ~hash) % np.uint64(n))
    return remainder if hash >= 0 else np.int64(n) - np.int64(1) - remainder


@inner
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (np.uint64(64) - bits))


@inner
def _avalanche(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    return h ^ (h >> np.uint64(32))


@inner
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _P2, np.uint64(31)) * _P1


@inner
def _absorb_long(h: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(h ^ _round(np.uint64(0), word), np.uint64(27)) * _P1 + _P4


@inner
def _absorb_int(h: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(h ^ (word * _P1), np.uint64(23)) * _P2 + _P3


@inner
def xxhash64_long(value: Int, seed: Int) -> Int:
    """Spark's `xxhash64` of one bigint, for use inside kernels."""
    h = np.uint64(seed) + _P5 + np.uint64(8)
    return np.int64(_avalanche(_absorb_long(h, np.uint64(value))))


@kernel
def _xxhash64_int(value: np.int32, seed: Int) -> Int:
    h = np.uint64(seed) + _P5 + np.uint64(4)
    return np.int64(_avalanche(_absorb_int(h, np.uint64(np.uint32(value)))))


@kernel
def _read_int(data: npt.NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Four bytes, little-endian; written like this, the compiler turns them into one load."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    )


@kernel
def _read_long(data: npt.NDArray[np.uint8], at: np.uint64) -> np.uint64:
    return _read_int(data, at) | _read_int(data, at + np.uint64(4)) << np.uint64(32)


@kernel
def _xxhash64_text(data: npt.NDArray[np.uint8], start: np.uint64, stop: np.uint64, seed: Int) -> Int:
    at = start
    h = np.uint64(seed) + _P5
    if stop - start >= np.uint64(32):
        a = np.uint64(seed) + _P1 + _P2
        b = np.uint64(seed) + _P2
        c = np.uint64(seed)
        d = np.uint64(seed) - _P1
        while stop - at >= np.uint64(32):
            a = _round(a, _read_long(data, at))
            b = _round(b, _read_long(data, at + np.uint64(8)))
            c = _round(c, _read_long(data, at + np.uint64(16)))
            d = _round(d, _read_long(data, at + np.uint64(24)))
            at += np.uint64(32)
        h = _rotate(a, np.uint64(1)) + _rotate(b, np.uint64(7)) + _rotate(c, np.uint64(12)) + _rotate(d, np.uint64(18))
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    h += stop - start
    while stop - at >= np.uint64(8):
        h = _absorb_long(h, _read_long(data, at))
        at += np.uint64(8)
    if stop - at >= np.uint64(4):
        h = _absorb_int(h, _read_int(data, at))
        at += np.uint64(4)
    while at < stop:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), np.uint64(11)) * _P1
        at += np.uint64(1)
    return np.int64(_avalanche(h))


@kernel
def _rotate32(x: np.uint32, bits: Int) -> np.uint32:
    return np.uint32((x << np.uint32(bits)) | (x >> np.uint32(32 - bits)))


@kernel
def _absorb32(h: np.uint32, word: np.uint32) -> np.uint32:
    # numba widens 32-bit products to 64 bits, so each is cut back before its high bits are used
    word = np.uint32(_rotate32(np.uint32(word * _C1), 15) * _C2)
    return np.uint32(_rotate32(h ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64))


@kernel
def _finish32(h: np.uint32, length: np.uint32) -> np.int32:
    h = np.uint32(h ^ length)
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.int32(h ^ (h >> np.uint32(16)))


@kernel
def _murmur3_int(value: np.int32, seed: np.int32) -> np.int32:
    return _finish32(_absorb32(np.uint32(seed), np.uint32(value)), np.uint32(4))


@kernel
def _murmur3_long(value: Int, seed: np.int32) -> np.int32:
    low, high = np.uint32(value), np.uint32(value >> np.int64(32))
    return _finish32(_absorb32(_absorb32(np.uint32(seed), low), high), np.uint32(8))


@kernel
def _murmur3_text(data: npt.NDArray[np.uint8], start: np.uint64, stop: np.uint64, seed: np.int32) -> np.int32:
    at = start
    h = np.uint32(seed)
    while stop - at >= np.uint64(4):
        h = _absorb32(h, np.uint32(_read_int(data, at)))
        at += np.uint64(4)
    while at < stop:  # Spark departs from murmur3 here: each byte of the tail is a whole word, with its sign
        h = _absorb32(h, np.uint32(np.int32(np.int8(data[at]))))
        at += np.uint64(1)
    return _finish32(h, np.uint32(stop - start))


@kernel
def _xxhash64_words(values: npt.NDArray[Any], hashes: Int64Array) -> None:
    for row in range(len(hashes)):
        if values.itemsize == 4:
            hashes[row] = _xxhash64_int(values[row], hashes[row])
        else:
            hashes[row] = xxhash64_long(values[row], hashes[row])


@kernel
def _xxhash64_texts(data: npt.NDArray[np.uint8], offsets: Int64Array, hashes: Int64Array) -> None:
    for row in range(len(hashes)):
        hashes[row] = _xxhash64_text(data, np.uint64(offsets[row]), np.uint64(offsets[row + 1]), hashes[row])


@kernel
def _murmur3_words(values: npt.NDArray[Any], hashes: Int32Array) -> None:
    for row in range(len(hashes)):
        if values.itemsize == 4:
            hashes[row] = _murmur3_int(values[row], hashes[row])
        else:
            hashes[row] = _murmur3_long(values[row], hashes[row])


@kernel
def _murmur3_texts(data: npt.NDArray[np.uint8], offsets: Int64Array, hashes: Int32Array) -> None:
    for row in range(len(hashes)):
        hashes[row] = _murmur3_text(data, np.uint64(offsets[row]), np.uint64(offsets[row + 1]), hashes[row])


@kernel
def _find_preimages(found: Int32Array) -> None:
    missing = len(found)
    value = np.int64(0)
    while missing > 0:
        partition = pmod(np.int64(_murmur3_int(np.int32(value), np.int32(SEED))), np.int64(len(found)))
        if found[partition] < 0:
            found[partition] = value
            missing -= 1
        value += 1


class _Cells(NamedTuple):
    """A column as the kernels read it: 32 or 64-bit words, or bytes between offsets; where not valid, it is null."""

    values: npt.NDArray[Any]
    offsets: npt.NDArray[Any] | None = None
    valid: BoolArray | None = None


def _hash(columns: tuple[Column, ...], dtype: np.dtype[Any], seed: int, words: Fold, texts: Fold) -> npt.NDArray[Any]:
    if not columns:
        raise SkewlessError("no columns to hash: pass at least one")
    bounds = np.iinfo(dtype)
    if not bounds.min <= seed <= bounds.max:
        raise SkewlessError(f"seed {seed} does not fit this hash: pass one from {bounds.min} to {bounds.max}")
    arrays = [_as_array(column) for column in columns]
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise SkewlessError(f"columns of lengths {lengths}: pass columns with one value for every row")
    hashes = np.full(lengths[0], seed, dtype=dtype)
    for array in arrays:
        start = 0
        for chunk in getattr(array, "chunks", [array]):
            _fold(_cells(chunk), hashes[start : start + len(chunk)], words, texts)
            start += len(chunk)
    return hashes


def _fold(cells: _Cells, hashes: npt.NDArray[Any], words: Fold, texts: Fold) -> None:
    """Hash each value with the row's hash so far as its seed; a null leaves the hash as it is."""
    before = hashes.copy() if cells.valid is not None else hashes
    values = cells.values.view()
    values.flags.writeable = False  # as Arrow's buffers are: numba sees one type and compiles once
    if cells.offsets is None:
        words(values, hashes)
    else:
        texts(values, cells.offsets, hashes)
    if cells.valid is not None:
        np.copyto(hashes, before, where=~cells.valid)


def _as_array(column: Column) -> Any:
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise SkewlessError(f"a column of shape {column.shape}: pass one dimension")
    if type(column) is np.ndarray and column.dtype.str[1:] in ("b1", "i1", "i2", "i4", "i8", "f4", "f8"):
        return column  # importing Arrow would take longer than hashing most columns
    import pyarrow as pa

    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes):
        raise SkewlessError(f"{column!r} is one value, not a column: pass [{column!r}]")
    try:
        return pa.array(column)
    except (pa.ArrowException, TypeError) as error:
        raise SkewlessError(f"a {type(column).__name__} that Arrow does not take ({error}): cast it first") from error


def _cells(array: Any) -> _Cells:
    if isinstance(array, np.ndarray):
        return _Cells(_words(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))))
    import pyarrow as pa

    if pa.types.is_null(array.type):
        return _Cells(np.zeros(len(array), np.int32), valid=np.zeros(len(array), np.bool_))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    cells = _arrow_cells(array)
    return cells._replace(valid=_bits(array, 0)) if array.null_count else cells


def _words(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as the int or bigint that Spark hashes for them."""
    if values.dtype.kind != "f":
        return values if values.dtype == np.int64 else values.astype(np.int32, copy=False)
    bits = values.view(f"i{values.itemsize}")
    nan, infinity = (np.array(x, values.dtype).view(bits.dtype) for x in (np.nan, np.inf))
    bounds = np.iinfo(bits.dtype)
    bits = np.where(bits == bounds.min, 0, bits)  # -0.0 hashes as 0.0
    return np.where((bits & bounds.max) > infinity, nan, bits).astype(bits.dtype, copy=False)


def _arrow_cells(array: Any) -> _Cells:
    import pyarrow as pa

    kind, is_ = array.type, pa.types
    if is_.is_boolean(kind):
        return _Cells(_bits(array, 1).astype(np.int32))
    if is_.is_date32(kind):
        return _Cells(_buffer(array, 1, np.int32))
    if is_.is_signed_integer(kind) or is_.is_float32(kind) or is_.is_float64(kind):
        return _Cells(_words(_buffer(array, 1, kind.to_pandas_dtype())))
    if is_.is_timestamp(kind):
        return _Cells(_buffer(_in_microseconds(array), 1, np.int64))
    large = is_.is_large_string(kind) or is_.is_large_binary(kind)
    if large or is_.is_string(kind) or is_.is_binary(kind):
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
        return _Cells(data, _buffer(array, 1, np.int64 if large else np.int32, fence=1))
    if is_.is_decimal128(kind):
        unscaled = _buffer(array, 1, np.int64, per_row=2)
        return _Cells(np.ascontiguousarray(unscaled[::2])) if kind.precision <= 18 else _big_integers(unscaled)
    if is_.is_unsigned_integer(kind):
        raise SkewlessError(f"a column of {kind}: Spark has no unsigned integers; cast it, for example to int64")
    raise SkewlessError(f"a column of {kind}: cast it to a number, string, binary, date, timestamp or decimal128")


def _buffer(array: Any, index: int, dtype: npt.DTypeLike, per_row: int = 1, fence: int = 0) -> npt.NDArray[Any]:
    """A view of one of the array's buffers, `per_row` items a row and `fence` more at the end."""
    if len(array) == 0:
        return np.zeros(fence, dtype)
    start = array.offset * per_row * np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[index], dtype, len(array) * per_row + fence, start)


def _bits(array: Any, index: int) -> BoolArray:
    first, stop = array.offset, array.offset + len(array)
    packed = np.frombuffer(array.buffers()[index], np.uint8)[first // 8 : (stop + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[first % 8 :][: len(array)].view(np.bool_)


def _in_microseconds(array: Any) -> Any:
    import pyarrow as pa

    try:
        return array.cast(pa.timestamp("us", array.type.tz))
    except pa.ArrowInvalid as error:
        raise SkewlessError(f"{array.type} beyond Spark's microseconds ({error}): round it to them first") from error


def _big_integers(unscaled: Int64Array) -> _Cells:
    """Decimals of more than 18 digits, which Spark hashes as the bytes of a Java BigInteger: as few as it needs."""
    digits = unscaled.view(np.uint8).reshape(-1, 16)[:, ::-1]
    padding = np.where(digits[:, :1] < 0x80, 0, 0xFF)
    # a byte of padding is dropped only if the next byte still shows the sign
    spare = (digits[:, :-1] == padding) & ((digits[:, 1:] ^ padding) < 0x80)
    kept = np.pad(~np.logical_and.accumulate(spare, axis=1), ((0, 0), (0, 1)), constant_values=True)
    offsets = np.append(0, kept.sum(axis=1).cumsum())
    offsets.flags.writeable = False
    return _Cells(digits[kept], offsets)
