"""Streams for tests: write files, run a query over them, and read what it gave, micro-batch by micro-batch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.api.watch import Watch

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC -Xshare:auto"
"""For the JVM: tests end before code that is compiled with care would pay."""
DAEMON = "support.daemon"
PATIENT = {"spark.python.authenticate.socketTimeout": "120s"}
"""A machine that is busy elsewhere starts Python slowly, and that is not what is tested."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For few rows: compiling plans takes longer than interpreting them."""
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""As plans are for users."""

Rows = dict[int, list[tuple[Any, ...]]]
After = Callable[[int, Watch], None]
"""Called in every micro-batch with the number of those before it in this run, and the handle on the query."""


def write_files(folder: Path, tables: Sequence[pa.Table], first: int = 0) -> None:
    """A file for each table; Spark reads them in the order of their times of change.

    A query that runs sees a file with its time at once: one that seemed newer would make it take the next for too old.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for i, table in enumerate(tables, first):
        hidden = folder / f".{i:03}.parquet"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_000_000 + i,) * 2)
        hidden.rename(folder / f"{i:03}.parquet")


def read_files(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream with a micro-batch for each file."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def stream_of(spark: SparkSession, folder: Path, tables: Sequence[pa.Table]) -> DataFrame:
    """A stream with a micro-batch for each table."""
    write_files(folder, tables)
    return read_files(spark, folder)


def start(
    result: DataFrame,
    checkpoint: Path,
    each: Callable[[DataFrame, int, Watch], None],
    mode: str = "append",
    *,
    available_now: bool = True,
) -> StreamingQuery:
    """Start a query, which hands each micro-batch to `each` with the handle on the query.

    With `available_now` it ends with the files that are there, and otherwise it waits for more.
    """
    handle: SimpleQueue[Watch] = SimpleQueue()

    def taken(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        each(df, batch, watching)

    writer = result.writeStream.foreachBatch(taken).option("checkpointLocation", str(checkpoint))
    writer = writer.outputMode(mode)
    query = (writer.trigger(availableNow=True) if available_now else writer).start()
    handle.put(sk.watch(query))
    return query


def begin(query: StreamingQuery) -> None:
    """Wait for a query's first micro-batch of this run.

    Spark starts Python processes on the driver for it and gives up after 10 s, which no setting changes. Those of
    several queries that start at once take longer than that on two busy cores.
    """
    while query.isActive and query.lastProgress is None:
        time.sleep(0.05)


def run(result: DataFrame, checkpoint: Path, after: After | None = None, mode: str = "append") -> tuple[Rows, Watch]:
    """The rows of every micro-batch of a query that runs to the end of its files, and the handle on it."""
    given: Rows = {}

    def keep(df: DataFrame, batch: int, watching: Watch) -> None:
        given[batch] = [tuple(row) for row in df.collect()]
        if after is not None:
            after(len(given) - 1, watching)

    query = start(result, checkpoint, keep, mode)
    query.awaitTermination()
    return given, sk.watch(query)


@contextmanager
def settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    """Other settings of the session than other tests have."""
    before = {name: spark.conf.get(name) or "" for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def partitions(spark: SparkSession, count: int) -> AbstractContextManager[None]:
    """Another number of shuffle partitions than other tests have."""
    return settings(spark, {"spark.sql.shuffle.partitions": str(count)})
