"""Spark's types as Arrow's, and back: as they are inside `mapInArrow`."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import types as T

from skewless.core.errors import SkewlessError

_SIMPLE: list[tuple[type[T.DataType], pa.DataType]] = [
    (T.BooleanType, pa.bool_()),
    (T.ByteType, pa.int8()),
    (T.ShortType, pa.int16()),
    (T.IntegerType, pa.int32()),
    (T.LongType, pa.int64()),
    (T.FloatType, pa.float32()),
    (T.DoubleType, pa.float64()),
    (T.StringType, pa.string()),
    (T.BinaryType, pa.binary()),
    (T.DateType, pa.date32()),
    (T.TimestampType, pa.timestamp("us", tz="UTC")),
    (T.TimestampNTZType, pa.timestamp("us")),
    (T.DayTimeIntervalType, pa.duration("us")),
    (T.NullType, pa.null()),
]


def arrow_type(kind: T.DataType, name: str) -> pa.DataType:
    """The Arrow type of a column of this name."""
    if isinstance(kind, T.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, T.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType, name)))
    if isinstance(kind, T.StructType):
        return pa.struct([(field.name, arrow_type(field.dataType, name)) for field in kind])
    if isinstance(kind, T.StringType) and kind != T.StringType():
        raise SkewlessError(f"column {name!r} is of type {kind.simpleString()}; cast it to string, without a collation")
    for spark, arrow in _SIMPLE:
        if type(kind) is spark:
            return arrow
    raise SkewlessError(f"column {name!r} is of type {kind.simpleString()}, which Arrow does not carry; cast it first")


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow names and types of columns."""
    return pa.schema([(field.name, arrow_type(field.dataType, field.name)) for field in schema])


def structure(ddl: str | T.StructType) -> T.StructType:
    """Columns in Spark's words: "user string, visits long"."""
    if isinstance(ddl, T.StructType):
        return ddl
    example = "name columns with their types, such as 'user string, visits long'"
    try:
        schema = T.StructType.fromDDL(ddl)
    except (ParseException, ValueError) as error:
        raise SkewlessError(f"{ddl!r} is no list of columns ({str(error).splitlines()[0]}); {example}") from error
    if not isinstance(schema, T.StructType):
        raise SkewlessError(f"{ddl!r} is one type; {example}")
    return schema


def spark_type(kind: pa.DataType) -> T.DataType:
    """The Spark type of a result."""
    if pa.types.is_decimal(kind):
        return T.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return T.ArrayType(spark_type(kind.value_type))
    if pa.types.is_struct(kind):
        return T.StructType([T.StructField(field.name, spark_type(field.type)) for field in kind])
    if pa.types.is_timestamp(kind):
        return T.TimestampType() if kind.tz else T.TimestampNTZType()
    if pa.types.is_large_string(kind):
        return T.StringType()
    for spark, arrow in _SIMPLE:
        if arrow == kind:
            return spark()
    raise SkewlessError(f"a result of type {kind} has no Spark type; let `finish` cast it, such as to float64")
