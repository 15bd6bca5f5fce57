"""Sliding windows on Spark, as the paper measures them: the split stage, scale-up, the batch size, the merge.

Claims tested (Balkesen and Tatbul, Figures 6 and 7): the split by pane costs the same however much windows overlap, by
window in proportion; by pane the nodes scale almost linearly, by window two do a sixth of one; a batch size that is
chosen from measured costs is near the best; merging is cheap. `sliding_nodes` has the paper's split and nodes as they
are printed; beside them are `apply`'s own ways, which send a row once to each worker that needs it.

Work is a wait, the paper's own costs times `sliding_nodes.SLOWER`, because two cores cannot hold four busy nodes.
Processor time of the split is what its task took in Python plus what Spark says its thread took in the JVM.

`make bench-sliding` measures all parts and writes them to experiments/sliding/spark.json, which the figures sliding-6
and sliding-7 read; `python -m benchmarks.sliding scale` measures one part anew and keeps the others.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from benchmarks.sliding_apply import ROAD_CORES, keyed_tuner, road, scale_apply, tuner
from benchmarks.sliding_nodes import COPIES, Split, partitioner_of, query, row_cost
from experiments.figure import Measured
from experiments.sliding.measured import LEVEL
from experiments.sliding.partition import Partitioner
from skewless.chop import Merger, Result
from skewless.spark.staging import owners_of
from skewless.workload.linear_road import LinearRoad

DATA = Path("experiments/sliding/spark.json")
CORES = 4
RATIOS, BATCHES, SPLIT_NODES = (1, 10, 30, 100, 300, 1000), (2, 5, 10, 33, 50), 16
FEW, MANY = 150_000, 600_000  # copies of the two runs whose difference is measured
NODES, RATIO, SECONDS = (1, 2, 3, 4), 100, 8.0
WAYS = ("window", "batch 2", "batch 10", "batch 33", "batch 50", "pane")
PANE_SLIDE = 10  # rows: panes of one row would be no panes
MERGED, STREAMS, TOGETHER, ROUNDS = 100_000, (1, 2, 4, 8, 16), (1, 10, 100, 1000), 20
LEAD = 3
"""A node is ahead of the others by up to two turns, which are as many windows as there are nodes."""
MERGES = {"in any order": (MERGED, LEAD), "in order": (0, LEAD), LEVEL: (MERGED, 1)}
"""The k of the merge and the lead of nodes. Without a lead the results of any number of nodes are the same list."""


def split(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Seconds of a processor for a row in the split stage, by way and w/s: the slope between two numbers of rows."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    spark.conf.set("spark.sql.shuffle.partitions", str(SPLIT_NODES))
    rows, clock = reports(spark, folder / "split.parquet", MANY), folder / "clock"
    for ratio in (10, 10, 10, 1, 1, 1, 1, 1):  # the JVM and the processes get warm, also for what is measured first
        cut = Split(partitioner_of("window", ratio), SPLIT_NODES, owners_of(rows), str(clock))
        _noop(rows.coalesce(1).mapInArrow(cut, COPIES).repartition(SPLIT_NODES, "owner"))
    for way in ("window", *(f"batch {batch}" for batch in BATCHES), "pane"):
        found[way] = {}
        for ratio in RATIOS:
            partitioner = partitioner_of(way, ratio)
            counts = [int(copies / partitioner.replication) for copies in (FEW, MANY)]
            times = np.full((2, 2), np.inf)  # of fewer and of more rows, in Python and in the JVM
            for _ in range(2):
                for i, count in enumerate(counts):
                    cut = Split(partitioner, SPLIT_NODES, owners_of(rows), str(clock))
                    copies = rows.where(F.col("number") < count).coalesce(1).mapInArrow(cut, COPIES)
                    _, jvm = _measured(spark, partial(_noop, copies.repartition(SPLIT_NODES, "owner")))
                    times[i] = np.minimum(times[i], (float(clock.read_text()), jvm))
            python, jvm = ((times[1] - times[0]) / (counts[1] - counts[0])).tolist()
            found[way][str(ratio)] = {"python": python, "jvm": jvm}
            print(f"split {way}, w/s = {ratio}: us a row {1e6 * python:.2f} Python, {1e6 * jvm:.2f} JVM", flush=True)
    return found


def scale(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Rows a second of the paper's cluster against nodes, and the share of a core that its split stage takes."""
    found: dict[str, dict[str, dict[str, float]]] = {way: {} for way in WAYS}
    for nodes in NODES:
        spark.conf.set("spark.sql.shuffle.partitions", str(nodes))
        for way in WAYS:
            if nodes == 1 and way.startswith("batch"):
                continue  # one node needs no batches
            partitioner = partitioner_of(way, RATIO, PANE_SLIDE if way == "pane" else 1)
            count = int(SECONDS * nodes / row_cost(partitioner, nodes))
            rows = reports(spark, folder / f"{way}-{nodes}.parquet", count)
            query(rows.limit(8), partitioner, nodes, folder / "clock").collect()  # the processes get warm
            result = query(rows, partitioner, nodes, folder / "clock")
            start = time.perf_counter()
            windows, jvm = _measured(spark, result.collect)
            seconds, python = time.perf_counter() - start, float((folder / "clock").read_text())
            if nodes <= 2:
                _check(rows, partitioner, windows)
            waited = count * row_cost(partitioner, nodes) / nodes
            found[way][str(nodes)] = {"rows": count, "seconds": seconds, "waited": waited, "split": python + jvm}
            print(
                f"{way} on {nodes}: {count / seconds:,.1f} rows/s, waiting {waited / seconds:.0%} of {seconds:.1f} s, "
                f"split {(python + jvm) / seconds:.1%} of a core",
                flush=True,
            )
    return found


