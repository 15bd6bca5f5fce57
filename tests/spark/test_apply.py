"""Functions of whole windows: batches against DuckDB, streams against Spark's own windows of the same micro-batches."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.core.interval import microseconds
from skewless.spark.result import SLIDE
from support.streams import partitions, run, stream_of

START = datetime(2026, 3, 29, 0, 59, 30, tzinfo=timezone.utc)
HOUR = datetime(2026, 3, 29, 1, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64()), ("ts", pa.timestamp("us", tz="UTC"))])
ANSWER = "n long, median double, p90 double, seen array<double>, drops long"
HIGH, LOW = 60, 40
Answer = tuple[int, float | None, float | None, list[float], int]
Rows = list[tuple[Any, ...]]


def answer(values: list[float], n: int, drops: int) -> Answer:
    if not values:
        return n, None, None, [], drops
    return n, float(np.median(values)), float(np.quantile(values, 0.9)), sorted(set(values)), drops


def whole(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> Answer:
    """How many rows; of their values the median, a percentile and the distinct ones; and how often one falls."""
    assert (rows["ts"] >= window.start).all()
    assert (rows["ts"] < window.end).all()
    assert rows["ts"].is_monotonic_increasing
    return of_rows(rows)


def of_rows(rows: pd.DataFrame) -> Answer:
    drops = (rows["v"] > HIGH) & (rows["v"].shift(-1) < LOW)
    return answer(rows["v"].dropna().tolist(), len(rows), int(drops.sum()))


def of_pane(key: tuple[Any, ...], pane: Any, rows: pd.DataFrame) -> tuple[list[float], int, int, float, float]:
    n, *_rest, drops = whole(key, pane, rows)
    return rows["v"].dropna().tolist(), n, drops, rows["v"].iloc[0], rows["v"].iloc[-1]


def of_window(key: tuple[Any, ...], window: Any, panes: list[tuple[list[float], int, int, float, float]]) -> Answer:
    """The same from the panes: a fall may be from one pane to the next."""
    assert panes
    between = sum(one[4] > HIGH and other[3] < LOW for one, other in itertools.pairwise(panes))
    values = [value for pane in panes for value in pane[0]]
    return answer(values, sum(pane[1] for pane in panes), sum(pane[2] for pane in panes) + int(between))


CHOPS: dict[str, dict[str, Any]] = {
    "window": {"function": whole, "chop": "window"},
    "batch": {"function": whole, "chop": "batch"},
    "pane": {"function": of_window, "pane": of_pane, "chop": "pane"},
}


def rows_of(seed: int, count: int, start: datetime = START, gaps: int = 3) -> pa.Table:
    """Rows of a few keys, in no order, no two at one time; with hours of silence between some, and without a time."""
    chance = random.Random(seed)
    offsets = sorted(chance.sample(range(count * 900_000), count))
    silent = sorted(chance.sample(range(count), gaps))
    records: list[dict[str, Any]] = []
    for i, offset in enumerate(offsets):
        later = timedelta(microseconds=offset, hours=sum(i > each for each in silent))
        ts = None if chance.random() < 0.03 else start + later
        value = None if chance.random() < 0.1 else float(chance.randint(0, 100))
        records.append({"k": chance.choice(["hot", "hot", "hot", "a", "", None]), "v": value, "ts": ts})
    chance.shuffle(records)
    return pa.Table.from_pylist(records, schema=SCHEMA)


def asked(table: pa.Table, size: int, slide: int, *, keyed: bool, counted: bool = False) -> Rows:
    """What DuckDB says: start and end of each window, the key if there is one, and the answer."""
    key = "k" if keyed else "0"
    time = f"row_number() over (partition by {key} order by ts) - 1" if counted else "epoch_us(ts)"
    # Division here is towards zero, also of times before 1970.
    query = f"""
        with timed as (select {key} as key, v, epoch_us(ts) as us, {time} as t from given where ts is not null),
        floored as (
            select *, (t - (t % {slide} + {slide}) % {slide}) // {slide} as latest,
                (t - {size} - ((t - {size}) % {slide} + {slide}) % {slide}) // {slide} + 1 as earliest from timed
        ),
        placed as (select key, v, us, unnest(range(earliest, latest + 1)) as w from floored),
        followed as (select *, lead(v) over (partition by w, key order by us) as following from placed)
        select w * {slide}, w * {slide} + {size}, key, count(*), median(v), quantile_cont(v, 0.9),
            list_sort(list_distinct(list(v))), count(*) filter (v > {HIGH} and following < {LOW})
        from followed where w >= 0 or not {counted} group by w, key
        having count(*) = {size} or not {counted}
    """
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("given", table)
        found = connection.execute(query).fetchall()
    return [row[:2] + (row[2:] if keyed else row[3:]) for row in found]


def plain(row: Any) -> tuple[Any, ...]:
    """A row of a result, times as microseconds."""
    window, *rest = row
    return (*map(as_microseconds, (window["start"], window["end"])), *rest)


def as_microseconds(time: Any) -> int:
    """Times come without a zone, in that of the session, which is UTC."""
    if isinstance(time, int):
        return time
    return (time.replace(tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)


def assert_same(got: Rows, wanted: Rows) -> None:
    """But for the last digits of what is no whole number."""

    def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(round(value, 9) if isinstance(value, float) else value for value in row)

    assert sorted(map(repr, map(rounded, got))) == sorted(map(repr, map(rounded, wanted)))


SHAPES = [
    (1, "60 seconds", "10 seconds", START),
    (2, "7 seconds", "3 seconds", START),
    (3, "100 seconds", "37500 milliseconds", datetime(1969, 12, 31, 22, tzinfo=timezone.utc)),
    (4, "1 minute", None, START),
]


@pytest.mark.parametrize("chop", list(CHOPS))
@pytest.mark.parametrize(("seed", "size", "slide", "start"), SHAPES)
def test_a_batch_gives_what_duckdb_gives(
    spark: SparkSession, seed: int, size: str, slide: str | None, start: datetime, chop: str
) -> None:
    table = rows_of(seed, 150, start)
    with partitions(spark, 3):
        windows = sk.keyed(spark.createDataFrame(table), "k", workers=3).window("ts", size, slide)
        got = [plain(row) for row in windows.apply(schema=ANSWER, **CHOPS[chop]).collect()]
    wanted = asked(table, microseconds(size), microseconds(slide or size), keyed=True)
    assert len(wanted) > 20
    assert_same(got, wanted)


@pytest.mark.parametrize("chop", list(CHOPS))
def test_windows_of_all_rows_of_a_batch_give_what_duckdb_gives(spark: SparkSession, chop: str) -> None:
    table = rows_of(6, 150)
    with partitions(spark, 3):
        windows = sk.windowed(spark.createDataFrame(table), "ts", "25 seconds", "10 seconds")
        got = [plain(row) for row in windows.apply(schema=ANSWER, **CHOPS[chop]).collect()]
    assert_same(got, asked(table, 25_000_000, 10_000_000, keyed=False))


@pytest.mark.parametrize(("chop", "keyed"), [("window", False), ("batch", True), ("pane", True), ("pane", False)])
def test_windows_of_rows_in_a_batch_give_what_duckdb_gives(spark: SparkSession, chop: str, keyed: bool) -> None:
    table, (size, slide) = rows_of(5, 200), (6, 4) if chop == "pane" else (7, 3)
    with partitions(spark, 3):
        df = spark.createDataFrame(table)
        windows = sk.keyed(df, "k").window("ts", size, slide) if keyed else sk.windowed(df, "ts", size, slide)
        result = windows.apply(schema=ANSWER, **COUNTED[chop])
        got = [plain(row) for row in result.collect()]
    assert result.schema["window"].dataType.simpleString() == "struct<start:bigint,end:bigint>"
    assert result.schema["window"].metadata == {}  # their slide is no time
    wanted = asked(table, size, slide, keyed=keyed, counted=True)
    assert len(wanted) > 40
    assert_same(got, wanted)


def counted(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> Answer:
    """As `whole`, of windows whose edges are numbers of rows."""
    assert window.end - window.start == len(rows)
    return of_rows(rows)


def counted_pane(key: tuple[Any, ...], pane: Any, rows: pd.DataFrame) -> tuple[list[float], int, int, float, float]:
    n, *_rest, drops = counted(key, pane, rows)
    return rows["v"].dropna().tolist(), n, drops, rows["v"].iloc[0], rows["v"].iloc[-1]


COUNTED: dict[str, dict[str, Any]] = {
    "window": {"function": counted, "chop": "window"},
    "batch": {"function": counted, "chop": "batch"},
    "pane": {"function": of_window, "pane": counted_pane},
}


def event(second: float, key: str | None, value: float | None) -> dict[str, Any]:
    return {"ts": HOUR + timedelta(seconds=second), "k": key, "v": value}


def late_tables() -> list[pa.Table]:
    """Micro-batches with rows so late that some of their windows are over, or all."""
    chance, clock = random.Random(8), 1010.0
    # The third has a row of the windows from 925 and 950 on, when the first is over, and held no rows till then.
    tables = [[event(1000, "hot", 70)], [event(1001, "a", 30)], [event(980, "hot", 65), event(1002, "hot", 20)]]
    for batch in range(4):
        records = []
        for _ in range(40):
            clock += chance.choice([0.1, 0.5, 1, 2.5])
            late = chance.choice([0, 0, 0, 1, 4, 12, 40, 90])
            key = chance.choice(["hot", "hot", "hot", "a", "", None])
            value = None if chance.random() < 0.1 else float(chance.randint(0, 100))
            records.append(event(clock - late + chance.randint(1, 90_000) / 1e6, key, value))
        records.append({"ts": None, "k": "hot", "v": 1.0})
        tables.append(records)
        clock += 7200 if batch == 2 else 0
    tables.append([event(86_400, "end", 0)])
    return [pa.Table.from_pylist(records, schema=SCHEMA) for records in tables]


class Late(NamedTuple):
    """A stream with late rows, and what its windows of 60 s sliding by 25 s hold by Spark's own operators."""

    tables: list[pa.Table]
    df: DataFrame
    own: list[tuple[int, tuple[Any, ...]]]
    """The micro-batch; start, end and key, how many, median and percentile, the distinct values, and all rows."""


