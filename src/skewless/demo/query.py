"""One streaming query over the clicks, told batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from skewless.aggregate import count
from skewless.aggregate import sum as total
from skewless.api.keyed import keyed
from skewless.api.watch import Watch, watch
from skewless.control.routing import Routing
from skewless.demo.clicks import Clicks, hash_of
from skewless.demo.measured import Batch, HotPage, Run
from skewless.spark.listen import Reports, Running

SIZE, SLIDE, WATERMARK = "120 seconds", "1 second", "5 seconds"
WORKERS = 4
LEARNING = 30.0  # seconds at most; it takes a hundredth of one


def run_query(spark: SparkSession, clicks: Clicks, folder: Path, split: str, show: Callable[[Run], None]) -> Run:
    """Clicks and takings of each page in sliding windows, to the end of the stream.

    Parameters
    ----------
    spark, clicks, folder
        As for `compare`. The stream is in `clicks` of the folder; the result goes to a folder of the split's name.
    split
        How the pages are split.
    show
        Called with the run so far, after each micro-batch that had rows.
    """
    reader = spark.readStream.schema("page string, user string, ts timestamp, price long")
    rows = reader.option("maxFilesPerTrigger", 1).parquet(str(folder / "clicks"))
    stream = keyed(rows, "page", workers=None if split == "spark" else WORKERS, split=split)
    windows = stream.window("ts", SIZE, SLIDE, WATERMARK).agg(clicks=count(), spent=total("price"))
    run = Run(split)
    with Reports(spark, partial(_batch, clicks)) as reports:
        query = _start(windows, folder, split)
        try:
            for batch in reports.of(str(query.runId)):
                run = replace(run, batches=(*run.batches, batch))
                if batch.rows:
                    show(run)
        finally:
            query.stop()
    if (failure := query.exception()) is not None:
        raise failure
    return run


def _start(windows: DataFrame, folder: Path, split: str) -> StreamingQuery:
    watching: Future[Watch] = Future()

    def save(df: DataFrame, batch: int) -> None:
        # What a batch taught is in force two batches later also where batches take less time than learning.
        watching.result().wait(batch, LEARNING)
        df.write.parquet(str(folder / split / f"{batch:03}"))

    times = [F.unix_micros(f"window.{end}").alias(end) for end in ("start", "end")]
    writer = windows.select(*times, "page", "clicks", "spent").writeStream.foreachBatch(save)
    writer = writer.option("checkpointLocation", str(folder / f"{split}-checkpoint"))
    query = writer.trigger(availableNow=True).start()
    watching.set_result(watch(query))
    return query


def _batch(clicks: Clicks, run: Running) -> Batch:
    """What Spark tells of a micro-batch, and what skewless knows at this moment."""
    assert run.progress is not None  # it was just reported
    done, loop = run.progress, run.loops[-1] if run.loops else None
    number, seconds = done.batchId, done.durationMs["triggerExecution"] / 1000
    batch = Batch(number, done.numInputRows, seconds, changed=number == clicks.change)
    if not (batch.rows and isinstance(loop, Routing) and loop.loads):
        return batch
    loads, policy = loop.loads, loop.policy
    lanes = {page: policy.lanes_of(hash_of(page)).tolist() for page in clicks.hottest(number)}
    hot = tuple(HotPage(page, len(set(workers))) for page, workers in lanes.items())
    return replace(batch, loads=tuple(loads.get(worker, 0) for worker in range(WORKERS)), hot=hot)
