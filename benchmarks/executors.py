"""Whether dynamic allocation gives back executors on which only idle workers' tasks run.

Four executors with one slot each, which Spark may give back after 15 seconds without a task, and a micro-batch every
second. With a range of 1 to 4 workers and next to no rows one worker is active, and all four have a task. Executors are
counted over Spark's REST interface on loopback.

Shuffle tracking is on, as a cluster without an external shuffle service needs it, and forgets a shuffle as soon, so
that only tasks can hold an executor.

`make bench-elastic` runs this with the rest; `python -m benchmarks.executors` alone prints what it found.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

import skewless as sk
from skewless.elastic import Range

EXECUTORS, TIMEOUT, LASTS = 4, 15, 45
"""Executors, seconds without a task after which one is given back, and seconds for which executors are watched."""


def main() -> None:
    """Print how many executors are left with a query whose workers are idle, and without any query."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = f"local-cluster[{EXECUTORS},1,1024]"
    builder = sk.configure(SparkSession.Builder().master(master))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.shuffle.partitions": str(EXECUTORS),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": str(EXECUTORS),
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.executorIdleTimeout": f"{TIMEOUT}s",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": f"{TIMEOUT}s",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
    try:
        print(json.dumps({"query": _with_query(spark, folder), "none": _watched(spark)}))
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _with_query(spark: SparkSession, folder: Path) -> dict[str, int]:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).option("numPartitions", 1).load()
    workers = Range(1, EXECUTORS, "1 second")
    rows = sk.keyed(source, "value", workers=workers).repartition(folder=str(folder / "policies"))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime=workers.interval).start()
    watching = sk.watch(query)
    if not watching.wait(1, timeout=120):
        sys.exit(f"no micro-batch in 120 s: {query.exception()}")
    seen = _watched(spark)
    active, batches = watching.workers or 0, int((query.lastProgress or {})["batchId"])
    query.stop()
    return {**seen, "active": active, "batches": batches}


def _watched(spark: SparkSession) -> dict[str, int]:
    """The executors at the beginning and at the end of some time, and how many tasks each of them ran meanwhile."""
    before = _tasks(spark)
    time.sleep(LASTS)
    after = _tasks(spark)
    ran = sorted(after[each] - before.get(each, 0) for each in after)
    return {"first": len(before), "end": len(after), "least": ran[0], "most": ran[-1]}


def _tasks(spark: SparkSession) -> dict[str, int]:
    """The tasks that each executor has completed."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/executors"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return {each["id"]: each["completedTasks"] for each in json.load(answer) if each["id"] != "driver"}


if __name__ == "__main__":
    main()
