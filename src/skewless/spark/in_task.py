"""Routing inside the task: each task has a splitter of its own, so that no row is routed by what was learned before.

Which worker a row gets depends on the rows that its task had before it. If a task runs again, because an executor was
lost, and finds its rows in another order, rows get other workers; where some of its output was taken already, rows
would be twice in the result and others missing. Spark sees that by checksums that do not depend on the order, and runs
the stages behind such a task again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import tee

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.control.loop import Chosen, LoadLoop
from skewless.core.tables import glued
from skewless.operators.send import Sender
from skewless.spark.listen import register
from skewless.spark.route import KEY, WORKER
from skewless.spark.session import prepare_routing
from skewless.spark.stage import settle
from skewless.spark.team import packed_by_team, team_of, with_team_worker
from skewless.split import CooperativeDalton, Splitter


def routed_in_task(
    rows: DataFrame, splitter: Splitter, stream: str, name: str, folder: str | None, chosen: Chosen
) -> DataFrame:
    """Rows of a stream that have their `KEY`, with the worker that their task gives them; for the rest see `learning`.

    The folder is used only where tasks learn together.
    """
    if isinstance(splitter, CooperativeDalton):
        return with_team_worker(rows, team_of(rows, splitter, stream, name, folder, chosen), stream)
    register(rows.sparkSession, stream, LoadLoop(name, splitter.workers, chosen))
    return with_routed_worker(rows, splitter)


def packed_in_task(
    rows: DataFrame, splitter: Splitter, stream: str, name: str, folder: str | None, chosen: Chosen
) -> DataFrame:
    """The same for rows whose first column is their `KEY`: each worker has its partition of packed rows."""
    if isinstance(splitter, CooperativeDalton):
        return packed_by_team(rows, team_of(rows, splitter, stream, name, folder, chosen), stream)
    register(rows.sparkSession, stream, LoadLoop(name, splitter.workers, chosen))
    return packed(rows, splitter)


def with_routed_worker(rows: DataFrame, splitter: Splitter) -> DataFrame:
    """Rows that have their `KEY`, with the worker that the splitter of their task gives them.

    Only the hashes of the keys go to Python and back.
    """
    _prepare(rows, splitter)

    def route(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
        settle()
        yield from map(pa.array, splitter.route_task(map(np.asarray, keys)))

    function = F.arrow_udf(route, "int")  # type: ignore[attr-defined]  # it is there, but not in pyspark's types
    return rows.withColumn(WORKER, function.asNondeterministic()(KEY))


def packed(rows: DataFrame, splitter: Splitter) -> DataFrame:
    """Rows whose first column is their `KEY`, routed in their tasks: each worker has its partition of packed rows."""
    _prepare(rows, splitter)
    lines = rows.mapInArrow(Pack(splitter), "owner int, rows binary")
    return lines.repartitionById(splitter.workers, "owner").select("rows")


def _prepare(rows: DataFrame, splitter: Splitter) -> None:
    """Refuse now what would fail in every task."""
    prepare_routing(rows.sparkSession)
    list(splitter.route_task([]))


@dataclass(frozen=True)
class Pack:
    """Routes the rows of a task and packs those of each worker, for `mapInArrow`."""

    splitter: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lines of a worker and its rows."""
        settle()
        sender = Sender(range(self.splitter.workers), 0)
        # A splitter that answers when the input ends has all rows of the task wait for it.
        rows, keyed = tee(glued(batches))
        workers = self.splitter.route_task(np.asarray(part.column(0)) for part in keyed)
        for part, routed in zip(rows, workers, strict=True):
            yield sender.send(part, routed).select(["owner", "rows"])
