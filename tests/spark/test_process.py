"""Processors on a real streaming query, with slots that move while it runs, against plain Python."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.control.location import Control
from skewless.core.hashing import xxhash64
from skewless.place import Placement
from skewless.spark.route import owner_column, with_key

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
SCHEMA = "`user id` string, region int, ts timestamp, v long"
RESULT = "user string, region int, n long, total long"
SLOTS = 8


class Running(sk.Processor):
    """Numbers the rows of a key and adds up their values."""

    state = "n long, total long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for value in rows["v"]:
            state["n"] = (state["n"] or 0) + 1
            state["total"] = (state["total"] or 0) + value
            yield *key, state["n"], state["total"]


class Quiet(sk.Processor):
    """Gives a key and its number of rows when it has had none for ten seconds."""

    state = "n long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> None:
        state["n"] = (state["n"] or 0) + len(rows)
        state.timer = max(rows["ts"]) + timedelta(seconds=10)

    def expire(self, key: tuple[Any, ...], state: sk.State) -> Iterator[tuple[Any, ...]]:
        yield *key, state["n"], 0
        state.forget()


def some_rows(batches: int, each: int = 300) -> list[list[dict[str, Any]]]:
    """Batches with a hot key, keys that have nulls, and keys that differ in one part only."""
    chance = np.random.default_rng(5)
    users, given = ["hot", "hot", "hot", "a", "b", None], []
    for i in range(batches):
        rows = []
        for j in range(each):
            user = users[int(chance.integers(len(users)))]
            region = None if chance.random() < 0.1 else int(chance.integers(3))
            ts = START + timedelta(seconds=20 * i + 20 * j / each)
            rows.append({"user id": user, "region": region, "ts": ts, "v": int(chance.integers(1000))})
        given.append(rows)
    return given


def write(folder: Path, batches: Sequence[list[dict[str, Any]]]) -> None:
    kinds = [("user id", pa.string()), ("region", pa.int32()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())]
    folder.mkdir(exist_ok=True)
    for i, rows in enumerate(batches):
        path = folder / f"{i:03}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), path)
        os.utime(path, (1_000_000 + i,) * 2)


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(result: DataFrame, folder: Path, after: Callable[[int], None] | None = None) -> dict[int, Counter[Any]]:
    """The rows of every micro-batch."""
    given: dict[int, Counter[Any]] = {}

    def keep(df: DataFrame, batch: int) -> None:
        given[batch] = Counter(map(tuple, df.collect()))
        if after is not None:
            after(batch)

    writer = result.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return given


def expected(batches: Sequence[list[dict[str, Any]]]) -> dict[int, Counter[Any]]:
    kept: dict[Any, tuple[int, int]] = {}
    given = {}
    for i, rows in enumerate(batches):
        given[i] = Counter[Any]()
        for row in sorted(rows, key=lambda row: row["ts"]):
            key = row["user id"], row["region"]
            n, total = kept.get(key, (0, 0))
            kept[key] = n + 1, total + row["v"]
            given[i][(*key, *kept[key])] += 1
    return given


def test_slots_and_keys_that_move_all_the_time_change_no_row(spark: SparkSession, tmp_path: Path) -> None:
    batches = some_rows(8, 150)
    write(tmp_path / "in", batches)
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region", strategy="even")
    location = str(tmp_path / "placement")
    result = stream.process(
        Running(), RESULT, location=location, order="ts", slots=SLOTS, rule=sk.Rule(alpha=1e9)
    )  # fmt: skip
    chance, placing = np.random.default_rng(1), stream._placing
    assert placing is not None
    hot = xxhash64(["hot", "hot", "a"], np.array([0, 1, 0], np.int32)).tolist()

    def move(batch: int) -> None:
        stream.await_learned(batch)
        if not placing.moving:
            workers = int(chance.integers(1, 3))
            own = {key: int(chance.integers(workers)) for key in hot[: int(chance.integers(4))]}
            placing.announce(Placement.of(workers, chance.integers(0, workers, SLOTS).tolist(), own))

    assert run(result, tmp_path, move) == expected(batches)
    assert stream.placement.version >= 3
    assert (tmp_path / "placement" / "moves").is_dir()


def test_a_skewed_stream_becomes_balanced_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    # All rows go to slots that are on worker 0 at first.
    users = [f"u{i}" for i in range(3000)]
    hashes = xxhash64(users, np.zeros(3000, np.int32))
    users = [user for user, slot in zip(users, (hashes % SLOTS).tolist(), strict=True) if slot % 2 == 0]
    batches = [[{"user id": user, "region": 0, "ts": START, "v": 1} for user in users] for _ in range(5)]
    write(tmp_path / "in", batches)
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(Running(), RESULT, location=str(tmp_path / "placement"), slots=SLOTS)
    seen: list[float | None] = []

    def look(batch: int) -> None:
        stream.await_learned(batch)
        seen.append(stream.imbalance)

    assert run(result, tmp_path, look) == expected(batches)
    stream.await_learned(5)
    assert seen[1] == 2.0  # two workers, one has it all
    assert stream.imbalance is not None
    assert stream.imbalance < 1.3
    assert "even" in stream.explain()


def test_workers_come_and_go_while_the_query_runs(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    batches = some_rows(6, 100)
    write(tmp_path / "in", batches)
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region", workers=1)
    result = stream.process(Running(), RESULT, location=str(tmp_path / "placement"), order="ts", slots=SLOTS)
    loads = []

    def scale(batch: int) -> None:
        stream.await_learned(batch)
        loads.append(dict(stream.loads))
        if batch == 1:
            assert stream.rebalance(2, dry_run=True)
            assert "worker 0 to 1 (move)" in capsys.readouterr().out
            assert stream.rebalance(2)
            with pytest.raises(sk.SkewlessError, match="is on its way"):
                stream.rebalance(1)

    assert run(result, tmp_path, scale) == expected(batches)
    assert set(loads[1]) == {0}
    assert set(stream.loads) == {0, 1}
    with pytest.raises(sk.SkewlessError, match="workers is 3; this query has state in 2 partitions"):
        stream.rebalance(3)


def test_timers_fire_by_the_watermark_also_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    at = [START + timedelta(seconds=s) for s in (0, 5, 60, 61)]
    rows = [{"user id": u, "region": 0, "ts": ts, "v": 1} for u, ts in zip("aabb", at, strict=True)]
    late = {"user id": "late", "region": 0, "ts": START, "v": 1}
    last = {"user id": "c", "region": 0, "ts": START + timedelta(seconds=200), "v": 1}
    write(tmp_path / "in", [rows[:2], rows[2:], [late, last]])
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(
        Quiet(), RESULT, location=str(tmp_path / "placement"), time="ts", watermark="1 second", slots=SLOTS
    )
    given = run(result, tmp_path)
    assert sum(given.values(), Counter()) == Counter([("a", 0, 2, 0), ("b", 0, 2, 0)])
    assert given[2][("a", 0, 2, 0)] == 1  # the watermark of a batch is that of the rows before it
    assert given[3][("b", 0, 2, 0)] == 1  # which had no rows


def test_a_hand_over_that_is_gone_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    def query() -> tuple[sk.KeyedStream, DataFrame]:
        stream, folder = sk.keyed(read(spark, tmp_path / "in"), "user id", "region"), str(tmp_path / "placement")
        rule = sk.Rule(alpha=1e9)
        return stream, stream.process(Running(), RESULT, location=folder, order="ts", slots=SLOTS, rule=rule)

    write(tmp_path / "in", some_rows(1, 50))
    stream, result = query()
    run(result, tmp_path)
    assert stream._placing is not None
    location = stream._placing.location
    # As if it had been announced, and what the workers left for each other were lost.
    location.write_placement(Placement.of(2, [1 - int(worker) for worker in stream.placement.tail], version=1))
    location.write_control(Control(1))
    write(tmp_path / "in", some_rows(2, 50))
    with pytest.raises(StreamingQueryException, match=r"the state of slots .* from worker \d is not at .*restore"):
        run(query()[1], tmp_path)


def test_a_folder_of_another_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", some_rows(1, 20))
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region")
    run(stream.process(Running(), RESULT, location=str(tmp_path / "one"), slots=SLOTS), tmp_path)
    write(tmp_path / "in", some_rows(2, 20))
    stream = sk.keyed(read(spark, tmp_path / "in"), "user id", "region")
    with pytest.raises(StreamingQueryException, match="does not belong to this checkpoint"):
        run(stream.process(Running(), RESULT, location=str(tmp_path / "two"), slots=SLOTS), tmp_path)


def test_a_batch_dataframe_is_processed_in_one_go(spark: SparkSession, tmp_path: Path) -> None:
    batches = some_rows(2)
    write(tmp_path / "in", batches)
    df = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    given = sk.keyed(df, "user id", "region").process(Running(), RESULT, order="ts").collect()
    (wanted,) = expected([[*batches[0], *batches[1]]]).values()
    assert Counter(map(tuple, given)) == wanted
    quiet = sk.keyed(df, "user id", "region").process(Quiet(), RESULT, time="ts").groupBy().agg(F.sum("n"))
    assert quiet.collect()[0][0] == 600


def test_what_cannot_be_processed_is_refused_with_a_remedy(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", some_rows(1, 1))
    df = read(spark, tmp_path / "in")
    stream, process = sk.keyed(df, "user id"), sk.keyed(df, "user id").process
    with pytest.raises(sk.SkewlessError, match="needs a folder of its own"):
        process(Running(), RESULT)
    with pytest.raises(sk.SkewlessError, match="is no processor; subclass"):
        process(print, RESULT)  # type: ignore[arg-type]
    with pytest.raises(sk.SkewlessError, match="no column 'when'"):
        process(Running(), RESULT, location="x", order="when")
    with pytest.raises(sk.SkewlessError, match="a watermark is of a column of event time"):
        process(Running(), RESULT, location="x", watermark="1 second")
    with pytest.raises(sk.SkewlessError, match="may split a key, and the state of a processor does not merge"):
        sk.keyed(df, "user id", strategy="dalton").process(Running(), RESULT, location="x")
    with pytest.raises(sk.SkewlessError, match="workers is 3; a processor can have up to 2, its shuffle partitions"):
        sk.keyed(df, "user id", workers=3).process(Running(), RESULT, location="x")
    with pytest.raises(sk.SkewlessError, match="nothing is placed here"):
        stream.rebalance()
    Forgetful = type("Forgetful", (Running,), {"ttl": "1 minute"})  # noqa: N806 - a class
    with pytest.raises(sk.SkewlessError, match="keys age by the watermark, of which there is none"):
        process(Forgetful(), RESULT, location="x")
    with pytest.raises(sk.SkewlessError, match=r"'user strng' is no list of columns .*such as 'user string"):
        process(Running(), "user strng", location="x")
    twice = type("Twice", (Running,), {"state": "n long, n int"})
    with pytest.raises(sk.SkewlessError, match="two fields 'n'"):
        process(twice(), RESULT, location="x")
    for field, what in (("timer", "is the key's timer"), ("user id", "is a key column")):
        many = type("Many", (sk.SlotProcessor,), {"state": f"`{field}` long", "process_slot": None})
        with pytest.raises(sk.SkewlessError, match=f"a state field is named '{field}', which {what}"):
            process(many(), RESULT, location="x")
    many = type("Many", (sk.SlotProcessor,), {"state": "n long", "process_slot": None})
    with pytest.raises(sk.SkewlessError, match=r"the rows have a column 'group'.*rename it first"):
        sk.keyed(df.withColumnRenamed("v", "group"), "user id").process(many(), RESULT, location="x")
    with pytest.raises(sk.SkewlessError, match="strategy 'readj' keeps keys whole, and moves them in a stream"):
        sk.keyed(df, "user id", strategy="readj").repartition()
    with pytest.raises(sk.SkewlessError, match="strategy 'scan' keeps keys whole, for process"):
        sk.keyed(df, "user id", strategy="scan").window("ts", "1 minute", watermark="1 second").agg(n=sk.count())


@pytest.mark.parametrize("most", [3, 600])
def test_a_placement_is_a_spark_expression_too(spark: SparkSession, most: int) -> None:
    hashes = xxhash64(np.arange(2000))
    placement = Placement.of(5, [i % 5 for i in range(7)], {int(key): int(key) % 5 for key in hashes[:most]})
    found = with_key(spark.range(2000), ["id"]).select("id", owner_column(placement).alias("worker")).collect()
    assert [row.worker for row in sorted(found)] == placement.worker_of(hashes).tolist()


def test_a_batch_is_repartitioned_with_its_keys_whole(spark: SparkSession) -> None:
    rows = spark.range(20_000).select(F.pmod(F.hash("id"), F.lit(40)).alias("key"))
    stream = sk.keyed(rows, "key", workers=4, strategy="even")
    found = (
        stream.repartition().select("key", F.spark_partition_id().alias("at")).groupBy("at", "key").count().collect()
    )
    assert len(found) == 40  # each key is in one place
    loads = Counter[int]()
    for row in found:
        loads[row["at"]] += row["count"]
    assert max(loads.values()) < 1.2 * 20_000 / 4
