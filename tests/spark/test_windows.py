"""Windows on real streaming queries, row for row against Spark's own `groupBy(window(...))`."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import split
from skewless.api.keyed import WindowedStream

START = datetime(2026, 3, 29, 0, 59, 30, tzinfo=timezone.utc)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("user id", pa.string()),
        ("shop.no", pa.int32()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.decimal128(30, 2)),
        ("when", pa.timestamp("us", tz="UTC")),
        ("s", pa.string()),
    ]
)
KEYS = ("user id", "shop.no")


def rows_of(random: random.Random, batches: int, rows: int) -> list[pa.Table]:
    """Micro-batches with late rows, gaps, equal times, nulls, and hot keys that change."""
    clock, tables = 0.0, []
    for batch in range(batches):
        hot = f"hot{batch // 3}"
        records = []
        for _ in range(random.randint(1, rows)):
            clock += random.choice([0, 0, 0.1, 1, 2.5])
            if random.random() < 0.01:
                clock += 500
            late = random.choice([0, 0, 0, 1, 4, 12, 40, 90])
            user = random.choice([hot, hot, hot, "a", "b", None, "", f"u{random.randint(0, 50)}"])
            number = random.randint(-(2**40), 2**40)
            records.append(
                {
                    "ts": None if random.random() < 0.02 else START + timedelta(seconds=clock - late),
                    "user id": user,
                    "shop.no": random.choice([1, 1, 2, None]),
                    "i": random.choice([None, number, 1]),
                    "x": random.choice([None, number / 7, 0.5]),
                    "d": random.choice([None, Decimal(number * 10**9).scaleb(-2), Decimal("0.01")]),
                    "when": START + timedelta(microseconds=number),
                    "s": random.choice([None, "", "zeta", f"s{number}"]),
                }
            )
        tables.append(pa.Table.from_pylist(records, schema=SCHEMA))
    return tables


def stream_of(spark: SparkSession, tables: list[pa.Table], folder: Path) -> DataFrame:
    """A micro-batch for each table."""
    folder.mkdir(parents=True)
    for i, table in enumerate(tables):
        path = folder / f"{i:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def results(df: DataFrame, folder: Path, mode: str = "append") -> list[tuple[int, tuple[Any, ...]]]:
    """All rows that the query gives, with the number of their micro-batch."""
    found: list[tuple[int, tuple[Any, ...]]] = []

    def each(batch: DataFrame, number: int) -> None:
        for row in batch.collect():
            window, *rest = row
            found.append((number, (window["start"], window["end"], *rest)))

    writer = df.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / "checkpoint"))
    writer.outputMode(mode).trigger(availableNow=True).start().awaitTermination()
    return sorted(found, key=repr)


def shape(df: DataFrame) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in df.schema]


def assert_same(got: list[tuple[int, tuple[Any, ...]]], wanted: list[tuple[int, tuple[Any, ...]]]) -> None:
    def exact(value: Any) -> Any:
        return "float" if isinstance(value, float) else value

    def order(row: tuple[int, tuple[Any, ...]]) -> str:
        return repr((row[0], row[1][:4]))

    got, wanted = sorted(got, key=order), sorted(wanted, key=order)
    assert [(b, tuple(map(exact, row))) for b, row in got] == [(b, tuple(map(exact, row))) for b, row in wanted]
    for (_, mine), (_, theirs) in zip(got, wanted, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            if isinstance(a, float):
                assert a == pytest.approx(b, rel=1e-9, abs=1e-9)


def exact_aggregates() -> dict[str, Any]:
    return {
        "n": sk.count(),
        "some": sk.count("s"),
        "total": sk.sum("i"),
        "money": sk.sum("d"),
        "rough": sk.sum("x"),
        "least": sk.min("i"),
        "most": sk.max("when"),
        "word": sk.min("s"),
        "avg": sk.mean("x"),
        "price": sk.mean("d"),
        "spread": sk.std("x"),
    }


def sparks_own() -> list[Any]:
    return [
        F.count(F.lit(1)).alias("n"),
        F.count("s").alias("some"),
        F.sum("i").alias("total"),
        F.sum("d").alias("money"),
        F.sum("x").alias("rough"),
        F.min("i").alias("least"),
        F.max("when").alias("most"),
        F.min("s").alias("word"),
        F.avg("x").alias("avg"),
        F.avg("d").alias("price"),
        F.stddev("x").alias("spread"),
    ]


def windowed(df: DataFrame, strategy: str, size: str, slide: str | None, **more: str) -> WindowedStream:
    return sk.keyed(df, *KEYS, workers=3, strategy=strategy).window("ts", size, slide, watermark="10 seconds", **more)


def own(df: DataFrame, size: str, slide: str | None) -> DataFrame:
    watched = df.withWatermark("ts", "10 seconds")
    return watched.groupBy(F.window("ts", size, slide), "`user id`", "`shop.no`").agg(*sparks_own())


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return lambda: tmp_path_factory.mktemp("stream")


@pytest.mark.parametrize("strategy", ["local", "dalton"])
@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), size=st.sampled_from([("60 seconds", "10 seconds"), ("1 minute", "25 seconds")]))
def test_a_stream_gives_sparks_own_rows(
    spark: SparkSession, fresh: Callable[[], Path], strategy: str, seed: int, size: tuple[str, str]
) -> None:
    tables, folder = rows_of(random.Random(seed), 6, 60), fresh()
    df = stream_of(spark, tables, folder / "in")
    theirs = own(df, *size)
    mine = windowed(df, strategy, *size).agg(**exact_aggregates())
    assert shape(mine) == shape(theirs)
    assert_same(results(mine, folder / "mine"), results(theirs, folder / "theirs"))


def test_update_mode_gives_sparks_own_rows(spark: SparkSession, fresh: Callable[[], Path]) -> None:
    tables, folder = rows_of(random.Random(7), 6, 60), fresh()
    df = stream_of(spark, tables, folder / "in")
    theirs = own(df, "40 seconds", "10 seconds")
    mine = windowed(df, "hash", "40 seconds", "10 seconds", output="update").agg(**exact_aggregates())
    assert_same(results(mine, folder / "mine", "update"), results(theirs, folder / "theirs", "update"))


def batch_of(spark: SparkSession, tables: list[pa.Table]) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(tables))


def collected(df: DataFrame) -> list[tuple[int, tuple[Any, ...]]]:
    return [(0, (row[0]["start"], row[0]["end"], *row[1:])) for row in df.collect()]


@pytest.mark.parametrize("strategy", ["auto", "local", "spark", *split.NAMES])
def test_a_batch_gives_sparks_own_rows_by_every_strategy(spark: SparkSession, strategy: str) -> None:
    df = batch_of(spark, rows_of(random.Random(strategy), 6, 100))
    theirs = df.groupBy(F.window("ts", "1 minute", "15 seconds"), "`user id`", "`shop.no`").agg(*sparks_own())
    mine = sk.keyed(df, *KEYS, workers=3, strategy=strategy).window("ts", "1 minute", "15 seconds")
    result = mine.agg(**exact_aggregates())
    assert shape(result) == shape(theirs)
    assert_same(collected(result), collected(theirs))


@pytest.mark.parametrize("strategy", ["auto", "local", "dalton", "prompt"])
def test_a_batch_without_windows_has_a_row_for_each_key(spark: SparkSession, strategy: str) -> None:
    df = batch_of(spark, rows_of(random.Random(1), 4, 100))
    theirs = df.groupBy("`user id`", "`shop.no`").agg(*sparks_own())
    mine = sk.keyed(df, *KEYS, workers=3, strategy=strategy).agg(**exact_aggregates())
    assert shape(mine) == shape(theirs)
    assert_same([(0, tuple(row)) for row in mine.collect()], [(0, tuple(row)) for row in theirs.collect()])


def test_a_stream_with_its_own_watermark_and_updates_without_any(
    spark: SparkSession, fresh: Callable[[], Path]
) -> None:
    tables, folder = rows_of(random.Random(9), 4, 60), fresh()
    df = stream_of(spark, tables, folder / "in")
    watched = df.withWatermark("ts", "10 seconds")
    mine = sk.keyed(watched, *KEYS, strategy="local").window("ts", "30 seconds", "10 seconds").agg(**exact_aggregates())
    assert_same(results(mine, folder / "a"), results(own(df, "30 seconds", "10 seconds"), folder / "b"))
    windows = sk.keyed(df, *KEYS, strategy="local").window("ts", "30 seconds", "10 seconds", output="update")
    theirs = df.groupBy(F.window("ts", "30 seconds", "10 seconds"), "`user id`", "`shop.no`").agg(*sparks_own())
    endless = windows.agg(**exact_aggregates())
    assert_same(results(endless, folder / "c", "update"), results(theirs, folder / "d", "update"))


def test_the_other_aggregates_in_a_stream(spark: SparkSession, fresh: Callable[[], Path]) -> None:
    tables, folder = rows_of(random.Random(5), 4, 200), fresh()
    df = stream_of(spark, tables, folder / "in").where("ts is not null")
    windows = sk.keyed(df, "shop.no", workers=3, strategy="dalton").window("ts", "2 minutes", "1 minute", "1000 days")
    mine = windows.agg(
        first=sk.first("s"),
        last=sk.last("i", ignore_nulls=True),
        users=sk.distinct("user id"),
        middle=sk.quantile("x", 0.5),
        words=sk.top("user id", 3),
        all=sk.collect("i"),
        heaviest=WeightedMean("x", "i"),
    )
    rows = pa.concat_tables(tables).to_pylist()
    closing = pa.Table.from_pylist([{"ts": START + timedelta(days=3000), "shop.no": 9}], schema=SCHEMA)
    pq.write_table(closing, folder / "in" / "zzz.parquet")
    found = results(mine, folder / "mine")
    assert len(found) > 10
    for _, (start, end, shop, first, last, users, middle, words, values, mean) in found:
        here = [r for r in rows if r["ts"] and start <= r["ts"].replace(tzinfo=None) < end and r["shop.no"] == shop]
        assert first == min(here, key=lambda r: (r["ts"], r["s"] is not None, r["s"] or ""))["s"]
        seen = [r for r in here if r["i"] is not None]
        assert last == (max(seen, key=lambda r: (r["ts"], r["i"]))["i"] if seen else None)
        names = Counter(r["user id"] for r in here if r["user id"] is not None)
        assert users == pytest.approx(len(names), rel=0.05)
        numbers = sorted(r["x"] for r in here if r["x"] is not None)
        assert middle is None if not numbers else numbers[0] <= middle <= numbers[-1]
        assert [word["count"] for word in words] == [count for _, count in names.most_common(3)]
        assert sorted(values) == sorted(r["i"] for r in seen)
        both = [(r["x"], r["i"]) for r in here if r["x"] is not None and r["i"] is not None]
        weight = sum(i for _, i in both)
        assert mean is None if not both else mean == pytest.approx(sum(x * i for x, i in both) / weight)


class WeightedMean(sk.Aggregate):
    def partial(self, table: pa.Table) -> pa.Table:
        product = pc.multiply(table["x"], pc.cast(table["i"], pa.float64()))
        weight = pc.if_else(pc.is_valid(table["x"]), table["i"], None)
        return self.merge(pa.table({"group": table["group"], "product": product, "weight": weight}))

    def merge(self, table: pa.Table) -> pa.Table:
        sums = table.group_by("group").aggregate([("product", "sum"), ("weight", "sum")])
        return sums.rename_columns(["group", "product", "weight"])

    def finish(self, table: pa.Table) -> pa.Table:
        return pa.table({"group": table["group"], "mean": pc.divide(table["product"], table["weight"])})


def test_a_checkpoint_of_another_query_or_session_is_refused(spark: SparkSession, fresh: Callable[[], Path]) -> None:
    folder = fresh()
    df = stream_of(spark, rows_of(random.Random(2), 2, 20), folder / "in")
    windows = windowed(df, "local", "1 minute", "10 seconds")
    results(windows.agg(n=sk.sum("x")), folder)
    pq.write_table(rows_of(random.Random(3), 1, 20)[0], folder / "in" / "more.parquet")
    with pytest.raises(StreamingQueryException, match="the checkpoint is of another query"):
        results(windows.agg(n=sk.mean("x")), folder)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        changed = windowed(df, "local", "1 minute", "10 seconds").agg(n=sk.sum("x"))
        with pytest.raises(StreamingQueryException, match="to what it was then"):
            results(changed, folder)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
