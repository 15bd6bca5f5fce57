"""What Prompt's planning takes inside the tasks of Spark.

Claims tested: no plan is on the path between micro-batches, as it is for the paper's receiver, which releases them
early to hide it, because each task plans for its own rows, in a small part of its time: a micro-batch whose tasks wait
for their last row and then send every row home takes about as long. And a task needs memory for its own rows only,
however many keys the stream has: each task is measured in a Python process of its own.

`make bench-planning` runs this and writes docs/results/planning.md.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.home import homes

ROWS, BATCHES, FILES, WORKERS = 2_000_000, 6, 4, 16
SKEWED = "bigint(pow(rand(1), -2))"  # a power law: the hottest key has 29 % of the rows
MANY_ROWS, MANY_BATCHES, MANY_FILES = 2_000_000, 5, 2
KEYS = MANY_BATCHES * MANY_ROWS, 10_000  # of the streams whose tasks' memory is measured; in the first each comes once
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Run it and write the results."""
    target = Path("docs/results/planning.md")
    if not target.parent.is_dir():
        sys.exit(
            "there is no docs/results here; run this from the top of the repository, as `make bench-planning` does"
        )
    lines = ["# Planning blocks on Spark", "", "Made by `make bench-planning`."]
    # A process that has run a task keeps the memory it had at most, so tasks whose memory is measured have new ones.
    for part, reuse in ((planning, "true"), (memory, "false")):
        spark = sk.session(memory="3g", **{"spark.python.worker.reuse": reuse})
        try:
            spark.conf.set("spark.sql.files.openCostInBytes", "512m")  # a file is a task
            lines += ["", *part(spark)]
        finally:
            spark.stop()
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def planning(spark: SparkSession) -> list[str]:
    """A stream that Prompt divides in its tasks, and how much of their time is planning."""
    folder = tempfile.mkdtemp(prefix="skewless-bench-")
    try:
        for i in range(BATCHES):
            key = F.expr(SKEWED) * BATCHES + i  # other keys are hot in every micro-batch
            rows = spark.range(0, ROWS, 1, FILES).select(key.alias("key"), "id")
            rows.write.mode("append").parquet(f"{folder}/rows")
            time.sleep(0.01)  # files are read in the order of their times
        source = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", FILES)
        stream = source.parquet(f"{folder}/rows")
        ways: dict[str, DataFrame] = {
            "`df.repartition(n, key)`": stream.repartition(WORKERS, "key"),
            "`bounded`": sk.keyed(stream, "key", workers=WORKERS, split="bounded").repartition(),
            "`prompt`": sk.keyed(stream, "key", workers=WORKERS, split=Timed(folder=f"{folder}/times")).repartition(),
            "waiting, without a plan": sk.keyed(stream, "key", workers=WORKERS, split=Waiting()).repartition(),
        }
        Path(folder, "times").mkdir()
        times = {name: _batch_times(df, f"{folder}/{i}") for i, (name, df) in enumerate(ways.items())}
        parts = np.array([np.loadtxt(each) for each in Path(folder, "times").iterdir()])
    finally:
        shutil.rmtree(folder)
    task, plan = np.median(parts[:, 0]), np.median(parts[:, 1])
    batch = float(np.median(times["`prompt`"]))
    lines = [
        f"A stream of {BATCHES} micro-batches of {ROWS:,} rows in {FILES} tasks each, {WORKERS} workers, other hot",
        "keys in each; the median of a micro-batch, without the first.",
        "",
        "| | s | ratio |",
        "|---|---|---|",
        *[
            f"| {name} | {np.median(each):.2f} | {np.median(times['`df.repartition(n, key)`']) / np.median(each):.2f} |"
            for name, each in times.items()
        ],
        "",
        f"A task of `prompt` has {ROWS // FILES:,} rows. It takes {1000 * task:.0f} ms from the first until all are",
        f"routed, and {1000 * plan:.0f} ms of these ({plan / task:.0%}) lie between its last row and the first that is",
        f"routed: sorting, counting and planning, {1e9 * plan * FILES / ROWS:.0f} ns a row. It is {plan / batch:.1%}",
        "of the time of the micro-batch. The paper's receiver plans after the end of an interval and before its",
        "micro-batch, and releases micro-batches early to hide that. Here the map tasks of a micro-batch plan it.",
        "",
        "The last line has tasks that keep their rows until the last one too, and then send each row to its home:",
        f"planning costs {np.median(times['`prompt`']) - np.median(times['waiting, without a plan']):+.2f} s of a",
        "micro-batch, the work on blocks of equal size included. No interval is cut, since a plan is ready when the",
        "tasks' own input ends.",
    ]
    print("\n".join(lines))
    return lines


