"""Reduce: owners of keys keep panes in Spark's state store, and give windows when the watermark closes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from skewless.errors import SkewlessError
from skewless.panes import Layout, Owner
from skewless.state import Store, blob

ROWS = "rows binary"
"""What owners give where pandas could not carry the rows: blobs of them, for `Unpack`."""
_TIMER = "timer"


class StateStore(Store):
    """The blobs of the key in hand, in a map of Spark's state store.

    Parameters
    ----------
    handle
        Of the stateful processor.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("owner", "name string", "data binary")

    def get(self, name: str) -> bytes | None:
        """The blob, or None."""
        value = self._map.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, data: bytes) -> None:
        """Write a blob."""
        self._map.updateValue((name,), (data,))

    def drop(self, name: str) -> None:
        """Delete a blob."""
        self._map.removeKey((name,))


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
        self._check(key[0])
        blobs = [data for frame in rows for data in frame["states"] if data is not None]
        owner = Owner(self._layout, self._store)
        owner.add([blob.load(data) for data in blobs])
        yield from self._advance(owner, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Time went on without rows for this owner."""
        self._check(key[0])
        yield from self._advance(Owner(self._layout, self._store), timerValues)

    def close(self) -> None:
        """Nothing to close."""

    def _advance(self, owner: Owner, timer_values: Any) -> Iterator[pd.DataFrame]:
        watermark = None
        if self._timed:
            watermark = timer_values.getCurrentWatermarkInMs() * 1000
            self._set_timer(watermark)
        for batch in owner.updates(watermark) if self._layout.updating else owner.close(watermark):
            yield self._frame(batch)
        owner.save()

    def _frame(self, rows: pa.RecordBatch) -> pd.DataFrame:
        if self._names is None:
            return pd.DataFrame({"rows": [blob.dump(rows.columns)]})
        start, _end, *rest = rows.columns
        # Columns that stay Arrow's go through pandas without being looked at.
        return pa.table([start, *rest], names=list(self._names)).to_pandas(types_mapper=pd.ArrowDtype)

    def _set_timer(self, watermark: int) -> None:
        """A timer at the next end of a window, in place of one that is due."""
        due = self._store.get(_TIMER)
        if due is not None and int(due) * 1000 > watermark:
            return
        if due is not None:
            self._handle.deleteTimer(int(due))
        spec = self._layout.spec
        following = -(-spec.end(spec.open_at(watermark)) // 1000)
        self._handle.registerTimer(following)
        self._store.put(_TIMER, str(following).encode())

    def _check(self, value: int) -> None:
        """State is found again only on as many partitions as it was made with."""
        context = TaskContext.get()
        assert context is not None  # this runs in a task
        at = context.partitionId()
        if at >= len(self._owners) or self._owners[at] != value:
            raise SkewlessError(
                f"the session has {len(self._owners)} shuffle partitions, the checkpoint was made with another number; "
                "set spark.sql.shuffle.partitions to what it was then"
            )


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
