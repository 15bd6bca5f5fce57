"""The shipped policy on a real stream: `python -m experiments.partly.spark` prints how even its micro-batches are.

A stream of words goes through `sk.keyed(...).repartition()` on Spark, by PartLy, Prompt and bounded, and rows are
counted where they arrive. PartLy goes by a policy that was made from an earlier micro-batch, so that the first ones,
which have no policy yet, go by hash. The other two are routed in their tasks.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from skewless.workload import Words

WORKERS, ROWS, BATCHES, VOCABULARY = 8, 20_000, 7, 2_000
SPLITS = ("partly", "prompt", "bounded", "hash")


def max_over_avg(spark: SparkSession, folder: Path, split: str) -> list[float]:
    """The busiest worker over the average in every micro-batch; all rows have to arrive."""
    handle: SimpleQueue[Watch] = SimpleQueue()
    loads: list[list[int]] = []

    def each(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        counted = df.groupBy(F.spark_partition_id().alias("worker")).count().collect()
        loads.append([row["count"] for row in counted])
        if split == "partly":
            watching.wait(batch)  # what was learned from the micro-batches before is in force, as at a usual pace

    stream = spark.readStream.schema("word string").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    routed = sk.keyed(stream, "word", workers=WORKERS, split=split).repartition()
    writer = routed.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / split))
    query = writer.trigger(availableNow=True).start()
    handle.put(sk.watch(query))
    query.awaitTermination()
    assert [sum(batch) for batch in loads] == [ROWS] * BATCHES
    return [max(batch) * WORKERS / ROWS for batch in loads]


def main() -> None:
    """Print the table."""
    spark = sk.session(2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        words = Words(1.3, VOCABULARY, seed=9_001)
        names = np.array(words.vocabulary)
        for i, ranks in enumerate(words.ranks.blocks(ROWS * BATCHES, ROWS)):
            path = folder / "in" / f"{i:03}.parquet"
            pq.write_table(pa.table({"word": names[ranks]}), path)
            os.utime(path, (1_000_000 + i,) * 2)
        print("| split | " + " | ".join(f"batch {i}" for i in range(BATCHES)) + " |")
        print("|---" * (BATCHES + 1) + "|")
        for split in SPLITS:
            print(f"| `{split}` | " + " | ".join(f"{each:.3f}" for each in max_over_avg(spark, folder, split)) + " |")
    spark.stop()


if __name__ == "__main__":
    main()
