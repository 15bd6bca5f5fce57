"""Processors of keys whose state does not merge: rows go to the owner of their slot, which has it in Spark's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skewless.control.location import Control, Location
from skewless.control.still import Still
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds
from skewless.core.store import MemoryStore
from skewless.core.tables import joined
from skewless.operators.process.calls import step_of
from skewless.operators.process.processor import Processor
from skewless.operators.process.worker import Columns, Owner
from skewless.spark import pack
from skewless.spark.aggregate import delay_of, owners_of
from skewless.spark.pack import Packer
from skewless.spark.route import KEY, column
from skewless.spark.store import StateStore, partition_of, property_of, set_timer
from skewless.spark.types import arrow_type
from skewless.spark.windows import ROWS, Unpack, plain, rows_of

CONTROL = "__skewless_control"
_FOREVER = 1 << 62  # microseconds: later than any timer
_MANY = 1 << 16  # rows that are enough for a piece


@dataclass(frozen=True)
class Work:
    """What an owner must know of its query.

    Parameters
    ----------
    processor
        The user's.
    columns
        Of the rows.
    keys, fields, result
        The names and types of key, state and result.
    location
        Of the stream.
    timed
        Whether there is a watermark.
    """

    processor: Processor
    columns: Columns
    keys: pa.Schema
    fields: pa.Schema
    result: pa.Schema
    location: Location
    timed: bool

    def owner(self, worker: int, store: StateStore | MemoryStore, batch: int) -> Owner:
        """A worker in a micro-batch."""
        step = step_of(self.processor, self.keys, self.fields, self.result)
        ttl = microseconds(self.processor.ttl) if self.processor.ttl and self.timed else None
        return Owner(worker, self.columns, step, store, self.location, batch, ttl)

    def for_query(self, query: str) -> Work:
        """The same for one query."""
        return replace(self, location=replace(self.location, query=query))


class Keeper(StatefulProcessor):
    """An `Owner` for each partition of state.

    Parameters
    ----------
    work
        Of the query.
    owners
        For each partition of state, the value that Spark shuffles to it.
    straight
        Whether pandas can carry the result as it is; if not, it comes as `ROWS`.
    """

    def __init__(self, work: Work, owners: tuple[int, ...], *, straight: bool) -> None:
        self._work, self._owners, self._straight = work, owners, straight

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._handle, self._store = handle, StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Rows for a worker, or just the control."""
        code, blobs = 0, []
        for frame in rows:
            code = int(frame["control"].iloc[0])
            blobs += [data for data in frame["rows"] if data is not None]
        yield from self._run(key[0], Control.of(code), [blob.load(data) for data in blobs], timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Time went on."""
        yield from self._run(key[0], None, [], timerValues)

    def close(self) -> None:
        """Nothing to close."""

    def _run(
        self, value: int, control: Control | None, rows: Sequence[pa.RecordBatch], timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        worker = partition_of(self._owners, value)
        watermark = timer_values.getCurrentWatermarkInMs() * 1000 if self._work.timed else None
        work = self._work.for_query(property_of("sql.streaming.queryId"))
        owner = work.owner(worker, self._store, int(property_of("streaming.sql.batchId")))
        for results in _together(owner.run(control, rows, watermark)):
            yield self._frame(results)
        if watermark is not None:
            wake = owner.wake
            set_timer(self._handle, self._store, None if wake is None else max(wake, watermark + 1000))

    def _frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        if not self._straight:
            return pd.DataFrame({"rows": [blob.dump(rows.columns)]})
        # Columns that stay Arrow's go through pandas without being looked at.
        names = [f"c{i}" for i in range(rows.num_columns)]
        return pa.table(rows.columns, names=names).to_pandas(types_mapper=pd.ArrowDtype)


@dataclass(frozen=True)
class ProcessAll:
    """All rows of a worker at once, for `mapInArrow` over the partitions of a batch DataFrame."""

    work: Work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of `pack.SCHEMA` to rows of the result; at the end all timers are due."""
        blobs = [data.as_py() for batch in batches for data in batch.column("rows") if data.is_valid]
        owner = self.work.owner(0, MemoryStore(), 0)
        for result in owner.run(Control(0), [blob.load(data) for data in blobs], None):
            yield rows_of(result.columns, _numbered(self.work.result))
        for result in owner.run(None, [], _FOREVER):
            yield rows_of(result.columns, _numbered(self.work.result))


@dataclass(frozen=True)
class Processing:
    """Everything about a processor on a keyed stream but which worker owns what.

    Parameters
    ----------
    df, keys
        The rows, and the columns that are the key.
    processor, schema
        What is done, and what it gives.
    order
        Columns by which the rows of a key are sorted.
    time
        The column of event time; None without.
    """

    df: DataFrame
    keys: tuple[str, ...]
    processor: Processor
    schema: T.StructType
    order: tuple[str, ...]
    time: str | None

    def rows(self) -> DataFrame:
        """What travels: the key's hash and all columns."""
        columns = [F.xxhash64(*[column(self.df, key) for key in self.keys]).alias(KEY)]
        columns += [column(self.df, name).alias(f"c{i}") for i, name in enumerate(self.df.columns)]
        return self.df.select(*columns)

    def stream(self, rows: DataFrame, control: DataFrame, location: Location, loads: str) -> DataFrame:
        """The result of a stream, for its `rows`, by the placement that `control` names in each micro-batch."""
        owners, work = owners_of(self.df), self._work(location)
        packed = _with_control(rows, control).mapInArrow(Packer(location, work.columns.schema, owners), pack.SCHEMA)
        observed = [F.max("control").alias("control"), F.collect_list("counts").alias("counts")]
        packed = packed.observe(loads, *observed).select("owner", "control", "rows")
        straight = all(plain(kind) for kind in work.result.types)
        keeper = Keeper(work, owners, straight=straight)
        given = self._given()
        mode = "eventtime" if work.timed else "none"
        kept = packed.groupBy("owner").transformWithStateInPandas(keeper, given if straight else ROWS, "append", mode)
        return self._named(kept if straight else kept.mapInArrow(Unpack(_numbered(work.result)), given))

    def batch(self, rows: DataFrame, location: Still) -> DataFrame:
        """The result of a batch, by a placement that does not change."""
        owners, work = owners_of(self.df), self._work(location)
        packer = Packer(location, work.columns.schema, owners)
        packed = rows.select(KEY, F.lit(0).cast("long").alias(CONTROL), *rows.columns[1:])
        packed = packed.mapInArrow(packer, pack.SCHEMA).repartition(len(owners), "owner")
        return self._named(packed.mapInArrow(ProcessAll(work), self._given()))

    def _work(self, location: Location) -> Work:
        kinds = {field.name: arrow_type(field.dataType, field.name) for field in self.df.schema}
        names = list(kinds)
        schema = pa.schema(list(kinds.items()))
        keys = pa.schema([(name, kinds[name]) for name in self.keys])
        places = [names.index(name) for name in (*self.keys, *self.order)]
        columns = Columns(
            schema,
            tuple(places[: len(self.keys)]),
            tuple(places[len(self.keys) :]),
            None if self.time is None else names.index(self.time),
        )
        fields = _arrow_schema(fields_of(self.processor))
        timed = self.df.isStreaming and self.time is not None and delay_of(self.df, self.time) is not None
        return Work(self.processor, columns, keys, fields, _arrow_schema(self.schema), location, timed)

    def _given(self) -> T.StructType:
        return T.StructType([T.StructField(f"c{i}", field.dataType) for i, field in enumerate(self.schema)])

    def _named(self, rows: DataFrame) -> DataFrame:
        return rows.select(*[F.col(f"c{i}").alias(field.name) for i, field in enumerate(self.schema)])


def _together(results: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger pieces, as each goes to the JVM by itself."""
    waiting: list[pa.RecordBatch] = []
    for result in results:
        if result.num_rows:
            waiting.append(result)
        if sum(each.num_rows for each in waiting) >= _MANY:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


def fields_of(processor: Processor) -> T.StructType:
    """The fields that a processor keeps."""
    declared = getattr(processor, "state", None)
    if not isinstance(declared, str):
        raise SkewlessError(f'{type(processor).__name__} declares no state; add state = "total long" to the class')
    return structure(declared)


def structure(ddl: str) -> T.StructType:
    """Columns in Spark's words."""
    example = "name columns with their types, such as 'user string, visits long'"
    try:
        schema = T.StructType.fromDDL(ddl)
    except (ParseException, ValueError) as error:
        raise SkewlessError(f"{ddl!r} is no list of columns ({str(error).splitlines()[0]}); {example}") from error
    if not isinstance(schema, T.StructType):
        raise SkewlessError(f"{ddl!r} is one type; {example}")
    return schema


def _with_control(rows: DataFrame, control: DataFrame) -> DataFrame:
    joined = rows.crossJoin(F.broadcast(control.select(F.col("control").alias(CONTROL))))
    return joined.select(KEY, CONTROL, *rows.columns[1:])


def _arrow_schema(schema: T.StructType) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in schema])


def _numbered(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(f"c{i}", kind) for i, kind in enumerate(schema.types)])
