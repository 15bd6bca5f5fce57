"""Rows that are routed inside their tasks: even in every micro-batch, the first included, and none lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import metrics
from skewless.api.watch import Watch
from skewless.core import blob
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.spark import observe, session
from skewless.spark.in_task import Pack, packed
from skewless.spark.observe import all_counts
from skewless.spark.route import KEY, with_key
from skewless.split import Splitter
from skewless.workload import new_hot_keys
from support.streams import COMPILED, settings, start, stream_of, write_files

ROWS, WORKERS = 8_000, 8


@pytest.fixture(autouse=True)
def compiled(spark: SparkSession) -> Iterator[None]:
    """Expressions are compiled here, as they are for users, and interpreted in the other tests, which is faster."""
    with settings(spark, COMPILED):
        yield


def clicks(batches: int) -> list[pa.Table]:
    """Micro-batches of a skewed stream, each with hot keys of its own."""
    chance = np.random.default_rng(5)
    shares = 1 / np.arange(1, 1001) ** 1.3
    tables = []
    for batch in range(batches):
        ranks = chance.choice(1000, ROWS, p=shares / shares.sum())
        pages = pa.array([f"page {(rank + 137 * batch) % 1000}" for rank in ranks.tolist()])
        tables.append(pa.table({"page": pages, "value": np.arange(ROWS) + batch * ROWS}))
    return tables


def per_partition(df: DataFrame) -> np.ndarray:
    counted = df.groupBy(F.spark_partition_id().alias("p")).count().collect()
    loads = np.zeros(WORKERS, dtype=np.int64)
    for row in counted:
        loads[row["p"]] = row["count"]
    return loads


def balance(loads: np.ndarray) -> float:
    return float(loads.max() / loads.mean())


def run(spark: SparkSession, folder: Path, split: str | Splitter) -> tuple[list[np.ndarray], list[int], Watch]:
    """The loads of every micro-batch, all values, and the handle on the query."""
    loads: list[np.ndarray] = []
    values: list[int] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        df.persist()
        loads.append(per_partition(df))
        values.extend(row["value"] for row in df.select("value").collect())
        df.unpersist()

    keyed = sk.keyed(stream_of(spark, folder / "in", clicks(4)), "page", workers=WORKERS, split=split)
    query = start(keyed.repartition(), folder / "to", each)
    query.awaitTermination()
    return loads, values, sk.watch(query)


def test_every_micro_batch_is_even_though_hot_keys_change_in_each(spark: SparkSession, tmp_path: Path) -> None:
    loads, values, watching = run(spark, tmp_path, "auto")
    assert sorted(values) == list(range(4 * ROWS))
    assert [balance(each) <= 1.1 for each in loads] == [True] * 4
    assert watching.wait(4)
    assert sum(watching.loads.values()) % ROWS == 0
    assert max(watching.loads.values()) <= 1.1 * sum(watching.loads.values()) / WORKERS
    assert "bounded over 8 workers" in watching.explain()
    by_hash = homes_of(spark, clicks(1)[0])
    assert balance(by_hash) > 1.5


@pytest.mark.parametrize("split", ["bounded", "prompt"])
def test_tasks_that_do_not_talk_are_even_together(spark: SparkSession, tmp_path: Path, split: str) -> None:
    loads: list[np.ndarray] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        loads.append(per_partition(df))

    stream = stream_of(spark, tmp_path / "in", clicks(2)).repartition(6, "value")
    start(
        sk.keyed(stream, "page", workers=WORKERS, split=split).repartition(), tmp_path / "to", each
    ).awaitTermination()
    assert [int(batch.sum()) for batch in loads] == [ROWS] * 2
    assert max(map(balance, loads)) <= 1.1


def test_prompt_plans_every_micro_batch_when_the_input_of_its_tasks_ends(spark: SparkSession, tmp_path: Path) -> None:
    found: list[pa.Table] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        found.append(df.select("page", "value", F.spark_partition_id().alias("worker")).toArrow())

    batches = clicks(3)
    stream = stream_of(spark, tmp_path / "in", batches)
    routed = sk.keyed(stream, "page", workers=WORKERS, split="prompt").repartition()
    usual = spark.conf.get(session.ARROW_ROWS) or "10000"
    spark.conf.set(session.ARROW_ROWS, "300")  # a task gives nothing back before it has taken many parts
    try:
        query = start(routed, tmp_path / "to", each)
        query.awaitTermination()
    finally:
        spark.conf.set(session.ARROW_ROWS, usual)
    assert len(found) == 3
    for rows, batch in zip(found, batches, strict=True):
        assert sorted(rows["value"].to_pylist()) == batch["value"].to_pylist()
        keys, workers = xxhash64(rows["page"].combine_chunks()), np.array(rows["worker"], np.int32)
        assert metrics.bsi(workers, WORKERS) <= 0.02 * ROWS / WORKERS
        assert metrics.ksr(keys, workers, WORKERS) <= 1.05
        assert metrics.bci(keys, workers, WORKERS) <= metrics.bci(keys, homes(keys, WORKERS), WORKERS)


@pytest.mark.parametrize(("tasks", "skew"), [(1, 1.0), (2, 1.0), (8, 0.6), (8, 1.0), (8, 1.5)])
def test_prompts_blocks_are_even_and_whole_over_all_tasks_of_a_micro_batch(
    spark: SparkSession, tmp_path: Path, tasks: int, skew: float
) -> None:
    rows, workers, batches = 200_000, 24, 2
    found: list[pa.Table] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        found.append(df.select("key", "task", F.spark_partition_id().alias("worker")).toArrow())

    given = list(new_hot_keys(skew, every=rows, keys=10_000, seed=1).blocks(batches * rows, rows))
    parts = [pa.table({"key": part}) for keys in given for part in np.array_split(keys, tasks)]
    write_files(tmp_path / "in", parts)
    # A file is a task, and as many as a micro-batch has are read at once.
    with settings(spark, {"spark.sql.files.openCostInBytes": "512m"}):
        files = spark.readStream.schema("key long").option("maxFilesPerTrigger", tasks).parquet(str(tmp_path / "in"))
        read = files.withColumn("task", F.spark_partition_id())
        routed = sk.keyed(read, "key", workers=workers, split="prompt").repartition()
        start(routed, tmp_path / "to", each).awaitTermination()
    assert len(found) == batches
    for batch, expected in zip(found, given, strict=True):
        assert len(set(batch["task"].to_pylist())) == tasks
        assert np.sort(np.array(batch["key"])).tolist() == np.sort(expected).tolist()
        keys, blocks = xxhash64(batch["key"].combine_chunks()), np.array(batch["worker"], np.int32)
        assert metrics.bsi(blocks, workers) <= 0.02 * rows / workers
        assert metrics.ksr(keys, blocks, workers) <= 1.05
        assert metrics.bci(keys, blocks, workers) <= metrics.bci(keys, homes(keys, workers), workers)


@pytest.mark.parametrize("skew", [0.6, 1.0, 1.5])
@pytest.mark.parametrize("tasks", [1, 2, 8])
def test_rows_that_prompt_packs_for_aggregates_are_in_blocks_as_even_and_whole(skew: float, tasks: int) -> None:
    rows, workers = 200_000, 24
    given = xxhash64(new_hot_keys(skew, every=rows, keys=10_000, seed=1).take(rows))
    keys, blocks, values = [], [], []
    for part in np.array_split(np.arange(rows), tasks):
        table = pa.table({KEY: given[part], "value": part})
        for lines in Pack(sk.split.Prompt(workers))(iter(table.to_batches(max_chunksize=10_000))):
            for owner, packed_rows in zip(lines["owner"].to_pylist(), lines["rows"].to_pylist(), strict=True):
                columns = blob.load(packed_rows)
                keys.append(np.asarray(columns.column(0)))
                values.append(np.asarray(columns.column(1)))
                blocks.append(np.full(columns.num_rows, owner, np.int32))
    found, block, row = np.concatenate(keys), np.concatenate(blocks), np.concatenate(values)
    assert np.sort(row).tolist() == list(range(rows))
    assert (found == given[row]).all()
    assert metrics.bsi(block, workers) <= 0.02 * rows / workers
    assert metrics.ksr(found, block, workers) <= 1.05
    assert metrics.bci(found, block, workers) <= metrics.bci(found, homes(found, workers), workers)


def test_blocks_of_packed_rows_are_the_partitions_of_spark(spark: SparkSession) -> None:
    workers, keys = 8, new_hot_keys(1.0, every=20_000, keys=2_000, seed=1).take(20_000)
    df = with_key(spark.createDataFrame(pa.table({"key": keys})).repartition(2), ["key"]).select(KEY, "key")
    routed = packed(df, sk.split.Prompt(workers)).select("rows", F.spark_partition_id().alias("block")).toArrow()
    batches = [(blob.load(each), block) for each, block in zip(*routed.to_pydict().values(), strict=True)]
    found = np.concatenate([np.asarray(rows.column(0)) for rows, _ in batches])
    blocks = np.concatenate([np.full(rows.num_rows, block, np.int32) for rows, block in batches])
    assert np.sort(found).tolist() == np.sort(xxhash64(keys)).tolist()
    assert metrics.bsi(blocks, workers) <= 0.02 * len(keys) / workers
    assert metrics.ksr(found, blocks, workers) <= 1.05
    assert metrics.bci(found, blocks, workers) <= metrics.bci(found, homes(found, workers), workers)


def test_prompts_tree_is_refused_where_tasks_plan(spark: SparkSession, tmp_path: Path) -> None:
    stream = stream_of(spark, tmp_path / "in", clicks(1))
    with pytest.raises(sk.SkewlessError, match="buffer is 'tree'; a task sorts its rows when its input ends"):
        sk.keyed(stream, "page", workers=WORKERS, split=sk.split.Prompt(buffer="tree")).repartition()


def test_prompts_tree_is_refused_where_spark_counts_a_batch(spark: SparkSession) -> None:
    with pytest.raises(sk.SkewlessError, match="buffer is 'tree', which keeps the order of keys while their tuples"):
        sk.keyed(
            spark.createDataFrame(clicks(1)[0]), "page", workers=WORKERS, split=sk.split.Prompt(buffer="tree")
        ).repartition()


def test_a_batch_is_planned_from_the_keys_that_the_driver_can_hold(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.createDataFrame(clicks(1)[0])
    whole = all_counts(with_key(df, ["page"]), WORKERS)
    monkeypatch.setattr(observe, "MOST_TOLD", 50)
    seen = all_counts(with_key(df, ["page"]), WORKERS)
    assert whole is not None
    assert seen is not None
    assert (len(seen.keys), seen.total, seen.distinct) == (50, ROWS, len(whole.keys))
    assert sorted(seen.counts) == sorted(whole.counts)[-50:]
    told = np.isin(whole.keys, seen.keys)
    rest = np.bincount(homes(whole.keys[~told], WORKERS), whole.counts[~told], WORKERS)
    assert seen.tail_loads(WORKERS).tolist() == rest.tolist()
    assert seen.tail_keys is not None
    assert seen.tail_keys.tolist() == np.bincount(homes(whole.keys[~told], WORKERS), minlength=WORKERS).tolist()
    routed = sk.keyed(df, "page", workers=WORKERS, split="prompt").repartition()
    assert balance(per_partition(routed)) < 1.1
    assert all_counts(with_key(df.limit(0), ["page"]), WORKERS) is None


def homes_of(spark: SparkSession, table: pa.Table) -> np.ndarray:
    return per_partition(sk.keyed(spark.createDataFrame(table), "page", workers=WORKERS, split="hash").repartition())


def test_dalton_learns_inside_the_task_if_asked(spark: SparkSession, tmp_path: Path) -> None:
    loads, values, watching = run(spark, tmp_path, sk.split.Dalton(slide=200, in_task=True))
    assert sorted(values) == list(range(4 * ROWS))
    by_hash = [balance(homes_of(spark, table)) for table in clicks(4)]
    assert np.mean(list(map(balance, loads))) < 0.8 * np.mean(by_hash)
    assert "in the task that has the row" in watching.explain()


@pytest.mark.parametrize("split", ["bounded", sk.split.Dalton(slide=200, in_task=True)], ids=["bounded", "dalton"])
def test_a_batch_loses_nothing(spark: SparkSession, split: str | Splitter) -> None:
    df = spark.createDataFrame(clicks(1)[0])
    routed = sk.keyed(df, "page", workers=WORKERS, split=split).repartition()
    assert KEY not in routed.columns
    assert routed.exceptAll(df).count() == 0
    assert routed.count() == ROWS
    assert balance(per_partition(routed)) < (1.1 if split == "bounded" else 1.6)


def test_a_session_without_checksums_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_warned", set())
    spark.conf.set(session.RETRY, "false")
    try:
        with pytest.warns(UserWarning, match="enableFullRetryOnMismatch is off: rows may be lost or doubled"):
            sk.keyed(spark.range(9), "id", workers=2).agg(p=sk.quantile("id", 0.5))
    finally:
        spark.conf.set(session.RETRY, "true")
