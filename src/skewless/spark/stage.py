"""The one stage of every stateful operator: rows travel to workers, which keep state, and results travel on.

A worker is a key of Spark's with one large state: a call from the JVM to Python and back costs too much to be made for
each key of the user's. What a worker does comes with it, pickled: this module imports no operator, and nothing that a
Python process of Spark's need not load. `staging` puts it into plans.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skewless.core.store import MemoryStore
from skewless.core.tables import glued
from skewless.core.turn import Turn
from skewless.core.windows import END
from skewless.operators.send import Sender, Sending, received
from skewless.operators.worker import Maker
from skewless.spark.store import StateStore, set_timer, this_turn, turn_of

if TYPE_CHECKING:
    import pandas as pd

LINES = "owner int, part long, control long, rows binary, note array<long>"
"""What is sent to workers, as Spark calls it; see `operators.send.WIRE`."""


def settle() -> None:
    """Once in the life of a Python process: leave what is imported out of the garbage collection after every task."""
    if gc.get_freeze_count() == 0:
        gc.collect()
        gc.freeze()


class Out(Protocol):
    """What becomes of the rows that workers give."""

    def schema(self, *, streaming: bool) -> str | T.StructType:
        """The columns that a stage gives."""

    def batches(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pa.RecordBatch]:
        """The rows that one worker gives in a batch DataFrame."""

    def frames(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pd.DataFrame]:
        """The rows that one worker gives in a micro-batch."""


@dataclass(frozen=True)
class Send:
    """What a task does with its rows, for `mapInArrow`."""

    sending: Sending
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Lines."""
        settle()
        turn = this_turn()
        yield from self.sending.send(glued(batches), Sender(self.owners, turn.worker), turn)


@dataclass(frozen=True)
class RunAll:
    """A worker on all its rows, for `mapInArrow` over the partitions of a batch DataFrame."""

    make: Maker
    out: Out
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows, and at the end those of all timers and all windows that are still open."""
        settle()
        lines = [line for batch in batches for line in batch.to_pylist()]
        if lines:
            turn = Turn(self.owners.index(lines[0]["owner"]))
            yield from self.out.batches(glued(self._answers(lines, turn)), turn)

    def _answers(self, lines: list[dict[str, Any]], turn: Turn) -> Iterator[pa.RecordBatch]:
        worker = self.make(turn, MemoryStore())
        tables = received((line["part"], line["rows"]) for line in lines)
        yield from worker.run(lines[0]["control"], tables, None)
        yield from worker.run(None, [], END)


class Run(StatefulProcessor):
    """A worker in every micro-batch of a stream, and when its timer is due.

    Parameters
    ----------
    make, out
        Makes the workers, and what becomes of their rows.
    owners
        For each partition of state, the value that Spark shuffles to it.
    timed
        Whether workers go by the watermark.
    """

    def __init__(self, make: Maker, out: Out, owners: tuple[int, ...], *, timed: bool) -> None:
        self._make, self._out, self._owners, self._timed = make, out, owners, timed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        settle()
        self._handle, self._store = handle, StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Lines for the worker."""
        import pandas as pd  # when there are rows: the process that Spark starts for the start of a query has none

        lines: list[tuple[int, Any]] = []
        control: Any = None
        for frame in rows:
            lines += zip(frame["part"], frame["rows"], strict=True)
            control = frame["control"].iloc[0]
        yield from self._run(key[0], None if pd.isna(control) else int(control), received(lines), timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Time went on without rows."""
        yield from self._run(key[0], None, [], timerValues)

    def close(self) -> None:
        """Nothing to close."""

    def _run(
        self, value: int, control: int | None, tables: list[pa.RecordBatch], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        turn = turn_of(self._owners, value)
        worker = self._make(turn, self._store)
        watermark = timer_values.getCurrentWatermarkInMs() * 1000 if self._timed else None
        yield from self._out.frames(glued(worker.run(control, tables, watermark)), turn)
        if watermark is not None:
            wake = worker.wake
            # A timer at or before the watermark would be due at once, and again and again.
            set_timer(self._handle, self._store, None if wake is None else max(wake, watermark + 1000))
