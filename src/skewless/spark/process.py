"""The plan of a processor: rows go to the worker that owns their slot, which keeps it in Spark's state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.control.placements import OnePlacement, Placements
from skewless.core.interval import microseconds
from skewless.operators.process.pack import Pack
from skewless.operators.process.processor import Processor
from skewless.operators.process.worker import Columns, ProcessWorker, Task
from skewless.spark.result import Result
from skewless.spark.route import KEY, column, delay_of, with_control
from skewless.spark.staging import sent, worked
from skewless.spark.types import arrow_schema


@dataclass(frozen=True)
class Processing:
    """Everything about a processor on a keyed stream but which worker owns what.

    Parameters
    ----------
    df, keys
        The rows, and the columns that are the key.
    processor, fields, schema
        What is done, what it keeps of a key, and what it gives.
    order
        The columns by which the rows of a key are sorted.
    time
        The column of event time; None without.
    """

    df: DataFrame
    keys: tuple[str, ...]
    processor: Processor
    fields: T.StructType
    schema: T.StructType
    order: tuple[str, ...]
    time: str | None

    def rows(self) -> DataFrame:
        """What travels: the key's hash and all columns."""
        columns = [F.xxhash64(*[column(self.df, key) for key in self.keys]).alias(KEY)]
        columns += [column(self.df, name).alias(f"c{i}") for i, name in enumerate(self.df.columns)]
        return self.df.select(*columns)

    def run(self, rows: DataFrame, placements: Placements | OnePlacement, stream: str) -> DataFrame:
        """The result for `rows`, by the placement that the folder names in each micro-batch, or the one of a batch.

        Parameters
        ----------
        rows
            The rows of `rows`.
        placements
            The stream's folder, or the one placement of a batch.
        stream
            The identity under which a stream is observed.
        """
        task, result = self._task(placements), self._result()
        folder = placements.control if isinstance(placements, Placements) else None
        controlled = with_control(rows, folder)
        controlled = controlled.select(KEY, controlled.columns[-1], *rows.columns[1:])
        lines = sent(controlled, Pack(placements, task.columns.schema), stream)
        return result.named(worked(lines, partial(ProcessWorker, task), result, timed=self._timed))

    @property
    def _timed(self) -> bool:
        return self.df.isStreaming and self.time is not None and delay_of(self.df, self.time) is not None

    def _task(self, placements: Placements | OnePlacement) -> Task:
        names, schema = self.df.columns, arrow_schema(self.df.schema)
        keys, order = (tuple(names.index(name) for name in some) for some in (self.keys, self.order))
        columns = Columns(schema, keys, order, None if self.time is None else names.index(self.time))
        ttl = microseconds(self.processor.ttl) if self.processor.ttl and self._timed else None
        return Task(self.processor, columns, arrow_schema(self.fields), arrow_schema(self.schema), placements, ttl)

    def _result(self) -> Result:
        # A processor's rows may have anything missing.
        keys = [T.StructField(key, self.df.schema[key].dataType) for key in self.keys]
        return Result(tuple(keys), tuple(T.StructField(field.name, field.dataType) for field in self.schema))
