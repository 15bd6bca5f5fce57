"""Sliding windows against Spark's own `window()`, in one run.

Claims tested: a window costs its new and expired panes, so that the speed hardly falls as windows grow, while Spark
copies every row into every window that holds it; and tumbling windows are as fast, because they are Spark's own.

`make bench-spark` runs this and writes docs/results/windows.md.
"""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.spark.session import CHANGELOG
from skewless.workload import Zipf

ROWS, SECONDS, KEYS, SKEW = 500_000, 30, 100_000, 1.5
"""Of a micro-batch: rows and seconds of event time; of the stream: keys and Zipf's exponent."""


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
    write_stream(files, 8)
    lines = [
        f"{ROWS:,} rows and {SECONDS} s of event time a micro-batch, Zipf {SKEW}, {KEYS:,} keys, count and sum of a",
        "double, append mode, watermark 5 s, written to nowhere. The first micro-batch of each query does not count.",
        "",
        "| size, slide | strategy | micro-batches | rows/s | ratio |",
        "|---|---|---|---|---|",
    ]
    # With 600 windows to a row, Spark's own operator takes minutes for a micro-batch.
    cases = [("60 seconds", "1 second", 4), ("600 seconds", "1 second", 2), ("60 seconds", None, 8)]
    for size, slide, batches in cases:
        few = _first(files, batches)
        rival = measure(spark, few, "spark", size, slide)
        lines += [_row(size, slide, "spark", rival, rival)]
        for strategy in ("auto", "dalton") if slide else ("auto",):
            lines += [_row(size, slide, strategy, measure(spark, few, strategy, size, slide), rival)]
    lines += ["", *growth(spark, files), "", *state(spark, _first(files, 4))]
    return lines


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


def _first(files: Path, count: int) -> Path:
    """A folder with the first files of another."""
    names = sorted(files.iterdir())
    if count >= len(names):
        return files
    few = files.with_name(f"{files.name}-{count}")
    if not few.exists():
        few.mkdir()
        for name in names[:count]:
            shutil.copy2(name, few / name.name)
    return few


def write_stream(folder: Path, files: int) -> None:
    """A file for each micro-batch."""
    folder.mkdir()
    chance = np.random.default_rng(7)
    keys = Zipf(SKEW, keys=KEYS, seed=7).take(files * ROWS)
    for i in range(files):
        seconds = i * SECONDS + np.sort(chance.random(ROWS)) * SECONDS
        times = (1_700_000_000_000_000 + seconds * 1e6).astype(np.int64)
        names = pa.array(keys[i * ROWS : (i + 1) * ROWS]).cast(pa.string())
        columns = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "key": names, "v": chance.random(ROWS)}
        pq.write_table(pa.table(columns), folder / f"{i:03d}.parquet")


def measure(spark: SparkSession, folder: Path, strategy: str, size: str, slide: str | None) -> Measured:
    """Run count and sum over all files; the first micro-batch warms up and does not count."""
    reader = spark.readStream.schema("ts timestamp, key string, v double").option("maxFilesPerTrigger", 1)
    stream = sk.keyed(reader.parquet(str(folder)), "key", strategy=strategy)
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
