"""What functions of whole windows may give: rows, frames and tables, of any type."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.spark.result import SLIDE

HOUR = datetime(2026, 3, 29, 1, tzinfo=timezone.utc)
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64()), ("ts", pa.timestamp("us", tz="UTC"))])


@pytest.fixture(scope="module")
def some(spark: SparkSession) -> DataFrame:
    """Rows of two keys, a minute apart."""
    rows = [{"k": key, "v": float(i), "ts": HOUR + timedelta(minutes=i)} for i in range(6) for key in ("a", "b")]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))


def in_every_way(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> Any:
    """Rows of nested types, given as functions may give them: one way in each window."""
    minute, name, number = window.start.minute // 2, f"{key[0]} é", len(rows)
    first = {"at": rows["ts"].iloc[0].to_pydatetime(), "v": rows["v"].iloc[0]}
    row = [name, Decimal(number).scaleb(-2), first, [[name], []], None]
    columns = dict(zip(("name", "price", "first", "lists", "nothing"), zip(row, row, strict=True), strict=True))
    if key == ("b",):
        return None
    return [tuple(row), [tuple(row)] * 2, pd.DataFrame(columns)][minute]


def test_functions_give_rows_as_they_like_and_of_any_type(some: DataFrame) -> None:
    nested = "first struct<at: timestamp, v: double>, lists array<array<string>>"
    schema = f"name string, price decimal(10,2), {nested}, nothing date"
    result = sk.keyed(some, "k").window("ts", "2 minutes").apply(in_every_way, schema)
    assert [(field.name, field.dataType.simpleString()) for field in result.schema] == [
        ("window", "struct<start:timestamp,end:timestamp>"),
        ("k", "string"),
        ("name", "string"),
        ("price", "decimal(10,2)"),
        ("first", "struct<at:timestamp,v:double>"),
        ("lists", "array<array<string>>"),
        ("nothing", "date"),
    ]
    assert result.schema["window"].metadata == {SLIDE: 120_000_000}
    wanted = []
    for minute, times in ((0, 1), (2, 2), (4, 2)):
        start = HOUR.replace(minute=minute, tzinfo=None)
        values = ("a é", Decimal("0.02"), (start, float(minute)), [["a é"], []], None)
        wanted += [((start, start + timedelta(minutes=2)), "a", *values)] * times
    assert sorted(result.collect()) == wanted


def test_rows_without_a_zone_and_tables_of_arrow(some: DataFrame) -> None:
    def function(key: tuple[Any, ...], window: Any, rows: pa.Table) -> pa.Table:
        return pa.table({"last": rows["ts"][-1:], "n": pa.array([rows.num_rows], pa.int32())})

    local = some.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
    windows = sk.keyed(local, "k").window("ts", "2 minutes", "1 minute")
    result = windows.apply(function, "n long, last timestamp_ntz", arrow=True)
    assert result.schema["window"].dataType.simpleString() == "struct<start:timestamp_ntz,end:timestamp_ntz>"
    found = {(row["k"], row["window"]["start"]): (row["n"], row["last"]) for row in result.collect()}
    first = HOUR.replace(tzinfo=None)
    minutes = [timedelta(minutes=i) for i in range(-1, 6)]
    assert found == {
        (key, first + start): (
            1 if start in (minutes[0], minutes[-1]) else 2,
            first + min(start + minutes[2], minutes[-1]),
        )
        for key in "ab"
        for start in minutes
    }
