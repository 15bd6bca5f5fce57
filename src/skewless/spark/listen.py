"""What Spark tells of running queries, handed to the loops of their streams.

One listener serves all streams of a session: Spark copies every report of progress to Python for each listener there
is, one after the other, and waits for all of them when it stops.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from skewless.control.loop import Loop
from skewless.spark.observe import observed, stream_of

log = logging.getLogger("skewless")

T = TypeVar("T")
KEPT = 256
"""The streams that are known though they do not run: so that one that is started again goes on learning."""


MOST_WAITING = 1 << 14
"""The streams that are known though they never ran: one may be described long before it is started."""


@dataclass
class Running:
    """A run of a query, as far as Spark has told.

    Parameters
    ----------
    run
        The id of the run.
    progress
        Its last report; None before the first.
    loops
        The loops of the streams in it; when it has ended, as they were then.
    elsewhere
        The loops of streams that another query runs, from which this one came second.
    batches
        The number of its micro-batches that had rows.
    over
        Whether it has ended.
    """

    run: str
    progress: StreamingQueryProgress | None = None
    loops: list[Loop] = field(default_factory=list)
    elsewhere: list[Loop] = field(default_factory=list)
    batches: int = 0
    over: bool = False


_changed = threading.Condition()
_streams: OrderedDict[str, Loop] = OrderedDict()  # by identity, those that ran last at the end
_runs: OrderedDict[str, Running] = OrderedDict()  # those that are over too, for who watches them
_reports: list[Reports[Any]] = []
_listeners: WeakKeyDictionary[SparkSession, Listener]


def register(spark: SparkSession, stream: str, loop: Loop) -> None:
    """Have a loop hear of every micro-batch that observes this stream."""
    listen(spark)
    with _changed:
        _streams[stream] = loop
        ended = [name for name, each in _streams.items() if each.run is None and each.query is not None]
        never = [name for name, each in _streams.items() if each.query is None]
        for name in (*ended[: max(0, len(ended) - KEPT)], *never[: max(0, len(never) - MOST_WAITING)]):
            del _streams[name]


def listen(spark: SparkSession) -> None:
    """Hear of the queries of a session."""
    with _changed:
        if spark not in _listeners:
            _listeners[spark] = Listener()
            spark.streams.addListener(_listeners[spark])


def running(run: str) -> Running:
    """What is known of a run; it changes with what Spark tells."""
    with _changed:
        if run not in _runs:
            _runs[run] = Running(run)
            over = [each.run for each in _runs.values() if each.over]
            for each in over[: max(0, len(over) - KEPT)]:
                del _runs[each]
        return _runs[run]


def last_loop_of(query: str) -> Loop | None:
    """The loop that was made last of those whose folder belongs to a query; None if there is none."""
    with _changed:
        return next((loop for loop in reversed(_streams.values()) if loop.belongs_to(query)), None)


def wait_until(ready: Callable[[], bool], timeout: float) -> bool:
    """Wait until reports have made something true; false if that took longer than `timeout` seconds."""
    with _changed:
        return _changed.wait_for(ready, timeout)


class Reports(Generic[T]):
    """Queues what is to be known of every report, for the main thread: it alone can be interrupted.

    Parameters
    ----------
    spark
        The session whose queries are listened to.
    look
        What is to be known of a run when a micro-batch of it is done, and the loops have learned from it.
    """

    def __init__(self, spark: SparkSession, look: Callable[[Running], T]) -> None:
        self._spark, self._look = spark, look
        self._queue: SimpleQueue[tuple[str, T | None]] = SimpleQueue()

    def __enter__(self) -> Reports[T]:
        """Begin to queue."""
        listen(self._spark)
        with _changed:
            _reports.append(self)
        return self

    def __exit__(self, *_error: object) -> None:
        """Queue no more."""
        with _changed:
            _reports.remove(self)

    def of(self, run: str) -> Iterator[T]:
        """What was known after each micro-batch of a run, until it is over."""
        while True:
            try:
                whose, known = self._queue.get(timeout=0.5)  # an endless wait could not be interrupted
            except Empty:
                continue
            if whose == run and known is None:
                return
            if whose == run and known is not None:
                yield known

    def take(self, run: Running) -> None:
        """A micro-batch is done, or the run is over."""
        self._queue.put((run.run, None if run.over else self._look(run)))


class Listener(StreamingQueryListener):
    """Hands reports to the loops of the streams that they observe."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        progress = event.progress
        run = running(str(progress.runId))
        with _changed:
            there = {stream_of(name) for name in progress.observedMetrics}
            loops = [(stream, _streams[stream]) for stream in list(_streams) if stream in there]
        for stream, loop in loops:
            seen = observed(progress, stream)
            if seen is not None:
                known = run.loops if loop.hear(seen) else run.elsewhere
                known += [] if loop in known else [loop]
        run.batches += progress.numInputRows > 0
        self._tell(run, progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """A run is over: its streams are free for another one."""
        run = running(str(event.runId))
        with _changed:
            run.over = True
            for stream, loop in list(_streams.items()):
                if loop.run == run.run:
                    _streams.move_to_end(stream)
                loop.end(run.run, str(event.id), healthy=event.exception is None)
            run.loops = [loop.snapshot() for loop in run.loops]  # another run of the same stream changes them
        self._tell(run, run.progress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """A run begins: the loops of its query are told before its first micro-batch."""
        with _changed:
            loops = list(_streams.values())
        for loop in loops:
            loop.start(str(event.id), str(event.runId))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing was observed."""

    @staticmethod
    def _tell(run: Running, progress: StreamingQueryProgress | None) -> None:
        with _changed:
            run.progress = progress
            _changed.notify_all()
            reports = list(_reports)
        for each in reports:
            each.take(run)


_listeners = WeakKeyDictionary()
