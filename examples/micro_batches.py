"""What the examples share: a stream of rows that are at hand, one file for each micro-batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

TYPES = {
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "long": pa.int64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def write(folder: str, schema: str, batches: Sequence[Sequence[tuple[Any, ...]]]) -> None:
    """Write a file for each micro-batch, oldest first; `schema` is such as "user string, ts timestamp"."""
    fields = pa.schema([(name, TYPES[kind]) for name, kind in (field.split() for field in schema.split(", "))])
    os.makedirs(folder)
    for i, rows in enumerate(batches):
        path = f"{folder}/{i:03}.parquet"
        pq.write_table(pa.table(list(zip(*rows, strict=True)), schema=fields), path)
        os.utime(path, (i, i))  # Spark takes files by age


def stream(spark: SparkSession, folder: str, schema: str) -> DataFrame:
    """The files in a folder as a stream, one in each micro-batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
