"""The rows of a micro-batch in one order, whatever Spark's tasks did, and the query that they are of."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from skewless.spark.route import column
from skewless.spark.stage import settle
from skewless.spark.store import this_turn


def in_one_order(df: DataFrame, by: str) -> pa.Table:
    """The rows in one order whatever Spark's tasks did: by that column, and then by all others that have an order."""
    others = [field.name for field in df.schema if field.name != by and _has_order(field.dataType)]
    # One partition instead of orderBy, which would run the query once more to draw a sample.
    return df.repartition(1).sortWithinPartitions(*[column(df, name) for name in (by, *others)]).toArrow()


def query_of(spark: SparkSession) -> str:
    """The id of the query in whose `foreachBatch` this is called: a task of a job that starts there knows it."""
    rows = spark.range(1, numPartitions=1).mapInArrow(_tell_query, "query string").collect()
    return str(rows[0]["query"])


def _tell_query(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle()
    yield pa.RecordBatch.from_pydict({"query": [this_turn().query]})


def _has_order(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_has_order(field.dataType) for field in kind)
    if isinstance(kind, T.ArrayType):
        return _has_order(kind.elementType)
    return isinstance(kind, T.AtomicType) and kind.typeName() not in ("variant", "geography", "geometry")
