"""The plan of a keyed aggregation: rows are combined to partial states, and workers make windows of those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.core.tables import glued
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.operators.panes.combine import Combine
from skewless.operators.panes.forward import Forward
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import FIRST_KEY
from skewless.operators.panes.worker import PanesWorker
from skewless.operators.send import Unpacked
from skewless.spark.result import Result
from skewless.spark.route import KEY, column, delay_of
from skewless.spark.stage import settle
from skewless.spark.staging import sent, worked
from skewless.spark.types import arrow_type, spark_type

_AT = "__skewless_time"
_WHOLE = Windows(1, 1)  # all rows at time 0: one window


@dataclass(frozen=True)
class Aggregation:
    """Everything about a keyed aggregation but the way its rows travel.

    Parameters
    ----------
    df, keys
        The rows, and the columns that are the key.
    measures
        What to aggregate, by the names of the result.
    windows, time
        Size and slide of the windows, and the column of time; None without windows.
    updating
        Whether a stream gives the windows that changed, or each window once it is closed.
    """

    df: DataFrame
    keys: tuple[str, ...]
    measures: Mapping[str, Measure]
    windows: Windows | None = None
    time: str | None = None
    updating: bool = False

    def rows(self) -> DataFrame:
        """What travels: the key's hash, the time, the key columns and what is aggregated."""
        time = F.timestamp_micros(F.lit(0)) if self.time is None else column(self.df, self.time)
        columns = [F.xxhash64(*[column(self.df, key) for key in self.keys]).alias(KEY), time.alias(_AT)]
        columns += [column(self.df, name).alias(f"c{i}") for i, name in enumerate([*self.keys, *self._inputs()])]
        return self.df.select(*columns)

    def run(
        self,
        rows: DataFrame,
        stream: str,
        apart: tuple[int, ...] | None = None,
        *,
        unpack: bool = False,
        several: Sequence[int] | None = None,
    ) -> DataFrame:
        """The result, for rows that are where they are to be combined.

        Parameters
        ----------
        rows
            The rows of `rows`, perhaps moved.
        stream
            The identity under which a stream is observed.
        apart
            See `Combine`.
        unpack
            Whether the rows came packed.
        several
            The hashes of the keys whose rows may be in several tasks, if those of a batch are known. All other keys are
            finished where their rows are, and only these travel on (Dalton's forwarding).
        """
        layout, result = self.layout(), self._result()
        if several is not None:
            # As a part of the task's own work, the filter stays behind the exchange, which both sides then share.
            key = F.when(F.spark_partition_id() >= 0, F.col(KEY)).isin(list(several))
            finished = rows.filter(~key).mapInArrow(Finish(Forward(layout, self._reads()), result), result.unpacked)
            if not len(several):
                return result.named(finished)
            rows = rows.filter(key)
        combine = Combine(layout, self._reads(), apart)
        lines = sent(rows, Unpacked(combine) if unpack else combine, stream)
        timed = self.time is not None and delay_of(self.df, self.time) is not None
        mode = "update" if self.updating else "append"
        merged = worked(lines, partial(PanesWorker, layout), result, timed=timed, mode=mode)
        return result.named(merged if several is None else merged.union(finished))

    def natively(self, measured: list[Column], *window: Column) -> DataFrame:
        """The result by Spark's own operators."""
        return self.df.groupBy(*window, *[column(self.df, key) for key in self.keys]).agg(*measured)

    def layout(self) -> Layout:
        """Types and kernels."""
        kinds = {field.name: field.dataType for field in self.df.schema}
        keys = tuple(arrow_type(kinds[name], name) for name in self.keys)
        kernels = []
        for measure in self.measures.values():
            types = [pa.int64() if name == TIME else arrow_type(kinds[name], name) for name in measure.columns]
            kernels.append(measure.bind(types))
        marks = tuple(measure.mark for measure in self.measures.values())
        return Layout(self.windows or _WHOLE, keys, tuple(kernels), self.updating, marks)

    def _inputs(self) -> list[str]:
        """The columns that the measures read, each once."""
        names = [name for measure in self.measures.values() for name in measure.columns if name != TIME]
        return list(dict.fromkeys(names))

    def _reads(self) -> tuple[tuple[int | None, ...], ...]:
        at: dict[str, int | None] = {name: FIRST_KEY + len(self.keys) + i for i, name in enumerate(self._inputs())}
        return tuple(tuple(at.get(name) for name in measure.columns) for measure in self.measures.values())

    def _result(self) -> Result:
        fields = {field.name: field for field in self.df.schema}
        pairs = zip(self.measures, self.layout().kernels, strict=True)
        values = [T.StructField(name, spark_type(kernel.result), kernel.nullable) for name, kernel in pairs]
        when = None if self.time is None else fields[self.time].dataType
        return Result(tuple(fields[key] for key in self.keys), tuple(values), self.windows, when)


@dataclass(frozen=True)
class Finish:
    """The result of rows that are all of their keys', for `mapInArrow`."""

    forward: Forward
    result: Result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the result."""
        settle()
        yield from self.result.batches(glued(self.forward.answers(glued(batches))), Turn(0))
