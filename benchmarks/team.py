"""Tasks that learn together against tasks that learn alone, and against `bounded`, which learns nothing.

Claim tested: the more tasks share a micro-batch, the less each can learn of it, and a common Q-table makes up for that;
`bounded` needs no table, as tasks that are even are even together.

The first tables have tasks and loop as they run on Spark, with the same files and messages, but no Spark between them:
a micro-batch is learned from when the next has begun, as is usual there. The last table is on Spark.

`make bench-team` runs this and writes docs/results/team.md; `python -m benchmarks.team without` writes only the tables
that need no Spark.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import metrics
from skewless.control.cooperating import Cooperating
from skewless.control.loop import Chosen, Observed
from skewless.control.q_table import TableFile
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.turn import Turn
from skewless.spark.team import Member
from skewless.split import Bounded, Broadcast, CooperativeDalton, Dalton, Hash, Splitter
from skewless.workload import Zipf, new_hot_keys

ROWS, BATCHES, WARM, EVERY = 200_000, 16, 4, 4
TASKS, WORKERS = (1, 2, 4, 8), (16, 64)
ON_SPARK = 8, 16  # tasks and workers


class KeysOnly(CooperativeDalton):
    """Starts from the hot keys and the load of the table, and not from its values."""

    def start(self, common: Broadcast) -> None:
        """Begin a round."""
        super().start(replace(common, values=None))


WAYS: dict[str, Splitter] = {
    "`hash`": Hash(),
    "`Dalton(in_task=True)`, each task alone": Dalton(in_task=True),
    "together, normalised": CooperativeDalton(merge="normalised"),
    "together, hot keys and load without values": KeysOnly(),
    "together, printed": CooperativeDalton(merge="printed"),
    "together, shared": CooperativeDalton(merge="shared"),
    "`bounded`, each task alone": Bounded(),
}


def main() -> None:
    """Run all parts and write the results."""
    target = Path("docs/results/team.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-team` does")
    spark = "without" not in sys.argv
    command = "make bench-team" if spark else "python -m benchmarks.team without"
    lines = ["# Tasks that learn together", "", f"Made by `{command}`.", "", *without_spark()]
    lines += ["", *on_spark()] if spark else []
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def streams() -> dict[str, list[Int64Array]]:
    """Micro-batches of a stream that stays as it is, and of one with other hot keys in every fourth micro-batch."""
    steady, restless = Zipf(1.5), new_hot_keys(1.5, every=EVERY * ROWS)
    return {
        name: np.split(stream.take(BATCHES * ROWS), BATCHES)
        for name, stream in (("hot keys that stay", steady), ("hot keys that change", restless))
    }


def without_spark() -> list[str]:
    """A table for each stream and number of workers."""
    lines = [
        f"Zipf 1.5, 100,000 keys, {BATCHES} micro-batches of {ROWS:,} rows, dealt out to 1, 2, 4 or 8 tasks. Max/avg",
        "is the rows of the busiest worker over the average in a micro-batch: the mean and the worst from micro-batch",
        f"{WARM} on. Fragments are the workers of a key with a fair load or more in a micro-batch, on average. Tasks",
        "and loop are those of Spark, without Spark; a table is read two micro-batches after what it is about.",
    ]
    largest = 0, 0
    for name, batches in streams().items():
        for workers in WORKERS:
            lines += [
                "",
                f"## {name.capitalize()}, {workers} workers",
                "",
                *_head(),
            ]
            for way, splitter in WAYS.items():
                cells = []
                for tasks in TASKS:
                    routed, sizes = _routed(batches, splitter.again(workers=workers), tasks)
                    largest = max(largest[0], sizes[0]), max(largest[1], sizes[1])
                    cells.append(_cell(batches, routed, workers))
                lines.append(f"| {way} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    return [
        *lines,
        "",
        f"The largest message of a task had {largest[0]:,} characters, the largest table {largest[1]:,}.",
    ]


def _routed(batches: list[Int64Array], splitter: Splitter, tasks: int) -> tuple[list[Int32Array], tuple[int, int]]:
    """The workers of every micro-batch, and the sizes of the largest message and table."""
    if not isinstance(splitter, CooperativeDalton):
        parts = [[splitter.for_task().route(part) for part in np.array_split(keys, tasks)] for keys in batches]
        return [np.concatenate(each) for each in parts], (0, 0)
    routed, messages, tables = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = TableFile(f"file://{folder}", "bench")
        loop = Cooperating("bench", splitter, file, Chosen("dalton", "as asked"))
        before: Observed | None = None
        for batch, keys in enumerate(batches):
            members = [Member(splitter, file.get(), Turn(task, batch)) for task in range(tasks)]
            if before is not None:  # it is told of when this one has begun
                loop.hear(before)
            each = [member.route(part) for member, part in zip(members, np.array_split(keys, tasks), strict=True)]
            told = tuple(member.told() for member in members)
            before = Observed("query", "run", batch, told=told)
            routed.append(np.concatenate(each))
            messages, tables = max(messages, *map(len, told)), max(tables, Path(folder, file.name).stat().st_size)
    return routed, (messages, tables)


def _head() -> list[str]:
    titles = [f"{tasks} task{'s' * (tasks > 1)}: mean, worst; fragments" for tasks in TASKS]
    return ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]


def _cell(batches: list[Int64Array], routed: list[Int32Array], workers: int) -> str:
    """Max/avg, mean and worst, and fragments of hot keys, of the micro-batches after the first ones."""
    pairs = list(zip(batches, routed, strict=True))[WARM:]
    balance = [metrics.max_over_avg(to, workers) for _, to in pairs]
    fragments = [metrics.hot_fragments(keys, to, workers) for keys, to in pairs]
    return f"{np.mean(balance):.2f}, {max(balance):.2f}; {np.mean(fragments):.1f}"


def on_spark() -> list[str]:
    """The stream whose hot keys change, on Spark."""
    spark, folder = sk.session(memory="4g"), tempfile.mkdtemp(prefix="skewless-bench-")
    tasks, workers = ON_SPARK
    batches = streams()["hot keys that change"]
    lines = [
        "## On Spark",
        "",
        f"The stream whose hot keys change, by `repartition()`, {tasks} tasks and {workers} workers, on",
        f"{spark.sparkContext.defaultParallelism} cores. Seconds are the median of a micro-batch, with the counting of",
        "its rows by key and worker.",
        "",
        "| | max/avg: mean, worst; fragments | s | ratio |",
        "|---|---|---|---|",
    ]
    try:
        for batch, keys in enumerate(batches):
            for task, part in enumerate(np.array_split(keys, tasks)):
                Path(folder, "in").mkdir(exist_ok=True)
                pq.write_table(pa.table({"key": part}), f"{folder}/in/{batch:03}-{task}.parquet")
            time.sleep(0.02)  # files are read in the order of their times
        spark.conf.set("spark.sql.files.openCostInBytes", "512m")  # a file is a task
        first = 0.0
        _run(spark, folder, "warm", Hash(workers), tasks)
        ways = {way: splitter for way, splitter in WAYS.items() if not isinstance(splitter, KeysOnly)}
        for number, (way, splitter) in enumerate(ways.items()):
            found, seconds = _run(spark, folder, str(number), splitter.again(workers=workers), tasks)
            first = first or seconds
            cell = _cell([keys for keys, _ in found], [to for _, to in found], workers)
            lines.append(f"| {way} | {cell} | {seconds:.2f} | {first / seconds:.2f} |")
            print(lines[-1], flush=True)
    finally:
        shutil.rmtree(folder)
        spark.stop()
    return lines


def _run(
    spark: SparkSession, folder: str, name: str, splitter: Splitter, tasks: int
) -> tuple[list[tuple[Int64Array, Int32Array]], float]:
    """Keys and workers of every micro-batch, and the seconds that one took."""
    found: list[tuple[Int64Array, Int32Array]] = []

    def each(df: DataFrame, _batch: int) -> None:
        rows = df.groupBy("key", F.spark_partition_id().alias("worker")).count().toArrow()
        counts = np.array(rows["count"])
        found.append((np.repeat(np.array(rows["key"]), counts), np.repeat(np.array(rows["worker"], np.int32), counts)))

    source = spark.readStream.schema("key long").option("maxFilesPerTrigger", tasks).parquet(f"{folder}/in")
    df = sk.keyed(source, "key", split=splitter).repartition()
    writer = df.writeStream.foreachBatch(each).option("checkpointLocation", f"{folder}/{name}")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    times = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return found, float(np.median(times[WARM:])) / 1000


if __name__ == "__main__":
    main()
