"""How many rows each worker had in the last micro-batch, as the combiners counted them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


def observed() -> list[Column]:
    """What to observe of the rows that combiners give."""
    loads = F.collect_list(F.when(F.col("rows").isNotNull(), F.struct("worker", "rows")))
    return [loads.alias("loads")]


class Monitor(StreamingQueryListener):
    """Keeps the loads of the last micro-batch that had rows.

    Parameters
    ----------
    name
        Of the observation.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.loads: dict[int, int] = {}
        """Rows of each worker that had any."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        row = event.progress.observedMetrics.get(self.name)
        if row is not None and row["loads"]:
            self.loads = {each["worker"]: each["rows"] for each in row["loads"]}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to see yet."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The last loads stay."""
