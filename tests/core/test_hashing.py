from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.hashing import MOST_PARTITIONS, murmur3, pmod, preimages, xxhash64, xxhash64_long

INSTANT = dt.datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=dt.timezone.utc)
HASHES = pytest.mark.parametrize("hash_of", [xxhash64, murmur3])

# value, type, xxhash64(value), hash(value): as Spark 4.3 answers in SQL
SPARK = [
    (True, pa.bool_(), -6698625589789238999, -559580957),
    (-7, pa.int8(), 4987848727247274714, -1618159745),
    (-300, pa.int16(), 2895908635257747121, -1692660704),
    (-70_000, pa.int32(), 3780762490442745380, -828351765),
    (-7, pa.int64(), -1663473129717591079, 222034016),
    (dt.date(1969, 12, 31), pa.date32(), 2017008487422258757, -1604776387),
    (INSTANT, pa.timestamp("us", "UTC"), -2021281541725647388, -1367554535),
    (INSTANT, pa.timestamp("ns", "UTC"), -2021281541725647388, -1367554535),
    (INSTANT, pa.timestamp("us"), -2021281541725647388, -1367554535),
    (1.5, pa.float32(), 6163473420726370430, -221251528),
    (-0.0, pa.float32(), 3614696996920510707, 933211791),
    (np.nan, pa.float32(), 2692338816207849720, -349261430),
    (1.5, pa.float64(), 7738255526519901366, 1290763749),
    (0.0, pa.float64(), -5252525462095825812, -1670924195),
    (-0.0, pa.float64(), -5252525462095825812, -1670924195),
    (np.nan, pa.float64(), -3127944061524951246, -1281358385),
    ("", pa.string(), -7444071767201028348, 142593372),
    ("naïve 漢字", pa.string(), 6934247192361852131, -380152575),
    ("naïve 漢字", pa.large_string(), 6934247192361852131, -380152575),
    (b"\xff\x80\x01\x7f", pa.binary(), 2767107196176561845, 1943028854),
    (b"\xff\x80\x01\x7f", pa.large_binary(), 2767107196176561845, 1943028854),
    (Decimal("-12.34"), pa.decimal128(4, 2), -1614697014534150208, 180183791),
    (Decimal("-12.34"), pa.decimal128(20, 2), -5902959860576184235, -378694793),
    (Decimal(128), pa.decimal128(38, 0), 6715097930120473301, -544401882),
    (Decimal("12345678901234567890123456789.5"), pa.decimal128(38, 1), -1322338444318899427, 1235990042),
    (None, pa.int32(), 42, 42),
    (None, pa.null(), 42, 42),
]

COLUMNS = {
    str(kind): pa.array(values, kind)
    for values, kind in [
        ([True, None, False, True, True, None, False, True, False, True, None], pa.bool_()),
        ([5, None, -1, 0, 7, 7, None, 2**40, -(2**40), 1, 0], pa.int64()),
        ([0.5, None, np.nan, -0.0, 7, 7, None, 2e40, -1e-40, 1, 0], pa.float64()),
        (["x", None, "", "yes", "ä" * 30, "no", None, "漢字", "a" * 99, "\0", "b"], pa.string()),
        (["x", None, "", "yes", "ä" * 30, "no", None, "漢字", "a" * 99, "\0", "b"], pa.large_string()),
        ([Decimal(i) if i % 3 else None for i in range(-5, 6)], pa.decimal128(10, 0)),
        ([Decimal(i) * 10**i if i % 3 else None for i in range(10, 21)], pa.decimal128(38, 0)),
    ]
}
EVERY_COLUMN = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())


@pytest.mark.parametrize(("value", "kind", "x", "m"), SPARK, ids=lambda value: str(value)[:24])
def test_each_type_hashes_as_spark_hashes_it(value: Any, kind: pa.DataType, x: int, m: int) -> None:
    column = pa.array([value], kind)
    assert xxhash64(column).tolist() == [x]
    assert murmur3(column).tolist() == [m]


def test_several_columns_hash_as_in_sparks_documentation() -> None:
    columns = ["Spark"], np.array([123], np.int32), np.array([2], np.int32)
    assert murmur3(*columns).tolist() == [-1321691492]
    assert xxhash64(*columns).tolist() == [5602566077635097486]


def test_a_null_among_several_columns_leaves_the_hash_of_the_others() -> None:
    assert murmur3(["a"], [None], [1]).tolist() == [1838122449]
    assert xxhash64(["a"], [None], [1]).tolist() == [-1010403264180844141]


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"", 2654435761, 0xAC75FDA2929B17EF),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
        (bytes(range(101)), 0, 0xE99038495F85381E),
        (bytes(range(101)), 2654435761, 0xA1C6D4174C37136D),
    ],
)
def test_bytes_hash_as_the_xxh64_test_vectors(text: bytes, seed: int, expected: int) -> None:
    assert xxhash64([text], seed=seed).view(np.uint64).tolist() == [expected]


def test_the_scalar_kernel_is_the_column_hash_of_a_long() -> None:
    values = [0, 1, -1, 2**63 - 1, -(2**63)]
    assert [xxhash64_long(value, 42) for value in values] == xxhash64(values).tolist()


@given(st.integers(0, 11), st.integers(0, 11))
@EVERY_COLUMN
def test_a_slice_hashes_as_its_rows_do(column: pa.Array, start: int, length: int) -> None:
    part = column.slice(start, length)
    for hash_of in (xxhash64, murmur3):
        assert hash_of(part).tolist() == hash_of(column).tolist()[start : start + length]


