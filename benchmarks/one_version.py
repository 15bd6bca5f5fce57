"""One case of `benchmarks.versions`, in a process of its own, with whichever version of skewless is on the path.

It knows the calls of 0.5 and those since, and needs nothing but skewless: what differs is decided by whether there is
`sk.watch`. It prints a line of JSON: the version, and the seconds of each micro-batch.

`python -m benchmarks.one_version CASE FILES FILES_A_BATCH WORK SOURCE` runs a case over a folder of files, keeps its
checkpoint in the folder WORK, and refuses any skewless that is not below SOURCE.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

import skewless as sk

NEW = hasattr(sk, "watch")
SPLIT, FOLDER = ("split", "folder") if NEW else ("strategy", "location")
TOTALS = "total long" if NEW else "key long, total long"  # since 0.6 the key columns come by themselves


class Total(sk.Processor):
    """A running sum, key by key."""

    state = "total long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        """Add the rows."""
        state["total"] = (state["total"] or 0) + sum(rows["value"])
        yield (state["total"],) if NEW else (*key, state["total"])


class Totals(sk.SlotProcessor):
    """A running sum, a slot at a time."""

    state = "total long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Add the rows of all keys."""
        starts = np.flatnonzero(np.diff(np.asarray(rows["group"]), prepend=-1))
        sums = np.add.reduceat(np.asarray(rows["value"]), starts)
        new = pa.table({"total": pc.add(pc.fill_null(states["total"], 0), pa.array(sums))})
        return new if NEW else new.add_column(0, "key", states["key"]), new


def median(key: tuple[int], window: Any, rows: Any) -> tuple[float]:
    """The median of a pandas frame or of an Arrow table."""
    return (float(np.median(rows["value"].to_numpy())),)


def windows(strategy: str) -> Callable[[DataFrame, Path], DataFrame]:
    """Count and sum over sliding windows."""

    def query(df: DataFrame, work: Path) -> DataFrame:
        options: dict[str, Any] = {SPLIT: strategy}
        stream = sk.keyed(df, "key", **options).window("ts", "60 seconds", "1 second", watermark="5 seconds")
        return stream.agg(n=sk.count(), s=sk.sum("v"))

    return query


def process(processor: sk.Processor) -> Callable[[DataFrame, Path], DataFrame]:
    """A processor with state for each key."""

    def query(df: DataFrame, work: Path) -> DataFrame:
        options: dict[str, Any] = {FOLDER: str(work / "placement")}
        return sk.keyed(df, "key").process(processor, TOTALS, **options)

    return query


def apply(*, arrow: bool) -> Callable[[DataFrame, Path], DataFrame]:
    """An exact median over sliding windows."""

    def query(df: DataFrame, work: Path) -> DataFrame:
        stream = sk.keyed(df, "key").window("ts", "60 seconds", "1 second", watermark="1 second")
        return stream.apply(median, "m double", arrow=arrow)

    return query


QUERIES = {
    "windows-auto": windows("auto"),
    "windows-dalton": windows("dalton"),
    "process-key": process(Total()),
    "process-slot": process(Totals()),
    "apply-pandas": apply(arrow=False),
    "apply-arrow": apply(arrow=True),
}


def main() -> None:
    """Run a case, and print what it took."""
    case, files, files_a_batch, work, source = sys.argv[1:]
    spark = sk.session(memory="6g", spark_sql_session_timeZone="UTC")
    check(spark, Path(source))
    reader = spark.readStream.schema(spark.read.parquet(files).schema).option("maxFilesPerTrigger", int(files_a_batch))
    result = QUERIES[case](reader.parquet(files), Path(work))
    writer = result.writeStream.format("noop").option("checkpointLocation", f"{work}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    seconds = [batch["durationMs"]["triggerExecution"] / 1000 for batch in progress]
    spark.stop()
    print(json.dumps({"version": sk.__version__, "seconds": seconds}))


def check(spark: SparkSession, source: Path) -> None:
    """Refuse another skewless than that of the checkout, here or in Spark's Python workers."""

    def where(_row: int) -> str:
        import skewless

        return str(skewless.__file__)

    for found in (sk.__file__, *spark.sparkContext.parallelize([0], 1).map(where).collect()):
        if source.resolve() not in Path(found).resolve().parents:
            sys.exit(f"skewless was loaded from {found}, not from {source}")


if __name__ == "__main__":
    main()
