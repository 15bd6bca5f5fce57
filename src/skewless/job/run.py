"""Runs a job: builds its query, shows its progress, and sees it to its end."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from skewless.api.keyed import KeyedStream, keyed
from skewless.job.file import Job, Sink, Trigger
from skewless.job.progress import Progress
from skewless.spark.session import configure, session


class JobFailed(Exception):  # noqa: N818 - what happened, as the caller reads it
    """Spark gave up on a job; the message is the cause, in a line."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Parameters
    ----------
    rows
        That were read.
    seconds
        That it took, without the start of Spark.
    stopped
        Whether the user stopped it.
    """

    rows: int
    seconds: float
    stopped: bool = False


def run(job: Job, show: Callable[[str], None]) -> Outcome:
    """Run a job to its end, or until it is interrupted from the keyboard.

    Parameters
    ----------
    job
        What to do.
    show
        Called with a line for each micro-batch.
    """
    try:
        spark = _session(job)
        started = time.monotonic()
        if job.source.stream:
            rows, stopped = _stream(spark, job, show)
        else:
            rows, stopped = _batch(spark, job), False
    except (PySparkException, Py4JError) as error:  # PySpark leaves some of Java's errors as they are
        raise JobFailed(root_message(error)) from error
    return Outcome(rows, time.monotonic() - started, stopped)


def place_of(job: Job) -> str | None:
    """Where the result is, in words; None if it is kept nowhere."""
    sink = job.sink
    if sink.format == "memory":
        return f"the table {job.name}"
    if sink.format == "kafka" and "topic" in sink.options:
        return f"the topic {sink.options['topic']}"
    return sink.path


def root_message(error: BaseException) -> str:
    """What went wrong in the first place, in one line: Spark wraps it in the failures that followed from it."""
    text = _said(error)
    while (cause := getattr(error, "_cause", None) or error.__cause__) is not None:
        error = cause
        text = _said(error) or text
    return text or type(error).__name__


def _said(error: BaseException) -> str:
    """The first line of its message; of a Python traceback in it, the exception."""
    text = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    text, _, trace = text.partition("JVM stacktrace:")[0].partition("Traceback (most recent call last):\n")
    # The lines of a traceback are indented; what follows them is not.
    lines = [line for line in trace.splitlines() if not line.startswith(" ")] or text.splitlines()
    return next((line.strip() for line in lines if line.strip()), "")


def _session(job: Job) -> SparkSession:
    settings = {"spark.app.name": job.name or "skewless", **job.settings}
    spark = _built(job.master or "local[*]", settings)
    # Whatever fails is told in one line; the log would tell it in hundreds.
    spark.sparkContext.setLogLevel(settings.get("spark.log.level", "FATAL"))
    return spark


def _built(master: str, settings: dict[str, str]) -> SparkSession:
    local = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    if local:
        cores = None if local[1] == "*" else int(local[1] or 1)
        return session(cores, memory=settings.get("spark.driver.memory", "2g"), **settings)
    builder = configure(SparkSession.Builder().master(master))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _stream(spark: SparkSession, job: Job, show: Callable[[str], None]) -> tuple[int, bool]:
    reader = spark.readStream.format(job.source.format).options(**job.source.options)
    rows = (reader.schema(job.source.schema) if job.source.schema else reader).load(job.source.path)
    stream, result = _result(rows, job)
    writer = _encoded(result, job.sink).writeStream.format(job.sink.format).options(**job.sink.options)
    writer = writer.outputMode(job.window.output)
    if job.name:
        writer = writer.queryName(job.name)
    if job.sink.checkpoint:
        writer = writer.option("checkpointLocation", job.sink.checkpoint)
    writer = _triggered(writer, job.trigger)
    events = _Events()
    spark.streams.addListener(events)
    try:
        with _interrupts_raise():
            query = writer.start(job.sink.path)
            progress = Progress()
            stopped = _follow(query, events, lambda event: show(_line(progress, event, stream)))
    finally:
        spark.streams.removeListener(events)
    if not stopped and (failure := query.exception()) is not None:
        raise failure
    return progress.rows, stopped


def _batch(spark: SparkSession, job: Job) -> int:
    reader = spark.read.format(job.source.format).options(**job.source.options)
    rows = (reader.schema(job.source.schema) if job.source.schema else reader).load(job.source.path)
    count = Observation()
    _, result = _result(rows.observe(count, F.count(F.lit(1)).alias("rows")), job)
    _encoded(result, job.sink).write.format(job.sink.format).options(**job.sink.options).save(job.sink.path)
    return int(count.get["rows"])


def _result(rows: DataFrame, job: Job) -> tuple[KeyedStream, DataFrame]:
    key, window = job.key, job.window
    stream = keyed(rows, *key.columns, workers=key.workers, strategy=key.strategy, name=job.name)
    windows = stream.window(window.time, window.size, window.slide, window.watermark, window.output)
    return stream, windows.agg(**{name: call.measure() for name, call in job.aggregates.items()})


def _encoded(result: DataFrame, sink: Sink) -> DataFrame:
    """The rows as the sink takes them: Kafka wants one value, which is a row as JSON."""
    return result.select(F.to_json(F.struct("*")).alias("value")) if sink.format == "kafka" else result


def _triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    if trigger.available_now:
        return writer.trigger(availableNow=True)
    if trigger.once:
        return writer.trigger(once=True)
    return writer.trigger(processingTime=trigger.every) if trigger.every else writer


def _line(progress: Progress, event: QueryProgressEvent, stream: KeyedStream) -> str:
    done = event.progress
    return progress.line(done.batchId, done.numInputRows, done.processedRowsPerSecond, done.eventTime, stream.imbalance)


def _follow(query: StreamingQuery, events: _Events, progressed: Callable[[QueryProgressEvent], None]) -> bool:
    """Tell of each batch until the query ends; true if it was interrupted."""
    try:
        while True:
            try:
                event = events.queue.get(timeout=1.0)
            except Empty:
                continue
            if isinstance(event, QueryTerminatedEvent):
                if str(event.runId) == query.runId:
                    return False
            elif str(event.progress.runId) == query.runId:
                progressed(event)
    except KeyboardInterrupt:
        query.stop()
        return True


class _Events(StreamingQueryListener):
    """Queues what Spark tells, for the main thread: it alone can be interrupted, and knows which query is its own."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[QueryProgressEvent | QueryTerminatedEvent] = SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to tell yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        self.queue.put(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The query is over."""
        self.queue.put(event)


@contextmanager
def _interrupts_raise() -> Iterator[None]:
    """Ctrl-C only raises: PySpark would cancel all jobs first, and the query would fail instead of stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
