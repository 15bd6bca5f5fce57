"""The three tables of Nexmark as DataFrames: written once as files, read as batches or as streams."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from skewless.workload import Events

PERSONS = (
    "id long, name string, email string, credit_card string, city string, state string, ts timestamp, extra string"
)
AUCTIONS = (
    "id long, item string, description string, initial_bid long, reserve long, ts timestamp, expires timestamp, "
    "seller long, category long, extra string"
)
BIDS = "auction long, bidder long, price long, channel string, url string, ts timestamp, extra string"
SCHEMAS = {"persons": PERSONS, "auctions": AUCTIONS, "bids": BIDS}


@dataclass(frozen=True)
class Streams:
    """The three tables, all of them batches or all of them streams.

    Parameters
    ----------
    persons, auctions, bids
        As `SCHEMAS` has their columns.
    watermark
        How late rows may come, for queries over streams.
    """

    persons: DataFrame
    auctions: DataFrame
    bids: DataFrame
    watermark: str = "0 seconds"


def write(folder: str, blocks: Iterable[Events]) -> None:
    """Write a file of each table for each block of events."""
    for number, events in enumerate(blocks):
        for table in SCHEMAS:
            _put(f"{folder}/{table}", getattr(events, table), number)


def _put(folder: str, rows: pa.Table, number: int) -> None:
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{number:03}.parquet"
    pq.write_table(rows, path)
    os.utime(path, (number, number))  # Spark takes files by age


def batch(spark: SparkSession, folder: str) -> Streams:
    """All events at once."""
    return Streams(*(spark.read.schema(schema).parquet(f"{folder}/{table}") for table, schema in SCHEMAS.items()))


def stream(spark: SparkSession, folder: str, watermark: str = "0 seconds") -> Streams:
    """A block of events in each micro-batch."""
    tables = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/{table}")
        for table, schema in SCHEMAS.items()
    )
    return Streams(*tables, watermark=watermark)