def merge() -> dict[str, Any]:
    """Seconds of a processor for a result in the merge on the driver, by ways and nodes, round by round.

    Every round has all of them, so that what else the machine does is as bad for one as for another.
    """
    found: dict[str, dict[str, list[float]]] = {name: {str(streams): [] for streams in STREAMS} for name in MERGES}
    for _ in range(ROUNDS):
        for streams in STREAMS:
            for name, (k, lead) in MERGES.items():
                found[name][str(streams)].append(_merge_cost(streams, k, TOGETHER[-1], lead))
    for name, each in found.items():
        print(f"merge {name}:", {streams: _microseconds(costs) for streams, costs in each.items()}, flush=True)
    return found


def together() -> dict[str, Any]:
    """The same in any order, against how many results are handed in together: what the paper says makes it cheaper."""
    found: dict[str, list[float]] = {str(many): [] for many in TOGETHER}
    for _ in range(ROUNDS):
        for many in TOGETHER:
            found[str(many)].append(_merge_cost(STREAMS[-1], MERGED, many, LEAD))
    print("merge, handed in together:", {many: _microseconds(costs) for many, costs in found.items()}, flush=True)
    return found


def _merge_cost(streams: int, k: int, many: int, lead: int) -> float:
    """Seconds of a processor for a result; nodes finish windows in order, each ahead by less than so many turns."""
    ahead = np.random.default_rng(streams).integers(0, lead, MERGED) * streams
    order = np.argsort(np.arange(MERGED) - ahead, kind="stable")
    merger, given = Merger(k, low=0), 0
    parts = [[Result(int(i)) for i in order[at : at + many]] for at in range(0, MERGED, many)]
    start = time.process_time()
    for part in parts:
        given += len(list(merger.add(part, now=0.0)))
    took = (time.process_time() - start) / MERGED
    assert given == MERGED
    return took


def _microseconds(seconds: list[float]) -> str:
    mean, error = Measured.of(seconds)
    return f"{1e6 * mean:.2f} ± {1e6 * error:.2f} us"


PARTS: dict[str, Callable[[SparkSession, Path], dict[str, Any]]] = {
    "split": split,
    "scale": scale,
    "apply": scale_apply,
    "tuner": tuner,
    "keyed tuner": keyed_tuner,
    "road": road,
}
ON_DRIVER: dict[str, Callable[[], dict[str, Any]]] = {"merge": merge, "together": together}
"""Parts that need no Spark."""


def reports(spark: SparkSession, path: Path, rows: int) -> DataFrame:
    """Linear Road reports: a number, which is the time, and the speed."""
    taken = LinearRoad(expressways=3, vehicles=30_000).take(rows)
    pq.write_table(pa.table({"number": np.arange(rows), "speed": taken.speed.astype(np.float64)}), path)
    return spark.read.parquet(str(path))


def _check(rows: DataFrame, partitioner: Partitioner, found: list[Any]) -> None:
    """The windows are those of Spark's own `window()`, taking a number for a second."""
    windows = partitioner.windows
    seconds = F.window(F.timestamp_seconds("number"), f"{windows.size} seconds", f"{windows.slide} seconds")
    number = (F.unix_timestamp("window.start") / windows.slide).cast("long")
    speed = (F.count("speed"), F.min("speed"), F.max("speed"), F.avg("speed"))
    own = rows.groupBy(seconds.alias("window")).agg(*speed).withColumn("window", number).collect()
    one, other = (
        {row[0]: tuple(round(value, 6) for value in row[1:]) for row in each} for each in (sorted(found), sorted(own))
    )
    if len(found) != len(one) or one != other:
        raise AssertionError(f"{partitioner} gave {len(found)} windows that are not the {len(other)} of Spark")


def _measured(spark: SparkSession, run: Callable[[], Any]) -> tuple[Any, float]:
    """What a job gave, and the seconds of a processor that the JVM's thread of its first stage took."""
    context, group = spark.sparkContext, f"sliding-{time.monotonic_ns()}"
    context.setJobGroup(group, "measured")
    given = run()
    scala = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    first = context.statusTracker().getJobInfo(min(context.statusTracker().getJobIdsForGroup(group)))
    assert first is not None
    return given, float(scala.statusStore().lastStageAttempt(min(first.stageIds)).executorCpuTime()) / 1e9


def _noop(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def main() -> None:
    """Measure all parts, or those that are named, each on Spark in a session of its own."""
    parts = [*PARTS, *ON_DRIVER]
    wanted = sys.argv[1:] or parts
    unknown = [part for part in wanted if part not in parts]
    if unknown:
        sys.exit(f"no part {unknown[0]!r}; there are {', '.join(parts)}")
    for part in wanted:
        found = ON_DRIVER[part]() if part in ON_DRIVER else _on_spark(part)
        data = json.loads(DATA.read_text()) if DATA.exists() else {}
        kept = {name: each for name, each in data.items() if name in parts}
        DATA.write_text(json.dumps({**kept, part: found}, indent=1) + "\n")
        print(f"{part} written to {DATA}", flush=True)


def _on_spark(part: str) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="skewless-sliding-"))
    spark = sk.session(ROAD_CORES if part == "road" else CORES, memory="2g", spark_sql_session_timeZone="UTC")
    try:
        return PARTS[part](spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
