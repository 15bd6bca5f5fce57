"""How many rows each worker had in the last micro-batch, as the combiners counted them."""

from __future__ import annotations

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress


def observed() -> list[Column]:
    """What to observe of the rows that combiners give."""
    loads = F.collect_list(F.when(F.col("rows").isNotNull(), F.struct("worker", "rows")))
    return [loads.alias("loads")]


class Monitor:
    """Keeps the loads of the last micro-batch that had rows."""

    def __init__(self) -> None:
        self.loads: dict[int, int] = {}
        """Rows of each worker that had any."""

    def take(self, row: Row, _progress: StreamingQueryProgress) -> None:
        """A micro-batch is done."""
        if row["loads"]:
            self.loads = {each["worker"]: each["rows"] for each in row["loads"]}
