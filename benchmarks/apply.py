"""Functions of whole windows on Spark: an exact median against Spark's own ways, what the split costs, how it scales.

Claims tested: rows that wait sorted and are cut into windows by their places are never copied into the windows that
hold them, so that an exact median is several times as fast as Spark's `percentile` over `window()`, and as pandas
called for every window that Spark has filled; the split by pane costs the same however much windows overlap, that by
window costs in proportion, by batch in between; and batches and panes scale with the workers.

What profiling taught. Of a function of a pandas frame the frame is most: some 60 us to cut it, against 10 us for an
Arrow table, and 40 us for setting pandas' option of copy-on-write around every call, which is now set once for many.
Sorting the rows of a window's length anew in every micro-batch takes less than a tenth of the time.

`make bench-chop` runs this and writes it to docs/results/chop.md.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from experiments.sliding.partition import ByWindow
from experiments.sliding.tasks import run
from skewless.api.windowed import KeyedWindows
from skewless.chop import Costs, disorder
from skewless.chop.assignment import Assignment, BatchAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.core.windows import Windows
from skewless.operators.windows.spread import Spread
from skewless.spark.staging import sent
from skewless.workload import Zipf
from skewless.workload.linear_road import LinearRoad

ROWS, SECONDS, KEYS, SKEW, BATCHES, WARM = 500_000, 60, 200, 1.0, 8, 4
"""Of a micro-batch: rows and seconds of event time; of the stream: keys, Zipf's exponent, micro-batches, and how many
of those do not count."""
FEW = 2  # micro-batches that Spark's own percentile gets
SIZE, SLIDE = "60 seconds", "1 second"
RATIOS, REPORTS, SPLIT_WORKERS = (10, 30, 100, 300, 1000), 400_000, 16
WORKERS, SLEEP = (1, 2, 4, 8, 16), 2e-6
RESULTS, TRIGGERS = 600, 30
SCHEMA = "ts timestamp, key long, value double"
_EPOCH = 1_700_000_000_000_000


def median(key: tuple[int], window: Any, rows: pd.DataFrame) -> tuple[float]:
    """The median of a pandas frame."""
    return (float(np.median(rows["value"].to_numpy())),)


def median_of_table(key: tuple[int], window: Any, rows: pa.Table) -> tuple[float]:
    """The median of an Arrow table."""
    return (float(np.median(rows["value"].to_numpy())),)


def sorted_values(key: tuple[int], pane: Any, rows: pd.DataFrame) -> Any:
    """The values of a pane, sorted."""
    return np.sort(rows["value"].to_numpy())


def median_of_panes(key: tuple[int], window: Any, panes: list[Any]) -> tuple[float]:
    """The median of the values of all panes."""
    return (float(np.median(np.concatenate(panes))),)


def spark_median(rows: pd.DataFrame) -> pd.DataFrame:
    """The median of a group, for Spark's `applyInPandas`."""
    return pd.DataFrame({"start": rows["start"].iloc[:1], "key": rows["key"].iloc[:1], "m": [rows["value"].median()]})


def medians(spark: SparkSession, folder: Path) -> list[str]:
    """Ours on a stream and on a batch, against Spark's own."""
    files = folder / "in"
    write_stream(files, BATCHES)
    lines = [
        f"Windows of {SIZE} sliding by {SLIDE}, {ROWS:,} rows and {SECONDS} s of event time a micro-batch, Zipf",
        f"{SKEW}, {KEYS} keys. The first {WARM} micro-batches of ours and the first of Spark's do not count.",
        "",
        "| a stream | s a micro-batch | rows/s | times Spark's |",
        "|---|---|---|---|",
    ]
    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "Spark's `groupBy(window, key).agg(percentile)`": _percentile,
        "`apply`, by batch": lambda df: _windows(df).apply(median, "m double", chop="batch"),
        "`apply`, by batch, Arrow": lambda df: _windows(df).apply(
            median_of_table, "m double", chop="batch", arrow=True
        ),
        "`apply`, by pane": lambda df: _windows(df).apply(median_of_panes, "m double", pane=sorted_values),
        "`apply`, by window": lambda df: _windows(df).apply(median, "m double", chop="window"),
    }
    rival = None
    for name, way in ways.items():
        batches, skip = (FEW, 1) if rival is None else (BATCHES, WARM)
        seconds = _stream_seconds(spark, files, way, batches, skip)
        rival = rival or seconds
        lines.append(f"| {name} | {seconds:.2f} | {ROWS / seconds:,.0f} | {rival / seconds:.1f} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "| a batch DataFrame of one such file | s | rows/s | times the faster of Spark's |",
        "|---|---|---|---|",
    ]
    took = {name: _batch_seconds(spark, files / "000.parquet", way) for name, way in _on_a_batch().items()}
    rival = min(seconds for name, seconds in took.items() if "Spark" in name)
    for name, seconds in took.items():
        lines.append(f"| {name} | {seconds:.2f} | {ROWS / seconds:,.0f} | {rival / seconds:.1f} |")
        print(lines[-1], flush=True)
    return lines