@HASHES
@EVERY_COLUMN
def test_chunks_hash_as_the_whole_does(column: pa.Array, hash_of: Any) -> None:
    chunks = pa.chunked_array([column.slice(0, 3), column.slice(3, 0), column.slice(3, 6), column.slice(9)])
    assert hash_of(chunks).tolist() == hash_of(column).tolist()
    assert hash_of(chunks, column).tolist() == hash_of(column, chunks).tolist()


@HASHES
def test_a_column_without_rows_or_chunks_has_no_hashes(hash_of: Any) -> None:
    assert hash_of(pa.chunked_array([], pa.string())).tolist() == []
    for column in COLUMNS.values():
        assert hash_of(pa.array([], column.type)).tolist() == []
        assert hash_of(column.slice(0, 0), np.array([], np.int64)).tolist() == []


@HASHES
def test_numpy_and_arrow_hash_alike(hash_of: Any) -> None:
    for dtype in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, "M8[us]", "M8[D]", "U3"):
        values = np.array([0, 1, 1, 0, 1]).astype(dtype)
        assert hash_of(values).tolist() == hash_of(pa.array(values)).tolist()
        assert hash_of(values[::-2]).tolist() == hash_of(values).tolist()[::-2]


@HASHES
def test_the_byte_order_of_numpy_makes_no_difference(hash_of: Any) -> None:
    values = np.array([1, 2, 300], np.int64)
    assert hash_of(values.astype(">i8")).tolist() == hash_of(values).tolist()


@HASHES
def test_every_nan_hashes_alike_and_unlike_infinity(hash_of: Any) -> None:
    quiet, signalling, negative = 0x7FF8 << 48, (0x7FF0 << 48) + 1, 0xFFFC << 48
    doubles = np.array([quiet, signalling, negative], np.uint64).view(np.float64)
    floats = np.array([0x7FC00000, 0x7F800001, 0xFFE00000], np.uint32).view(np.float32)
    assert len(set(hash_of(doubles).tolist())) == 1
    assert len(set(hash_of(floats).tolist())) == 1
    assert len(set(hash_of(np.array([np.nan, np.inf, -np.inf])).tolist())) == 3


@HASHES
def test_masks_and_dictionaries_hash_as_the_values_they_stand_for(hash_of: Any) -> None:
    plain = hash_of(["b", None, "a", "b"]).tolist()
    assert hash_of(pa.array(["b", None, "a", "b"]).dictionary_encode()).tolist() == plain
    assert hash_of(pd.Series(["b", None, "a", "b"], dtype="category")).tolist() == plain
    assert hash_of(np.ma.array([1, 2], mask=[False, True])).tolist() == hash_of([1, None]).tolist()


@HASHES
def test_the_columns_are_left_as_they_were(hash_of: Any) -> None:
    values = np.array([-0.0, np.nan, 1.0])
    hash_of(values)
    assert values.flags.writeable
    assert np.signbit(values).tolist() == [True, False, False]


@HASHES
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), "no columns"),
        (([1, 2], [1]), r"lengths \[2, 1\]"),
        ((np.array([1], np.uint32),), "uint32.*cast it"),
        ((pa.array([1], pa.uint64()),), "uint64.*cast it"),
        ((np.array([1], np.float16),), "halffloat.*cast it"),
        ((pa.array([[1]]),), "list<.*cast it"),
        ((pa.array([Decimal(1)], pa.decimal256(10, 0)),), "decimal256.*cast it"),
        ((np.zeros((2, 2)),), r"shape \(2, 2\)"),
        (([1, "a"],), "Arrow does not take.*cast it"),
        ((7,), "int that Arrow does not take"),
        (("abc",), r"pass \['abc'\]"),
        ((pa.array([1_001], pa.timestamp("ns")),), "round it"),
        ((pa.array([2**62], pa.timestamp("s")),), "microseconds"),
    ],
)
def test_what_spark_would_not_hash_is_refused_with_a_remedy(hash_of: Any, columns: tuple[Any], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        hash_of(*columns)


def test_a_seed_wider_than_the_hash_is_refused() -> None:
    assert xxhash64([None], seed=2**31).tolist() == [2**31]
    with pytest.raises(SkewlessError, match="seed 2147483648"):
        murmur3([1], seed=2**31)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63 - 1) | st.integers(1, 1000))
def test_pmod_is_the_remainder_that_is_never_negative(value: int, n: int) -> None:
    assert pmod(np.int64(value), np.int64(n)) == value % n


@pytest.mark.parametrize("n", [1, 2, 63, 1000])
def test_preimages_are_the_smallest_ints_of_each_partition(n: int) -> None:
    found = preimages(n)
    partitions = murmur3(np.arange(found.max() + 1, dtype=np.int32)).astype(np.int64) % n
    smallest = [np.flatnonzero(partitions == partition)[0] for partition in range(n)]
    assert found.tolist() == smallest


def test_ten_thousand_partitions_all_have_a_preimage() -> None:
    found = preimages(10_000)
    assert (murmur3(found) % 10_000).tolist() == list(range(10_000))


@pytest.mark.parametrize("n", [0, -3, MOST_PARTITIONS + 1])
def test_preimages_of_no_partitions_or_too_many_are_refused(n: int) -> None:
    with pytest.raises(SkewlessError, match=f"preimages of {n} partitions"):
        preimages(n)


def test_hashing_numbers_in_numpy_does_not_import_arrow() -> None:
    code = (
        "import sys, numpy, skewless.core.hashing as h; h.xxhash64(numpy.arange(3)); sys.exit('pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
