"""The queries under `examples/nexmark`, against DuckDB on the same events."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from skewless.workload import Events, Nexmark
from support.nexmark_sql import SQL
from support.scripts import load

DAYS = (15, 16, 17)  # queries of days; the others are of seconds
EVENTS, BLOCKS = 2_400, 4
Change = Callable[[Events], Events]

streams, plain, balanced, by_hand = (load(f"nexmark/{name}") for name in ("streams", "plain", "balanced", "by_hand"))


def nexmark(number: int) -> Nexmark:
    """A bit more than a day of events, or two minutes."""
    return Nexmark(rate=0.025 if number in DAYS else 20, in_flight=20, active=40, seed=number + 1)


def by_duckdb(number: int, events: Events) -> list[Any]:
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        for table in ("persons", "auctions", "bids"):
            database.register(table, getattr(events, table))
        return rows_of(database.sql(SQL[number]).to_arrow_table())


def rows_of(table: pa.Table) -> list[Any]:
    """Rows in an order of their own, with columns by name and numbers and times in one form."""
    rows = [sorted((name, plainly(value)) for name, value in row.items()) for row in table.to_pylist()]
    return sorted(rows)


def plainly(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or timezone.utc).timestamp()
    if isinstance(value, Decimal):
        return int(value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.long
@pytest.mark.parametrize("number", sorted(plain.QUERIES))
def test_a_batch_by_spark_has_the_rows_of_duckdb(spark: SparkSession, tmp_path: Path, number: int) -> None:
    check_batch(spark, tmp_path, number, plain.QUERIES[number])


@pytest.mark.parametrize("number", sorted(balanced.QUERIES))
def test_a_batch_by_skewless_has_the_rows_of_duckdb(spark: SparkSession, tmp_path: Path, number: int) -> None:
    check_batch(spark, tmp_path, number, balanced.QUERIES[number])


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[None]:
    """A session whose days begin five hours after those of UTC."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("new_york")
def test_days_and_minutes_are_those_of_utc_in_any_session(spark: SparkSession, tmp_path: Path) -> None:
    check_batch(spark, tmp_path, 16, balanced.q16)


@pytest.mark.long
@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize("number", DAYS)
@pytest.mark.parametrize("queries", [plain.QUERIES, balanced.QUERIES], ids=["spark", "skewless"])
def test_days_of_batches_are_those_of_utc_in_any_session(
    spark: SparkSession, tmp_path: Path, queries: Any, number: int
) -> None:
    check_batch(spark, tmp_path, number, queries[number])


@pytest.mark.long
@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize("queries", [balanced.QUERIES, by_hand.QUERIES], ids=["skewless", "by hand"])
def test_days_of_streams_are_those_of_utc_in_any_session(spark: SparkSession, tmp_path: Path, queries: Any) -> None:
    check_stream(spark, tmp_path, 16, queries[16])


@pytest.mark.parametrize("queries", [plain.QUERIES, balanced.QUERIES], ids=["spark", "skewless"])
def test_of_last_bids_of_the_same_time_the_highest_counts(spark: SparkSession, tmp_path: Path, queries: Any) -> None:
    check_batch(spark, tmp_path, 18, queries[18], at_equal_times)


@pytest.mark.long
@pytest.mark.parametrize("queries", [balanced.QUERIES, by_hand.QUERIES], ids=["skewless", "by hand"])
def test_of_last_bids_of_the_same_time_in_two_micro_batches_the_highest_counts(
    spark: SparkSession, tmp_path: Path, queries: Any
) -> None:
    check_stream(spark, tmp_path, 18, queries[18], change=at_equal_times)


def at_equal_times(events: Events) -> Events:
    """The same events, but bids come at two times, so that there are several last ones on most auctions."""
    halves = pc.floor_temporal(events.bids["ts"], 75, "second")
    bids = events.bids.set_column(events.bids.schema.get_field_index("ts"), "ts", halves)
    of = pa.table({name: bids[name] for name in ("bidder", "auction", "ts")})
    assert len(of.group_by(of.column_names).aggregate([])) < len(of) / 2
    return replace(events, bids=bids)


