"""Routing inside Spark: batch and streaming, against the core's own answers and Spark's counts."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.aggregate import Measure
from skewless.api.watch import Watch
from skewless.control.folder import uri_of
from skewless.control.placing import Placing
from skewless.control.policy_file import PolicyFile
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.core.policy import Policy
from skewless.operators.panes.combine import Combine
from skewless.spark import observe
from skewless.spark.listen import _streams
from skewless.spark.observe import top_counts
from skewless.spark.route import with_key
from skewless.spark.split import policy_in
from skewless.split import Dalton
from support.streams import run, settings, start

WORKERS = 8
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
ROWS = 20_000


def skewed(seed: int, first: int = 0) -> pd.DataFrame:
    keys = np.random.default_rng(seed).zipf(1.5, ROWS) % 10_000 + first
    return pd.DataFrame({"user id": [f"u{key}" for key in keys], "value": np.arange(ROWS) + seed * ROWS})


def per_partition(df: DataFrame) -> np.ndarray:
    counts = {row["p"]: row["count"] for row in df.groupBy(F.spark_partition_id().alias("p")).count().collect()}
    return np.array([counts.get(worker, 0) for worker in range(WORKERS)])


def balance(loads: np.ndarray) -> float:
    return float(loads.max() / loads.mean())


@pytest.fixture
def batch(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(skewed(1))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(6):
        skewed(i, first=20_000 if i >= 3 else 0).to_parquet(folder / f"{i}.parquet")
    return folder


def streaming(spark: SparkSession, files: Path) -> DataFrame:
    reader = spark.readStream.schema("`user id` string, value long").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(files))


class Nothing(sk.Processor):
    """Keeps and gives nothing."""

    state = "n long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> list[Any]:
        return []


def test_a_skewed_batch_becomes_balanced_and_loses_nothing(batch: DataFrame) -> None:
    routed = sk.keyed(batch, "user id", workers=WORKERS, split="dalton").repartition()
    assert routed.columns == batch.columns
    assert routed.rdd.getNumPartitions() == WORKERS
    assert balance(per_partition(batch.repartition(WORKERS, "user id"))) > 2.5
    assert balance(per_partition(routed)) < 1.2
    assert routed.exceptAll(batch).count() == 0
    assert routed.count() == ROWS


def test_hashing_sends_every_row_to_the_home_of_its_key(batch: DataFrame) -> None:
    routed = sk.keyed(batch, "user id", workers=WORKERS, split="hash").repartition()
    rows = routed.select("user id", F.spark_partition_id().alias("p")).toPandas()
    expected = homes(xxhash64(rows["user id"].tolist()), WORKERS)
    np.testing.assert_array_equal(rows["p"].to_numpy(), expected)


def test_shuffling_spreads_the_tail_too(batch: DataFrame) -> None:
    routed = sk.keyed(batch, "user id", workers=WORKERS, split="shuffle").repartition()
    assert balance(per_partition(routed)) < 1.1


def test_null_and_composite_keys_and_names_with_dots(spark: SparkSession) -> None:
    rows = [(None, 1), ("a", None), (None, None), ("a", 1)] * 50
    df = spark.createDataFrame(rows, "`user.id` string, `a b` long")
    routed = sk.keyed(df, "user.id", "a b", workers=4, split="hash").repartition()
    got = routed.select("`user.id`", "`a b`", F.spark_partition_id().alias("p")).collect()
    assert Counter((row[0], row[1]) for row in got) == Counter(rows)
    where = {(row[0], row[1]): row["p"] for row in got}
    assert all(where[(row[0], row[1])] == row["p"] for row in got)


def test_a_stream_learns_and_learns_again_when_the_hot_keys_change(
    spark: SparkSession, files: Path, tmp_path: Path
) -> None:
    loads: list[np.ndarray] = []
    known: list[dict[int, int]] = []
    values: list[int] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        known.append(watching.loads)
        loads.append(per_partition(df))
        values.extend(row["value"] for row in df.select("value").collect())

    keyed = sk.keyed(streaming(spark, files), "user id", workers=WORKERS, split="dalton")
    query = start(keyed.repartition(), tmp_path / "to", each)
    query.awaitTermination()
    watching = sk.watch(query)
    assert sorted(values) == list(range(6 * ROWS))
    # Having waited, a batch follows the policy of the one before the last; all hot keys are new in the fourth.
    assert balance(loads[0]) > 2
    assert balance(loads[2]) < 1.3
    assert balance(loads[3]) > 2
    assert balance(loads[5]) < 1.3
    assert watching.wait(6)
    assert watching.policy.version == 6
    assert "dalton over 8 workers" in watching.explain()
    # What is observed of each worker is what its partition held, though foreachBatch may run the plan more than once.
    assert sum(known[1].values()) % ROWS == 0
    assert known[1][int(loads[0].argmax())] == max(known[1].values())


def test_a_micro_batch_in_foreach_batch_is_seen_before_it_is_routed(
    spark: SparkSession, files: Path, tmp_path: Path
) -> None:
    before: list[np.ndarray] = []
    loads: list[np.ndarray] = []
    values: list[int] = []
    counts: list[tuple[Counter[str], Counter[str]]] = []

    def each(batch: DataFrame, number: int) -> None:
        keyed = sk.keyed(batch, "user id", workers=WORKERS, split="dalton")
        routed = keyed.repartition().persist()
        before.append(per_partition(batch.repartition(WORKERS, "user id")))
        loads.append(per_partition(routed))
        values.extend(row["value"] for row in routed.select("value").collect())
        routed.unpersist()
        if number == 3:
            got, expected = keyed.agg(n=sk.count()), batch.groupBy("user id").agg(F.count("*").alias("n"))
            counts.append((_counted(got), _counted(expected)))

    writer = streaming(spark, files).writeStream.foreachBatch(each).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "to")).start().awaitTermination()
    # Also the first, and the fourth, in which all hot keys are new: nothing is known of the micro-batches before.
    assert [balance(each) > 2 for each in before] == [True] * 6
    assert [balance(each) < 1.2 for each in loads] == [True] * 6
    assert sorted(values) == list(range(6 * ROWS))
    ((got, expected),) = counts
    assert got == expected


def _counted(frame: DataFrame) -> Counter[str]:
    return Counter({row["user id"]: row["n"] for row in frame.collect()})


def test_large_batches_are_counted_by_a_sample_after_the_first_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.range(0, 60_000, 1, 2).selectExpr("if(id % 4 = 0, 0, id % 997) as key")
    rows, truth = with_key(df, ["key"]), 60_000 / 4 + 45_000 / 997
    seen = top_counts(rows, WORKERS)
    assert seen is not None
    assert seen.total == 60_000
    assert seen.counts.max() == pytest.approx(truth, rel=0.01)
    monkeypatch.setattr(observe, "FIRST", 1_000)
    sampled = top_counts(rows, WORKERS)
    assert sampled is not None
    assert sampled.total != 60_000
    assert sampled.total == pytest.approx(60_000, rel=0.05)
    assert sampled.counts.max() == pytest.approx(truth, rel=0.1)
    assert top_counts(rows.limit(0), WORKERS) is None


def test_two_streams_of_a_session_do_not_mix(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    source = streaming(spark, files)
    one = sk.keyed(source, "user id", workers=WORKERS, split="dalton", name="one")
    other = sk.keyed(source, "value", workers=4, split="dalton", name="other").repartition()
    _, watching = run(one.repartition(), tmp_path / "one")
    assert watching.wait(6)
    assert watching.streams == ("one",)
    assert len(watching.policy) > 0
    _, elsewhere = run(other, tmp_path / "other")
    assert elsewhere.wait(6)
    assert elsewhere.streams == ("other",)
    assert len(elsewhere.policy) == 0  # no value is hot


def test_a_learner_that_raises_does_not_stop_the_query(
    spark: SparkSession, files: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Dalton):
        def plan(self, seen: object) -> Policy:
            raise RuntimeError("cannot plan")

    result = sk.keyed(streaming(spark, files), "user id", split=Broken(WORKERS)).repartition()
    with caplog.at_level(logging.ERROR, logger="skewless"):
        rows, watching = run(result, tmp_path / "checkpoint")
        assert watching.wait(6)
    assert sum(map(len, rows.values())) == 6 * ROWS
    assert [record.message.count("what is in force stays") for record in caplog.records] == [1]


def test_the_policy_file_keeps_its_length_and_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    tmp_path = tmp_path / "run[1] {a,b}?"
    file = PolicyFile(uri_of(str(tmp_path)), "mine", length=4096)
    file.put(Policy.of(4))
    frame = policy_in(spark, file)
    assert frame.collect() == []
    file.put(Policy.of(4, {7: [0, 2]}, version=1))
    assert [tuple(row) for row in frame.collect()] == [(7, [0, 2])]
    many = {key: list(range(4)) * 30 for key in range(1000)}
    file.put(Policy.of(4, many, version=2))  # more than fits: fewer keys and lanes, but a whole file
    (path,) = tmp_path.glob("policy-*.json")
    assert path.stat().st_size == 4096
    assert 10 < len(frame.collect()) < 1000
    assert {name: json.loads(path.read_text())[name] for name in ("stream", "version")} == {
        "stream": "mine",
        "version": 2,
    }
    path.write_text(" " * 4096)
    with pytest.raises(Exception, match=r"the policy at .* is damaged; call agg"):
        frame.collect()
    with settings(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        frame = policy_in(spark, file)  # another plan, as every micro-batch has, which goes by the settings
        path.unlink()
        with pytest.raises(Exception, match="not exist"):
            frame.collect()


def test_the_policy_goes_to_the_folder_that_is_named(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    keyed = sk.keyed(streaming(spark, files), "user id", workers=WORKERS, split="dalton")
    keyed.repartition(folder=str(tmp_path / "given"))
    spark.conf.set("spark.skewless.folder", str(tmp_path / "setting"))
    try:
        keyed.repartition()
    finally:
        spark.conf.unset("spark.skewless.folder")
    assert len(list((tmp_path / "given").glob("policy-*.json"))) == 1
    assert len(list((tmp_path / "setting").glob("policy-*.json"))) == 1


def test_bad_calls_are_refused_with_a_remedy(batch: DataFrame) -> None:
    with pytest.raises(sk.SkewlessError, match="no column 'user'; there are user id, value"):
        sk.keyed(batch, "user")
    with pytest.raises(sk.SkewlessError, match="which columns are the key"):
        sk.keyed(batch)
    with pytest.raises(sk.SkewlessError, match="no split 'best'; there are auto, local, spark, hash"):
        sk.keyed(batch, "user id", split="best")
    with pytest.raises(sk.SkewlessError, match="for 4 workers, but workers is 8"):
        sk.keyed(batch, "user id", workers=8, split=Dalton(4))
    with pytest.raises(sk.SkewlessError, match="workers is 0; give at least 1"):
        sk.keyed(batch, "user id", workers=0)
    with pytest.raises(sk.SkewlessError, match="split 'local' moves no rows; to repartition choose 'auto'"):
        sk.keyed(batch, "user id", split="local").repartition()
    with pytest.raises(sk.SkewlessError, match="split is 'local', which moves no rows, so workers=4 has no use"):
        sk.keyed(batch, "user id", workers=4, split="local")
    with pytest.raises(sk.SkewlessError, match=r"no split 'readj'; .*; to keep keys whole give place="):
        sk.keyed(batch, "user id", split="readj")
    with pytest.raises(sk.SkewlessError, match=r"no place 'dalton'; .*; to split hot keys give split="):
        sk.keyed(batch, "user id", place="dalton")
    with pytest.raises(sk.SkewlessError, match=r"place is 'even', but agg\(...\) may split keys"):
        sk.keyed(batch, "user id", place="even").agg(n=sk.count())
    with pytest.raises(sk.SkewlessError, match=r"split is 'dalton', but repartition\(\) keeps keys whole with place="):
        sk.keyed(batch, "user id", split="dalton", place=sk.place.Even()).repartition()


def test_bad_windows_and_aggregates_are_refused_with_a_remedy(spark: SparkSession, files: Path) -> None:
    stream = streaming(spark, files).withColumn("ts", F.current_timestamp())
    keyed = sk.keyed(stream, "user id")
    with pytest.raises(sk.SkewlessError, match="the time column 'value' is of type bigint; make it a timestamp first"):
        keyed.window("value", "1 minute")
    with pytest.raises(sk.SkewlessError, match="slide '2 minutes' is longer than size '1 minute'"):
        keyed.window("ts", "1 minute", "2 minutes")
    with pytest.raises(sk.SkewlessError, match="close by a watermark, and there is none"):
        keyed.window("ts", "1 minute").agg(n=sk.count())
    batch = spark.createDataFrame([(START, 1)], "ts timestamp, k int")
    with pytest.raises(sk.SkewlessError, match="a batch has no micro-batches in which windows could change"):
        sk.keyed(batch, "k").window("ts", "1 minute").changes(n=sk.count())
    with pytest.raises(sk.SkewlessError, match=r"need windows: add \.window"):
        keyed.agg(n=sk.count())
    windows = keyed.window("ts", "1 minute", watermark="0 seconds")
    with pytest.raises(sk.SkewlessError, match="no column 'price'; there are user id, value, ts"):
        windows.agg(n=sk.sum("price"))
    with pytest.raises(sk.SkewlessError, match="what to aggregate"):
        windows.agg()
    with pytest.raises(sk.SkewlessError, match=r"folder= names the stream's folder, so that no column"):
        windows.agg(n=sk.count(), folder=sk.count())  # type: ignore[arg-type]
    with pytest.raises(sk.SkewlessError, match="n=3 is not an aggregate"):
        windows.agg(n=3)  # type: ignore[arg-type]
    with pytest.raises(sk.SkewlessError, match="has a column 'window' already"):
        windows.agg(window=sk.count())
    with pytest.raises(sk.SkewlessError, match="wants numbers, but the column is of type string"):
        sk.keyed(stream, "value", split="local").window("ts", "1 minute", watermark="1 day").agg(n=sk.sum("user id"))
    with pytest.raises(sk.SkewlessError, match="Spark has no operator of its own"):
        sk.keyed(stream, "value", split="spark").window("ts", "1 day", watermark="1 day").agg(n=sk.top("value"))
    with pytest.raises(sk.SkewlessError, match="goes by time, and there are no windows"):
        sk.keyed(spark.createDataFrame(skewed(1)), "user id").agg(n=sk.first("value"))


def test_auto_chooses_and_says_why(spark: SparkSession, files: Path) -> None:
    stream = streaming(spark, files).withColumn("ts", F.current_timestamp())

    def words(slide: str | None, measure: Measure) -> str:
        keyed = sk.keyed(stream, "user id", name="clicks")
        return keyed.window("ts", "1 minute", slide, watermark="0 seconds").explain(n=measure)

    assert words(None, sk.count()).startswith("clicks: spark, because its own operators are best")
    assert words("1 second", sk.count()).startswith("clicks: local, because these aggregates cost less")
    local = sk.keyed(stream, "user id", split="local", name="clicks").window("ts", "1 minute", watermark="0 seconds")
    assert local.explain(n=sk.count()) == "clicks: local, as asked, combining rows where they lie."
    assert sk.keyed(stream, "user id", split="local", name="clicks").explain() == (
        "clicks: split='local' and place='auto', over 2 workers where rows move."
    )
    heavy = words("1 second", sk.quantile("value", 0.5))
    assert heavy.startswith(
        "clicks: bounded over 2 workers, because n costs more for a row than moving it, in the task"
    )


def test_a_placer_that_remembers_is_every_calls_own(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    given = sk.place.AutoFlow(factor=0.3, window_length=4)
    keyed = sk.keyed(streaming(spark, files), "user id", place=given)
    for name in ("one", "two"):
        keyed.process(Nothing(), "n long", folder=tmp_path / name)
    one, two = list(_streams.values())[-2:]
    assert isinstance(one, Placing)
    assert isinstance(two, Placing)
    assert len({id(given), id(one.placer), id(two.placer)}) == 3
    one.placer.learn(Counts(np.array([7]), np.array([5]), total=5))
    assert isinstance(two.placer, sk.place.AutoFlow)
    assert (two.placer.window_length, len(two.placer._rounds), len(given._rounds)) == (4, 0, 0)


def test_a_batch_by_prompt_knows_which_keys_are_apart(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("skewless.spark.aggregate.Combine", lambda *given: asked.append(given[2]) or Combine(*given))
    df = spark.range(300).selectExpr("if(id < 200, 0, id) as k")
    for split, apart in (("prompt", xxhash64(np.array([0])).tolist()), ("dalton", None)):
        found = sk.keyed(df, "k", workers=4, split=split).agg(n=sk.count(), p=sk.quantile("k", 0.5))
        assert found.count() == 101
        assert asked.pop() == (None if apart is None else tuple(apart))


def test_a_splitter_made_by_hand_may_leave_the_workers_to_the_stream(batch: DataFrame) -> None:
    given = Dalton(slide=5000)
    keyed = sk.keyed(batch, "user id", workers=8, split=given)
    one, other = keyed._splitter(), keyed._splitter()
    assert isinstance(one, Dalton)
    assert (one.workers, one.slide) == (8, 5000)
    assert len({id(each) for each in (given, one, other)}) == 3  # each call has its own


def test_a_description_does_not_change(batch: DataFrame) -> None:
    keyed = sk.keyed(batch, "user id")
    with pytest.raises(dataclasses.FrozenInstanceError):
        keyed.split = "hash"  # type: ignore[misc]
    before = dataclasses.astuple(dataclasses.replace(keyed, df=None))  # type: ignore[type-var]
    keyed.repartition()
    keyed.agg(n=sk.count())
    assert dataclasses.astuple(dataclasses.replace(keyed, df=None)) == before  # type: ignore[type-var]


def test_workers_default_to_the_shuffle_partitions(spark: SparkSession, batch: DataFrame) -> None:
    assert sk.keyed(batch, "user id").workers == int(spark.conf.get("spark.sql.shuffle.partitions"))
