"""Runs a job: builds its query, shows its progress, and sees it to its end."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from skewless.api.keyed import keyed
from skewless.job.file import Job, Sink, Source, Trigger
from skewless.job.progress import Progress
from skewless.spark.listen import Reports, Running
from skewless.spark.session import configure, session

SPARK_ERRORS = (PySparkException, Py4JError)
"""What Spark raises: PySpark leaves some of Java's errors as they are."""


class JobFailed(Exception):  # noqa: N818 - what happened, as the caller reads it
    """Spark gave up on a job, or did not start; the message is the cause, in a line."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Parameters
    ----------
    rows
        The number of rows that were read.
    seconds
        How long it took, without the start of Spark.
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
    except SPARK_ERRORS as error:
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
    settings: dict[str, Any] = {"spark.app.name": job.name or "skewless", **job.settings}
    master = job.master or "local[*]"
    if local := re.fullmatch(r"local(?:\[(\d+|\*)\])?", master):
        cores = None if local[1] == "*" else int(local[1] or 1)
        spark = session(cores, memory=settings.get("spark.driver.memory", "2g"), **settings)
    else:
        spark = configure(SparkSession.Builder().master(master)).config(map=settings).getOrCreate()
    # Whatever fails is told in one line; the log would tell it in hundreds.
    spark.sparkContext.setLogLevel(settings.get("spark.log.level", "FATAL"))
    return spark


def _stream(spark: SparkSession, job: Job, show: Callable[[str], None]) -> tuple[int, bool]:
    rows = _rows(spark.readStream, job.source)
    writer = _encoded(_result(rows, job), job.sink).writeStream.format(job.sink.format).options(**job.sink.options)
    writer = writer.outputMode(job.window.output)
    if job.name:
        writer = writer.queryName(job.name)
    if job.sink.checkpoint:
        writer = writer.option("checkpointLocation", job.sink.checkpoint)
    writer = _triggered(writer, job.trigger)
    progress, stopped = Progress(), False
    with Reports(spark, _look) as reports, interrupts_raise():
        query = writer.start(job.sink.path)
        try:
            for done, imbalance, scaling in reports.of(str(query.runId)):
                rate, times = done.processedRowsPerSecond, done.eventTime
                show(progress.line(done.batchId, done.numInputRows, rate, times, imbalance, scaling))
        except KeyboardInterrupt:
            query.stop()
            stopped = True
    if not stopped and (failure := query.exception()) is not None:
        raise failure
    return progress.rows, stopped


def _batch(spark: SparkSession, job: Job) -> int:
    count = Observation()
    result = _result(_rows(spark.read, job.source).observe(count, F.count(F.lit(1)).alias("rows")), job)
    _encoded(result, job.sink).write.format(job.sink.format).options(**job.sink.options).save(job.sink.path)
    return int(count.get["rows"])


def _rows(reader: DataFrameReader | DataStreamReader, source: Source) -> DataFrame:
    reader = reader.format(source.format).options(**source.options)
    return (reader.schema(source.schema) if source.schema else reader).load(source.path)


def _result(rows: DataFrame, job: Job) -> DataFrame:
    key, window = job.key, job.window
    interval = job.trigger.every if isinstance(key.workers, tuple) else None
    stream = keyed(rows, *key.columns, workers=key.workers, interval=interval, split=key.split, name=job.name)
    windows = stream.window(window.time, window.size, window.slide, window.watermark)
    updating = window.output == "update" and job.source.stream
    ending = windows.changes if updating else windows.agg
    return ending(folder=key.folder, **{name: call.measure() for name, call in job.aggregates.items()})


def _look(run: Running) -> tuple[StreamingQueryProgress, float | None, tuple[int, float] | None]:
    assert run.progress is not None  # it was just reported
    loop = run.loops[-1] if run.loops else None
    if loop is None:
        return run.progress, None, None
    scaling = loop.scaling
    following = None if scaling is None or scaling.ratio is None else (scaling.workers, scaling.ratio)
    return run.progress, loop.imbalance, following


def _encoded(result: DataFrame, sink: Sink) -> DataFrame:
    """The rows as the sink takes them: Kafka wants one value, which is a row as JSON."""
    return result.select(F.to_json(F.struct("*")).alias("value")) if sink.format == "kafka" else result


def _triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    if trigger.available_now:
        return writer.trigger(availableNow=True)
    if trigger.once:
        return writer.trigger(once=True)
    return writer.trigger(processingTime=trigger.every) if trigger.every else writer


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Ctrl-C only raises: PySpark would cancel all jobs first, and the query would fail instead of stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