def check_batch(spark: SparkSession, folder: Path, number: int, query: Any, change: Change = lambda each: each) -> None:
    events = change(nexmark(number).take(EVENTS))
    streams.write(str(folder), [events])
    found = query(streams.batch(spark, str(folder)))
    expected = by_duckdb(number, events)
    assert len(expected) > 0
    assert rows_of(found.toArrow()) == expected


FINAL = {
    5: lambda row: row["start"] + 10,
    7: lambda row: row["ts"] // 10 * 10 + 10,
    9: lambda row: row["expires"],
    11: lambda row: row["end"],
    12: lambda row: row["end"],
}
"""When the rows of a query are given: once the watermark has come that far; at once if it is not here."""

KEYS = {15: ("day",), 16: ("channel", "day"), 17: ("auction", "day"), 18: ("bidder", "auction"), 19: ("auction",)}
"""The keys of queries whose rows are given again when they change."""


@pytest.mark.long
@pytest.mark.parametrize("number", sorted(set(plain.QUERIES) - set(plain.BATCH_ONLY)))
def test_a_stream_by_spark_has_the_rows_of_duckdb(spark: SparkSession, tmp_path: Path, number: int) -> None:
    check_stream(spark, tmp_path, number, plain.QUERIES[number])


@pytest.mark.long
@pytest.mark.parametrize("number", sorted(set(balanced.QUERIES) - set(balanced.BATCH_ONLY)))
def test_a_stream_by_skewless_has_the_rows_of_duckdb(spark: SparkSession, tmp_path: Path, number: int) -> None:
    query = {5: balanced.counts_of_windows}.get(number, balanced.QUERIES[number])
    check_stream(spark, tmp_path, number, query, balanced.with_most if number == 5 else None)


