"""Sliding windows against Spark's own `window()`, in one run.

Claims tested: a window costs its new and expired panes, so that the speed hardly falls as windows grow, while Spark
copies every row into every window that holds it; and tumbling windows are as fast, because they are Spark's own.

What profiling taught. Stack samples of the JVM showed most of the way of a row to Python in adding up the size of the
Arrow batch, which Spark does after every row unless `maxBytesPerBatch` is at its limit: with that, 500,000 rows reach
Python in 0.1 s instead of 0.3. In the owners, calls to the state store were half of the time: panes are kept several
to a blob since. A second Python pass that unpacked results is gone where pandas can carry them. Of a micro-batch, 0.4 s
was Spark's own between one and the next; tracing system calls showed it starting some 40 processes, `chmod` mostly, to
write the files of a checkpoint, and the manager of those files that `sk.session` chooses starts a quarter as many.
What is left takes half a minute to be compiled by the JVM: the first micro-batches take twice as long as later ones,
which is why every strategy is warmed up for a while before it is measured.

`make bench-spark` runs this and writes docs/results/windows.md.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.spark.session import CHANGELOG, PROVIDER, ROCKSDB
from skewless.workload import Zipf

ROWS, FILES, SECONDS, KEYS, SKEW = 500_000, 4, 30, 100_000, 1.5
"""Of a micro-batch: rows, files and seconds of event time; of the stream: keys and Zipf's exponent."""
BATCHES, FEW, WARM = 24, 5, 30
"""Micro-batches of the stream, of the part of it that Spark's own sliding windows get, and seconds to warm up for."""

IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@dataclass(frozen=True)
class Measured:
    """A query's speed in rows a second, over so many micro-batches, and its state in the last of them."""

    speed: float
    batches: int
    state_rows: int
    state_bytes: int


def table(spark: SparkSession, folder: Path) -> list[str]:
    """All comparisons, as lines of a page."""
    files = folder / "stream"
    write_stream(files, BATCHES)
    lines = [
        f"{ROWS:,} rows and {SECONDS} s of event time a micro-batch, Zipf {SKEW}, {KEYS:,} keys, count and sum of a",
        "double, append mode, watermark 5 s, written to nowhere. State is in RocksDB, except for Spark's default,",
        f"which keeps it in the memory of the JVM. Each strategy ran for {WARM} s before, and the first of several",
        "micro-batches does not count.",
        "",
        "| size, slide | strategy | micro-batches | rows/s | ratio |",
        "|---|---|---|---|---|",
    ]
    for strategy in ("spark", "auto", "dalton"):
        warm(spark, _first(files, 2), strategy)
    # With 600 windows to a row, Spark's own operator takes minutes for a micro-batch: there is one, and it counts.
    cases = [("60 seconds", "1 second", FEW), ("600 seconds", "1 second", 1), ("60 seconds", None, BATCHES)]
    for size, slide, batches in cases:
        few = _first(files, batches)
        rival = measure(spark, few, "spark", size, slide)
        lines += [_row(size, slide, "spark", rival, rival)]
        if batches > 1:
            spark.conf.set(PROVIDER, IN_MEMORY)
            lines += [_row(size, slide, "spark, its default store", measure(spark, few, "spark", size, slide), rival)]
            spark.conf.set(PROVIDER, ROCKSDB)
        for strategy in ("auto", "dalton") if slide else ("auto",):
            lines += [_row(size, slide, strategy, measure(spark, files, strategy, size, slide), rival)]
    lines += ["", *growth(spark, files), "", *state(spark, _first(files, 4))]
    return lines


def warm(spark: SparkSession, files: Path, strategy: str) -> None:
    """Run a strategy for a while, so that it finds the JVM and the Python workers warm."""
    start = time.monotonic()
    while time.monotonic() - start < WARM:
        measure(spark, files, strategy, "60 seconds", "1 second")