def memory(spark: SparkSession) -> list[str]:
    """Streams with very many keys and with few, and what the Python process of a task needs for its rows."""
    lines = [
        "## Memory of a task in a stream",
        "",
        f"Streams of {MANY_BATCHES} micro-batches of {MANY_ROWS:,} rows in {MANY_FILES} tasks each, {WORKERS} workers.",
        f"In the first each of {KEYS[0]:,} keys comes once. Every task has a Python process of its own, and `prompt`",
        "has routed 10,000 other rows in it before, so that the code that is loaded then is not counted. The table has",
        "what the process grew by at most, from its first row until its last row had its block, in the task where that",
        "was the most.",
        "",
        "| keys of the stream | keys of a task | rows of a task | MB | bytes a row |",
        "|---|---|---|---|---|",
    ]
    for keys in KEYS:
        folder = tempfile.mkdtemp(prefix="skewless-bench-")
        try:
            rows = spark.range(0, MANY_BATCHES * MANY_ROWS, 1, MANY_BATCHES * MANY_FILES)
            rows.select((F.col("id") % keys).alias("key"), "id").write.parquet(f"{folder}/rows")
            source = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", MANY_FILES)
            Path(folder, "grown").mkdir()
            measured = Grown(folder=f"{folder}/grown")
            stream = sk.keyed(source.parquet(f"{folder}/rows"), "key", workers=WORKERS, split=measured).repartition()
            _batch_times(stream, f"{folder}/checkpoint")
            tasks = np.array([np.loadtxt(each, dtype=np.int64) for each in Path(folder, "grown").iterdir()])
        finally:
            shutil.rmtree(folder)
        assert len(tasks) == MANY_BATCHES * MANY_FILES
        assert len(set(tasks[:, 0])) == len(tasks), "a process was used twice"
        _, grown, rows_of, keys_of = tasks[tasks[:, 1].argmax()]
        lines.append(f"| {keys:,} | {keys_of:,} | {rows_of:,} | {grown / 1e6:,.0f} | {grown / rows_of:.0f} |")
    lines += [
        "",
        "So the memory of a task is bounded by its rows, and the number of keys in the stream matters only as far as",
        "they are among these. What the JVM keeps of rows that wait comes on top.",
    ]
    print("\n".join(lines))
    return lines


class Timed(split.Prompt):
    """Prompt that writes down how long each task took, its planning in it, and its rows."""

    def __init__(self, workers: int = 1, *, folder: str = "") -> None:
        super().__init__(workers)
        self.folder = folder

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """As Prompt, with a clock."""
        receiver, start, rows = self.receiver(), time.perf_counter(), 0
        for part in parts:
            receiver.take(part)
            rows += len(part)
        ended = time.perf_counter()
        blocks = receiver.finish()
        planned = time.perf_counter()
        yield from blocks
        took = time.perf_counter() - start
        if rows:
            Path(self.folder, uuid4().hex).write_text(f"{took} {planned - ended} {rows}")


class Grown(split.Prompt):
    """Prompt that writes down the process of each task, the bytes it grew by, its rows, and their keys."""

    def __init__(self, workers: int = 1, *, folder: str = "") -> None:
        super().__init__(workers)
        self.folder = folder

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """As Prompt, which has loaded what it needs."""
        warm = np.arange(10_000)
        warm.flags.writeable = False  # as rows from Spark, for which other code is loaded
        pa.array(self.receiver().partition(warm))  # which imports pandas
        before, receiver, rows = _memory(), self.receiver(), 0
        kept = []  # no copies: the receiver keeps the same arrays
        for part in parts:
            receiver.take(part)
            kept.append(part)
            rows += len(part)
        yield from receiver.finish()
        if rows:
            grown = _most_memory() - before
            keys = len(np.unique(np.concatenate(kept)))
            Path(self.folder, uuid4().hex).write_text(f"{os.getpid()} {grown} {rows} {keys}")


class Waiting(split.Prompt):
    """Keeps the rows of a task as Prompt does, and then sends each to its home."""

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """Homes, when the input has ended."""
        yield from [homes(part, self.workers) for part in list(parts)]


def _memory() -> int:
    """Bytes of memory that this process has."""
    return PAGE * int(Path("/proc/self/statm").read_text().split()[1])


def _most_memory() -> int:
    """Bytes of memory that this process has had at most."""
    (found,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found)


def _batch_times(df: DataFrame, checkpoint: str) -> list[float]:
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    times = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return [each / 1000 for each in times[1:]]


if __name__ == "__main__":
    main()
