"""The rows of a micro-batch in one order, whatever Spark's tasks did."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from skewless.spark.route import column


def in_one_order(df: DataFrame, by: str) -> pa.Table:
    """The rows in one order whatever Spark's tasks did: by that column, and then by all others that have an order."""
    others = [field.name for field in df.schema if field.name != by and _has_order(field.dataType)]
    # One partition instead of orderBy, which would run the query once more to draw a sample.
    return df.repartition(1).sortWithinPartitions(*[column(df, name) for name in (by, *others)]).toArrow()


def _has_order(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_has_order(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _has_order(kind.elementType)
    return isinstance(kind, T.AtomicType) and kind.typeName() not in ("variant", "geography", "geometry")
