"""The queries of Prompt's workloads, divided by Prompt, against Spark's own windows."""

from __future__ import annotations

from datetime import datetime, timezone

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.core.windows import Windows
from skewless.workload import TPCH, Taxi
from skewless.workload.taxi import DISTANCE_WINDOWS, FARE_WINDOWS
from skewless.workload.tpch import QUANTITY_WINDOWS

START = datetime(2026, 3, 1, tzinfo=timezone.utc).timestamp()
TRIPS, ITEMS = Taxi(taxis=40, trips_per_second=0.5).take(1_500), TPCH(scale=0.0002, rows_per_second=0.5).take(1_500)


def table(time: np.ndarray, key: np.ndarray, value: np.ndarray) -> pa.Table:
    """Rows of a query; sums of whole numbers are the same in any order."""
    ts = pa.array(((START + time) * 1e6).astype(np.int64), pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": ts, "key": key, "value": np.rint(value).astype(np.int64)})


CENTS = 100 * ITEMS.price * ITEMS.discount
QUERIES = {
    "taxis, query 1: fare": (FARE_WINDOWS, table(TRIPS.time, TRIPS.taxi, 100 * TRIPS.fare)),
    "taxis, query 2: distance": (DISTANCE_WINDOWS, table(TRIPS.time, TRIPS.taxi, 1_000 * TRIPS.distance)),
    "TPC-H, query 1: quantity": (QUANTITY_WINDOWS, table(ITEMS.time, ITEMS.part, ITEMS.quantity)),
    "TPC-H, query 6: revenue": (
        QUANTITY_WINDOWS,
        table(ITEMS.time, ITEMS.part, CENTS).filter(pa.array(ITEMS.in_query_6)),
    ),
}


def rows_of(df: DataFrame) -> list[tuple[object, ...]]:
    named = df.select(F.col("window.start").cast("long").alias("start"), "key", "sum").toArrow()
    return sorted(zip(*(named[column].to_pylist() for column in named.column_names), strict=True))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_the_thesis_has_the_results_of_spark(spark: SparkSession, query: str) -> None:
    windows: Windows
    windows, rows = QUERIES[query]
    size, slide = (f"{length} seconds" for length in (windows.size, windows.slide))
    df = spark.createDataFrame(rows)
    ours = sk.keyed(df, "key", workers=4, split="prompt").window("ts", size=size, slide=slide).agg(sum=sk.sum("value"))
    found = rows_of(ours)
    assert len(found) > 100
    assert found == rows_of(df.groupBy(F.window("ts", size, slide), "key").agg(F.sum("value").alias("sum")))
