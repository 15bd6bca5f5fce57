"""Tasks that learn together: each starts from the common Q-table, and tells what it learned when its rows have ended.

A task reads the table's file itself, once. What it tells rides on one of its rows, from where `observe` takes it, so
that it reaches the driver with the job that the rows are part of. A task without rows tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.control.cooperating import Cooperating
from skewless.control.folder import uri_of
from skewless.control.loop import Chosen
from skewless.control.q_table import Message, Table, TableFile
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.tables import glued
from skewless.core.turn import Turn
from skewless.operators.send import Sender
from skewless.spark.listen import register
from skewless.spark.observe import with_told_observed
from skewless.spark.route import KEY, TOLD, WORKER
from skewless.spark.session import prepare_routing
from skewless.spark.split import session_folder
from skewless.spark.stage import settle
from skewless.spark.store import this_turn
from skewless.split import CooperativeDalton

_ROUTED = "__skewless_routed"
_FIRST_SEEDS = 1 << 20  # one for each task of a micro-batch


@dataclass(frozen=True)
class Team:
    """The partitioners of a stream: one for each task.

    Parameters
    ----------
    splitter
        What every task has one of.
    file
        Where the common table is.
    """

    splitter: CooperativeDalton
    file: TableFile

    def member(self, turn: Turn) -> Member:
        """The partitioner of a task, with the newest table."""
        return Member(self.splitter, self.file.get(), turn)


class Member:
    """The partitioner of one task; those of a micro-batch try different workers."""

    def __init__(self, like: CooperativeDalton, table: Table, turn: Turn) -> None:
        seed = int(like.bandit.random[0]) + turn.batch * _FIRST_SEEDS + turn.worker
        self._own, self._version, self._turn = like.again(workers=like.workers, seed=seed), table.version, turn
        self._own.start(table.common)

    def route(self, keys: Int64Array) -> Int32Array:
        """A worker for each row."""
        return self._own.route(keys)

    def told(self) -> str:
        """What was learned from all rows so far."""
        turn = self._turn
        message = Message(self._version, turn.batch, turn.worker, turn.attempt, self._own.changes())
        return message.text(loads=self._own.merge == "shared")


def team_of(
    rows: DataFrame, splitter: CooperativeDalton, stream: str, name: str, folder: str | None, chosen: Chosen
) -> Team:
    """The partitioners of a stream, and the loop that merges what they learn; for the parameters see `learning`."""
    spark = rows.sparkSession
    prepare_routing(spark)
    file = TableFile(uri_of(folder or session_folder(spark)), stream)
    register(spark, stream, Cooperating(name, splitter, file, chosen))
    return Team(splitter, file)


def with_team_worker(rows: DataFrame, team: Team, stream: str) -> DataFrame:
    """Rows of a stream that have their `KEY`, with the worker that their task's partitioner gives them."""

    def route_together(keys: Iterator[pa.Array]) -> Iterator[pa.Array]:
        settle()
        member: Member | None = None
        last: Int32Array | None = None
        for part in filter(len, keys):
            if last is not None:
                yield _answer(last, None)
            member = member or team.member(this_turn())
            last = member.route(np.asarray(part))
        if last is not None and member is not None:
            yield _answer(last, member.told())

    kind = f"struct<{WORKER}: int, {TOLD}: string>"
    function = F.arrow_udf(route_together, kind)  # type: ignore[attr-defined]  # it is there, but not in pyspark's types
    routed = rows.withColumn(_ROUTED, function.asNondeterministic()(KEY))
    return with_told_observed(routed.select(*rows.columns, f"{_ROUTED}.*"), stream)


def packed_by_team(rows: DataFrame, team: Team, stream: str) -> DataFrame:
    """Rows whose first column is their `KEY`, routed in their tasks: each worker has its partition of packed rows."""
    lines = rows.mapInArrow(PackAndTell(team), f"owner int, rows binary, {TOLD} string")
    # The line with what a task told has no rows, and is needed no more.
    sent = with_told_observed(lines, stream).filter("rows is not null")
    return sent.repartitionById(team.splitter.workers, "owner").select("rows")


@dataclass(frozen=True)
class PackAndTell:
    """Routes the rows of a task and packs those of each worker, for `mapInArrow`; a last line has what is told."""

    team: Team

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lines of a worker and its rows."""
        settle()
        turn = this_turn()
        member: Member | None = None
        sender = Sender(range(self.team.splitter.workers), turn.worker)
        for part in glued(batches):
            member = member or self.team.member(turn)
            lines = sender.send(part, member.route(np.asarray(part.column(0)))).select(["owner", "rows"])
            yield lines.append_column(TOLD, pa.nulls(len(lines), pa.string()))
        if member is not None:
            told = [pa.array([0], pa.int32()), pa.nulls(1, pa.binary()), pa.array([member.told()])]
            yield pa.RecordBatch.from_arrays(told, names=["owner", "rows", TOLD])


def _answer(workers: Int32Array, told: str | None) -> pa.Array:
    """The workers of some rows, the last of which bears what is told."""
    notes = pa.nulls(len(workers), pa.string())
    if told is not None:
        notes = pa.concat_arrays([notes[1:], pa.array([told])])
    return pa.StructArray.from_arrays([pa.array(workers), notes], names=[WORKER, TOLD])
