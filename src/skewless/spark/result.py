"""The rows of a result: how they travel from Python to Spark, and what they are there.

Columns that pandas carries as they are go straight. Others, such as decimals, dates, arrays and times without a zone,
leave the worker as a blob, which one more `mapInArrow` unpacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.core import blob
from skewless.core.tables import cast
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.spark.stage import Out, settle
from skewless.spark.types import arrow_schema

if TYPE_CHECKING:
    import pandas as pd

SLIDE = "skewless.slide"
"""Under this name the column of windows has their slide with it, in microseconds."""
ROWS = "rows binary"


@dataclass(frozen=True)
class Result(Out):
    """Rows of a window, key columns and values; workers give the start of the window, keys and values.

    Parameters
    ----------
    keys, values
        The fields of the result, by the names that it is to have.
    windows
        Size and slide of the windows; None where the result has none.
    when
        The type of the time of windows.
    """

    keys: tuple[T.StructField, ...]
    values: tuple[T.StructField, ...]
    windows: Windows | None = None
    when: T.DataType | None = None

    @property
    def fields(self) -> list[T.StructField]:
        """Keys and values under generated names (k0, v0) that need no quoting."""
        keys = [T.StructField(f"k{i}", field.dataType, field.nullable) for i, field in enumerate(self.keys)]
        values = [T.StructField(f"v{i}", field.dataType, field.nullable) for i, field in enumerate(self.values)]
        return [*keys, *values]

    @property
    def unpacked(self) -> T.StructType:
        """The columns of the result before they are named."""
        edges = [T.StructField(edge, self.when) for edge in ("start", "end")] if self.windows and self.when else []
        return T.StructType([*edges, *self.fields])

    @property
    def straight(self) -> bool:
        """Whether pandas can carry the columns as they are."""
        kinds = arrow_schema(T.StructType(self.fields)).types
        return self.when != T.TimestampNTZType() and all(map(_is_plain, kinds))

    def schema(self, *, streaming: bool) -> str | T.StructType:
        """The columns that the stage gives."""
        if not streaming:
            return self.unpacked
        start = [T.StructField("start", T.LongType())] if self.windows else []
        return T.StructType([*start, *self.fields]) if self.straight else ROWS

    def batches(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pa.RecordBatch]:
        """The rows that a worker gives, unpacked."""
        schema = arrow_schema(self.unpacked)
        for answer in answers:
            yield self.batch(answer.columns, schema)

    def frames(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pd.DataFrame]:
        """The rows that a worker gives, for pandas."""
        import pandas as pd

        straight = self.straight
        names = [*(["start"] if self.windows else []), *[field.name for field in self.fields]]
        for answer in answers:
            columns = answer.columns[answer.num_columns - len(names) :]
            if straight:
                # Columns that stay Arrow's go through pandas without being looked at.
                yield pa.table(columns, names=names).to_pandas(types_mapper=pd.ArrowDtype)
            else:
                yield pd.DataFrame({"rows": [blob.dump(columns)]})

    def batch(self, columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
        """Columns that a worker gave, unpacked: the end of the window is added, or the start not asked for."""
        values = columns[len(columns) - len(self.fields) :]
        if self.windows:
            start = np.asarray(columns[0])
            values = [pa.array(start), pa.array(start + self.windows.size), *values]
        return pa.RecordBatch.from_arrays(cast(values, schema.types), schema=schema)

    def named(self, rows: DataFrame) -> DataFrame:
        """The result, for the rows that the stage gave."""
        apart = rows.isStreaming and not self.straight
        if apart:
            rows = rows.mapInArrow(Unpack(self, arrow_schema(self.unpacked)), self.unpacked)
        columns = []
        if self.windows:
            edges = self._edges() if rows.isStreaming and not apart else [F.col("start"), F.col("end")]
            metadata = {} if self.windows.rows else {SLIDE: self.windows.slide}
            columns.append(F.struct(*edges).alias("window", metadata=metadata))
        names = [field.name for field in (*self.keys, *self.values)]
        columns += [F.col(field.name).alias(name) for field, name in zip(self.fields, names, strict=True)]
        return rows.select(*columns)

    def _edges(self) -> list[Column]:
        """Start and end of the window, from the start as a number."""
        assert self.windows is not None  # or there are none
        edges = [F.col("start"), F.col("start") + F.lit(self.windows.size)]
        edges = edges if self.windows.rows else [F.timestamp_micros(edge) for edge in edges]
        return [edge.alias(name) for edge, name in zip(edges, ("start", "end"), strict=True)]


@dataclass(frozen=True)
class Unpack:
    """From the blobs of workers to rows, for `mapInArrow`."""

    result: Result
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows."""
        settle()
        for batch in batches:
            for data in batch.column(0):
                yield self.result.batch(blob.load(data.as_py()).columns, self.schema)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column of this type can go through pandas as it is."""
    is_plain = [pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_binary]
    return any(check(kind) for check in is_plain)
