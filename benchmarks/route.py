"""What routing costs inside Spark, against Spark's own `repartition(n, key)` in the same run.

Claim tested: choosing the worker by policy costs little, for a batch and for each micro-batch of a stream.

What measuring taught: bytes through the shuffle count. The hash of the key, eight bytes a row, was carried through it
at first; dropped before, the same 16 M rows take 3.2 s instead of 3.6 to 4.0. A batch DataFrame's policy is part of
the expression since, where it was a join. In a stream, observing breaks the compiled loop over the rows in two, which
takes 50 ns a row, the sketch of a sample of the keys as long again, and reading the policy and joining it 0.1 s.

`make bench-route` runs this and writes docs/results/route.md.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk

ROWS, WORKERS, REPEATS, FILES, BATCHES = 16_000_000, 16, 9, 8, 32


def main() -> None:
    """Run both and write the results."""
    target = Path("docs/results/route.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-route` does")
    spark = sk.session(memory="4g")
    folder = tempfile.mkdtemp(prefix="skewless-bench-")
    try:
        lines = ["# Routing inside Spark", "", "Made by `make bench-route`.", ""]
        lines += [*batch(spark, folder), "", *stream(spark, folder)]
    finally:
        shutil.rmtree(folder)
        spark.stop()
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def batch(spark: SparkSession, folder: str) -> list[str]:
    """A batch DataFrame, written to nowhere."""
    # A power law: the hottest key has 29 % of the rows.
    key = F.pow(F.rand(1), F.lit(-2.0)).cast("long")
    files = f"{folder}/rows"
    spark.range(0, ROWS, 1, FILES).select(key.alias("key"), "id").write.parquet(files)
    spark.range(0, ROWS, 1, BATCHES).select(key.alias("key"), "id").write.parquet(f"{folder}/stream")
    rows = spark.read.parquet(files)
    start = time.perf_counter()
    keyed = sk.keyed(rows, "key", workers=WORKERS, split="dalton").repartition()
    first_pass = time.perf_counter() - start
    plain = rows.repartition(WORKERS, "key")
    times = np.array([[_write(plain), _write(keyed)] for _ in range(REPEATS)])
    best = times[1:].min(axis=0)  # the first round warms up the JVM
    balances = [_balance(plain), _balance(keyed)]
    lines = [
        f"{ROWS // 1_000_000} M rows of two longs, {WORKERS} workers, best of {REPEATS - 1} runs in turn, written to",
        "nowhere. Max/avg is the size of the largest partition over the average.",
        "",
        "| | M rows/s | ratio | max/avg |",
        "|---|---|---|---|",
        f"| `df.repartition(n, key)` | {ROWS / best[0] / 1e6:.2f} | 1 | {balances[0]:.2f} |",
        f"| `keyed(df, key).repartition()` | {ROWS / best[1] / 1e6:.2f} | {best[0] / best[1]:.2f} "
        f"| {balances[1]:.2f} |",
        "",
        f"The first pass, which counts the hot keys, took {first_pass:.1f} s, JVM cold.",
    ]
    print("\n".join(lines))
    return lines


def stream(spark: SparkSession, folder: str) -> list[str]:
    """A streaming query, a file a micro-batch."""
    reader = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", 1)
    source = reader.parquet(f"{folder}/stream")
    plain = source.repartition(WORKERS, "key")
    keyed = sk.keyed(source, "key", workers=WORKERS, split="dalton").repartition()
    medians = [_batch_times(df, f"{folder}/{i}") for i, df in enumerate((plain, keyed, plain, keyed))][2:]
    lines = [
        f"The same rows as a stream of {BATCHES} micro-batches of {ROWS // BATCHES:,}, median of a micro-batch:",
        f"{medians[0]:.2f} s with `repartition(n, key)`, {medians[1]:.2f} s with `keyed(...).repartition()`, learning",
        "included.",
    ]
    print("\n".join(lines))
    return lines


def _write(df: DataFrame) -> float:
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _balance(df: DataFrame) -> float:
    counts = [row["count"] for row in df.groupBy(F.spark_partition_id()).count().collect()]
    return float(max(counts) * WORKERS / sum(counts))


def _batch_times(df: DataFrame, checkpoint: str) -> float:
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return float(np.median([batch["durationMs"]["triggerExecution"] for batch in query.recentProgress])) / 1000


if __name__ == "__main__":
    main()
