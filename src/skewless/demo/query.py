"""One streaming query over the clicks, told batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from skewless.aggregate import count
from skewless.aggregate import sum as total
from skewless.api.keyed import keyed
from skewless.api.watch import Watch, watch
from skewless.control.routing import Routing
from skewless.core.policy import Policy
from skewless.demo.clicks import Clicks, hash_of
from skewless.demo.measured import Batch, HotPage, Run
from skewless.spark.listen import Reports, Running

SIZE, SLIDE, WATERMARK = "120 seconds", "1 second", "5 seconds"
WORKERS = 4
LEARNING = 30.0  # seconds at most; it takes a hundredth of one


@dataclass(frozen=True)
class Query:
    """Clicks and takings of each page in sliding windows.

    Parameters
    ----------
    spark
        The session to run in.
    clicks
        What the stream consists of.
    folder
        With the stream in `clicks`; the result goes to a folder of the split's name.
    """

    spark: SparkSession
    clicks: Clicks
    folder: Path

    def run(self, split: str, show: Callable[[Run], None]) -> Run:
        """Run it to the end of the stream.

        Parameters
        ----------
        split
            How the pages are split.
        show
            Called with the run so far, after each micro-batch that had rows.
        """
        schema = "page string, user string, ts timestamp, price long"
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        clicks, workers = reader.parquet(str(self.folder / "clicks")), None if split == "spark" else WORKERS
        stream = keyed(clicks, "page", workers=workers, split=split)
        windows = stream.window("ts", SIZE, SLIDE, WATERMARK).agg(clicks=count(), spent=total("price"))
        run = Run(split)
        with Reports(self.spark, _look) as reports:
            query = self._start(windows, split)
            try:
                for told in reports.of(str(query.runId)):
                    batch = self._batch(told)
                    run = replace(run, batches=(*run.batches, batch))
                    if batch.rows:
                        show(run)
            finally:
                query.stop()
        if (failure := query.exception()) is not None:
            raise failure
        return run

    def result(self, split: str) -> Path:
        """Where the result is."""
        return self.folder / split

    def _start(self, windows: DataFrame, split: str) -> StreamingQuery:
        watching: SimpleQueue[Watch] = SimpleQueue()

        def save(df: DataFrame, batch: int) -> None:
            # What a batch taught is in force two batches later also where batches take less time than learning.
            handle = watching.get()
            watching.put(handle)
            handle.wait(batch, LEARNING)
            df.write.parquet(str(self.result(split) / f"{batch:03}"))

        times = [F.unix_micros(f"window.{end}").alias(end) for end in ("start", "end")]
        writer = windows.select(*times, "page", "clicks", "spent").writeStream.foreachBatch(save)
        writer = writer.option("checkpointLocation", str(self.folder / f"{split}-checkpoint"))
        query = writer.trigger(availableNow=True).start()
        watching.put(watch(query))
        return query

    def _batch(self, told: _Told) -> Batch:
        hot = [HotPage(page, _workers_of(told.policy, page)) for page in self.clicks.hottest(told.number)]
        return Batch(
            told.number,
            told.rows,
            told.seconds,
            tuple(told.loads.get(worker, 0) for worker in range(WORKERS)) if told.loads else (),
            tuple(hot) if told.loads else (),
            changed=told.number == self.clicks.change,
        )


def _workers_of(policy: Policy, page: str) -> int:
    return len(set(policy.lanes_of(hash_of(page)).tolist()))


@dataclass(frozen=True)
class _Told:
    """What Spark told of a micro-batch, and what skewless knew at that moment."""

    number: int
    rows: int
    seconds: float
    loads: dict[int, int]
    policy: Policy


def _look(run: Running) -> _Told:
    assert run.progress is not None  # it was just reported
    done, loop = run.progress, run.loops[-1] if run.loops else None
    loads = dict(loop.loads) if loop and done.numInputRows else {}
    policy = loop.policy if isinstance(loop, Routing) else Policy.of(WORKERS)
    return _Told(done.batchId, done.numInputRows, done.durationMs["triggerExecution"] / 1000, loads, policy)
