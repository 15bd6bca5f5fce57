"""What idle workers cost: a task without rows, and a micro-batch with a range of workers against one with a number.

`make bench-elastic` runs this with the rest; `python -m benchmarks.idle_workers with` alone prints one way of it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import skewless as sk
from skewless.elastic import Range
from skewless.spark.stage import settle

IDLE = {
    "with": "a Python function, as in `sk.session` and in every function of ours",
    "without": "a Python function over TCP, with nothing left out of the garbage collection",
    "alone": "a Python function in `sk.session` that imports nothing of ours, and leaves out what is imported",
    "bare": "the same in a session that has none of our settings but the sockets",
}
"""What a task without rows runs; the last two tell what of the first is due to our imports and to our settings."""


def measured_idle() -> list[dict[str, float]]:
    """Milliseconds of tasks that have nothing to do, in each of the ways, each in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.idle_workers"]
    ways = ([*command, each] for each in IDLE)
    return [json.loads(subprocess.check_output(way, text=True).splitlines()[-1]) for way in ways]


def idle(settings: str) -> dict[str, float]:
    """Milliseconds of a task without rows, in Python and in the JVM alone."""
    with_ours, sockets = settings == "with", str(settings != "without").lower()
    if settings == "bare":
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.python.unix.domain.socket.enabled", sockets).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
    else:
        spark = sk.session(2, spark_python_unix_domain_socket_enabled=sockets)

    def alone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        if gc.get_freeze_count() == 0:
            gc.collect()
            gc.freeze()
        yield from batches

    def function(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if with_ours:
            settle()
        yield from batches

    def seconds(tasks: int, *, python: bool) -> float:
        df = spark.range(0, 2000, 1, 2).selectExpr("id", "int(id % 4) as w").repartitionById(tasks, "w")
        if python:
            chosen = function if settings in ("with", "without") else alone
            df = df.mapInArrow(chosen, "id long, w int")
        began = time.perf_counter()
        df.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    out = {}
    for python in (False, True):
        best = {tasks: min(seconds(tasks, python=python) for _ in range(6)) for tasks in (4, 64)}
        out["python" if python else "jvm"] = (best[64] - best[4]) / 60 * 1000
    if with_ours:
        out |= _following(spark)
    spark.stop()
    return out


def _following(spark: SparkSession) -> dict[str, float]:
    """Milliseconds of a small micro-batch with a number of workers, and with a range that has to stay there."""
    folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
    spark.range(0, 200_000, 1, 20).selectExpr("id % 1000 as key", "id").write.parquet(str(folder / "in"))
    source = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    ways: dict[str, int | Range] = {"fixed": 4, "range": Range(4, 4, "6 seconds")}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(3):  # the first warms up
        for name, workers in ways.items():
            rows = sk.keyed(source, "key", workers=workers).repartition()
            writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / f"{name}-{turn}"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            if turn:
                times[name] += [each["durationMs"]["triggerExecution"] for each in query.recentProgress[1:]]
    shutil.rmtree(folder)
    return {name: float(np.median(each)) for name, each in times.items()}


if __name__ == "__main__":
    print(json.dumps(idle(settings=sys.argv[1])))
