"""Results of real queries in order: against a sort of Spark's own result, and through a crash."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.ordered import Ordered, ordered
from skewless.chop import disorder
from skewless.core import blob
from skewless.spark.result import SLIDE
from support.streams import stream_of, write_files

START = datetime(2026, 3, 1, tzinfo=timezone.utc)


class Sink:
    """Keeps what it is given by the id."""

    def __init__(self) -> None:
        self.given: dict[int, list[dict[str, Any]]] = {}
        self.fails_at: int | None = None

    def __call__(self, rows: pa.Table, batch: int) -> None:
        assert rows.num_rows
        assert self.given.setdefault(batch, rows.to_pylist()) == rows.to_pylist()
        if batch == self.fails_at:
            raise RuntimeError("no network")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """In the order of the micro-batches, with the flush last."""
        ids = sorted(self.given, key=lambda batch: (batch < 0, batch))
        return [row for batch in ids for row in self.given[batch]]


def run(result: Ordered, sink: Sink, checkpoint: Path, folder: str | None = None) -> None:
    result.write(sink, str(checkpoint), folder).trigger(availableNow=True).start().awaitTermination()


def numbers(spark: SparkSession, folder: Path, batches: list[list[int]]) -> DataFrame:
    return stream_of(spark, folder, [numbered(batch) for batch in batches])


def numbered(batch: list[int]) -> pa.Table:
    """Rows with a number, with columns that have an order and one that has none."""
    return pa.table(
        {
            "a map": pa.array([[("n", n)] for n in batch], pa.map_(pa.string(), pa.int64())),
            "n.o": pa.array(batch, pa.int32()),
            "tags": pa.array([[str(n), None] for n in batch], pa.list_(pa.string())),
        }
    )


def test_windows_come_in_the_order_of_a_sort(spark: SparkSession, tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    tables = []
    for i in range(4):
        seconds = 20 * i + np.sort(chance.integers(0, 20, 200)) - chance.integers(0, 5, 200)
        times = pa.array([START + timedelta(seconds=int(at)) for at in seconds], pa.timestamp("us", "UTC"))
        tables.append(pa.table({"ts": times, "page": chance.integers(0, 9, 200).astype(str)}))
    events = stream_of(spark, tmp_path / "in", tables)
    windows = sk.keyed(events, "page").window("ts", "10 seconds", "5 seconds", watermark="5 seconds")
    result, sink = ordered(windows.agg(n=sk.count())), Sink()
    run(result, sink, tmp_path / "checkpoint")
    rows = spark.createDataFrame(pa.concat_tables(tables))
    last = rows.agg(F.max("ts") - F.expr("interval 5 seconds")).first()[0]
    own = rows.groupBy(F.window("ts", "10 seconds", "5 seconds"), "page").agg(F.count("*").alias("n"))
    closed = own.where(F.col("window.end") <= F.lit(last)).orderBy("window", "page")
    assert sink.rows == closed.toArrow().to_pylist()
    assert len(sink.given) > 1
    assert (result.waits.held, result.waits.late, result.waits.most_batches) == (0, 0, 0)
    assert result.waits.delivered == len({row["window"]["start"] for row in sink.rows})
    assert (tmp_path / "checkpoint" / "ordered" / "0.arrow").exists()


@pytest.mark.parametrize("k", [0, 3])
def test_numbers_out_of_order_have_at_most_k_out_of_place(spark: SparkSession, tmp_path: Path, k: int) -> None:
    batches = [[2, 0], [1, 5, 2, 2], [4, 3], [9, 7], [6, 8, 0]]
    result, sink = ordered(numbers(spark, tmp_path / "in", batches), "n.o", k, delay=4, parts=2), Sink()
    folder = str(tmp_path / "held") if k else None
    run(result, sink, tmp_path / "checkpoint", folder)
    assert (tmp_path / "held" / "4.arrow").exists() == bool(k)
    assert (tmp_path / "checkpoint" / "ordered" / "4.arrow").exists() == (not k)
    held = result.waits.held_rows
    assert held + len(sink.rows) == 13
    result.flush(sink, str(tmp_path / "checkpoint"), folder)
    assert result.waits.held == 0
    found = [row["n.o"] for row in sink.rows]
    assert sorted(found) == sorted(n for batch in batches for n in batch)
    assert all(row["tags"] == [str(row["n.o"]), None] and row["a map"] == [("n", row["n.o"])] for row in sink.rows)
    assert (result.waits.late, result.waits.late_rows) == (1, 1)
    found.reverse()
    found.remove(0)  # the late one
    assert disorder(np.array(found[::-1])) <= k
    assert held == {0: 4, 3: 2}[k]
    assert "1 late (1 row)" in str(result.waits)


def test_a_query_that_died_goes_on_and_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = [[3, 1], [2, 6], [5, 4], [9, 8], [7, 12]]
    df, sink = numbers(spark, tmp_path / "in", batches), Sink()
    sink.fails_at = 3
    with pytest.raises(StreamingQueryException, match="no network"):
        run(ordered(df, "n.o", delay=3), sink, tmp_path / "checkpoint")
    assert sorted(sink.given) == [1, 3]  # others had nothing to deliver
    sink.fails_at = None
    result = ordered(df, "n.o", delay=3)
    run(result, sink, tmp_path / "checkpoint")  # the sink compares what it gets again
    assert result.waits.held_rows > 0
    result.flush(sink, f"{tmp_path}/checkpoint")
    assert [row["n.o"] for row in sink.rows] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 12]

    file = tmp_path / "checkpoint" / "ordered" / "4.arrow"
    query = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert json.loads(blob.notes(blob.load(file.read_bytes()))["delivery"])["query"] == query
    file.unlink()
    write_files(tmp_path / "in", [numbered([3, 1])], first=len(batches))
    with pytest.raises(StreamingQueryException, match=r"after micro-batch 4 are not at .*/checkpoint/ordered/4.arrow"):
        run(result, sink, tmp_path / "checkpoint")


def test_a_batch_is_sorted(spark: SparkSession) -> None:
    df = spark.createDataFrame([(3, "c"), (1, "a"), (2, "b")], "n long, `a.b` string")
    assert [row.n for row in ordered(df, "n").sorted().collect()] == [1, 2, 3]
    timed = df.selectExpr("n", "timestamp_seconds(n) as ts")
    assert [row.n for row in ordered(timed, "ts").sorted().collect()] == [1, 2, 3]


def test_windows_may_know_their_slide(spark: SparkSession) -> None:
    df = spark.createDataFrame([(START,)], "ts timestamp").groupBy(F.window("ts", "10 seconds", "2 seconds")).count()
    marked = df.select(F.col("window").alias("window", metadata={SLIDE: 2_000_000}), "count")
    assert ordered(marked, max_disorder=4).order.every == 2_000_000
    assert ordered(df, max_disorder=4, every="2 seconds").order.every == 2_000_000
    assert ordered(df).order.every == 1
    with pytest.raises(sk.SkewlessError, match=r"max_disorder is 4.*column .window..*every=.1 second."):
        ordered(df, max_disorder=4)


def test_windows_of_skewless_know_their_slide(spark: SparkSession) -> None:
    def count(key: tuple[Any, ...], window: Any, rows: Any) -> tuple[int]:
        return (len(rows),)

    rates = spark.readStream.format("rate").load()
    windows = sk.keyed(rates, "value").window("timestamp", "10 seconds", "2 seconds", watermark="5 seconds")
    of_all = sk.windowed(rates, "timestamp", "10 seconds", "2 seconds", watermark="5 seconds")
    for result in (windows.agg(n=sk.count()), windows.apply(count, "n long"), of_all.apply(count, "n long")):
        assert result.schema["window"].metadata[SLIDE] == 2_000_000
        assert ordered(result, max_disorder=4).order.every == 2_000_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "when"}, "no column 'when'; there are n, s, ts"),
        ({"by": "s"}, "column 's' is of type string, which is no order"),
        ({"by": "n", "max_disorder": -1}, "max_disorder is -1; give the places"),
        ({"by": "n", "max_disorder": 0.5}, "max_disorder is 0.5; give the places"),
        ({"by": "n", "parts": 0}, "parts is 0; give how many micro-batches"),
        ({"by": "n", "every": "1 second"}, "every is '1 second', and column 'n' has whole numbers already"),
        ({"by": "n", "delay": "1 second"}, "delay is '1 second', and column 'n' has whole numbers"),
        ({"by": "n", "delay": -1}, "delay is -1, and"),
        ({"by": "ts", "delay": 10}, "10 is not an interval"),
        ({"by": "ts", "every": "soon"}, "'soon' is not an interval"),
        ({"by": "ts", "max_disorder": 2}, "max_disorder is 2, and how many results"),
    ],
)
def test_what_makes_no_sense_is_refused(spark: SparkSession, given: dict[str, Any], message: str) -> None:
    df = spark.range(1).selectExpr("id as n", "'x' as s", "timestamp_seconds(id) as ts")
    with pytest.raises(sk.SkewlessError, match=message):
        ordered(df, **given)


def test_batches_and_streams_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    batch, stream = spark.range(3), spark.readStream.format("rate").load()
    with pytest.raises(sk.SkewlessError, match="several columns 'id'"):
        ordered(batch.select("id", "id"), "id")
    with pytest.raises(sk.SkewlessError, match=r"is a batch.*ordered\(...\).sorted\(\)"):
        ordered(batch, "id").write(print, str(tmp_path))
    with pytest.raises(sk.SkewlessError, match=r"is a stream.*write\(deliver"):
        ordered(stream, "value").sorted()
    with pytest.raises(sk.SkewlessError, match="deliver is 'parquet'; give a function"):
        ordered(stream, "value").write("parquet", str(tmp_path))
    with pytest.raises(sk.SkewlessError, match="'hdfs://nowhere/checkpoint/ordered' is on hdfs, where a file"):
        ordered(stream, "value").write(print, "hdfs://nowhere/checkpoint")
