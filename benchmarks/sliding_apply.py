"""`apply` at the paper's Figure 7: scale-up by window, batch and pane, the tuner, and Linear Road's statistics.

Functions wait as the paper's nodes did, times `SLOWER`: for every row of a window they update, and for every row that
their worker had not seen before they read.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from benchmarks.sliding_nodes import Debt, statistics
from experiments.sliding.measured import SLOWER
from experiments.sliding.model import ONE, PAPER, PAPER_MERGE
from skewless.api.windowed import KeyedWindows, WindowedStream
from skewless.chop import Costs
from skewless.control.tuning import Tuning
from skewless.spark.listen import _streams
from skewless.workload import Zipf
from skewless.workload.linear_road import LinearRoad

NODES, RATIO, SECONDS = (1, 2, 4), 100, 10.0
SLIDES = {"window": 1, "batch 50": 1, "pane": 10}
SCHEMA = "n long, least double, most double, mean double"
EPOCH = 1_700_000_037_000_000  # so that micro-batches do not begin with a batch of windows
READING = Costs(update=4 * PAPER.update, open_close=0.0, other=40 * PAPER.other)
"""For the tuner: a function to which reading a row costs ten times as much, beside an update, as to the paper's."""
READ_SLOWER = 3
SIZES, WORKERS, PER_SECOND, SPAN = (1, 2, 5, 10, 15, 25, 50, 100, 200, 1000), 4, 4, 400
MICRO_BATCHES, TUNED = 4, 14
KEYS = 8
"""Keys of the second stream that is tuned, by Zipf 1: the hottest has 37 % of the rows."""
ROAD_KEY, ROAD_ROWS, ROAD_RUNS = ("expressway", "direction", "segment"), (250_000, 1_000_000), 2
ROAD_CORES = 2
"""The functions of Linear Road work instead of waiting, so that Spark is to have as many slots as there are cores."""


class Update:
    """A function of a window that waits for each of its rows, and for each that its process has not read before."""

    def __init__(self, costs: Costs, slower: float = SLOWER) -> None:
        self.update, self.other = slower * costs.update, slower * costs.other
        self.read_to: dict[Any, Any] = {}
        self.debt = Debt()

    def __call__(self, key: tuple[Any, ...], window: Any, rows: pa.Table) -> tuple[Any, ...]:
        """Count, min, max and mean of the speeds."""
        read_to = self.read_to.get(key)
        again = read_to is not None and window.start <= read_to <= window.end
        share = (window.end - read_to) / (window.end - window.start) if again else 1.0
        self.read_to[key] = window.end
        self.debt.owe(rows.num_rows * (self.update + share * self.other))
        return statistics(rows["speed"].to_numpy())


DEBT = Debt()


def of_pane(key: tuple[Any, ...], pane: Any, rows: pa.Table) -> tuple[int, float, float, float]:
    """The statistics of a pane."""
    n, least, most, mean = statistics(rows["speed"].to_numpy())
    DEBT.owe(SLOWER * ONE * n)
    return n, least, most, mean * n


def of_window(key: tuple[Any, ...], window: Any, panes: list[tuple[int, float, float, float]]) -> tuple[Any, ...]:
    """The same of a window, from those of its panes."""
    DEBT.owe(SLOWER * PAPER_MERGE * len(panes))
    return merged(panes)


def merged(panes: list[tuple[int, float, float, float]]) -> tuple[Any, ...]:
    """Count, min, max and mean from those of panes."""
    n, least, most, total = zip(*panes, strict=True)
    return sum(n), min(least), max(most), sum(total) / sum(n)


