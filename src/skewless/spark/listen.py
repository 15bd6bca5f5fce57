"""What queries observed, handed to whoever asked for it by name.

One listener serves all streams of a session: Spark copies every report of progress to Python for each listener there
is, one after the other, and waits for all of them when it stops.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

_listeners: WeakKeyDictionary[SparkSession, Listener]


def listen(spark: SparkSession, name: str, take: Callable[[Row, StreamingQueryProgress], None]) -> None:
    """Call `take` with every observation of that name that a query of the session makes, and its progress."""
    if spark not in _listeners:
        _listeners[spark] = Listener()
        spark.streams.addListener(_listeners[spark])
    _listeners[spark].takers[name] = take


class Listener(StreamingQueryListener):
    """Knows who wants which observation."""

    def __init__(self) -> None:
        self.takers: dict[str, Callable[[Row, StreamingQueryProgress], None]] = {}

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        observed = event.progress.observedMetrics
        for name, take in list(self.takers.items()):  # in the order in which they were asked for
            if name in observed:
                take(observed[name], event.progress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing was observed yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing was observed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """What was observed stays with those who took it."""


_listeners = WeakKeyDictionary()
