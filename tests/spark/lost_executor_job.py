"""The job of `test_lost_executor`: rows are routed, and an executor is killed when some of them have been taken.

Two executors route rows that come from a shuffle, so that a task that runs again finds them in another order. One task
behind the routing waits until the others are done, and kills its executor: what that one had routed is lost, and is
routed again. `lost_executor_job.py FOLDER CHECKSUMS` writes what arrived to FOLDER: rows of a stream by `bounded` and
of a batch by `dalton`, and sums over rows that `bounded` packs for an aggregate. `lost_executor_job.py FOLDER CHECKSUMS
together` does so for a stream whose tasks learn together, and writes what their loop knows then.
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
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.spark.session import CHECKSUM, RETRY

ROWS, TASKS = 60_000, 4
LAST = TASKS - 1  # the partition whose task kills
SKEWED = "bigint(pow(1 - rand(7), -2)) % 1000 as page", "id"


def kill_once(done: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows as they are; the task of the last partition kills its executor if nobody did."""
    rows = list(batches)
    kill_here_once(done)
    yield from rows


def kill_here_once(done: str) -> None:
    """Kill the executor of the last partition, when the others are done; if nobody did."""
    context = TaskContext.get()
    assert context is not None
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


class Total(sk.Aggregate):
    """Adds up a column, and kills an executor."""

    def __init__(self, done: str, column: str) -> None:
        super().__init__(column)
        self.done = done

    def partial(self, table: pa.Table) -> pa.Table:
        """Sums of rows."""
        if table.num_rows:
            kill_here_once(self.done)
        return self.merge(table.rename_columns(["group", "total"]))

    def merge(self, table: pa.Table) -> pa.Table:
        """Sums of sums."""
        return table.group_by("group").aggregate([("total", "sum")]).rename_columns(["group", "total"])

    def finish(self, table: pa.Table) -> pa.Table:
        """The sum."""
        return table


def arriving(df: DataFrame, split: str | sk.split.Splitter, done: Path) -> DataFrame:
    """The rows after they were routed and an executor was lost."""
    done.mkdir(parents=True)
    keyed = sk.keyed(df.repartition(TASKS), "page", workers=TASKS, split=split)
    routed = keyed.repartition(folder=str(done.parent / "folder"))
    return routed.mapInArrow(partial(kill_once, str(done)), routed.schema).repartition(1)


def stream_through(stream: DataFrame, split: str | sk.split.Splitter, folder: Path, name: str) -> StreamingQuery:
    """A query over the stream that has run to its end."""
    writer = arriving(stream, split, folder / f"{name}-done").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).trigger(availableNow=True)
    query = writer.start(str(folder / name))
    query.awaitTermination()
    return query


def main() -> None:
    """Run both queries."""
    folder, checks = Path(sys.argv[1]), sys.argv[2]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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
    stream = spark.readStream.schema(rows.schema).parquet(str(folder / "in"))
    if sys.argv[3:] == ["together"]:
        query = stream_through(stream, sk.split.CooperativeDalton(slide=1000), folder, "together")
        sk.watch(query).wait(1)
        (folder / "explained").write_text(sk.watch(query).explain())
    else:
        arriving(rows, "dalton", folder / "dalton-done").write.parquet(str(folder / "dalton"))
        (folder / "agg-done").mkdir()
        keyed = sk.keyed(rows.repartition(TASKS), "page", workers=TASKS, split="bounded")
        keyed.agg(total=Total(str(folder / "agg-done"), "id")).write.parquet(str(folder / "agg"))
        stream_through(stream, "bounded", folder, "bounded")
    print("finished", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