@pytest.fixture(scope="module")
def late(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Late:
    folder, tables = tmp_path_factory.mktemp("late"), late_tables()
    df = stream_of(spark, folder / "in", tables)
    own = df.withWatermark("ts", "10 seconds").groupBy(F.window("ts", "60 seconds", "25 seconds"), "k")
    windows = own.agg(
        F.count(F.lit(1)),
        F.percentile("v", 0.5),
        F.percentile("v", 0.9),
        F.sort_array(F.collect_set("v")),
        F.sort_array(F.collect_list(F.struct("ts", "v"))),
    )
    return Late(tables, df, results(windows, folder / "own"))


def results(df: DataFrame, checkpoint: Path) -> list[tuple[int, tuple[Any, ...]]]:
    """All rows that the query gives, with the number of their micro-batch."""
    given, _ = run(df, checkpoint)
    return [(number, plain(row)) for number, rows in given.items() for row in rows]


def flat(found: list[tuple[int, tuple[Any, ...]]]) -> Rows:
    return [(number, *row) for number, row in found]


def falls(rows: list[Any]) -> int:
    """Rows that are high and followed by one that is low."""
    pairs = [(one["v"], other["v"]) for one, other in itertools.pairwise(rows)]
    return sum(one is not None and other is not None and one > HIGH and other < LOW for one, other in pairs)


@pytest.mark.parametrize("chop", ["batch", "pane"])
def test_a_stream_with_late_rows_gives_what_sparks_own_windows_hold(late: Late, tmp_path: Path, chop: str) -> None:
    windows = sk.keyed(late.df, "k").window("ts", "60 seconds", "25 seconds", watermark="10 seconds")
    got = results(windows.apply(schema=ANSWER, **CHOPS[chop]), tmp_path)
    assert len(late.own) > 50
    assert_same(flat(got), [(number, *row[:-1], falls(row[-1])) for number, row in late.own])


def local_rows(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> tuple[int]:
    """How many rows, whose times have no zone, nor have those of the window."""
    assert window.start.tzinfo is None
    assert rows["ts"].dt.tz is None
    assert rows["ts"].between(window.start, window.end, inclusive="left").all()
    return (len(rows),)


def local_panes(key: tuple[Any, ...], window: Any, panes: list[tuple[int]]) -> tuple[int]:
    assert window.start.tzinfo is None
    return (sum(n for (n,) in panes),)


@pytest.mark.parametrize(
    "functions",
    [
        {"function": local_rows},
        pytest.param({"function": local_panes, "pane": local_rows}, marks=pytest.mark.long),
    ],
    ids=["windows", "panes"],
)
def test_a_stream_without_a_zone_gives_what_sparks_own_windows_hold(
    late: Late, tmp_path: Path, functions: dict[str, Any]
) -> None:
    watched = late.df.withWatermark("ts", "10 seconds")
    # Spark makes no watermark of times without a zone, but knows by the metadata of the column that it has one.
    time = F.col("ts").cast("timestamp_ntz").alias("ts", metadata=watched.schema["ts"].metadata)
    windows = sk.keyed(watched.withColumn("ts", time), "k").window("ts", "60 seconds", "25 seconds")
    result = windows.apply(schema="n long", **functions)
    assert result.schema["window"].dataType.simpleString() == "struct<start:timestamp_ntz,end:timestamp_ntz>"
    assert result.schema["window"].metadata == {SLIDE: 25_000_000}
    assert_same(flat(results(result, tmp_path)), [(number, *row[:4]) for number, row in late.own])


def of_all(key: tuple[Any, ...], window: Any, rows: pa.Table) -> pa.Table:
    """How many rows, and the first and the last of their keys by the alphabet."""
    assert key == ()
    keys = sorted(k for k in rows["k"].to_pylist() if k is not None)
    return pa.table({"n": [rows.num_rows], "first": keys[:1] or [None], "last": keys[-1:] or [None]})


def test_windows_of_all_rows_of_a_stream(late: Late, tmp_path: Path) -> None:
    windows = sk.windowed(late.df, "ts", "60 seconds", "25 seconds", watermark="10 seconds")
    result = windows.apply(of_all, "n long, first string, last string", chop="window", arrow=True)
    assert result.schema["window"].metadata == {SLIDE: 25_000_000}
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    keys: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for number, (start, end, key, n, *_rest) in late.own:
        counts[number, start, end] += n
        keys[number, start, end] += [] if key is None else [key]
    wanted = [(*w, n, min(keys[w], default=None), max(keys[w], default=None)) for w, n in counts.items()]
    assert_same(flat(results(result, tmp_path)), wanted)


@pytest.mark.long
def test_windows_that_may_wait_are_the_same(late: Late, tmp_path: Path) -> None:
    windows = sk.keyed(late.df, "k").window("ts", "60 seconds", "25 seconds", watermark="200 seconds")  # none is late
    got = results(windows.apply(whole, ANSWER, max_latency="2 minutes"), tmp_path)
    everything = asked(pa.concat_tables(late.tables), 60_000_000, 25_000_000, keyed=True)
    assert_same([row for _number, row in got], [row for row in everything if row[2] != "end"])


@pytest.mark.parametrize(
    ("chop", "keyed"),
    [
        pytest.param("batch", True, marks=pytest.mark.long),
        pytest.param("pane", True, marks=pytest.mark.long),
        ("pane", False),
    ],
)
def test_windows_of_rows_in_a_stream(late: Late, tmp_path: Path, chop: str, keyed: bool) -> None:
    windows = sk.keyed(late.df, "k").window("ts", 6, 2) if keyed else sk.windowed(late.df, "ts", 6, 2)
    got = results(windows.apply(schema=ANSWER, **COUNTED[chop]), tmp_path)
    rows: dict[str | None, list[tuple[int, Any]]] = defaultdict(list)
    for number, table in enumerate(late.tables):
        for row in sorted((row for row in table.to_pylist() if row["ts"]), key=lambda row: row["ts"]):
            rows[row["k"] if keyed else None].append((number, row))
    wanted: Rows = []
    for key, all_rows in rows.items():
        for start in range(0, len(all_rows) - 5, 2):
            numbers, some = zip(*all_rows[start : start + 6], strict=True)
            values = [row["v"] for row in some if row["v"] is not None]
            keys = (key,) if keyed else ()
            wanted.append((numbers[-1], start, start + 6, *keys, *answer(values, 6, falls(list(some)))))
    assert len(wanted) > 50
    assert_same(flat(got), wanted)
