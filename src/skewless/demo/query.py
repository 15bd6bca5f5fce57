"""One streaming query over the clicks, told batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from skewless.aggregate import count
from skewless.aggregate import sum as total
from skewless.api.keyed import KeyedStream, keyed
from skewless.core.policy import Policy
from skewless.demo.clicks import Clicks, hash_of
from skewless.demo.measured import Batch, HotPage, Run

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
        With the stream in `clicks`; the result goes to a folder of the strategy's name.
    """

    spark: SparkSession
    clicks: Clicks
    folder: Path

    def run(self, strategy: str, show: Callable[[Run], None]) -> Run:
        """Run it to the end of the stream.

        Parameters
        ----------
        strategy
            Of the keyed stream.
        show
            Called with the run so far, after each micro-batch that had rows.
        """
        schema = "page string, user string, ts timestamp, price long"
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        stream = keyed(reader.parquet(str(self.folder / "clicks")), "page", workers=WORKERS, strategy=strategy)
        windows = stream.window("ts", SIZE, SLIDE, WATERMARK).agg(clicks=count(), spent=total("price"))
        events = _Events(stream)
        # After those of the stream, so that it has learned from a batch before we are told of it.
        self.spark.streams.addListener(events)
        try:
            query = self._start(windows, stream, strategy)
            return self._follow(query, events, Run(strategy), show)
        finally:
            self.spark.streams.removeListener(events)

    def result(self, strategy: str) -> Path:
        """Where the result is."""
        return self.folder / strategy

    def _start(self, windows: DataFrame, stream: KeyedStream, strategy: str) -> StreamingQuery:
        def save(df: DataFrame, batch: int) -> None:
            # What a batch taught is in force two batches later also where batches take less time than learning.
            stream.await_learned(batch, LEARNING)
            df.write.parquet(str(self.result(strategy) / f"{batch:03}"))

        times = [F.unix_micros(f"window.{end}").alias(end) for end in ("start", "end")]
        writer = windows.select(*times, "page", "clicks", "spent").writeStream.foreachBatch(save)
        writer = writer.option("checkpointLocation", str(self.folder / f"{strategy}-checkpoint"))
        return writer.trigger(availableNow=True).start()

    def _follow(self, query: StreamingQuery, events: _Events, run: Run, show: Callable[[Run], None]) -> Run:
        try:
            while (told := events.next(query.runId)) is not None:
                batch = self._batch(told)
                run = replace(run, batches=(*run.batches, batch))
                if batch.rows:
                    show(run)
        finally:
            query.stop()
        if (failure := query.exception()) is not None:
            raise failure
        return run

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
    """What Spark told of a micro-batch, and the stream at that moment."""

    number: int
    rows: int
    seconds: float
    loads: dict[int, int]
    policy: Policy


class _Events(StreamingQueryListener):
    """Queues what Spark tells, for the main thread: it alone can be interrupted."""

    def __init__(self, stream: KeyedStream) -> None:
        self._stream = stream
        self._queue: SimpleQueue[tuple[str, _Told | None]] = SimpleQueue()

    def next(self, run: str) -> _Told | None:
        """The next micro-batch of a query; None when it is over."""
        while True:
            try:
                whose, told = self._queue.get(timeout=0.5)  # an endless wait could not be interrupted
            except Empty:
                continue
            if whose == run:
                return told

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        done = event.progress
        loads = self._stream.loads if done.numInputRows else {}
        seconds = done.durationMs["triggerExecution"] / 1000
        told = _Told(done.batchId, done.numInputRows, seconds, loads, self._stream.policy)
        self._queue.put((str(done.runId), told))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The query is over."""
        self._queue.put((str(event.runId), None))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to tell yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to tell."""
