"""Windows on real streaming queries, row for row against Spark's own `groupBy(window(...))`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import split as splitters
from skewless.aggregate import Measure
from skewless.api.keyed import KeyedStream
from skewless.api.windowed import KeyedWindows
from skewless.spark.result import SLIDE
from support.streams import partitions, run, stream_of, write_files

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
PLAIN = ("n", "some", "total", "rough", "least", "word", "avg", "spread")
"""The aggregates whose values are whole numbers, floats and text: where times have a zone, such rows are not packed."""


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


def results(df: DataFrame, folder: Path, mode: str = "append") -> list[tuple[int, tuple[Any, ...]]]:
    """All rows that the query gives, with the number of their micro-batch."""
    given, _ = run(df, folder / "checkpoint", mode=mode)
    found = [(batch, (*window, *rest)) for batch, rows in given.items() for window, *rest in rows]
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


def exact_aggregates() -> dict[str, Measure]:
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


def sparks_own() -> list[Column]:
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


def keyed(df: DataFrame, split: str) -> KeyedStream:
    return sk.keyed(df, *KEYS, split=split, workers=None if split in ("local", "spark") else 3)


def windowed(df: DataFrame, split: str, size: str, slide: str | None) -> KeyedWindows:
    return keyed(df, split).window("ts", size, slide, watermark="10 seconds")


def grouped(df: DataFrame, size: str, slide: str | None) -> DataFrame:
    return df.groupBy(F.window("ts", size, slide), "`user id`", "`shop.no`").agg(*sparks_own())


def own(df: DataFrame, size: str, slide: str | None) -> DataFrame:
    return grouped(df.withWatermark("ts", "10 seconds"), size, slide)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    return lambda: tmp_path_factory.mktemp("stream")


@pytest.mark.parametrize(
    "splits",
    [("local", "bounded"), pytest.param(("dalton", "prompt", "partly"), marks=pytest.mark.long)],
    ids=["auto", "others"],
)
@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), size=st.sampled_from([("60 seconds", "10 seconds"), ("1 minute", "25 seconds")]))
def test_a_stream_gives_sparks_own_rows(
    spark: SparkSession, fresh: Callable[[], Path], splits: tuple[str, ...], seed: int, size: tuple[str, str]
) -> None:
    tables, folder = rows_of(random.Random(seed), 5, 60), fresh()
    df = stream_of(spark, folder / "in", tables)
    theirs = own(df, *size)
    wanted = results(theirs, folder / "theirs")
    for split in splits:
        mine = windowed(df, split, *size).agg(**exact_aggregates())
        assert shape(mine) == shape(theirs)
        assert_same(results(mine, folder / split), wanted)


def plain_aggregates() -> dict[str, Measure]:
    return {name: measure for name, measure in exact_aggregates().items() if name in PLAIN}


def plain(df: DataFrame) -> DataFrame:
    return df.select("window", "`user id`", "`shop.no`", *PLAIN)


@pytest.mark.parametrize(("split", "kind"), [("local", "timestamp"), ("dalton", "timestamp_ntz")])
def test_times_with_and_without_a_zone_give_sparks_own_rows(
    spark: SparkSession, fresh: Callable[[], Path], split: str, kind: str
) -> None:
    folder = fresh()
    watched = stream_of(spark, folder / "in", rows_of(random.Random(11), 4, 60)).withWatermark("ts", "10 seconds")
    # Spark makes no watermark of times without a zone, but knows by the metadata of the column that it has one.
    metadata = watched.schema["ts"].metadata
    df = watched.withColumn("ts", F.col("ts").cast(kind).alias("ts", metadata=metadata))
    theirs = plain(grouped(df, "40 seconds", "15 seconds"))
    mine = keyed(df, split).window("ts", "40 seconds", "15 seconds").agg(**plain_aggregates())
    assert shape(mine)[0] == ("window", f"struct<start:{kind},end:{kind}>")
    assert shape(mine) == shape(theirs)
    wanted = results(theirs, folder / "theirs")
    assert len(wanted) > 20
    assert_same(results(mine, folder / "mine"), wanted)


def test_times_without_a_zone_do_not_depend_on_that_of_the_session(
    spark: SparkSession, fresh: Callable[[], Path]
) -> None:
    folder, schema = fresh(), SCHEMA.set(0, pa.field("ts", pa.timestamp("us")))
    tables = [table.cast(schema) for table in rows_of(random.Random(12), 3, 60)]
    with session_in(spark, "America/New_York"):
        df = stream_of(spark, folder / "in", tables)
        theirs = plain(grouped(df, "40 seconds", "15 seconds"))
        mine = keyed(df, "hash").window("ts", "40 seconds", "15 seconds").changes(**plain_aggregates())
        assert shape(mine) == shape(theirs)
        found = results(mine, folder / "mine", "update")
        assert_same(found, results(theirs, folder / "theirs", "update"))
    times = [row["ts"] for table in tables for row in table.to_pylist() if row["ts"] is not None]
    assert min(times) < min(end for _, (_start, end, *_rest) in found) <= min(times) + timedelta(seconds=15)


@contextmanager
def session_in(spark: SparkSession, zone: str) -> Iterator[None]:
    """Another time zone than other tests have."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_the_windows_that_changed_are_sparks_own_in_update_mode(spark: SparkSession, fresh: Callable[[], Path]) -> None:
    tables, folder = rows_of(random.Random(7), 4, 60), fresh()
    df = stream_of(spark, folder / "in", tables)
    theirs = own(df, "40 seconds", "10 seconds")
    mine = windowed(df, "hash", "40 seconds", "10 seconds").changes(**exact_aggregates())
    assert_same(results(mine, folder / "mine", "update"), results(theirs, folder / "theirs", "update"))