def growth(spark: SparkSession, files: Path) -> list[str]:
    """What doubling the number of windows that hold a row costs."""
    sizes = [60, 120, 240, 480]
    speeds = [measure(spark, files, "auto", f"{size} seconds", "1 second").speed for size in sizes]
    ratios = ["1", *[f"{before / after:.2f}" for before, after in itertools.pairwise(speeds)]]
    return [
        "Doubling the size at a slide of 1 s:",
        "",
        "| size | rows/s | time, of half the size |",
        "|---|---|---|",
        *[f"| {size} s | {speed:,.0f} | {ratio} |" for size, speed, ratio in zip(sizes, speeds, ratios, strict=True)],
    ]


def state(spark: SparkSession, files: Path) -> list[str]:
    """State of 60 s windows sliding by 1 s: rows, and bytes of RocksDB's files."""
    spark.conf.set(CHANGELOG, "false")  # so that every batch writes its files
    own, mine = (measure(spark, files, strategy, "60 seconds", "1 second") for strategy in ("spark", "auto"))
    spark.conf.set(CHANGELOG, "true")
    return [
        "State at 60 s and 1 s, after the last of the micro-batches:",
        "",
        "| strategy | rows | bytes in RocksDB's files |",
        "|---|---|---|",
        f"| spark | {own.state_rows:,} | {own.state_bytes:,} |",
        f"| auto | {mine.state_rows:,} | {mine.state_bytes:,} |",
    ]


def _row(size: str, slide: str | None, strategy: str, measured: Measured, rival: Measured) -> str:
    line = f"| {size}, {slide or 'tumbling'} | {strategy} | {measured.batches} | {measured.speed:,.0f} "
    line += f"| {measured.speed / rival.speed:.2f} |"
    print(line, flush=True)
    return line


def _first(files: Path, batches: int) -> Path:
    """A folder with the files of the first micro-batches."""
    names = sorted(files.iterdir())
    few = files.with_name(f"{files.name}-{batches}")
    if not few.exists():
        few.mkdir()
        for name in names[: batches * FILES]:
            shutil.copy2(name, few / name.name)
    return few


def write_stream(folder: Path, batches: int, batch_rows: int = ROWS) -> None:
    """Write the files of a stream; Spark reads them in the order of their times of change."""
    folder.mkdir()
    chance = np.random.default_rng(7)
    rows, seconds = batch_rows // FILES, SECONDS / FILES
    keys = Zipf(SKEW, keys=KEYS, seed=7).take(batches * batch_rows)
    for i in range(batches * FILES):
        at = (i + np.sort(chance.random(rows))) * seconds
        times = (1_700_000_000_000_000 + at * 1e6).astype(np.int64)
        names = pa.array(keys[i * rows : (i + 1) * rows]).cast(pa.string())
        columns = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "key": names, "v": chance.random(rows)}
        path = folder / f"{i:03d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))


def measure(spark: SparkSession, folder: Path, strategy: str, size: str, slide: str | None) -> Measured:
    """Run count and sum over all files; the first micro-batch warms up and does not count."""
    reader = spark.readStream.schema("ts timestamp, key string, v double").option("maxFilesPerTrigger", FILES)
    stream = sk.keyed(reader.parquet(str(folder)), "key", split=strategy)
    windows = stream.window("ts", size, slide, watermark="5 seconds")
    return run(windows.agg(n=sk.count(), s=sk.sum("v")), folder.parent / "checkpoint")


def run(df: DataFrame, checkpoint: Path) -> Measured:
    """Run a query to the end of its stream, into nowhere."""
    shutil.rmtree(checkpoint, ignore_errors=True)
    writer = df.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    counted = progress[1:] or progress
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in counted) / 1000
    operator = progress[-1]["stateOperators"][0]
    rows = sum(batch["numInputRows"] for batch in counted)
    shutil.rmtree(checkpoint)
    size = operator["customMetrics"].get("rocksdbSstFileSize", 0)
    return Measured(rows / seconds, len(counted), operator["numRowsTotal"], size)
