"""The job of `test_lost_executor`: rows are routed, and an executor is killed when some of them have been taken.

Two executors route rows that come from a shuffle, so that a task that runs again finds them in another order. One task
behind the routing waits until the others are done, and kills its executor: what that one had routed is lost, and is
routed again. `lost_executor_job.py FOLDER CHECKSUMS` writes what arrived to FOLDER, of a stream by `bounded` and of a
batch by `dalton`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.spark.session import CHECKSUM, RETRY

ROWS, TASKS = 60_000, 4
LAST = TASKS - 1  # the partition whose task kills
SKEWED = "bigint(pow(1 - rand(7), -2)) % 1000 as page", "id"


def kill_once(done: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as they are; the task of the last partition kills its executor if nobody did."""
    context = TaskContext.get()
    assert context is not None
    rows = list(batches)
    killed, here = Path(done, "killed"), Path(done, str(context.partitionId()))
    here.touch()
    if context.partitionId() == LAST and not killed.exists():
        while len(list(Path(done).iterdir())) < TASKS:
            time.sleep(0.05)
        time.sleep(0.5)  # until the others have told that they are done
        killed.touch()
        daemon = Path("/proc", str(os.getppid()), "stat").read_text()
        os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        time.sleep(600)
    yield from rows


def arriving(df: DataFrame, split: str, done: Path) -> DataFrame:
    """The rows after they were routed and an executor was lost."""
    done.mkdir(parents=True)
    routed = sk.keyed(df.repartition(TASKS), "page", workers=TASKS, split=split).repartition()
    return routed.mapInArrow(partial(kill_once, str(done)), routed.schema).repartition(1)


def main() -> None:
    """Run both queries."""
    folder, checks = Path(sys.argv[1]), sys.argv[2]
    builder = sk.configure(SparkSession.Builder().master("local-cluster[2,1,1024]")).config("spark.ui.enabled", "false")
    settings = {
        CHECKSUM: checks,
        RETRY: checks,
        "spark.driver.memory": "1g",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(TASKS),
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.range(0, ROWS, 1, TASKS).selectExpr(*SKEWED).write.parquet(str(folder / "in"))
    rows = spark.read.parquet(str(folder / "in"))
    arriving(rows, "dalton", folder / "dalton-done").write.parquet(str(folder / "dalton"))
    stream = spark.readStream.schema(rows.schema).parquet(str(folder / "in"))
    writer = arriving(stream, "bounded", folder / "bounded-done").writeStream.format("parquet")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query.start(str(folder / "bounded")).awaitTermination()
    print("finished", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
