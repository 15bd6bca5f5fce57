"""Tasks that learn together inside Spark: the same results, even loads, and a new table after every micro-batch."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from support.streams import run, start, stream_of

ROWS, WORKERS, TASKS = 6_000, 4, 3


def clicks(batches: int) -> list[pa.Table]:
    """Micro-batches of a skewed stream, half a second long each."""
    chance, shares = np.random.default_rng(5), 1 / np.arange(1, 201) ** 1.5
    tables = []
    for batch in range(batches):
        pages = chance.choice(200, ROWS, p=shares / shares.sum())
        values = np.arange(ROWS) + batch * ROWS
        times = pa.array(values * (500_000 // ROWS), pa.timestamp("us", "UTC"))
        tables.append(pa.table({"page": pages, "value": values, "ts": times}))
    return tables


def together(merge: str = "normalised") -> sk.split.Splitter:
    return sk.split.CooperativeDalton(slide=500, merge=merge)


def version(watching: Watch) -> int:
    found = re.search(r"Q-table version (\d+): \d+ hot keys, from 3 tasks", watching.explain())
    return int(found[1]) if found else 0


def test_rows_are_all_there_and_even_and_every_micro_batch_makes_a_table(spark: SparkSession, tmp_path: Path) -> None:
    values: list[int] = []
    balance: list[float] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        values.extend(row["value"] for row in df.select("value").collect())
        sizes = [row["count"] for row in df.groupBy(F.spark_partition_id()).count().collect()]
        balance.append(max(sizes) * WORKERS / ROWS)
        assert watching.wait(batch)

    stream = stream_of(spark, tmp_path / "in", clicks(4)).repartition(TASKS, "value")
    keyed = sk.keyed(stream, "page", workers=WORKERS, split=together())
    assert "tasks start from one Q-table, and what they learn is merged (normalised)" in keyed.explain()
    query = start(keyed.repartition(folder=str(tmp_path / "folder")), tmp_path / "to", each)
    query.awaitTermination()
    assert sorted(values) == list(range(4 * ROWS))
    watching = sk.watch(query)
    assert watching.wait(4)
    assert version(watching) == 4
    assert " 0 messages were dropped" in watching.explain()
    by_hash = sk.keyed(spark.createDataFrame(clicks(1)[0]), "page", workers=WORKERS, split="hash").repartition()
    hashed = max(row["count"] for row in by_hash.groupBy(F.spark_partition_id()).count().collect()) * WORKERS / ROWS
    assert balance[-1] < 1.2 < 1.5 < hashed
    assert [path.name.partition("-")[0] for path in (tmp_path / "folder").iterdir()] == ["q"]


@pytest.mark.parametrize("merge", ["printed", pytest.param("shared", marks=pytest.mark.long)])
def test_windows_are_those_of_spark(spark: SparkSession, tmp_path: Path, merge: str) -> None:
    batches = clicks(3)
    stream = stream_of(spark, tmp_path / "in", batches).repartition(TASKS, "value")
    keyed = sk.keyed(stream, "page", workers=WORKERS, split=together(merge))
    found, watching = run(
        keyed.window("ts", "1 second", "500 milliseconds", watermark="0 seconds").agg(n=sk.count(), s=sk.sum("value")),
        tmp_path / "to",
    )
    rows = spark.createDataFrame(pa.concat_tables(batches))
    window = F.window("ts", "1 second", "500 milliseconds")
    expected = rows.groupBy(window, "page").agg(F.count("*"), F.sum("value"))
    closed = {tuple(row) for each in found.values() for row in each}
    whole = {tuple(row) for row in expected.select("window", "page", "count(1)", "sum(value)").collect()}
    assert len(closed) > 100
    assert closed <= whole
    last = max(row["ts"] for row in rows.select(F.max("ts").alias("ts")).collect())
    assert {row for row in whole if row[0]["end"] <= last} == closed
    assert watching.wait(3)
    assert version(watching) == 3


def test_a_table_that_is_damaged_stops_the_query_in_words(spark: SparkSession, tmp_path: Path) -> None:
    stream = stream_of(spark, tmp_path / "in", clicks(1))
    routed = sk.keyed(stream, "page", workers=WORKERS, split=together()).repartition(folder=str(tmp_path / "folder"))
    (table,) = (tmp_path / "folder").iterdir()
    table.write_text("{")
    query = start(routed, tmp_path / "to", lambda df, _batch, _watching: df.write.format("noop").mode("append").save())
    with pytest.raises(StreamingQueryException, match=r"the Q-table at .* is damaged \(.*\); call agg\(\.\.\.\) or"):
        query.awaitTermination()


def test_a_batch_is_refused(spark: SparkSession) -> None:
    with pytest.raises(sk.SkewlessError, match="a batch DataFrame has one only; split='dalton' plans it"):
        sk.keyed(spark.range(9), "id", workers=2, split=together()).repartition()
