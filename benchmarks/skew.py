"""Skew in wall-clock time: sixteen workers, and an aggregate that takes 20 us a row, and for some as much a merge.

The aggregate sleeps, so that two cores can hold sixteen workers that are busy at once. Claims tested: balance by
splitting hot keys is several times faster than hashing, and no slower than salting every key, with far fewer fragments.
Where fragments cost something, whoever makes few of them wins: with a merge that takes 200 us a state, shuffle loses.

Salting is what people do by hand: a random number beside the key, rows moved by a hash of both, an aggregation by both
and one by the key. The hash sends several salts of a hot key to one worker, so "shuffle", which sends every row to a
worker at random, is here too: it is balanced as no salting is, and leaves a fragment of a key wherever a row fell.

What profiling taught. Two cores are busy for two seconds a micro-batch with starting sixteen tasks and their Python
workers, whatever the balance; a micro-batch is large enough here that its sleep is most of it. State is in four
partitions, because four are enough for it and sixteen more Python workers are not free.

`make bench-skew` runs this and writes docs/results/skew.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.hashing import murmur3, xxhash64
from skewless.metrics import fragments_per_key, hot_fragments
from skewless.workload import Zipf

WORKERS, ROWS, KEYS, SKEW, BATCHES = 16, 1_500_000, 100_000, 1.5, 6
MICROSECONDS, MERGING = 20, 200
"""What a row costs, and a state that is merged with another where merging is costly."""
OWNERS = 4
SPLITS = {"hash": "hash", "salting": None, "shuffle": "shuffle", "dalton": "dalton", "bounded": "bounded"}


class Slow(sk.Aggregate):
    """Counts rows, and sleeps for each, and for each state that it merges.

    Parameters
    ----------
    merging
        Microseconds for a state.
    """

    def __init__(self, merging: int = 0) -> None:
        super().__init__()
        self.merging = merging

    def partial(self, table: pa.Table) -> pa.Table:
        """Count the rows of each group, and sleep."""
        time.sleep(table.num_rows * MICROSECONDS / 1e6)
        return table.group_by("group").aggregate([([], "count_all")]).rename_columns(["group", "n"])

    def merge(self, table: pa.Table) -> pa.Table:
        """Add the counts, and sleep."""
        time.sleep(table.num_rows * self.merging / 1e6)
        return table.group_by("group").aggregate([("n", "sum")]).rename_columns(["group", "n"])

    def finish(self, table: pa.Table) -> pa.Table:
        """The count."""
        return table


def table(spark: SparkSession, folder: Path) -> list[str]:
    """Splitters and salting on the same stream, with a merge for nothing and with one that costs."""
    files = folder / "skewed"
    keys = Zipf(SKEW, keys=KEYS, seed=3).take(BATCHES * ROWS)
    files.mkdir()
    for i in range(BATCHES):
        part = keys[i * ROWS : (i + 1) * ROWS]
        times = pa.array(np.full(ROWS, 1_700_000_000_000_000 + i * 60_000_000)).cast(pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times, "key": part}), files / f"{i:03d}.parquet")
    lines = [
        f"{WORKERS} workers, {ROWS:,} rows a micro-batch, Zipf {SKEW}, {KEYS:,} keys, an aggregate whose `partial`",
        f"sleeps {MICROSECONDS} us a row; median of the last {BATCHES - 3} micro-batches. Max/avg is of their rows.",
    ]
    for merging in (0, MERGING):
        rows = []
        for name, split in SPLITS.items():
            rows.append((name, *_run(spark, files, split, merging, keys)))
            print(merging, rows[-1], flush=True)
        lines += [
            "",
            *([f"The same, with a `merge` that sleeps {merging} us a state:", ""] if merging else []),
            "| | s a micro-batch | speed, of hash | max/avg | fragments per key | per hot key |",
            "|---|---|---|---|---|---|",
            *[
                f"| {name} | {seconds:.2f} | {rows[0][1] / seconds:.2f} | {balance:.2f} | {fragments:.2f} | {hot:.1f} |"
                for name, seconds, balance, fragments, hot in rows
            ],
        ]
    return lines


def _run(
    spark: SparkSession, files: Path, split: str | None, merging: int, keys: Int64Array
) -> tuple[float, float, float, float]:
    """Median seconds of the micro-batches after learning, max/avg of the last, and its fragments per key and hot key.

    Parameters
    ----------
    spark
        A session of as many cores as workers.
    files
        The folder of the stream.
    split
        The splitter by which rows travel; None for salts.
    merging
        What merging a state costs, in microseconds.
    keys
        The keys of the stream.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(OWNERS))
    source = spark.readStream.schema("ts timestamp, key long").option("maxFilesPerTrigger", 1).parquet(str(files))
    if split is None:
        source = source.withColumn("salt", F.floor(F.rand(1) * WORKERS)).repartition(WORKERS, "salt", "key")
        stream = sk.keyed(source, "key", split="local")
    else:
        stream = sk.keyed(source, "key", workers=WORKERS, split=split)
    result = stream.window("ts", "60 seconds", watermark="0 seconds").agg(n=Slow(merging))
    checkpoint = files.parent / f"checkpoint-{split}-{merging}"
    writer = result.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]]
    seconds = float(np.median([batch["durationMs"]["triggerExecution"] for batch in progress[3:]])) / 1000
    watching = sk.watch(query)
    watching.wait(BATCHES)
    last = keys[-ROWS:]
    if split is None:
        workers = _salted(last)
    elif split == "bounded":  # a file is one task
        workers = sk.split.Bounded(WORKERS).for_task().route(xxhash64(last))
    else:
        workers = watching.policy.route(xxhash64(last))
    routing = last, workers, WORKERS
    return seconds, watching.imbalance or 0.0, fragments_per_key(*routing), hot_fragments(*routing)


def _salted(keys: Int64Array) -> Int32Array:
    """Where Spark's hash sends keys with a random salt."""
    salts = np.random.default_rng(1).integers(WORKERS, size=len(keys))
    return murmur3(salts, keys) % WORKERS
