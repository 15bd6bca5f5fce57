"""The handle on a running query, and streams that are each their own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
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
from skewless.core.hashing import xxhash64
from support.streams import run, start, stream_of, write_files

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
FILES, ROWS, SLOTS = 5, 4000, 8


class Count(sk.Processor):
    """Numbers the rows of a key."""

    state = "n long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for _ in range(len(rows)):
            state["n"] = (state["n"] or 0) + 1
            yield (state["n"],)


def tables(first: int = 0, count: int = FILES) -> list[pa.Table]:
    """One key `k` has most of the rows, and all are in slots that worker 0 has at first."""
    users = np.arange(2000)
    slots = xxhash64(users) % SLOTS % 2
    crowd = users[slots == 0]
    given = []
    for i in range(first, first + count):
        chance = np.random.default_rng(i)
        hot = chance.random(ROWS) < 0.7
        times = [START + timedelta(seconds=10 * i + 10 * j / ROWS) for j in range(ROWS)]
        columns = {"k": np.where(hot, crowd[0], chance.choice(crowd, ROWS)), "other": chance.integers(0, 1000, ROWS)}
        given.append(pa.table({**columns, "ts": pa.array(times, pa.timestamp("us", "UTC"))}))
    return given


def waits(before: int, watching: Watch) -> None:
    assert watching.wait(before)


def counted(given: dict[int, list[tuple[Any, ...]]]) -> Counter[Any]:
    return Counter(row for rows in given.values() for row in rows)


@pytest.mark.parametrize(
    "split", [pytest.param("dalton", marks=pytest.mark.long), sk.split.Dalton(slide=1000)], ids=["by name", "an object"]
)
def test_two_aggregates_of_one_description_are_balanced_each(spark: SparkSession, tmp_path: Path, split: Any) -> None:
    source = stream_of(spark, tmp_path / "in", tables())
    windows = sk.keyed(source, "k", workers=4, split=split).window("ts", "20 seconds", "10 seconds", "0 seconds")
    results = [windows.agg(n=sk.count()), windows.agg(most=sk.max("other"))]

    def keep(df: DataFrame, batch: int, watching: Watch) -> None:
        df.collect()
        watching.wait(batch)

    queries = [start(result, tmp_path / f"{i}", keep) for i, result in enumerate(results)]
    for query in queries:
        query.awaitTermination()
    watching = [sk.watch(query) for query in queries]
    for each in watching:
        assert each.wait(FILES)
        assert each.policy.version == FILES  # each learned from its own micro-batches, and from no others
        assert each.imbalance is not None
        assert each.imbalance < 1.25
        assert sum(each.loads.values()) == ROWS
    assert watching[0]._loop() is not watching[1]._loop()


@pytest.mark.parametrize(
    "place", [pytest.param("even", marks=pytest.mark.long), sk.place.Even(slots=SLOTS)], ids=["by name", "an object"]
)
def test_two_processors_of_one_description_are_balanced_each(spark: SparkSession, tmp_path: Path, place: Any) -> None:
    keyed = sk.keyed(stream_of(spark, tmp_path / "in", tables()), "k", place=place)
    results = [keyed.process(Count(), "n long", folder=str(tmp_path / f"folder{i}"), slots=SLOTS) for i in range(2)]
    kept: list[dict[int, list[tuple[Any, ...]]]] = [{}, {}]

    def each(i: int) -> Any:
        def keep(df: DataFrame, batch: int, watching: Watch) -> None:
            kept[i][batch] = [tuple(row) for row in df.collect()]
            watching.wait(batch)

        return keep

    queries = [start(result, tmp_path / f"{i}", each(i)) for i, result in enumerate(results)]
    for query in queries:
        query.awaitTermination()
    watching = [sk.watch(query) for query in queries]
    assert all(each.wait(FILES) for each in watching)
    assert counted(kept[0]) == counted(kept[1])
    assert sum(counted(kept[0]).values()) == FILES * ROWS
    for each_of in watching:
        assert each_of.placement.version >= 1
        assert each_of.imbalance is not None
        assert each_of.imbalance < 1.6  # one key has 70 % of the rows, and stays whole
        assert each_of.loads[0] != ROWS
    assert watching[0]._loop() is not watching[1]._loop()


def test_a_dataframe_that_is_started_again_goes_on_learning(spark: SparkSession, tmp_path: Path) -> None:
    routed = sk.keyed(stream_of(spark, tmp_path / "in", tables(count=2)), "k", workers=4, split="dalton").repartition()
    _, first = run(routed, tmp_path / "checkpoint", waits)
    assert first.wait(2)
    write_files(tmp_path / "in", tables(2, 3), first=2)
    _, again = run(routed, tmp_path / "checkpoint", waits)
    assert again.wait(3)
    assert again.batches == 3  # of this run
    assert again.policy.version == 5  # of both: what was learned was not forgotten
    assert again.query.id == first.query.id
    assert (first.batches, first.policy.version) == (2, 2)  # the handle on a run that is over shows that run
    assert again.query.runId != first.query.runId


def test_a_processor_that_is_started_again_or_built_again_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    source, folder = stream_of(spark, tmp_path / "in", tables(count=2)), str(tmp_path / "folder")
    result = sk.keyed(source, "k").process(Count(), "n long", folder=folder, slots=SLOTS)
    given = counted(run(result, tmp_path / "checkpoint", waits)[0])
    write_files(tmp_path / "in", tables(2, 2), first=2)
    rows, watching = run(result, tmp_path / "checkpoint", waits)
    given += counted(rows)
    assert watching.wait(2)
    write_files(tmp_path / "in", tables(4, 1), first=4)
    built = sk.keyed(source, "k").process(Count(), "n long", folder=folder, slots=SLOTS)
    given += counted(run(built, tmp_path / "checkpoint", waits)[0])
    whole = spark.read.parquet(str(tmp_path / "in")).groupBy("k").count().collect()
    assert given == Counter((row["k"], n) for row in whole for n in range(1, row["count"] + 1))


def test_one_dataframe_as_two_queries_at_once_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = stream_of(spark, tmp_path / "in", tables(count=2))
    routed = sk.keyed(source, "k", workers=4, name="clicks").repartition()
    seen: list[Watch] = []

    def nested(batch: int, watching: Watch) -> None:
        watching.wait(batch)
        if batch == 1 and not seen:
            seen.append(watching)
            seen.append(run(routed, tmp_path / "second")[1])

    with caplog.at_level(logging.ERROR, logger="skewless"):
        run(routed, tmp_path / "first", nested)
    first, second = seen
    assert first.wait(2)
    assert first.batches == 2  # those of the second were not taken for its own
    assert second.streams == ()
    said = [record.getMessage() for record in caplog.records if record.name == "skewless"]
    assert len(said) == 1
    assert f"stream clicks: query {second.query.id} runs the DataFrame that query {first.query.id} runs" in said[0]


def test_one_processor_as_two_queries_at_once_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    source = stream_of(spark, tmp_path / "in", tables(count=2))
    result = sk.keyed(source, "k").process(Count(), "n long", folder=str(tmp_path / "folder"), slots=SLOTS)
    failed: list[str] = []

    def nested(batch: int, watching: Watch) -> None:
        watching.wait(batch)
        if batch == 1:
            with pytest.raises(StreamingQueryException, match=f"belongs to query {watching.query.id}, and this is"):
                run(result, tmp_path / "second")
            failed.append("the second")

    given, _ = run(result, tmp_path / "first", nested)
    assert failed == ["the second"]
    assert sum(counted(given).values()) == 2 * ROWS


def test_a_query_of_sparks_own_can_be_watched(spark: SparkSession, tmp_path: Path) -> None:
    source = stream_of(spark, tmp_path / "in", tables(count=2))
    own = source.withWatermark("ts", "1 second").groupBy(F.window("ts", "5 seconds"), "k").count()
    _, watching = run(own, tmp_path / "own")
    watching.wait(1, timeout=0.1)
    assert not watching.bound
    assert watching.imbalance is None
    assert watching.loads == {}
    assert "nothing of skewless is known to run in it" in watching.explain()
    assert "rows of state" in watching.explain()
    with pytest.raises(sk.SkewlessError, match="nothing is placed here as far as is known"):
        watching.rebalance()
    chosen = sk.keyed(source, "k", name="mine").window("ts", "5 seconds", watermark="1 second").agg(n=sk.count())
    _, watching = run(chosen, tmp_path / "chosen", waits)
    assert watching.wait(2)
    assert watching.explain().startswith("mine: spark, because its own operators are best")
    with pytest.raises(sk.SkewlessError, match="no policy routes rows here: mine runs spark; it takes a splitter"):
        _ = watching.policy


def test_advice_is_made_from_the_progress_of_any_query(spark: SparkSession, tmp_path: Path) -> None:
    parts = [table.slice(0, 500 * (number + 1)) for number, table in enumerate(tables(count=6))]
    _, watching = run(stream_of(spark, tmp_path / "in", parts).select("k"), tmp_path / "own")
    done = [each for each in watching.query.recentProgress if each.numInputRows]
    assert [each.numInputRows for each in done] == [500, 1000, 1500, 2000, 2500, 3000]
    found = watching.advice(latency="10 minutes")
    slowest = max(each.durationMs["triggerExecution"] for each in done) / 1000
    assert 0 < found.fixed <= slowest
    assert found.exact
    assert found.latency == 600
    assert "fixed cost at" in str(found)
    with pytest.raises(sk.SkewlessError, match="'soon' is not an interval"):
        watching.advice("soon")


def test_loads_are_known_of_every_ending_call(spark: SparkSession, tmp_path: Path) -> None:
    source = stream_of(spark, tmp_path / "in", tables(count=2))
    windows = sk.keyed(source, "k").window("ts", "20 seconds", "10 seconds", "0 seconds")

    def size(key: Any, window: Any, rows: Any) -> tuple[int]:
        return (len(rows),)

    local = run(windows.agg(n=sk.count()), tmp_path / "local", waits)[1]
    applied = run(windows.apply(size, "n long", chop="window"), tmp_path / "applied", waits)[1]
    for watching in (local, applied):
        assert watching.wait(2)
        assert sum(watching.loads.values()) >= ROWS
    assert local.workers is None
    assert applied.workers == 2
    assert applied.explain().startswith("skewless-")
    assert "chopped by window over 2 workers" in applied.explain()


def test_before_the_first_micro_batch_it_says_so(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    result = sk.keyed(stream, "value", workers=2).repartition()
    writer = result.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="1 hour").queryName("slow").start()
    try:
        watching = sk.watch(query)
        assert not watching.bound
        assert watching.explain() == "slow: no micro-batch is done yet, so that it is not known what runs."
        with pytest.raises(sk.SkewlessError, match=r"no micro-batch with rows is done yet.*wait\(1\)"):
            _ = watching.policy
    finally:
        query.stop()
