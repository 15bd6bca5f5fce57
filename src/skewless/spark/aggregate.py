"""The plan of a keyed aggregation: which columns travel, combine, reduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.core.errors import SkewlessError
from skewless.core.hashing import preimages
from skewless.operators.panes import Layout, Windows
from skewless.operators.panes.partials import FIRST_KEY
from skewless.spark import combine, monitor
from skewless.spark.combine import Combiner
from skewless.spark.route import KEY, column
from skewless.spark.types import arrow_type, spark_type
from skewless.spark.windows import ROWS, ReduceAll, Reducer, Unpack, plain

SLIDE = "skewless.slide"
"""Under this name the column of windows has their slide with it, in microseconds."""
_AT = "__skewless_time"
_WHOLE = Windows(1, 1)  # all rows at time 0: one window


@dataclass(frozen=True)
class Windowing:
    """How rows are cut into windows.

    Parameters
    ----------
    time
        The column of the rows' time.
    spec
        Size and slide.
    delay
        Of the watermark, in milliseconds; None without one.
    updating
        Whether to give what changed, or windows once they are closed.
    """

    time: str
    spec: Windows
    delay: int | None
    updating: bool


@dataclass(frozen=True)
class Aggregation:
    """Everything about a keyed aggregation but the way its rows travel."""

    df: DataFrame
    keys: Sequence[str]
    measures: Mapping[str, Measure]
    windows: Windowing | None

    def rows(self) -> DataFrame:
        """What travels: the key's hash, the time, the key columns and what is aggregated."""
        columns = [F.xxhash64(*[column(self.df, key) for key in self.keys]).alias(KEY), self._time().alias(_AT)]
        columns += [column(self.df, name).alias(f"c{i}") for i, name in enumerate([*self.keys, *self._inputs()])]
        return self.df.select(*columns)

    def run(self, rows: DataFrame, loads: str, apart: tuple[int, ...] | None = None) -> DataFrame:
        """The result, for rows that are where they are to be combined.

        Parameters
        ----------
        rows
            Those of `rows`, perhaps moved.
        loads
            The name under which a stream's loads are observed.
        apart
            See `Combiner`.
        """
        layout, owners = self.layout(), owners_of(self.df)
        partials = rows.mapInArrow(Combiner(layout, self._reads(), owners, apart), combine.SCHEMA)
        schema = self._schema(layout)
        arrow = pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in schema])
        if not self.df.isStreaming:
            reduced = partials.repartition(len(owners), "owner").mapInArrow(ReduceAll(layout, arrow), schema)
        else:
            partials = partials.observe(loads, *monitor.observed()).select("owner", "states")
            reduced = self._reduced(partials, layout, owners, schema, arrow)
        return self._named(reduced)

    def layout(self) -> Layout:
        """Types and kernels."""
        kinds = {field.name: field.dataType for field in self.df.schema}
        keys = tuple(arrow_type(kinds[name], name) for name in self.keys)
        kernels = []
        for measure in self.measures.values():
            types = [pa.int64() if name == TIME else arrow_type(kinds[name], name) for name in measure.columns]
            kernels.append(measure.bind(types))
        spec = self.windows.spec if self.windows else _WHOLE
        marks = tuple(measure.mark for measure in self.measures.values())
        return Layout(spec, keys, tuple(kernels), bool(self.windows and self.windows.updating), marks)

    def _reduced(
        self, partials: DataFrame, layout: Layout, owners: tuple[int, ...], schema: T.StructType, arrow: pa.Schema
    ) -> DataFrame:
        """The rows of a stream's windows, of this schema."""
        assert self.windows is not None  # streams without windows are refused
        timed, spec = self.windows.delay is not None, self.windows.spec
        mode, time = ("update" if layout.updating else "append"), ("eventtime" if timed else "none")
        start, _end, *rest = schema.fields
        straight = start.dataType == T.TimestampType() and all(plain(kind) for kind in arrow.types[2:])
        names = (start.name, *[field.name for field in rest]) if straight else None
        reducer = Reducer(layout, owners, names, timed=timed)
        given = T.StructType([T.StructField(start.name, T.LongType()), *rest]) if straight else ROWS
        reduced = partials.groupBy("owner").transformWithStateInPandas(reducer, given, mode, time)
        if not straight:
            return reduced.mapInArrow(Unpack(arrow), schema)
        ends = F.timestamp_micros(F.col("start") + F.lit(spec.size)).alias("end")
        return reduced.select(F.timestamp_micros("start").alias("start"), ends, *[field.name for field in rest])

    def _time(self) -> Column:
        if self.windows is None:
            return F.timestamp_micros(F.lit(0))
        return column(self.df, self.windows.time)

    def _inputs(self) -> list[str]:
        """The columns that the measures read, each once."""
        names = [name for measure in self.measures.values() for name in measure.columns if name != TIME]
        return list(dict.fromkeys(names))

    def _reads(self) -> tuple[tuple[int | None, ...], ...]:
        at: dict[str, int | None] = {name: FIRST_KEY + len(self.keys) + i for i, name in enumerate(self._inputs())}
        return tuple(tuple(at.get(name) for name in measure.columns) for measure in self.measures.values())

    def _schema(self, layout: Layout) -> T.StructType:
        """Start and end (of windows only), keys, values; names that mapping knows no wrong way to read."""
        kinds = {field.name: field for field in self.df.schema}
        fields = []
        if self.windows:
            when = kinds[self.windows.time].dataType
            fields += [T.StructField("start", when), T.StructField("end", when)]
        fields += [T.StructField(f"k{i}", kinds[k].dataType, kinds[k].nullable) for i, k in enumerate(self.keys)]
        for i, kernel in enumerate(layout.kernels):
            fields.append(T.StructField(f"v{i}", spark_type(kernel.result), kernel.nullable))
        return T.StructType(fields)

    def _named(self, rows: DataFrame) -> DataFrame:
        columns = []
        if self.windows:
            columns.append(F.struct("start", "end").alias("window", metadata={SLIDE: self.windows.spec.slide}))
        columns += [F.col(f"k{i}").alias(name) for i, name in enumerate(self.keys)]
        columns += [F.col(f"v{i}").alias(name) for i, name in enumerate(self.measures)]
        return rows.select(*columns)


def owners_of(df: DataFrame) -> tuple[int, ...]:
    """For each partition of state, the value that Spark shuffles to it."""
    return tuple(preimages(shuffle_partitions(df)).tolist())


def shuffle_partitions(df: DataFrame) -> int:
    """How many partitions a shuffle of this session has."""
    partitions = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    assert partitions is not None  # Spark has a default
    return int(partitions)


def delay_of(df: DataFrame, time: str) -> int | None:
    """The delay of the watermark that the column has already, in milliseconds."""
    (field,) = [field for field in df.schema if field.name == time]
    delay = field.metadata.get("spark.watermarkDelayMs")
    return None if delay is None else int(delay)


def check_time(df: DataFrame, time: str) -> None:
    """Refuse a time column that is no time."""
    column(df, time)
    (field,) = [field for field in df.schema if field.name == time]
    if not isinstance(field.dataType, T.TimestampType | T.TimestampNTZType):
        raise SkewlessError(
            f"the time column {time!r} is of type {field.dataType.simpleString()}; make it a timestamp first: "
            f'df.withColumn("{time}", F.to_timestamp("{time}"))'
        )
