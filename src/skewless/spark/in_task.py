"""Routing inside the task: each task has a splitter of its own, so that no row is routed by what was learned before.

Which worker a row gets depends on the rows that its task had before it. If a task runs again, because an executor was
lost, and finds its rows in another order, rows get other workers; where some of its output was taken already, rows
would be twice in the result and others missing. Spark sees that by checksums that do not depend on the order, and runs
the stages behind such a task again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, tee
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.control.loop import Chosen, LoadLoop
from skewless.core.errors import SkewlessError
from skewless.core.tables import glued
from skewless.elastic import Range
from skewless.operators.send import Sender
from skewless.spark.listen import register
from skewless.spark.observe import with_active_observed
from skewless.spark.route import CONTROL, KEY, WORKER
from skewless.spark.session import prepare_routing
from skewless.spark.split import following
from skewless.spark.stage import settle
from skewless.spark.team import packed_by_team, team_of, with_team_worker
from skewless.split import CooperativeDalton, Splitter


def routed_in_task(
    rows: DataFrame,
    splitter: Splitter,
    stream: str,
    name: str,
    folder: str | None,
    chosen: Chosen,
    workers: Range | None = None,
) -> DataFrame:
    """Rows of a stream that have their `KEY`, with the worker that their task gives them; for the rest see `learning`.

    The folder is used only where tasks learn together, and where the number of workers follows the load.
    """
    if isinstance(splitter, CooperativeDalton):
        _refuse(workers)
        return with_team_worker(rows, team_of(rows, splitter, stream, name, folder, chosen), stream)
    return with_routed_worker(_followed(rows, splitter, stream, name, folder, chosen, workers), splitter)


def packed_in_task(
    rows: DataFrame,
    splitter: Splitter,
    stream: str,
    name: str,
    folder: str | None,
    chosen: Chosen,
    workers: Range | None = None,
) -> DataFrame:
    """The same for rows whose first column is their `KEY`: each worker has its partition of packed rows."""
    if isinstance(splitter, CooperativeDalton):
        _refuse(workers)
        return packed_by_team(rows, team_of(rows, splitter, stream, name, folder, chosen), stream)
    return packed(_followed(rows, splitter, stream, name, folder, chosen, workers), splitter, stream)


def _followed(
    rows: DataFrame,
    splitter: Splitter,
    stream: str,
    name: str,
    folder: str | None,
    chosen: Chosen,
    workers: Range | None,
) -> DataFrame:
    """The rows, with the number of active workers where that follows the load."""
    scaling, rows = following(rows, workers, stream, folder)
    active = splitter.workers if scaling is None else scaling.workers
    register(rows.sparkSession, stream, LoadLoop(name, active, chosen, scaling))
    return rows


def _refuse(workers: Range | None) -> None:
    if workers is not None:
        raise SkewlessError(
            f"tasks learn one table together, which is for one number of workers, and {workers} follow the load; give "
            "one number, or another splitter"
        )


def with_routed_worker(rows: DataFrame, splitter: Splitter) -> DataFrame:
    """Rows that have their `KEY`, with the worker that the splitter of their task gives them.

    Only the hashes of the keys go to Python and back; and, where rows have it, the number of workers that are active.
    """
    _prepare(rows, splitter)

    def route(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
        settle()
        yield from map(pa.array, splitter.route_task(map(np.asarray, keys)))

    def route_to_active(parts: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        settle()
        own, parts = _for_active(splitter, parts, 1)
        yield from map(pa.array, own.route_task(np.asarray(keys) for keys, _active in parts))

    columns = [KEY, *([CONTROL] if CONTROL in rows.columns else [])]
    function = F.arrow_udf(route_to_active if CONTROL in columns else route, "int")  # type: ignore[attr-defined]  # it is there, but not in pyspark's types
    return rows.withColumn(WORKER, function.asNondeterministic()(*columns))


def packed(rows: DataFrame, splitter: Splitter, stream: str = "") -> DataFrame:
    """Rows whose first column is their `KEY`, routed in their tasks: each worker has its partition of packed rows.

    If the last column is the number of active workers, it is observed under the stream's identity.
    """
    _prepare(rows, splitter)
    elastic = CONTROL in rows.columns
    lines = rows.mapInArrow(Pack(splitter, elastic), f"owner int, rows binary{f', {CONTROL} long' if elastic else ''}")
    if elastic:
        lines = with_active_observed(lines, stream).drop(CONTROL)
    return lines.repartitionById(splitter.workers, "owner").select("rows")


def _prepare(rows: DataFrame, splitter: Splitter) -> None:
    """Refuse now what would fail in every task."""
    prepare_routing(rows.sparkSession)
    list(splitter.route_task([]))


@dataclass(frozen=True)
class Pack:
    """Routes the rows of a task and packs those of each worker, for `mapInArrow`.

    Parameters
    ----------
    splitter
        The splitter, for the most workers there can be.
    elastic
        Whether the last column is the number of workers that are active.
    """

    splitter: Splitter
    elastic: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lines of a worker and its rows, and of the number of active workers."""
        settle()
        sender, own = Sender(range(self.splitter.workers), 0), self.splitter
        parts = glued(batches)
        if self.elastic:
            own, parts = _for_active(own, parts, -1)
            parts = (part.select(range(part.num_columns - 1)) for part in parts)
        # A splitter that answers when the input ends has all rows of the task wait for it.
        rows, keyed = tee(parts)
        workers = own.route_task(np.asarray(part.column(0)) for part in keyed)
        for part, routed in zip(rows, workers, strict=True):
            lines = sender.send(part, routed).select(["owner", "rows"])
            yield lines.append_column(CONTROL, pa.array([own.workers] * len(lines))) if self.elastic else lines


def _for_active(splitter: Splitter, parts: Iterator[Any], column: int) -> tuple[Splitter, Iterator[Any]]:
    """A splitter for the workers that are active, by a column of the first part of a task's rows; and all parts."""
    first = next(parts, None)
    if first is None:
        return splitter, iter(())
    return splitter.again(workers=first[column][0].as_py()), chain([first], parts)
