"""Our hashes against Spark's own, type by type."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.core.hashing import murmur3, preimages, xxhash64

ROWS = 3_000
ALPHABET = np.array(list("abcXYZ019 _-äßñ€漢字Ωж🙂🚀\0\n"))


def integers(rng: np.random.Generator, dtype: type[np.signedinteger]) -> list[int]:
    bounds = np.iinfo(dtype)
    edges = [bounds.min, bounds.min + 1, -1, 0, 1, bounds.max]
    return edges + rng.integers(bounds.min, bounds.max, ROWS - len(edges), dtype=dtype, endpoint=True).tolist()


def floats(rng: np.random.Generator, dtype: type[np.floating]) -> list[float]:
    limits = np.finfo(dtype)
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf, float(limits.tiny), float(limits.max), float(limits.min)]
    return edges + (rng.standard_normal(ROWS - len(edges)) * 1e6).astype(dtype).tolist()


def texts(rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(ALPHABET, row % 101)) for row in range(ROWS)]


def byte_strings(rng: np.random.Generator) -> list[bytes]:
    return [rng.bytes(row % 101) for row in range(ROWS)]


def decimals(rng: np.random.Generator, precision: int, scale: int) -> list[Decimal]:
    largest = 10**precision - 1
    edges = [0, 1, -1, 127, 128, -128, -129, 255, 256, -256, -257, largest, -largest]
    lengths = rng.integers(1, precision + 1, ROWS - len(edges))
    digits = ["".join(rng.choice(list("0123456789"), length)) for length in lengths]
    signs = rng.choice([1, -1], len(digits))
    unscaled = edges + [int(sign) * int(number) for sign, number in zip(signs, digits, strict=True)]
    return [Decimal(number).scaleb(-scale, Context(prec=60)) for number in unscaled]


def every_type(nulls: float) -> pa.Table:
    rng = np.random.default_rng(1)
    values = {
        "flag": (rng.choice([True, False], ROWS).tolist(), pa.bool_()),
        "tiny": (integers(rng, np.int8), pa.int8()),
        "small": (integers(rng, np.int16), pa.int16()),
        "int": (integers(rng, np.int32), pa.int32()),
        "long": (integers(rng, np.int64), pa.int64()),
        "day": (rng.integers(-200_000, 200_000, ROWS).tolist(), pa.date32()),
        "instant": (rng.integers(-(10**16), 10**16, ROWS).tolist(), pa.timestamp("us", "UTC")),
        "local": (rng.integers(-(10**16), 10**16, ROWS).tolist(), pa.timestamp("us")),
        "float": (floats(rng, np.float32), pa.float32()),
        "double": (floats(rng, np.float64), pa.float64()),
        "text": (texts(rng), pa.string()),
        "bytes": (byte_strings(rng), pa.binary()),
        "money": (decimals(rng, 9, 2), pa.decimal128(9, 2)),
        "decimal18": (decimals(rng, 18, 4), pa.decimal128(18, 4)),
        "decimal19": (decimals(rng, 19, 0), pa.decimal128(19, 0)),
        "decimal38": (decimals(rng, 38, 10), pa.decimal128(38, 10)),
    }
    return pa.table(
        {
            name: pa.array(column, kind, mask=rng.random(ROWS) < nulls) if nulls else pa.array(column, kind)
            for name, (column, kind) in values.items()
        }
    )


def spark_hashes(spark: SparkSession, table: pa.Table, *columns: str) -> tuple[np.ndarray, np.ndarray]:
    hashed = spark.createDataFrame(table).select(F.xxhash64(*columns).alias("x"), F.hash(*columns).alias("m")).toArrow()
    return hashed["x"].to_numpy(), hashed["m"].to_numpy()


@pytest.mark.parametrize("nulls", [0.0, 0.2])
def test_every_type_hashes_as_in_spark(spark: SparkSession, nulls: float) -> None:
    table = every_type(nulls)
    hashed = (
        spark.createDataFrame(table)
        .select(
            *[F.xxhash64(name).alias(f"xxhash64 {name}") for name in table.column_names],
            *[F.hash(name).alias(f"hash {name}") for name in table.column_names],
        )
        .toArrow()
    )
    for name in table.column_names:
        np.testing.assert_array_equal(xxhash64(table[name]), hashed[f"xxhash64 {name}"], err_msg=name)
        np.testing.assert_array_equal(murmur3(table[name]), hashed[f"hash {name}"], err_msg=name)


@pytest.mark.parametrize(
    "columns",
    [("text", "int"), ("long", "long"), ("decimal38", "text", "flag"), tuple(every_type(0.0).column_names)],
    ids=lambda columns: f"{len(columns)}-{columns[0]}",
)
def test_several_columns_hash_as_in_spark(spark: SparkSession, columns: tuple[str, ...]) -> None:
    table = every_type(0.2)
    x, m = spark_hashes(spark, table, *columns)
    ours = [table[name] for name in columns]
    np.testing.assert_array_equal(xxhash64(*ours), x)
    np.testing.assert_array_equal(murmur3(*ours), m)


def test_a_null_literal_hashes_as_in_spark(spark: SparkSession) -> None:
    row = spark.range(1).select(F.xxhash64(F.lit(None)), F.hash(F.lit(None), F.lit("a"))).head()
    assert row is not None
    assert [xxhash64([None])[0], murmur3([None], ["a"])[0]] == list(row)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_grouping_by_a_preimage_lands_on_its_partition(spark: SparkSession, n: int) -> None:
    values = spark.createDataFrame(pa.table({"wanted": np.arange(n), "value": preimages(n)}))
    landed = values.repartition(n, "value").select("wanted", F.spark_partition_id().alias("partition")).toArrow()
    assert landed.num_rows == n
    assert landed["wanted"].to_pylist() == landed["partition"].to_pylist()