@pytest.mark.long
@pytest.mark.parametrize("number", sorted(FINAL))
def test_a_stream_by_skewless_has_the_rows_of_duckdb_though_rows_come_late(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    query = {5: balanced.counts_of_windows}.get(number, balanced.QUERIES[number])
    check_stream(spark, tmp_path, number, query, balanced.with_most if number == 5 else None, late=20)


@pytest.mark.long
@pytest.mark.parametrize(("number", "late"), [*((number, 0) for number in sorted(by_hand.QUERIES)), (9, 20)])
def test_a_stream_by_hand_has_the_rows_of_duckdb(spark: SparkSession, tmp_path: Path, number: int, late: int) -> None:
    check_stream(spark, tmp_path, number, by_hand.QUERIES[number], late=late)


@pytest.mark.long
def test_sessions_of_spark_are_the_same_where_rows_come_late(spark: SparkSession, tmp_path: Path) -> None:
    check_stream(spark, tmp_path, 11, plain.q11, late=20)


@pytest.mark.long
def test_average_prices_are_a_second_stream_over_what_the_first_has_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = nexmark(4)
    streams.write(str(tmp_path / "events"), source.blocks(EVENTS, EVENTS // BLOCKS))
    closed = balanced.q9(streams.stream(spark, str(tmp_path / "events")), str(tmp_path / "own"))
    first = closed.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint-9"))
    first.trigger(availableNow=True).start(str(tmp_path / "closed")).awaitTermination()
    again = balanced.averages(spark.readStream.schema(closed.schema).parquet(str(tmp_path / "closed")))
    found = latest(written(again, tmp_path, "update", None), ("category",))
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.register("closed", spark.read.parquet(str(tmp_path / "closed")).toArrow())
        expected = database.sql("select category, avg(price) as average from closed group by category")
        assert rows_of(found) == rows_of(expected.to_arrow_table())
    assert len(found) == 5


@pytest.mark.long
def test_averages_of_sellers_are_a_second_stream_over_what_the_first_has_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = replace(nexmark(6), active=4)  # few sellers, who sell more than eleven times
    streams.write(str(tmp_path / "events"), source.blocks(EVENTS, EVENTS // BLOCKS))
    closed = balanced.q9(streams.stream(spark, str(tmp_path / "events")), str(tmp_path / "own"))
    first = closed.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint-9"))
    first.trigger(availableNow=True).start(str(tmp_path / "closed")).awaitTermination()
    files = spark.readStream.schema(closed.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "closed"))
    given = written(balanced.averages_of_sellers(files, str(tmp_path / "own-6")), tmp_path, "append", None)
    found = latest(given, ("seller", "bid_ts"))
    assert len(given) > len(found)  # an auction that closed later had an earlier bid
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.register("closed", spark.read.parquet(str(tmp_path / "closed")).toArrow())
        last = "partition by seller order by bid_ts rows between 10 preceding and current row"
        expected = database.sql(f"select seller, bid_ts, avg(price) over ({last}) as average from closed")
        sold = database.sql("select max(n) from (select count(*) as n from closed group by seller)").fetchall()
        assert rows_of(found) == rows_of(expected.to_arrow_table())
    assert sold[0][0] > 11


def disordered(blocks: Iterable[Events], seconds: float) -> Iterator[Events]:
    """The same rows, of which every third of the last seconds of a block comes with the next one."""
    waiting: dict[str, pa.Table] = {}
    blocks = list(blocks)
    for number, block in enumerate(blocks, 1):
        now = {}
        for table in ("persons", "auctions", "bids"):
            rows = getattr(block, table)
            ago = pc.subtract(pc.max(rows["ts"]), rows["ts"]).cast(pa.int64())
            third = pa.array(np.arange(len(rows)) % 3 == 0)
            late = pc.and_(pc.less(ago, round(seconds * 1e6)), third) if number < len(blocks) else pc.less(ago, 0)
            had = [waiting[table]] if table in waiting else []
            now[table] = pa.concat_tables([rows.filter(pc.invert(late)), *had])
            waiting[table] = rows.filter(late)
        yield Events(**now)


def check_stream(
    spark: SparkSession,
    folder: Path,
    number: int,
    query: Any,
    then: Any = None,
    late: float = 0,
    change: Change = lambda each: each,
) -> None:
    source = nexmark(number)
    blocks = map(change, source.blocks(EVENTS, EVENTS // BLOCKS))
    streams.write(str(folder / "events"), disordered(blocks, 0.9 * late) if late else blocks)
    wants_folder = "folder" in inspect.signature(query).parameters
    read = streams.stream(spark, str(folder / "events"), f"{late:g} seconds")
    rows = query(read, **({"folder": str(folder / "own")} if wants_folder else {}))
    found = latest(written(rows, folder, "update" if number in DAYS else "append", then), KEYS.get(number))
    events = change(source.take(EVENTS))
    newest = plainly(max(pc.max(events.bids["ts"]), pc.max(events.auctions["ts"]), key=lambda ts: ts.value).as_py())
    watermark = newest - late
    final = FINAL.get(number, lambda row: 0)
    expected = [row for row in by_duckdb(number, events) if final(dict(row)) <= watermark]
    assert len(expected) > 1
    assert rows_of(found) == expected


def written(rows: DataFrame, folder: Path, mode: str, then: Any) -> pa.Table:
    """All rows of a stream, with the number of the micro-batch that gave them."""
    tables = []

    def take(batch: DataFrame, number: int) -> None:
        table = (then(batch) if then else batch).toArrow()
        tables.append(table.append_column("batch", pa.array([number] * len(table), pa.int64())))

    writer = rows.writeStream.outputMode(mode).foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return pa.concat_tables(tables)


def latest(rows: pa.Table, keys: tuple[str, ...] | None) -> pa.Table:
    """For rows that are given again when they change, those of the last time."""
    if keys is None:
        return rows.drop_columns("batch")
    values = [rows[key].to_pylist() for key in keys]
    batches = rows["batch"].to_pylist()
    last = dict(sorted(zip(zip(*values, strict=True), batches, strict=True), key=lambda pair: pair[1]))
    kept = [last[key] == batch for key, batch in zip(zip(*values, strict=True), batches, strict=True)]
    return rows.filter(pa.array(kept)).drop_columns("batch")