def scale_apply(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Rows a second of `apply` as a stream, of windows of so many rows without a key."""
    found: dict[str, dict[str, dict[str, float]]] = {"window": {}, "batch 50": {}, "pane": {}}
    for nodes in NODES:
        spark.conf.set("spark.sql.shuffle.partitions", str(nodes))
        for way in found:
            row_cost = _row_cost(way, nodes)
            count = int(SECONDS * nodes / row_cost)
            files = folder / f"{way}-{nodes}"
            # A first file fills the windows and warms the processes; the second is measured.
            _write(files / "in", [RATIO * SLIDES[way] + 400, count])
            windows = sk.windowed(_read(spark, files / "in"), "ts", RATIO * SLIDES[way], SLIDES[way], workers=nodes)
            ways: dict[str, Callable[[], DataFrame]] = {
                "window": lambda windows=windows: windows.apply(Update(PAPER), SCHEMA, chop="window", arrow=True),
                "batch 50": lambda windows=windows: windows.apply(
                    Update(PAPER), SCHEMA, chop="batch", batch=50, arrow=True
                ),
                "pane": lambda windows=windows: windows.apply(of_window, SCHEMA, pane=of_pane, arrow=True),
            }
            seconds = _progress(ways[way](), files)[-1]
            found[way][str(nodes)] = {"rows": count, "seconds": seconds, "waited": count * row_cost / nodes}
            print(f"apply by {way} on {nodes}: {count / seconds:,.1f} rows/s in {seconds:.1f} s", flush=True)
    return found


def tuner(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Rows a second by batches of fixed sizes, and what the tuner makes of the same stream, without a key."""
    return _tune(spark, folder, 1)


def keyed_tuner(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The same of a stream with a few keys, one of which has most of the rows."""
    return _tune(spark, folder, KEYS)


def _tune(spark: SparkSession, folder: Path, keys: int) -> dict[str, Any]:
    spark.conf.set("spark.sql.shuffle.partitions", str(WORKERS))
    rows = SPAN * PER_SECOND
    fixed = {str(batch): _fixed(spark, folder, batch, keys) for batch in SIZES}
    files = folder / "tuned"
    _write(files / "in", [rows] * TUNED, PER_SECOND, keys)
    stream = _windows(spark, files, keys)
    tuned = stream.apply(
        Update(READING, READ_SLOWER), SCHEMA, arrow=True, tune="2 seconds", folder=str(files / "sizes")
    )
    loop = next(each for each in reversed(_streams.values()) if isinstance(each, Tuning))
    sizes: list[int] = []
    took = _progress(tuned, files, lambda: sizes.append(loop.sizes.batch))
    model = loop.tuner.model
    assert model is not None  # it has chosen
    print(f"tuned, {keys} keys: batches of {sizes}, {rows / np.mean(took[-4:]):,.1f} rows/s at the end", flush=True)
    starts = np.array(model.starts) / sum(model.starts)
    print(f"{model.together:,.0f} windows end together; keys start at workers by {starts.round(2)}", flush=True)
    true = {"update": READ_SLOWER * READING.update, "other": READ_SLOWER * READING.other}
    for name, seconds in true.items():
        print(f"{name}: {1e6 * getattr(model.costs, name):,.1f} us measured, {1e6 * seconds:,.1f} us true", flush=True)
    return {
        "fixed": fixed,
        "sizes": sizes,
        "rows/s": [rows / seconds for seconds in took],
        "costs": {name: getattr(model.costs, name) for name in ("update", "open_close", "other")},
        "rate": model.rate,
        "size": model.size,
        "slide": model.slide,
        "workers": WORKERS,
        "headroom": loop.tuner.headroom,
        "latency": loop.tuner.latency,
        "period": loop.tuner.period,
        "together": model.together,
        "starts": starts.tolist(),
        "true": true,
    }


def _fixed(spark: SparkSession, folder: Path, batch: int, keys: int) -> float:
    """Rows a second by batches of one size, in micro-batches of so many seconds."""
    files, rows = folder / f"fixed-{batch}", SPAN * PER_SECOND
    _write(files / "in", [rows] * MICRO_BATCHES, PER_SECOND, keys)
    function = Update(READING, READ_SLOWER)
    took = _progress(_windows(spark, files, keys).apply(function, SCHEMA, chop="batch", batch=batch, arrow=True), files)
    # The first micro-batch closes no windows, and some of those that the second one closes begin before the stream.
    rate = rows / float(np.mean(took[2:]))
    print(f"batches of {batch}, {keys} keys: {rate:,.1f} rows/s", flush=True)
    return rate


def _windows(spark: SparkSession, files: Path, keys: int) -> WindowedStream | KeyedWindows:
    """Windows of 100 seconds, each second, of all rows or of each key."""
    spans, stream = ("ts", "100 seconds", "1 second", "0 seconds"), _read(spark, files / "in")
    if keys == 1:
        return sk.windowed(stream, *spans, workers=WORKERS)
    return sk.keyed(stream, "way", workers=WORKERS).window(*spans)


def road(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Seconds of Linear Road's statistics of every segment and direction, by every way and two numbers of rows.

    The slope between the two numbers is what a row costs; the rest of the seconds is what any job costs.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(ROAD_CORES))
    inputs = {rows: _road(spark, folder / f"road-{rows}", rows) for rows in ROAD_ROWS}
    ways = {rows: _road_ways(df) for rows, df in inputs.items()}
    found: dict[str, dict[str, float]] = {}
    own: dict[int, pa.Table] = {}
    for name in ways[ROAD_ROWS[0]]:
        for rows in ROAD_ROWS:  # the JVM and the processes get warm by both before either is measured
            given = _sorted(ways[rows][name])
            assert given.equals(own.setdefault(rows, given)), f"{name} gave other rows than Spark's own"
        took = dict.fromkeys(ROAD_ROWS, np.inf)
        for _ in range(ROAD_RUNS):
            for rows in ROAD_ROWS:
                start = time.perf_counter()
                ways[rows][name].write.format("noop").mode("overwrite").save()
                took[rows] = min(took[rows], time.perf_counter() - start)
        found[name] = {str(rows): seconds for rows, seconds in took.items()}
        said = ", ".join(f"{seconds:.2f} s for {rows:,} rows" for rows, seconds in took.items())
        print(f"{name}: {said}; {given.num_rows:,} windows, the same", flush=True)
    return found


def _road(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """So many reports in memory, a stretch of time for each core."""
    folder.mkdir()
    taken = LinearRoad(expressways=3, vehicles=30_000).take(rows)
    table = pa.table(
        {
            "ts": pa.array(EPOCH + taken.time * 1_000_000, pa.timestamp("us", tz="UTC")),
            **{name: getattr(taken, name) for name in ROAD_KEY},
            "speed": taken.speed.astype(float),
        }
    )
    pq.write_table(table, folder / "road.parquet")
    df = spark.read.parquet(str(folder)).repartitionByRange(ROAD_CORES, "ts").cache()
    assert (df.count(), df.rdd.getNumPartitions()) == (rows, ROAD_CORES)
    return df


def _road_ways(df: DataFrame) -> dict[str, DataFrame]:
    """The same statistics by Spark's own windows and by every way here."""
    span, slide = f"{RATIO} seconds", "1 second"
    speed = [F.count("speed"), F.min("speed"), F.max("speed"), F.avg("speed")]
    named = [each.alias(name) for each, name in zip(speed, ("n", "least", "most", "mean"), strict=True)]
    windows = sk.keyed(df, *ROAD_KEY).window("ts", span, slide)
    return {
        "Spark's groupBy(window)": df.groupBy(F.window("ts", span, slide), *ROAD_KEY).agg(*named),
        "apply by window": windows.apply(_plain, SCHEMA, chop="window", arrow=True),
        "apply by batch": windows.apply(_plain, SCHEMA, chop="batch", arrow=True),
        "apply by pane": windows.apply(_plain_window, SCHEMA, pane=_plain_pane, arrow=True),
        "agg": windows.agg(n=sk.count(), least=sk.min("speed"), most=sk.max("speed"), mean=sk.mean("speed")),
    }


def _sorted(result: DataFrame) -> pa.Table:
    """All windows in order, with means to six digits, as sums in another order differ in the last ones."""
    start = F.col("window.start").cast("double").alias("start")
    rows = result.select(start, *ROAD_KEY, F.col("n").cast("long"), "least", "most", F.round("mean", 6).alias("mean"))
    order = [(name, "ascending") for name in ("start", *ROAD_KEY)]
    table = rows.toArrow().sort_by(order)
    return pa.table(dict(zip(table.column_names, table.columns, strict=True)))  # whatever may be null by the schema


def _plain(key: tuple[Any, ...], window: Any, rows: pa.Table) -> tuple[Any, ...]:
    return statistics(rows["speed"].to_numpy())


def _plain_pane(key: tuple[Any, ...], pane: Any, rows: pa.Table) -> tuple[int, float, float, float]:
    least, most = pc.min_max(rows["speed"]).as_py().values()
    return rows.num_rows, least, most, pc.sum(rows["speed"]).as_py()


def _plain_window(key: tuple[Any, ...], window: Any, panes: list[tuple[int, float, float, float]]) -> tuple[Any, ...]:
    return merged(panes)


def _row_cost(way: str, nodes: int) -> float:
    """Seconds that all workers together are to wait for a row, which each of them reads once at most."""
    if way == "pane":
        return SLOWER * (ONE + RATIO * PAPER_MERGE / SLIDES[way])
    copies = min(nodes, RATIO if way == "window" else (RATIO + 49) / 50) if nodes > 1 else 1
    return SLOWER * (copies * PAPER.other + RATIO * PAPER.update)


def _write(folder: Path, counts: list[int], per_second: int = 1000, keys: int = 1) -> None:
    """A file of Linear Road reports for each micro-batch, so many a second, of so many ways by Zipf 1."""
    folder.mkdir(parents=True)
    speeds = LinearRoad(expressways=3, vehicles=30_000).take(sum(counts)).speed.astype(np.float64)
    ways = Zipf(1.0, keys, seed=1).take(sum(counts))
    times = EPOCH + np.arange(sum(counts)) * (1_000_000 // per_second)
    edges = np.cumsum([0, *counts])
    for i, (start, stop) in enumerate(pairwise(edges)):
        moments = pa.array(times[start:stop], pa.timestamp("us", tz="UTC"))
        columns = {"ts": moments, "speed": speeds[start:stop], "way": ways[start:stop]}
        path = folder / f"{i:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_000_000 + i,) * 2)


def _read(spark: SparkSession, folder: Path) -> DataFrame:
    source = spark.readStream.schema("ts timestamp, speed double, way long").option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder))


def _progress(result: DataFrame, folder: Path, after: Callable[[], object] | None = None) -> list[float]:
    """Seconds of every micro-batch with rows."""

    def each(df: DataFrame, _batch: int) -> None:
        df.write.format("noop").mode("overwrite").save()
        if after is not None:
            after()

    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    writer = result.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    return [batch["durationMs"]["triggerExecution"] / 1000 for batch in progress]