def split(spark: SparkSession, folder: Path) -> list[str]:
    """Rows a second of the split stage, against overlap."""
    file = folder / "reports.parquet"
    write_reports(file, REPORTS)
    df = spark.read.parquet(str(file)).cache()
    df.count()
    lines = [
        f"{REPORTS:,} Linear Road reports, slide 1 s, one window over all, {SPLIT_WORKERS} workers: k rows a second",
        "that the split stage sends to them, best of five. A row goes once to a worker that needs it for several",
        "windows, so that the copies of the split by window end at the number of workers.",
        "",
    ]
    names = ("window", "batch 2", "batch 5", "batch 10", "pane")
    lines += ["| w/s | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    speeds = {}
    for ratio in RATIOS:
        windows = Windows.of(f"{ratio} seconds", "1 second")
        assignments: list[Assignment] = [BatchAssignment.of(windows, SPLIT_WORKERS, batch) for batch in (1, 2, 5, 10)]
        assignments.append(PaneAssignment(PaneRing(windows.size, windows.slide, SPLIT_WORKERS)))
        if ratio == RATIOS[0]:  # the JVM and the workers get warm
            for assignment in assignments * 2:
                _split_seconds(df, assignment)
        for name, assignment in zip(names, assignments, strict=True):
            speeds[ratio, name] = REPORTS / min(_split_seconds(df, assignment) for _ in range(5))
        lines.append(f"| {ratio} | " + " | ".join(f"{speeds[ratio, name] / 1e3:,.0f}" for name in names) + " |")
        print(lines[-1], flush=True)
    growth = ", ".join(f"{name} {speeds[10, name] / speeds[1000, name]:.2f}" for name in names)
    return [*lines, "", f"Cost of a row at w/s = 1000 over that at 10: {growth}."]


def scale_up(spark: SparkSession, folder: Path) -> list[str]:
    """Rows a second against workers, where the function is most of the work."""
    file = folder / "few.parquet"
    write_reports(file, 20_000)
    lines = [
        "w/s = 100, one window over all rows of 20,000 Linear Road reports (20 s), slide 0.1 s; a function that takes",
        f"{SLEEP * 1e6:g} us a row of a window, or of a pane, asleep, so that two cores can hold many workers. There",
        "are 6 batches of 50 windows, so that 6 workers are busy; panes have a second exchange. Rows/s:",
        "",
        "| workers | window | batch 10 | batch 50 | pane |",
        "|---|---|---|---|---|",
    ]
    df = spark.read.parquet(str(file)).cache()
    df.count()
    for workers in WORKERS:
        cells = []
        for chop, batch in (("window", None), ("batch", 10), ("batch", 50), ("pane", None)):
            windows = sk.windowed(df, "ts", "10 seconds", "100 milliseconds", workers=workers)
            if chop == "pane":
                result = windows.apply(_sleep_merge, "n long", pane=_sleep_pane, arrow=True)
            else:
                result = windows.apply(_sleep_window, "n long", chop=chop, batch=batch, arrow=True)
            cells.append(f"{20_000 / min(_seconds(result) for _ in range(2)):,.0f}")
        lines.append(f"| {workers} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def order(spark: SparkSession, folder: Path) -> list[str]:
    """What order costs the results of workers that overtake each other."""
    windows = ByWindow(100, 10, rows=True)
    work = Costs(1.8e-6, 0.0, 23e-6)
    done = run(windows, work, 16, rate=0.85 * run(windows, work, 16).throughput, tasks=RESULTS, jitter=0.5)
    numbers = np.asarray(done.windows)[np.argsort(done.done, kind="stable")]
    files = folder / "results"
    files.mkdir()
    for i, part in enumerate(np.array_split(numbers, TRIGGERS)):
        pq.write_table(pa.table({"window": part}), files / f"{i:03}.parquet")
        os.utime(files / f"{i:03}.parquet", (1_000_000 + i,) * 2)
    delay = int((np.maximum.accumulate(numbers) - numbers).max())
    lines = [
        f"Results of {RESULTS} windows in the order in which 16 simulated workers at 85 % load were done with them, at",
        f"most {delay} below the highest so far, in {TRIGGERS} micro-batches, delivered by `sk.ordered`.",
        "",
        "| max_disorder | out of place | micro-batches waited | at worst | seconds waited |",
        "|---|---|---|---|---|",
    ]
    for k in (0, 1, 2, 4, 8, 16):
        source = spark.readStream.schema("window long").option("maxFilesPerTrigger", 1).parquet(str(files))
        result = sk.ordered(source, "window", max_disorder=k, delay=delay, parts=1)
        got: list[int] = []

        def deliver(rows: pa.Table, _batch: int, got: list[int] = got) -> None:
            got.extend(rows["window"].to_pylist())

        checkpoint = str(folder / f"ordered-{k}")
        result.write(deliver, checkpoint).trigger(availableNow=True).start().awaitTermination()
        result.flush(deliver, checkpoint)
        waits = result.waits
        cells = f"{waits.mean_batches:.2f} | {waits.most_batches} | {waits.mean_seconds:.2f}"
        lines.append(f"| {k} | {disorder(np.array(got))} | {cells} |")
        print(lines[-1], flush=True)
    return lines


def write_stream(folder: Path, batches: int, rows: int = ROWS) -> None:
    """Write files of a minute each."""
    folder.mkdir()
    for i in range(batches):
        chance = np.random.default_rng(i)
        times = np.sort(_EPOCH + ((chance.random(rows) + i) * SECONDS * 1e6).astype(np.int64))
        keys = Zipf(SKEW, keys=KEYS, seed=i).take(rows)
        table = {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "key": keys, "value": chance.normal(size=rows)}
        path = folder / f"{i:03}.parquet"
        pq.write_table(pa.table(table), path, row_group_size=rows // 2)
        os.utime(path, (1_000_000 + i,) * 2)


def write_reports(path: Path, rows: int) -> None:
    """Linear Road reports, a thousand a second."""
    reports = LinearRoad(expressways=3, vehicles=30_000).take(rows)
    times = _EPOCH + reports.time.astype(np.int64) * 1_000_000 + np.arange(rows) % 1000 * 1000
    columns = {"ts": pa.array(np.sort(times), pa.timestamp("us", tz="UTC")), "speed": reports.speed.astype(np.float64)}
    pq.write_table(pa.table(columns), path, row_group_size=rows // 4)


def _windows(df: DataFrame) -> KeyedWindows:
    return sk.keyed(df, "key").window("ts", SIZE, SLIDE, watermark="1 second")


def _percentile(df: DataFrame) -> DataFrame:
    df = df.withWatermark("ts", "1 second") if df.isStreaming else df
    return df.groupBy(F.window("ts", SIZE, SLIDE), "key").agg(F.percentile("value", 0.5))


def _on_a_batch() -> dict[str, Callable[[DataFrame], DataFrame]]:
    def apply_in_pandas(df: DataFrame) -> DataFrame:
        rows = df.select(F.window("ts", SIZE, SLIDE).alias("w"), "key", "value")
        rows = rows.select(F.col("w.start").alias("start"), "key", "value")
        return rows.groupBy("start", "key").applyInPandas(spark_median, "start timestamp, key long, m double")

    return {
        "Spark's `groupBy(window, key).agg(percentile)`": _percentile,
        "Spark's `groupBy(window, key).applyInPandas`": apply_in_pandas,
        "`apply`, by batch": lambda df: _windows(df).apply(median, "m double", chop="batch"),
        "`apply`, by pane": lambda df: _windows(df).apply(median_of_panes, "m double", pane=sorted_values),
    }


def _stream_seconds(
    spark: SparkSession, files: Path, way: Callable[[DataFrame], DataFrame], batches: int, skip: int
) -> float:
    work = files.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "in").mkdir(parents=True)
    for path in sorted(files.iterdir())[:batches]:
        shutil.copy2(path, work / "in" / path.name)
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(work / "in"))
    writer = way(source).writeStream.format("noop").option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return float(np.mean(took[skip:])) / 1000


def _batch_seconds(spark: SparkSession, file: Path, way: Callable[[DataFrame], DataFrame]) -> float:
    df = spark.read.schema(SCHEMA).parquet(str(file))
    return min(_seconds(way(df)) for _ in range(2))


def _split_seconds(df: DataFrame, assignment: Assignment) -> float:
    kinds = (pa.int64(), pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="UTC"), pa.float64())
    rows = df.select(F.lit(0).cast("long").alias("key"), F.col("ts").alias("time"), "ts", "speed")
    return _seconds(sent(rows, Spread(assignment, kinds), "split"))


def _seconds(df: DataFrame) -> float:
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _sleep_window(key: tuple[()], window: Any, rows: pa.Table) -> tuple[int]:
    time.sleep(rows.num_rows * SLEEP)
    return (rows.num_rows,)


def _sleep_pane(key: tuple[()], pane: Any, rows: pa.Table) -> int:
    time.sleep(rows.num_rows * SLEEP)
    return int(rows.num_rows)


def _sleep_merge(key: tuple[()], window: Any, panes: list[int]) -> Iterator[tuple[int]]:
    yield (sum(panes),)
