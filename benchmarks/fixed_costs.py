"""What a micro-batch and a task of Spark cost besides the work on their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from benchmarks.slopes import Slope, fitted

TASKS = (1, 4, 8, 16)
BATCHES, FIRST = 24, 8  # micro-batches of a query, and those of them that warm up
GROUPS = 4  # of micro-batches, for the spread


def fixed_costs(spark: SparkSession, folder: Path) -> dict[str, Slope]:
    """Seconds of a micro-batch and of a task, without state and with it."""
    plain = [_times(_python(_source(spark, tasks)), folder / f"plain-{tasks}") for tasks in TASKS]
    stateful = []
    for tasks in TASKS:
        spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
        stateful.append(_times(_windows(_source(spark, 1)), folder / f"state-{tasks}"))
    found: dict[str, Slope] = {}
    for state, runs in (("", plain), (" with state", stateful)):
        times = np.array(runs).T
        (task,) = fitted([(float(tasks),) for tasks in TASKS], times)
        rest = (times - task.seconds * np.array(TASKS)).mean(axis=1)
        found[f"task{state}"] = task
        found[f"micro-batch{state}"] = Slope(float(np.median(rest)), float(rest.min()), float(rest.max()))
    return found


def _source(spark: SparkSession, tasks: int) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 16).option("numPartitions", tasks)
    return source.load()


def _python(df: DataFrame) -> DataFrame:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    return df.select("value").mapInArrow(same, "value long")


def _windows(df: DataFrame) -> DataFrame:
    rows = df.select("timestamp", F.col("value").alias("key"))
    return (
        sk.keyed(rows, "key", split="local").window("timestamp", "60 seconds", watermark="1 second").agg(n=sk.count())
    )


def _times(df: DataFrame, checkpoint: Path) -> list[float]:
    """Seconds of a micro-batch, as Spark reports them: the median of each group of micro-batches."""
    writer = df.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        while len(done := query.recentProgress) < BATCHES and query.isActive:
            query.awaitTermination(0.2)
    finally:
        query.stop()
    groups = np.array_split(np.arange(FIRST, BATCHES), GROUPS)
    took = [batch["durationMs"]["triggerExecution"] / 1000 for batch in done]
    return [float(np.median([took[i] for i in group])) for group in groups]
