"""Functions of whole windows on Spark: rows wait in the state of the workers that have their windows."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skewless.chop.assignment import Assignment, BatchAssignment, KeyAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.control.plans import Plan, Plans
from skewless.core import blob
from skewless.core.store import MemoryStore, Store
from skewless.core.windows import Windows
from skewless.operators.windows.adaptive import TunedOwner
from skewless.operators.windows.counted import CountOwner, Numberer
from skewless.operators.windows.function import MergeCall, PaneCall, WindowCall
from skewless.operators.windows.panes import PaneOwner
from skewless.operators.windows.worker import Columns, Owner, Task, Worker
from skewless.spark.aggregate import SLIDE, owners_of
from skewless.spark.combine import larger
from skewless.spark.route import KEY, column
from skewless.spark.store import StateStore, partition_of, property_of, set_timer
from skewless.spark.types import arrow_type
from skewless.spark.windows import ROWS, Unpack, plain, rows_of

SCHEMA = "owner int, place long, rows binary, control long, reached long, n long"
"""Some rows for a worker: the value that Spark shuffles to it, and a number by which what it gets has an order. Where
batches are tuned, also the plan; and in one of the rows, the last window that rows came for, and how many they were."""
_LONGS = ("control", "reached", "n")
_WIRE = pa.schema(
    [("owner", pa.int32()), ("place", pa.int64()), ("rows", pa.binary()), *((name, pa.int64()) for name in _LONGS)]
)
_TIME, _CONTROL = "__skewless_time", "__skewless_control"

Maker = Callable[[int, Store], Worker]
"""A worker, from its number and its store."""


class Out(ABC):
    """What becomes of the rows that a worker gives."""

    @abstractmethod
    def frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        """For a stream."""

    @abstractmethod
    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """For a batch DataFrame."""

    def news(self) -> pd.DataFrame | None:
        """What is given once in a micro-batch of a stream, though there may be no rows."""
        return None


@dataclass(frozen=True)
class Send(Out):
    """Rows of hash, time and other columns, in a blob for each worker that needs them.

    Parameters
    ----------
    deal
        Says which do.
    owners
        For each worker the value that Spark shuffles to it.
    every
        Whether all workers get a row, though it may hold no rows: so all of them know that time goes on, and what is
        late.
    once
        Whether it is enough that they get it once in a micro-batch, and not with all rows.
    unit
        What the times of the rows are to be multiplied by.
    """

    deal: Assignment
    owners: tuple[int, ...]
    every: bool = False
    once: bool = False
    unit: int = 1

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of `SCHEMA`."""
        hashes, times = np.asarray(rows.column(0)), np.asarray(rows.column(1))
        if self.unit != 1:
            times = times * self.unit
            rows = rows.set_column(1, rows.schema.field(1), pa.array(times))
        which, workers = self.deal.copies(hashes, times)
        order = np.argsort(workers, kind="stable")
        bounds = np.searchsorted(workers[order], np.arange(len(self.owners) + 1))
        copied = rows.take(pa.array(which[order]))
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        every = self.every and not self.once
        lines = [
            (owner, task, blob.dump(copied.slice(start, stop - start).columns) if stop > start else None, *[None] * 3)
            for owner, (start, stop) in zip(self.owners, itertools.pairwise(bounds.tolist()), strict=True)
            if stop > start or every
        ]
        columns = zip(*lines, strict=True) if lines else [[]] * len(_WIRE)
        arrays = [pa.array(values, type=kind) for values, kind in zip(columns, _WIRE.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_WIRE)

    def frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        """The same for pandas."""
        return self.batch(rows).to_pandas()

    def news(self) -> pd.DataFrame | None:
        """No rows, for all workers."""
        n = len(self.owners)
        columns = [self.owners, [-1] * n, *[[None] * n] * (len(_WIRE) - 2)]
        arrays = [pa.array(values, type=kind) for values, kind in zip(columns, _WIRE.types, strict=True)]
        return pa.table(arrays, schema=_WIRE).to_pandas() if self.once else None


@dataclass(frozen=True)
class Give(Out):
    """Rows of hash, window, keys and answer, as those of the result: start, end, keys and answer.

    Parameters
    ----------
    windows
        Size and slide.
    schema
        Of the result.
    straight
        Whether pandas can carry it as it is; if not, it goes as `ROWS`.
    """

    windows: Windows
    schema: pa.Schema
    straight: bool

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the schema."""
        return rows_of(self._columns(rows), self.schema)

    def frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        """The same for pandas, times as microseconds; or in a blob."""
        columns = self._columns(rows)
        if not self.straight:
            return pd.DataFrame({"rows": [blob.dump(columns)]})
        return pa.table(columns, names=self.schema.names).to_pandas(types_mapper=pd.ArrowDtype)

    def _columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        start = np.asarray(rows.column(1)) * self.windows.slide
        return [pa.array(start), pa.array(start + self.windows.size), *rows.columns[2:]]


@dataclass(frozen=True)
class Chop:
    """What a task does with its rows, for `mapInArrow`: from hash, time and columns to rows of `SCHEMA`.

    Parameters
    ----------
    send
        Who gets the rows.
    kinds
        The types of their columns.
    """

    send: Send
    kinds: tuple[pa.DataType, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows without a time are in no window."""
        for rows in larger(batches):
            there = self.timed(rows)
            if there.num_rows:
                yield self.send.batch(there)

    def timed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have a time, as microseconds."""
        pairs = zip(rows.columns, self.kinds, strict=True)
        columns = [each if each.type == kind else each.cast(kind) for each, kind in pairs]
        columns[1] = columns[1].cast(pa.int64())
        rows = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        return rows.filter(columns[1].is_valid()) if columns[1].null_count else rows


@dataclass(frozen=True)
class TunedChop(Chop):
    """The same by the plan that is in the first column of the rows.

    Parameters
    ----------
    plans
        The folder of the stream.
    windows
        Size and slide.
    """

    plans: Plans
    windows: Windows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every worker hears of the plan from every task that had rows."""
        for rows in larger(batches):
            if not rows.num_rows:
                continue
            code = rows.column(0)[0].as_py()
            there = self.timed(rows.select(range(1, rows.num_columns)))
            sent = replace(self.send, deal=self.plans.dealer(Plan.of(code))).batch(there)
            reached = int(self.windows.last(np.asarray(there.column(1))).max()) if there.num_rows else None
            none = [None] * (sent.num_rows - 1)
            columns = {"control": [code] * sent.num_rows, "reached": [reached, *none], "n": [rows.num_rows, *none]}
            for name in _LONGS:
                sent = sent.set_column(_WIRE.names.index(name), name, pa.array(columns[name], pa.int64()))
            yield sent


@dataclass(frozen=True)
class RunAll:
    """A worker on all its rows, for `mapInArrow` over the partitions of a batch DataFrame."""

    make: Maker
    out: Out
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of `SCHEMA` to what `out` makes of the answers."""
        parts = [part for batch in batches for part in batch.to_pylist()]
        if parts:
            worker = self.make(self.owners.index(parts[0]["owner"]), MemoryStore())
            for answer in worker.run(_tables((part["place"], part["rows"]) for part in parts), None):
                yield self.out.batch(answer)


class Run(StatefulProcessor):
    """A worker in every micro-batch of a stream.

    Parameters
    ----------
    make, out
        The worker, and what becomes of its answers.
    owners
        For each partition of state, the value that Spark shuffles to it.
    timed
        Whether time closes windows.
    """

    def __init__(self, make: Maker, out: Out, owners: tuple[int, ...], *, timed: bool) -> None:
        self._make, self._out, self._owners, self._timed = make, out, owners, timed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._handle, self._store = handle, StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Rows for the worker, or the news that time went on."""
        parts: list[tuple[int, Any]] = []
        code: Any = None
        for frame in rows:
            parts += zip(frame["place"], frame["rows"], strict=True)
            code = frame["control"].iloc[0]
        yield from self._run(key[0], _tables(parts), timerValues, None if pd.isna(code) else int(code))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Time went on without rows for this worker."""
        yield from self._run(key[0], [], timerValues)

    def close(self) -> None:
        """Nothing to close."""

    def _run(
        self, value: int, tables: list[pa.RecordBatch], timer_values: Any, code: int | None = None
    ) -> Iterator[pd.DataFrame]:
        number = partition_of(self._owners, value)
        worker = self._make(number, self._store)
        if code is not None:
            worker.obey(code, int(property_of("streaming.sql.batchId")))
        watermark = timer_values.getCurrentWatermarkInMs() * 1000 if self._timed else None
        for answer in worker.run(tables, watermark):
            yield self._out.frame(answer)
        news = self._out.news() if number == 0 else None
        if news is not None:
            yield news
        if watermark is not None:
            wake = worker.wake
            set_timer(self._handle, self._store, None if wake is None else max(wake, watermark + 1000))


def _tables(parts: Any) -> list[pa.RecordBatch]:
    """The rows of some parts, in one order however they came."""
    ordered = sorted(((place, data) for place, data in parts if data is not None), key=lambda part: part[0])
    return [blob.load(bytes(data)) for _place, data in ordered]


@dataclass(frozen=True)
class Chopping:
    """A function of whole windows.

    Parameters
    ----------
    df, keys, time
        The rows, the columns of the key (none for windows of all rows), and that of time.
    windows
        Of time or of rows.
    functions
        One of the rows of a window; or one of those of a pane, and one of the answers for the panes of a window.
    schema
        Of the answers.
    workers
        That share the windows.
    batch
        Consecutive windows that a worker has, before it is the next one's turn.
    together
        Whether the windows of a batch wait for each other.
    arrow
        Whether rows are given as Arrow tables.
    """

    df: DataFrame
    keys: tuple[str, ...]
    time: str
    windows: Windows
    functions: tuple[Callable[..., Any], ...]
    schema: T.StructType
    workers: int
    batch: int
    together: bool
    arrow: bool

    def tuned(self, plans: Plans, control: DataFrame, name: str) -> DataFrame:
        """The same of a stream, in batches of sizes that change.

        Parameters
        ----------
        plans
            The folder of the stream.
        control
            The plan, which every micro-batch reads anew.
        name
            Under which each plan, how far rows reached and how many they were is observed.
        """
        owners, kinds = owners_of(self.df), self._kinds()
        rows = self._rows()
        planned = rows.crossJoin(F.broadcast(control.select(F.col("control").alias(_CONTROL))))
        send = Send(BatchAssignment.of(self.windows, self.workers, self.batch), owners, every=True)
        chop = TunedChop(send, (pa.int64(), kinds[self.time], *kinds.values()), plans, self.windows)
        chopped = planned.select(_CONTROL, *rows.columns).mapInArrow(chop, SCHEMA)
        observed = [F.max("control").alias("control"), F.max("reached").alias("reached"), F.sum("n").alias("n")]
        task = Task(self._columns(), self.windows, self._window_call(), self.together, mark=f"tuned {self._mark()}")
        return self._given(chopped.observe(name, *observed), partial(TunedOwner, task, plans))

    def run(self) -> DataFrame:
        """The result: window, keys, and the columns of the schema."""
        owners = owners_of(self.df)
        deal = BatchAssignment.of(self.windows, self.workers, self.batch)
        mark = f"{self._mark()}, batches of {self.batch}"
        task = Task(self._columns(), self.windows, self._window_call(), self.together, mark=mark)
        if self.windows.rows:
            numbered = self._stage(
                self._chopped(Send(KeyAssignment(self.workers), owners)), partial(Numberer, task), Send(deal, owners), SCHEMA
            )
            return self._given(numbered, partial(CountOwner, task, deal))
        if len(self.functions) == 1:
            return self._given(self._chopped(Send(deal, owners, every=True)), partial(Owner, task, deal))
        return self._given(*self._ring(owners))

    def _ring(self, owners: tuple[int, ...]) -> tuple[DataFrame, Maker]:
        """The answers for panes, where they are needed; and those who merge them."""
        ring = PaneRing(self.windows.size, self.windows.slide, self.workers)
        panes, deal = PaneAssignment(ring), BatchAssignment.of(self.windows, self.workers, ring.run)
        seen = pa.schema(list(self._kinds().items()))
        call = PaneCall(self.functions[0], seen, arrow=self.arrow, zoned=self._zoned)
        task = Task(self._columns(), self.windows.panes, call, mark=f"panes of {self._mark()}")
        chopped = self._chopped(Send(panes, owners, every=True))
        passed = self._stage(
            chopped,
            partial(PaneOwner, self.windows, task, panes),
            Send(deal, owners, every=True, once=True, unit=ring.pane),
            SCHEMA,
        )
        columns = Columns(tuple(range(len(self.keys))), (len(self.keys),))
        merge = MergeCall(self.functions[1], self._answer(), self._zoned)
        return passed, partial(Owner, Task(columns, self.windows, merge, newest=True, mark=self._mark()), deal)

    def _rows(self) -> DataFrame:
        """What travels: the key's hash, the time, and all columns."""
        columns = [column(self.df, name) for name in self.df.columns]
        key = F.xxhash64(*[column(self.df, name) for name in self.keys]) if self.keys else F.lit(0).cast("long")
        named = [each.alias(f"c{i}") for i, each in enumerate(columns)]
        return self.df.select(key.alias(KEY), column(self.df, self.time).alias(_TIME), *named)

    def _chopped(self, send: Send) -> DataFrame:
        kinds = self._kinds()
        return self._rows().mapInArrow(Chop(send, (pa.int64(), kinds[self.time], *kinds.values())), SCHEMA)

    def _stage(self, rows: DataFrame, make: Maker, out: Out, schema: str | T.StructType) -> DataFrame:
        owners = owners_of(self.df)
        if not self.df.isStreaming:
            return rows.repartition(len(owners), "owner").mapInArrow(RunAll(make, out, owners), schema)
        timed = not self.windows.rows
        run = Run(make, out, owners, timed=timed)
        return rows.groupBy("owner").transformWithStateInPandas(run, schema, "append", "eventtime" if timed else "none")

    def _given(self, rows: DataFrame, make: Maker) -> DataFrame:
        kinds = {field.name: field.dataType for field in self.df.schema}
        when = T.LongType() if self.windows.rows else kinds[self.time]
        fields = [T.StructField("start", when), T.StructField("end", when)]
        fields += [T.StructField(f"k{i}", kinds[key]) for i, key in enumerate(self.keys)]
        fields += [T.StructField(f"v{i}", field.dataType) for i, field in enumerate(self.schema)]
        arrow = pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in fields])
        straight = when != T.TimestampNTZType() and all(plain(kind) for kind in arrow.types[2:])
        out = Give(self.windows, arrow, straight)
        if not self.df.isStreaming:
            return self._named(self._stage(rows, make, out, T.StructType(fields)), as_times=False)
        if not straight:
            packed = self._stage(rows, make, out, ROWS)
            return self._named(packed.mapInArrow(Unpack(arrow), T.StructType(fields)), as_times=False)
        numbers = [T.StructField("start", T.LongType()), T.StructField("end", T.LongType())]
        given = self._stage(rows, make, out, T.StructType([*numbers, *fields[2:]]))
        return self._named(given, as_times=not self.windows.rows)

    def _named(self, rows: DataFrame, *, as_times: bool) -> DataFrame:
        def edge(name: str) -> Column:
            return (F.timestamp_micros(name) if as_times else F.col(name)).alias(name)

        metadata = {} if self.windows.rows else {SLIDE: self.windows.slide}
        columns = [F.struct(edge("start"), edge("end")).alias("window", metadata=metadata)]
        columns += [F.col(f"k{i}").alias(name) for i, name in enumerate(self.keys)]
        columns += [F.col(f"v{i}").alias(field.name) for i, field in enumerate(self.schema)]
        return rows.select(*columns)

    def _columns(self) -> Columns:
        names = self.df.columns
        return Columns(tuple(names.index(key) for key in self.keys), tuple(range(len(names))))

    def _window_call(self) -> WindowCall:
        seen = pa.schema(list(self._kinds().items()))
        return WindowCall(self.functions[-1], seen, self._answer(), self.arrow, self._zoned)

    @property
    def _zoned(self) -> bool:
        return self._kinds()[self.time].tz is not None

    def _answer(self) -> pa.Schema:
        return pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in self.schema])

    def _kinds(self) -> dict[str, pa.DataType]:
        return {field.name: arrow_type(field.dataType, field.name) for field in self.df.schema}

    def _mark(self) -> str:
        """What the state in a checkpoint depends on."""
        kinds = ", ".join(f"{name} {kind}" for name, kind in self._kinds().items())
        of = f"{self.windows.size} / {self.windows.slide} {'rows' if self.windows.rows else 'microseconds'}"
        return f"({kinds}) by ({', '.join(self.keys)}), {of}, {self.workers} workers"
