"""Routing inside the task: each task has a splitter of its own, so that no row is routed by what was learned before.

Which worker a row gets depends on the rows that its task had before it. If a task runs again, because an executor was
lost, and finds its rows in another order, rows get other workers; where some of its output was taken already, rows
would be twice in the result and others missing. Spark sees that by checksums that do not depend on the order, and runs
the stages behind such a task again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.core.tables import glued
from skewless.operators.send import Sender
from skewless.spark.route import KEY, WORKER
from skewless.spark.session import prepare_routing
from skewless.spark.stage import settle
from skewless.split import Splitter


def with_routed_worker(rows: DataFrame, splitter: Splitter) -> DataFrame:
    """Rows that have their `KEY`, with the worker that the splitter of their task gives them.

    Only the hashes of the keys go to Python and back.
    """
    prepare_routing(rows.sparkSession)

    def route(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
        settle()
        own = splitter.for_task()
        for part in keys:
            yield pa.array(own.route(np.asarray(part)))

    function = F.arrow_udf(route, "int")  # type: ignore[attr-defined]  # it is there, but not in pyspark's types
    return rows.withColumn(WORKER, function.asNondeterministic()(KEY))


def packed(rows: DataFrame, splitter: Splitter) -> DataFrame:
    """Rows whose first column is their `KEY`, routed in their tasks: each worker has its partition of packed rows."""
    prepare_routing(rows.sparkSession)
    lines = rows.mapInArrow(Pack(splitter), "owner int, rows binary")
    return lines.repartitionById(splitter.workers, "owner").select("rows")


@dataclass(frozen=True)
class Pack:
    """Routes the rows of a task and packs those of each worker, for `mapInArrow`."""

    splitter: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lines of a worker and its rows."""
        settle()
        own, sender = self.splitter.for_task(), Sender(range(self.splitter.workers), 0)
        for part in glued(batches):
            yield sender.send(part, own.route(np.asarray(part.column(0)))).select(["owner", "rows"])
