"""Reduce: owners of keys keep panes in Spark's state store, and give windows when the watermark closes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skewless.core import blob
from skewless.operators.panes import Layout, Owner
from skewless.spark.store import StateStore, partition_of, set_timer

ROWS = "rows binary"
"""What owners give where pandas could not carry the rows: blobs of them, for `Unpack`."""


class Reducer(StatefulProcessor):
    """An `Owner` for each partition of state.

    A timer stands at the next end of a window, so that windows close when time goes on without rows too.

    Parameters
    ----------
    layout
        Of the query.
    owners
        For each partition of state, the value that Spark shuffles to it.
    timed
        Whether there is a watermark.
    names
        Of the columns to give: the window's start in microseconds, keys and values. None to give `ROWS`.
    """

    def __init__(self, layout: Layout, owners: tuple[int, ...], names: tuple[str, ...] | None, *, timed: bool) -> None:
        self._layout, self._owners, self._names, self._timed = layout, owners, names, timed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._handle, self._store = handle, StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Partial states for an owner."""
        partition_of(self._owners, key[0])
        blobs = [data for frame in rows for data in frame["states"] if data is not None]
        owner = Owner(self._layout, self._store)
        owner.add([blob.load(data) for data in blobs])
        yield from self._advance(owner, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Time went on without rows for this owner."""
        partition_of(self._owners, key[0])
        yield from self._advance(Owner(self._layout, self._store), timerValues)

    def close(self) -> None:
        """Nothing to close."""

    def _advance(self, owner: Owner, timer_values: Any) -> Iterator[pd.DataFrame]:
        watermark = None
        if self._timed:
            watermark = timer_values.getCurrentWatermarkInMs() * 1000
            spec = self._layout.spec
            set_timer(self._handle, self._store, spec.end(spec.open_at(watermark)))
        for batch in owner.updates(watermark) if self._layout.updating else owner.close(watermark):
            yield self._frame(batch)
        owner.save()

    def _frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        if self._names is None:
            return pd.DataFrame({"rows": [blob.dump(rows.columns)]})
        start, _end, *rest = rows.columns
        # Columns that stay Arrow's go through pandas without being looked at.
        return pa.table([start, *rest], names=list(self._names)).to_pandas(types_mapper=pd.ArrowDtype)


def plain(kind: pa.DataType) -> bool:
    """Whether a column of this type can go through pandas as it is."""
    is_plain = [pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary]
    return any(check(kind) for check in is_plain)


@dataclass(frozen=True)
class Unpack:
    """From the blobs of owners to rows of this schema, for `mapInArrow`."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows."""
        for batch in batches:
            for data in batch.column(0):
                columns = blob.load(data.as_py()).columns
                yield rows_of(columns, self.schema)


@dataclass(frozen=True)
class ReduceAll:
    """All windows of an owner at once, for `mapInArrow` over the partitions of a batch DataFrame."""

    layout: Layout
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of `combine.SCHEMA` to rows of this schema."""
        blobs = [data.as_py() for batch in batches for data in batch.column("states") if data.is_valid]
        owner = Owner(self.layout)
        owner.add([blob.load(data) for data in blobs])
        for rows in owner.close(None):
            yield rows_of(rows.columns, self.schema)


def rows_of(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Columns as the last ones of a schema, in its types: times come as microseconds, and may not be asked for."""
    columns = columns[len(columns) - len(schema) :]
    cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
