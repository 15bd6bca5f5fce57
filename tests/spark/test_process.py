"""Processors on a real streaming query, with slots that move while it runs, against plain Python."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
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
from skewless.api.watch import Watch
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.version import Version
from skewless.core.hashing import xxhash64
from skewless.place import Placement
from skewless.spark.route import owner_column, with_key
from support.streams import After, read_files, run, write_files

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
SCHEMA = "`user id` string, region int, ts timestamp, v long"
RESULT = "n long, total long"
SLOTS = 8


class Running(sk.Processor):
    """Numbers the rows of a key and adds up their values."""

    state = "n long, total long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for value in rows["v"]:
            state["n"] = (state["n"] or 0) + 1
            state["total"] = (state["total"] or 0) + value
            yield state["n"], state["total"]


class Quiet(sk.Processor):
    """Gives a key and its number of rows when it has had none for ten seconds."""

    state = "n long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> None:
        state["n"] = (state["n"] or 0) + len(rows)
        state.timer = max(rows["ts"]) + timedelta(seconds=10)

    def expire(self, key: tuple[Any, ...], state: sk.State) -> Iterator[tuple[Any, ...]]:
        yield state["n"], 0
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
    write_files(folder, [pa.Table.from_pylist(rows, schema=pa.schema(kinds)) for rows in batches])


def processed(result: DataFrame, folder: Path, after: After | None = None) -> tuple[dict[int, Counter[Any]], Watch]:
    """The rows of every micro-batch, and the handle on the query."""
    given, watching = run(result, folder / "checkpoint", after)
    return {batch: Counter(rows) for batch, rows in given.items()}, watching


def placing_of(watching: Watch) -> Placing:
    loop = watching._loop()
    assert isinstance(loop, Placing)
    return loop


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
    stream, still = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region"), sk.place.Rule(alpha=1e9)
    # Hadoop takes brackets for a pattern, by which this folder's name would stand for the other one's.
    folder, other = tmp_path / "run[1] 100%", Placements.at(str(tmp_path / "run1 100%"))
    other.write_placement(Placement.of(2, [0] * SLOTS), 0, None)
    other.write_control(Version(0), None)
    result = stream.process(Running(), RESULT, folder=f"file:{folder}", order="ts", slots=SLOTS, rule=still)
    chance = np.random.default_rng(1)
    hot = xxhash64(["hot", "hot", "a"], np.array([0, 1, 0], np.int32)).tolist()

    def move(batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        if batch and not watching.moving:
            workers = int(chance.integers(1, 3))
            own = {key: int(chance.integers(workers)) for key in hot[: int(chance.integers(4))]}
            placing_of(watching).announce(Placement.of(workers, chance.integers(0, workers, SLOTS).tolist(), own))

    given, watching = processed(result, tmp_path, move)
    assert given == expected(batches)
    assert watching.placement.version >= 3
    assert (folder / "moves").is_dir()


def test_a_skewed_stream_becomes_balanced_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    # All rows go to slots that are on worker 0 at first.
    users = [f"u{i}" for i in range(3000)]
    hashes = xxhash64(users, np.zeros(3000, np.int32))
    users = [user for user, slot in zip(users, (hashes % SLOTS).tolist(), strict=True) if slot % 2 == 0]
    batches = [[{"user id": user, "region": 0, "ts": START, "v": 1} for user in users] for _ in range(5)]
    write(tmp_path / "in", batches)
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(Running(), RESULT, folder=str(tmp_path / "folder"), slots=SLOTS)
    seen: list[float | None] = []

    def look(batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        seen.append(watching.imbalance)

    given, watching = processed(result, tmp_path, look)
    assert given == expected(batches)
    assert watching.wait(5)
    assert seen[1] == 2.0  # two workers, one has it all
    assert watching.imbalance is not None
    assert watching.imbalance < 1.3
    assert "even" in watching.explain()


def test_workers_come_and_go_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    batches = some_rows(6, 100)
    write(tmp_path / "in", batches)
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region", workers=1)
    result = stream.process(Running(), RESULT, folder=str(tmp_path / "folder"), order="ts", slots=SLOTS)
    loads = []

    def scale(batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        loads.append(watching.loads)
        if batch == 1:
            moves = watching.rebalance(2, dry_run=True)
            # Hot keys are counted in a sample, so whether a slot moves whole or is split is left to chance.
            assert (0, 1) in {(move.source, move.target) for move in moves}
            assert not watching.moving
            assert watching.rebalance(2)
            with pytest.raises(sk.SkewlessError, match="is on its way"):
                watching.rebalance(1)

    given, watching = processed(result, tmp_path, scale)
    assert given == expected(batches)
    assert set(loads[1]) == {0}
    assert set(watching.loads) == {0, 1}
    with pytest.raises(sk.SkewlessError, match="workers is 3; give a whole number from 1 to 2, as this query"):
        watching.rebalance(3)


def test_timers_fire_by_the_watermark_also_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    at = [START + timedelta(seconds=s) for s in (0, 5, 60, 61)]
    rows = [{"user id": u, "region": 0, "ts": ts, "v": 1} for u, ts in zip("aabb", at, strict=True)]
    late = {"user id": "late", "region": 0, "ts": START, "v": 1}
    last = {"user id": "c", "region": 0, "ts": START + timedelta(seconds=200), "v": 1}
    write(tmp_path / "in", [rows[:2], rows[2:], [late, last]])
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(
        Quiet(), RESULT, folder=str(tmp_path / "placement"), time="ts", watermark="1 second", slots=SLOTS
    )
    given, _ = processed(result, tmp_path)
    assert sum(given.values(), Counter()) == Counter([("a", 0, 2, 0), ("b", 0, 2, 0)])
    assert given[2][("a", 0, 2, 0)] == 1  # the watermark of a batch is that of the rows before it
    assert given[3][("b", 0, 2, 0)] == 1  # which had no rows


def test_a_hand_over_that_is_gone_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    def query() -> DataFrame:
        stream, rule = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region"), sk.place.Rule(alpha=1e9)
        return stream.process(
            Running(), RESULT, folder=str(tmp_path / "folder"), order="ts", slots=SLOTS, rule=rule
        )  # fmt: skip

    write(tmp_path / "in", some_rows(1, 50))
    _, watching = processed(query(), tmp_path)
    assert watching.wait(1)
    placing = placing_of(watching)
    placing.announce(Placement.of(2, [1 - int(worker) for worker in placing.placement.tail]))
    write(tmp_path / "in", some_rows(2, 50))
    _, watching = processed(query(), tmp_path)
    assert watching.wait(1)
    assert watching.placement.version == 1
    shutil.rmtree(tmp_path / "folder/moves/1")  # what the workers left for each other is lost
    write(tmp_path / "in", some_rows(3, 50))
    with pytest.raises(StreamingQueryException, match=r"the state of slots .* from worker \d is not at .*restore"):
        processed(query(), tmp_path)


def test_a_folder_of_another_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", some_rows(1, 20))
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region")
    processed(stream.process(Running(), RESULT, folder=str(tmp_path / "one"), slots=SLOTS), tmp_path)
    write(tmp_path / "in", some_rows(2, 20))
    with pytest.raises(StreamingQueryException, match="does not belong to this checkpoint"):
        processed(stream.process(Running(), RESULT, folder=str(tmp_path / "two"), slots=SLOTS), tmp_path)


def test_a_second_query_on_a_folder_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", some_rows(1, 20))
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(Running(), RESULT, folder=str(tmp_path / "folder"), slots=SLOTS)
    _, watching = processed(result, tmp_path / "first")
    assert watching.wait(1)
    with pytest.raises(StreamingQueryException, match=rf"belongs to query {watching.query.id}, and this is query"):
        processed(result, tmp_path / "second")


def test_a_control_file_that_is_gone_stops_the_query_and_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    batches = some_rows(2, 20)
    write(tmp_path / "in", batches[:1])
    stream = sk.keyed(read_files(spark, tmp_path / "in"), "user id", "region")
    result = stream.process(Running(), RESULT, folder=str(tmp_path / "folder"), order="ts", slots=SLOTS)
    _, watching = processed(result, tmp_path)
    assert watching.wait(1)
    control = tmp_path / "folder" / "control.json"
    kept = control.read_bytes()
    write(tmp_path / "in", batches)
    try:
        for left in (b" " * len(kept), b"", None):
            control.unlink() if left is None else control.write_bytes(left)
            spark.conf.set("spark.sql.files.ignoreMissingFiles", str(left is None).lower())
            with pytest.raises(StreamingQueryException, match="the control file of the stream's folder is empty or"):
                processed(result, tmp_path)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    control.write_bytes(kept)
    assert processed(result, tmp_path)[0] == {1: expected(batches)[1]}


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
    df = read_files(spark, tmp_path / "in")
    process = sk.keyed(df, "user id").process
    with pytest.raises(sk.SkewlessError, match="needs a folder of its own"):
        process(Running(), RESULT)
    with pytest.raises(sk.SkewlessError, match="is no processor; subclass"):
        process(print, RESULT)  # type: ignore[arg-type]
    with pytest.raises(sk.SkewlessError, match="no column 'when'"):
        process(Running(), RESULT, folder="x", order="when")
    with pytest.raises(sk.SkewlessError, match="a watermark is of a column of event time"):
        process(Running(), RESULT, folder="x", watermark="1 second")
    with pytest.raises(sk.SkewlessError, match=r"split is 'dalton', but process\(...\) keeps keys whole"):
        sk.keyed(df, "user id", split="dalton").process(Running(), RESULT, folder="x")
    with pytest.raises(sk.SkewlessError, match="workers is 3; a processor can have up to 2, the shuffle partitions"):
        sk.keyed(df, "user id", workers=3).process(Running(), RESULT, folder="x")
    Forgetful = type("Forgetful", (Running,), {"ttl": "1 minute"})  # noqa: N806 - a class
    with pytest.raises(sk.SkewlessError, match="keys age by the watermark, of which there is none"):
        process(Forgetful(), RESULT, folder="x")
    with pytest.raises(sk.SkewlessError, match=r"'user strng' is no list of columns .*such as 'user string"):
        process(Running(), "user strng", folder="x")
    twice = type("Twice", (Running,), {"state": "n long, n int"})
    with pytest.raises(sk.SkewlessError, match="the result has a column 'user id' already; leave it out of the schema"):
        process(Running(), "`user id` string, n long", folder="x")
    with pytest.raises(sk.SkewlessError, match="the placer has 64 slots, but slots is 8; give it once"):
        sk.keyed(spark.range(3), "id", place=sk.place.Even(64)).process(Running(), RESULT, slots=8)
    with pytest.raises(sk.SkewlessError, match="two fields 'n'"):
        process(twice(), RESULT, folder="x")
    for field, what in (("timer", "is the key's timer"), ("user id", "is a key column")):
        many = type("Many", (sk.SlotProcessor,), {"state": f"`{field}` long", "process_slot": None})
        with pytest.raises(sk.SkewlessError, match=f"a state field is named '{field}', which {what}"):
            process(many(), RESULT, folder="x")
    many = type("Many", (sk.SlotProcessor,), {"state": "n long", "process_slot": None})
    with pytest.raises(sk.SkewlessError, match=r"the schema has a column 'group', which numbers the keys"):
        process(many(), "group long", folder="x")
    with pytest.raises(sk.SkewlessError, match=r"the rows have a column 'group'.*rename it first"):
        sk.keyed(df.withColumnRenamed("v", "group"), "user id").process(many(), RESULT, folder="x")
    with pytest.raises(sk.SkewlessError, match="place 'readj' keeps keys whole, and moves them in a stream"):
        sk.keyed(df, "user id", place="readj").repartition()
    with pytest.raises(sk.SkewlessError, match=r"place is 'scan', but agg\(...\) may split keys"):
        sk.keyed(df, "user id", place="scan").window("ts", "1 minute", watermark="1 second").agg(n=sk.count())


@pytest.mark.parametrize("most", [3, 600])
def test_a_placement_is_a_spark_expression_too(spark: SparkSession, most: int) -> None:
    hashes = xxhash64(np.arange(2000))
    placement = Placement.of(5, [i % 5 for i in range(7)], {int(key): int(key) % 5 for key in hashes[:most]})
    found = with_key(spark.range(2000), ["id"]).select("id", owner_column(placement).alias("worker")).collect()
    assert [row.worker for row in sorted(found)] == placement.worker_of(hashes).tolist()


def test_a_batch_is_repartitioned_with_its_keys_whole(spark: SparkSession) -> None:
    rows = spark.range(20_000).select(F.pmod(F.hash("id"), F.lit(40)).alias("key"))
    stream = sk.keyed(rows, "key", workers=4, place="even")
    found = (
        stream.repartition().select("key", F.spark_partition_id().alias("at")).groupBy("at", "key").count().collect()
    )
    assert len(found) == 40  # each key is in one place
    loads = Counter[int]()
    for row in found:
        loads[row["at"]] += row["count"]
    assert max(loads.values()) < 1.2 * 20_000 / 4