@pytest.mark.parametrize("split", ["local", "dalton"])
def test_windows_have_their_slide_with_them(spark: SparkSession, fresh: Callable[[], Path], split: str) -> None:
    tables = rows_of(random.Random(3), 1, 20)
    windows = windowed(stream_of(spark, fresh() / "in", tables), split, "1 minute", "15 seconds")
    still = keyed(batch_of(spark, tables), split).window("ts", "1 minute", "15 seconds")
    packed, plain = {"most": sk.max("when")}, {"n": sk.count()}
    for result in (windows.agg(**plain), windows.agg(**packed), windows.changes(**plain), still.agg(**plain)):
        assert result.schema["window"].metadata == {SLIDE: 15_000_000}


def batch_of(spark: SparkSession, tables: list[pa.Table]) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(tables))


def collected(df: DataFrame) -> list[tuple[int, tuple[Any, ...]]]:
    return [(0, (row[0]["start"], row[0]["end"], *row[1:])) for row in df.collect()]


@pytest.mark.parametrize("split", ["auto", "local", "spark", *splitters.NAMES])
def test_a_batch_gives_sparks_own_rows_by_every_split(spark: SparkSession, split: str) -> None:
    df = batch_of(spark, rows_of(random.Random(split), 6, 100))
    theirs = grouped(df, "1 minute", "15 seconds")
    mine = keyed(df, split).window("ts", "1 minute", "15 seconds")
    result = mine.agg(**exact_aggregates())
    assert shape(result) == shape(theirs)
    assert_same(collected(result), collected(theirs))


@pytest.mark.parametrize("split", ["auto", "local", "dalton", "prompt", "bounded"])
def test_a_batch_without_windows_has_a_row_for_each_key(spark: SparkSession, split: str) -> None:
    df = batch_of(spark, rows_of(random.Random(1), 4, 100))
    theirs = df.groupBy("`user id`", "`shop.no`").agg(*sparks_own())
    mine = keyed(df, split).agg(**exact_aggregates())
    assert shape(mine) == shape(theirs)
    assert_same([(0, tuple(row)) for row in mine.collect()], [(0, tuple(row)) for row in theirs.collect()])


def test_a_stream_with_its_own_watermark_and_changes_without_any(
    spark: SparkSession, fresh: Callable[[], Path]
) -> None:
    tables, folder = rows_of(random.Random(9), 4, 60), fresh()
    df = stream_of(spark, folder / "in", tables)
    watched = df.withWatermark("ts", "10 seconds")
    mine = sk.keyed(watched, *KEYS, split="local").window("ts", "30 seconds", "10 seconds").agg(**exact_aggregates())
    assert_same(results(mine, folder / "a"), results(own(df, "30 seconds", "10 seconds"), folder / "b"))
    windows = sk.keyed(df, *KEYS, split="local").window("ts", "30 seconds", "10 seconds")
    theirs = grouped(df, "30 seconds", "10 seconds")
    endless = windows.changes(**exact_aggregates())
    assert_same(results(endless, folder / "c", "update"), results(theirs, folder / "d", "update"))


def test_the_other_aggregates_in_a_stream(spark: SparkSession, fresh: Callable[[], Path]) -> None:
    tables, folder = rows_of(random.Random(5), 4, 200), fresh()
    df = stream_of(spark, folder / "in", tables).where("ts is not null")
    windows = sk.keyed(df, "shop.no", workers=3, split="dalton").window("ts", "2 minutes", "1 minute", "1000 days")
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
    write_files(folder / "in", [closing], first=len(tables))
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
    df = stream_of(spark, folder / "in", rows_of(random.Random(2), 2, 20))
    windows = windowed(df, "local", "1 minute", "10 seconds")
    results(windows.agg(n=sk.sum("x")), folder)
    write_files(folder / "in", rows_of(random.Random(3), 1, 20), first=2)
    with pytest.raises(StreamingQueryException, match="the checkpoint is of another query"):
        results(windows.agg(n=sk.mean("x")), folder)
    with partitions(spark, 3), pytest.raises(StreamingQueryException, match="to what it was then"):
        results(windowed(df, "local", "1 minute", "10 seconds").agg(n=sk.sum("x")), folder)
