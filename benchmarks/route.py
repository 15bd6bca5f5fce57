"""What routing costs inside Spark, against Spark's own `repartition(n, key)` in the same run, and how even it is.

Claims tested: a plan from counts costs little, the counting included; a splitter inside the task costs about a
microsecond a row where rows stay bare, and nothing where they are packed for an aggregate that reads them in Python;
and it keeps every micro-batch even though the hot keys change in each, where a policy that was learned is too late.

What measuring taught: bytes through the shuffle count. The hash of the key, eight bytes a row, was carried through it
at first; dropped before, the same 16 M rows take 3.2 s instead of 3.6 to 4.0. A batch DataFrame's policy is part of
the expression since, where it was a join. Counting all keys of a batch took 0.84 s of 16 M rows, of which 0.3 s were
reading them; of all but the first rows of a partition one in eight is counted since, before it is hashed. In a stream,
observing breaks the compiled loop over the rows in two, which takes 50 ns a row, the sketch of a sample of the keys as
long again, and reading the policy and joining it 0.1 s. A function of the key's hash in Python takes half of its
microsecond in Spark's queue of the rows beside it.

`make bench-route` runs this and writes docs/results/route.md.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.core.arrays import Int64Array
from skewless.spark.aggregate import Aggregation
from skewless.spark.route import exchange
from skewless.spark.split import planned

ROWS, WORKERS, REPEATS, FILES, BATCHES, TASKS = 16_000_000, 16, 4, 8, 16, 4
SKEWED = "bigint(pow(rand(1), -2))"  # a power law: the hottest key has 29 % of the rows


def main() -> None:
    """Run all parts and write the results."""
    target = Path("docs/results/route.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-route` does")
    spark = sk.session(memory="4g")
    folder = tempfile.mkdtemp(prefix="skewless-bench-")
    cores = spark.sparkContext.defaultParallelism
    lines = ["# Routing inside Spark", "", f"Made by `make bench-route`, on {cores} cores.", ""]
    try:
        for part in (batch, windows, forwarding, restless, stream):
            lines += [*part(spark, folder), ""]
    finally:
        shutil.rmtree(folder)
        spark.stop()
    target.write_text("\n".join(lines).rstrip() + "\n")
    print(f"written to {target}")


def batch(spark: SparkSession, folder: str) -> list[str]:
    """A batch DataFrame, written to nowhere."""
    rows = _written(spark.range(0, ROWS, 1, FILES).select(F.expr(SKEWED).alias("key"), "id"), f"{folder}/rows")

    def keyed(split: str | sk.split.Splitter) -> Callable[[], DataFrame]:
        return lambda: sk.keyed(rows, "key", workers=WORKERS, split=split).repartition()

    ways: dict[str, Callable[[], DataFrame]] = {
        "`df.repartition(n, key)`": lambda: rows.repartition(WORKERS, "key"),
        "`bounded`, by a plan, counting included": keyed("bounded"),
        "`dalton`, by a plan, counting included": keyed("dalton"),
        "`Bounded(in_task=True)`": keyed(sk.split.Bounded(in_task=True)),
    }
    best = _best(ways)
    lines = [
        "## Bare rows",
        "",
        f"{ROWS // 1_000_000} M rows of two longs, {WORKERS} workers, best of {REPEATS - 1} runs in turn, written to",
        "nowhere. Max/avg is the size of the largest partition over the average.",
        "",
        "| | s | ratio | max/avg |",
        "|---|---|---|---|",
    ]
    for (name, make), seconds in zip(ways.items(), best, strict=True):
        lines.append(f"| {name} | {seconds:.2f} | {best[0] / seconds:.2f} | {_balance(_sizes(make())):.2f} |")
    print("\n".join(lines))
    return lines


def windows(spark: SparkSession, folder: str) -> list[str]:
    """Sliding windows over even keys: what moving the rows costs, packed by `bounded` or one by one by hash."""
    key = F.hash("id") % 10_000
    time_ = F.timestamp_seconds(F.col("id") / (ROWS / 600))
    source = spark.range(0, ROWS, 1, FILES).select(time_.alias("ts"), key.alias("key"), F.rand(3).alias("v"))
    rows = _written(source, f"{folder}/even")

    def counted(df: DataFrame, split: str) -> DataFrame:
        keyed = sk.keyed(df, "key", workers=None if split == "local" else WORKERS, split=split)
        return keyed.window("ts", "60 seconds", "20 seconds").agg(n=sk.count(), s=sk.sum("v"))

    ways: dict[str, Callable[[], DataFrame]] = {
        "rows by `df.repartition(n, key)`, then `local`": lambda: counted(rows.repartition(WORKERS, "key"), "local"),
        "`bounded`, routed and packed in the task": lambda: counted(rows, "bounded"),
        "`dalton`, by a plan": lambda: counted(rows, "dalton"),
        "`local`, which moves no row": lambda: counted(rows, "local"),
    }
    best = _best(ways)
    lines = [
        "## Rows that are aggregated",
        "",
        f"Count and sum in windows of 60 s sliding by 20 s, {ROWS // 1_000_000} M rows of 10,000 even keys, {WORKERS}",
        f"workers, the same combiner behind each way to move rows; best of {REPEATS - 1} runs in turn.",
        "",
        "| | s | ratio |",
        "|---|---|---|",
        *[f"| {name} | {seconds:.2f} | {best[0] / seconds:.2f} |" for name, seconds in zip(ways, best, strict=True)],
    ]
    print("\n".join(lines))
    return lines


def forwarding(spark: SparkSession, folder: str) -> list[str]:
    """An aggregate over many keys, of which only the split ones need a second exchange."""
    key = F.when(F.rand(5) < 0.3, F.expr(SKEWED)).otherwise((F.rand(6) * 4_000_000).cast("long"))
    source = spark.range(0, ROWS // 2, 1, FILES).select(key.alias("key"), F.rand(3).alias("v"))
    rows = _written(source, f"{folder}/many")
    aggregation = Aggregation(rows, ("key",), {"n": sk.count(), "s": sk.sum("v")})

    def counted(*, forward: bool) -> DataFrame:
        routed, policy = planned(aggregation.rows(), sk.split.Dalton(WORKERS))
        several = policy.split.tolist() if forward else None
        return aggregation.run(exchange(routed, WORKERS), "", several=several)

    best = _best({"all": lambda: counted(forward=False), "split": lambda: counted(forward=True)})
    lines = [
        "## Forwarding",
        "",
        f"Count and sum of each key, {ROWS // 2_000_000} M rows of about 3.5 M keys, {WORKERS} workers, by a",
        f"plan of `dalton`, counting included; best of {REPEATS - 1} runs in turn. Keys that are on one worker are",
        "finished there.",
        "",
        "| the second exchange is for | s | ratio |",
        "|---|---|---|",
        f"| all keys | {best[0]:.2f} | 1 |",
        f"| keys that are split | {best[1]:.2f} | {best[0] / best[1]:.2f} |",
    ]
    print("\n".join(lines))
    return lines


def restless(spark: SparkSession, folder: str) -> list[str]:
    """A stream whose hot keys are others in every micro-batch."""
    rows = 200_000
    for i in range(10):
        key = F.concat_ws("-", F.expr(SKEWED), F.lit(i))
        spark.range(0, rows, 1, TASKS).select(key.alias("key")).write.mode("append").parquet(f"{folder}/restless")
        time.sleep(0.01)  # files are read in the order of their times
    spark.conf.set("spark.sql.files.openCostInBytes", "512m")  # a file is a task
    source = spark.readStream.schema("key string").option("maxFilesPerTrigger", TASKS).parquet(f"{folder}/restless")
    lines = [
        "## Hot keys that change in every micro-batch",
        "",
        f"10 micro-batches of {rows:,} rows in {TASKS} tasks, {WORKERS} workers: max/avg of each. No key comes again,",
        "so that what dalton learned is of no use, and it hashes.",
        "",
        "| | " + " | ".join(map(str, range(10))) + " |",
        "|---|" + "---|" * 10,
    ]
    for split in ("hash", "dalton", "bounded"):
        found: list[float] = []

        def each(df: DataFrame, _batch: int, found: list[float] = found) -> None:
            found.append(_balance(_sizes(df)))

        df = sk.keyed(source, "key", workers=WORKERS, split=split).repartition()
        writer = df.writeStream.foreachBatch(each).option("checkpointLocation", f"{folder}/restless-{split}")
        writer.trigger(availableNow=True).start().awaitTermination()
        lines.append(f"| {split} | " + " | ".join(f"{balance:.2f}" for balance in found) + " |")
    print("\n".join(lines))
    return lines


def stream(spark: SparkSession, folder: str) -> list[str]:
    """A streaming query, a file a micro-batch."""
    _written(spark.range(0, ROWS, 1, BATCHES).select(F.expr(SKEWED).alias("key"), "id"), f"{folder}/stream")
    source = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/stream")
    ways = {"`df.repartition(n, key)`": source.repartition(WORKERS, "key")}
    for split in ("bounded", "dalton"):
        ways[f"`{split}`"] = sk.keyed(source, "key", workers=WORKERS, split=split).repartition()
    rounds = [
        [_batch_time(df, f"{folder}/{turn}-{i}") for i, df in enumerate(ways.values())] for turn in range(2)
    ]  # the first warms up
    lines = [
        "## A stream of bare rows",
        "",
        f"The rows of the first table as {BATCHES} micro-batches of {ROWS // BATCHES:,}, median of a micro-batch.",
        "",
        "| | s | ratio |",
        "|---|---|---|",
        *[
            f"| {name} | {seconds:.2f} | {rounds[1][0] / seconds:.2f} |"
            for name, seconds in zip(ways, rounds[1], strict=True)
        ],
    ]
    print("\n".join(lines))
    return lines


def _written(df: DataFrame, files: str) -> DataFrame:
    df.write.parquet(files)
    return df.sparkSession.read.parquet(files)


def _best(ways: dict[str, Callable[[], DataFrame]]) -> list[float]:
    """The best time of each way, making the DataFrame included, in turn; the first round warms up the JVM."""
    times = np.array([[_time(make) for make in ways.values()] for _ in range(REPEATS)])
    return [float(best) for best in times[1:].min(axis=0)]


def _time(make: Callable[[], DataFrame]) -> float:
    start = time.perf_counter()
    make().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _sizes(df: DataFrame) -> Int64Array:
    counts = df.groupBy(F.spark_partition_id().alias("worker")).count().collect()
    sizes = np.zeros(WORKERS, np.int64)
    sizes[[row["worker"] for row in counts]] = [row["count"] for row in counts]
    return sizes


def _balance(sizes: Int64Array) -> float:
    return float(sizes.max() / sizes.mean())


def _batch_time(df: DataFrame, checkpoint: str) -> float:
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    # The first micro-batches route by no policy yet.
    times = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return float(np.median(times[3:])) / 1000


if __name__ == "__main__":
    main()
