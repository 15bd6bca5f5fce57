"""The plan of a function of whole windows: rows wait with the workers that have their windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.chop.assignment import Assignment, BatchAssignment, KeyAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.control.batch_sizes import BatchSizes
from skewless.core.windows import Windows
from skewless.operators.windows.adaptive import AdaptiveWorker
from skewless.operators.windows.counted import CountedPanes, CountedWorker, Numberer
from skewless.operators.windows.counting import RangeNumberer, Ranges
from skewless.operators.windows.function import MergeCall, PaneCall, WindowCall
from skewless.operators.windows.panes import PaneWorker
from skewless.operators.windows.spread import AdaptiveSpread, Spread
from skewless.operators.windows.worker import Columns, Task, WindowWorker
from skewless.operators.worker import Maker
from skewless.spark.onward import Onward
from skewless.spark.result import Result
from skewless.spark.route import KEY, column, with_control
from skewless.spark.staging import owners_of, sent, worked
from skewless.spark.types import arrow_schema

_TIME = "__skewless_time"
_NO_HASH = ("map<", "variant")  # types that Spark's xxhash64 does not take


@dataclass(frozen=True)
class Applying:
    """A function of whole windows.

    Parameters
    ----------
    df, keys, time
        The rows, the columns of the key (none for windows of all rows), and the column of time.
    windows
        Size and slide, in time or in rows.
    function, pane
        The function of the rows of a window; or, with a function of the rows of a pane, the function of what that gave
        for the panes of a window.
    schema
        The columns that the function gives.
    workers
        The workers that share the windows.
    batch
        The number of consecutive windows that a worker has, before it is the next one's turn.
    together
        Whether the windows of a batch wait for each other.
    arrow
        Whether rows are given as Arrow tables.
    """

    df: DataFrame
    keys: tuple[str, ...]
    time: str
    windows: Windows
    function: Callable[..., Any]
    pane: Callable[..., Any] | None
    schema: T.StructType
    workers: int
    batch: int
    together: bool
    arrow: bool

    def run(self, stream: str) -> DataFrame:
        """The result, observed under the stream's identity: window, keys, and the columns of the schema."""
        if self.windows.rows:
            return self._counted(stream)
        if self.pane is not None:
            return self._by_pane(stream, self.pane)
        lines = sent(self._rows(), Spread(self.assignment(), self._kinds()), stream)
        return self._given(lines, partial(WindowWorker, self._task(self._batches()), self.assignment()))

    def adaptively(self, folder: BatchSizes, stream: str) -> DataFrame:
        """The same of a stream, in batches of sizes that change."""
        rows = self._rows()
        controlled = with_control(rows, folder.control)
        controlled = controlled.select(controlled.columns[-1], *rows.columns)
        lines = sent(controlled, AdaptiveSpread(folder, self.windows, self._kinds()), stream)
        return self._given(lines, partial(AdaptiveWorker, self._task(f"tuned {self._mark()}"), folder))

    def assignment(self) -> BatchAssignment:
        """Which worker has a window, in batches of one size."""
        return BatchAssignment.of(self.windows, self.workers, self.batch)

    def _by_pane(self, stream: str, function: Callable[..., Any]) -> DataFrame:
        """Panes are worked on where their rows are, and what was found goes to those who merge it."""
        ring = self._ring()
        panes, merging, onward = self._merging(ring)
        lines = sent(self._rows(), Spread(panes, self._kinds()), stream)
        make = partial(PaneWorker, self.windows, self._pane_task(function), panes)
        lines = worked(lines, make, onward, timed=True).drop("note")
        return self._given(lines, partial(WindowWorker, self._merge_task(), merging))

    def _counted(self, stream: str) -> DataFrame:
        """Windows of so many rows: rows are numbered first, and their numbers are used as times."""
        if self.pane is None:
            task, assignment = self._task(self._batches()), self.assignment()
            lines = self._numbered(stream, task, assignment)
            return self._given(lines, partial(CountedWorker, task, assignment))
        ring, task = self._ring(), self._pane_task(self.pane)
        panes, merging, onward = self._merging(ring)
        lines = self._numbered(stream, task, panes)
        lines = worked(lines, partial(CountedPanes, task, panes), onward, timed=False).drop("note")
        return self._given(lines, partial(CountedWorker, self._merge_task(), merging, step=ring.pane))

    def _numbered(self, stream: str, task: Task, then: Assignment) -> DataFrame:
        """Lines of rows with their numbers, of their key or of all rows, to those who have them then."""
        make: Maker
        if self.keys:
            make = partial(Numberer, task)
            lines = sent(self._rows(), Spread(KeyAssignment(self.workers), self._kinds()), stream)
        else:
            # Spark looks at a sample of the times and makes a range of about as many rows for each worker.
            rows = self._rows().where(F.col(_TIME).isNotNull()).repartitionByRange(self.workers, _TIME)
            lines = sent(rows, Ranges(self._kinds()), stream)
            make = partial(RangeNumberer, f"all rows of {task.mark}")
        return worked(lines, make, Onward(then, owners_of(self.df)), timed=False).drop("note")

    def _ring(self) -> PaneRing:
        return PaneRing(self.windows.size, self.windows.slide, self.workers)

    def _merging(self, ring: PaneRing) -> tuple[PaneAssignment, BatchAssignment, Onward]:
        """Who has panes, who has windows, and the way from the ones to the others."""
        merging = BatchAssignment.of(self.windows, self.workers, ring.run)
        return PaneAssignment(ring), merging, Onward(merging, owners_of(self.df), ring.pane)

    def _pane_task(self, function: Callable[..., Any]) -> Task:
        call = PaneCall(function, arrow_schema(self.df.schema), arrow=self.arrow, zoned=self._zoned)
        return Task(self._columns(), self.windows.panes, call, mark=f"panes of {self._mark()}")

    def _merge_task(self) -> Task:
        columns = Columns(tuple(range(len(self.keys))), (len(self.keys),))
        merge = MergeCall(self.function, arrow_schema(self.schema), self._zoned)
        return Task(columns, self.windows, merge, newest=True, mark=self._mark())

    def _given(self, lines: DataFrame, make: Maker) -> DataFrame:
        fields = {field.name: field for field in self.df.schema}
        when = T.LongType() if self.windows.rows else fields[self.time].dataType
        keys = tuple(T.StructField(key, fields[key].dataType) for key in self.keys)
        values = tuple(T.StructField(field.name, field.dataType) for field in self.schema)
        result = Result(keys, values, self.windows, when)
        return result.named(worked(lines, make, result, timed=not self.windows.rows))

    def _rows(self) -> DataFrame:
        """What travels: the key's hash, the time, and all columns."""
        columns = [column(self.df, name) for name in self.df.columns]
        hashed = [column(self.df, name) for name in self.keys or self._told_apart()]
        key = F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")
        named = [each.alias(f"c{i}") for i, each in enumerate(columns)]
        return self.df.select(key.alias(KEY), column(self.df, self.time).alias(_TIME), *named)

    def _told_apart(self) -> list[str]:
        """Where all rows are counted, the columns that say in which order rows of one time are: those with a hash."""
        if not self.windows.rows:
            return []
        return [
            field.name
            for field in self.df.schema
            if not any(kind in field.dataType.simpleString() for kind in _NO_HASH)
        ]

    def _kinds(self) -> tuple[pa.DataType, ...]:
        """The types of what travels."""
        schema = arrow_schema(self.df.schema)
        return (pa.int64(), schema.field(self.time).type, *schema.types)

    def _task(self, mark: str) -> Task:
        call = WindowCall(
            self.function, arrow_schema(self.df.schema), arrow_schema(self.schema), self.arrow, self._zoned
        )
        return Task(self._columns(), self.windows, call, self.together, mark=mark)

    def _columns(self) -> Columns:
        names = self.df.columns
        return Columns(tuple(names.index(key) for key in self.keys), tuple(range(len(names))))

    @property
    def _zoned(self) -> bool:
        return arrow_schema(self.df.schema).field(self.time).type.tz is not None

    def _batches(self) -> str:
        return f"{self._mark()}, batches of {self.batch}"

    def _mark(self) -> str:
        """What the state in a checkpoint depends on."""
        kinds = ", ".join(f"{field.name} {field.type}" for field in arrow_schema(self.df.schema))
        of = f"{self.windows.size} / {self.windows.slide} {'rows' if self.windows.rows else 'microseconds'}"
        return f"({kinds}) by ({', '.join(self.keys)}), {of}, {self.workers} workers"
