"""The shipped policy on a real stream: `python -m experiments.partly.spark` writes docs/results/partly.md.

A stream of words goes through `sk.keyed(...).repartition()` on Spark, by PartLy, Prompt and bounded, and rows are
counted where they arrive. PartLy goes by a policy that was made from an earlier micro-batch, so that the first ones,
which have no policy yet, go by hash. The other two are routed in their tasks.

What arrives is compared with Spark's own `groupBy("word")` of the same files: for each word the number of rows, the sum
and the sum of squares of a number that no two rows share.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from skewless.workload import Words

WORKERS, ROWS, BATCHES, VOCABULARY, SKEW = 8, 20_000, 7, 2_000, 1.3
SPLITS = ("partly", "prompt", "bounded", "hash")
PAGE = Path("docs/results/partly.md")
Sums = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Arrived:
    """What arrived of each micro-batch by one splitter.

    Attributes
    ----------
    even
        The busiest worker over the average.
    hot
        The keys of the policy that was in force after it, which is 0 for those that are routed in their tasks.
    fragments
        Pairs of a word and a worker over words.
    """

    even: list[float]
    hot: list[int]
    fragments: list[float]


def write_words(folder: Path, rows: int = ROWS, batches: int = BATCHES) -> None:
    """A file of words for each micro-batch; each row has a number of its own."""
    folder.mkdir()
    words = Words(SKEW, VOCABULARY, seed=9_001)
    names = np.array(words.vocabulary)
    for i, ranks in enumerate(words.ranks.blocks(rows * batches, rows)):
        path = folder / f"{i:03}.parquet"
        pq.write_table(pa.table({"word": names[ranks], "number": np.arange(i * rows, (i + 1) * rows)}), path)
        os.utime(path, (1_000_000 + i,) * 2)


def sums() -> list[Column]:
    """What of a group of rows is the same only if the rows are."""
    number = F.col("number")
    return [F.count("*"), F.sum(number), F.sum(number * number)]


def routed(spark: SparkSession, folder: Path, split: str) -> Arrived:
    """Send the words through a splitter; whatever arrives has to be what Spark's own operator makes of the files."""
    handle: SimpleQueue[Watch] = SimpleQueue()
    found: Counter[tuple[str, int]] = Counter()
    arrived = Arrived([], [], [])

    def each(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        rows: list[Any] = df.groupBy(F.spark_partition_id(), "word").agg(*sums()).collect()
        loads: Counter[int] = Counter()
        for worker, word, *values in rows:
            loads[worker] += values[0]
            found.update({(word, i): value for i, value in enumerate(values)})
        arrived.even.append(max(loads.values()) * WORKERS / loads.total())
        arrived.fragments.append(len(rows) / len({row[1] for row in rows}))
        if split == "partly":
            watching.wait(batch)  # what was learned from the micro-batches before is in force, as at a usual pace
        # The query is not heard of before its first micro-batch is done.
        arrived.hot.append(len(watching.policy.keys) if split == "partly" and batch else 0)

    stream = spark.readStream.schema("word string, number long").option("maxFilesPerTrigger", 1)
    keyed = sk.keyed(stream.parquet(str(folder / "in")), "word", workers=WORKERS, split=split)
    writer = keyed.repartition().writeStream.foreachBatch(each).option("checkpointLocation", str(folder / split))
    query = writer.trigger(availableNow=True).start()
    handle.put(sk.watch(query))
    query.awaitTermination()
    own = spark.read.parquet(str(folder / "in")).groupBy("word").agg(*sums()).collect()
    expected = {row[0]: tuple(row[1:]) for row in own}
    mine = {word: tuple(found[word, i] for i in range(3)) for word, _ in found}
    if mine != expected:
        wrong = sorted({*mine, *expected} - {word for word in mine if mine[word] == expected.get(word)})
        raise AssertionError(f"{split}: {len(wrong)} words are not as Spark's own operator has them: {wrong[:5]}")
    return arrived


def page(found: dict[str, Arrived]) -> str:
    """The page of results."""
    where = f"Spark {pyspark.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"
    numbers = range(len(found["hash"].even))
    lines = [
        "# PartLy on Spark",
        "",
        f"Made by `python -m experiments.partly.spark` on {datetime.now(timezone.utc):%Y-%m-%d}: {where}.",
        "",
        f"A stream of words (Zipf {SKEW:g}, {VOCABULARY:,} of them), {ROWS:,} rows a micro-batch, {WORKERS} workers.",
        "What arrived by each splitter has for every word the rows that Spark's own `groupBy` finds in the files.",
        "",
        "The busiest worker over the average, by micro-batch:",
        "",
        "| split | " + " | ".join(map(str, numbers)) + " |",
        "|---" * (len(numbers) + 1) + "|",
        *(f"| `{name}` | " + " | ".join(f"{x:.3f}" for x in each.even) + " |" for name, each in found.items()),
        "",
        "Pairs of a word and a worker over words:",
        "",
        "| split | " + " | ".join(map(str, numbers)) + " |",
        "|---" * (len(numbers) + 1) + "|",
        *(f"| `{name}` | " + " | ".join(f"{x:.2f}" for x in each.fragments) + " |" for name, each in found.items()),
        "",
        "Hot keys in the policy of the network that was in force after each micro-batch of `partly`: "
        + ", ".join(map(str, found["partly"].hot))
        + ". Rows of a micro-batch with none before it go by hash.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    if not PAGE.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository")
    spark = sk.session(2)
    with tempfile.TemporaryDirectory() as name:
        write_words(Path(name) / "in")
        found = {split: routed(spark, Path(name), split) for split in SPLITS}
    spark.stop()
    PAGE.write_text(page(found))
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
