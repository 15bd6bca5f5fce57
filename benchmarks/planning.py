"""What Prompt's planning takes inside the tasks of Spark.

Claims tested: no plan is on the path between micro-batches, as it is for the paper's receiver, which releases them
early to hide it, because each task plans for its own rows. What that adds to a micro-batch is measured beside tasks
that keep their rows until the last one too and then send each row home, and beside tasks that make the plan besides and
ignore it, so that planning is apart from what blocks of equal size change. And a task needs memory for its own rows
only, however many keys the stream has: each task is measured in a Python process of its own.

`make bench-planning` runs this and writes docs/results/planning.md.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import split
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.home import homes
from skewless.split.at_home import leave_home

ROWS, BATCHES, FILES, WORKERS = 2_000_000, 5, 4, 16
ROUNDS = 3  # in which each way runs the stream once, in turn; the first micro-batch of each is not counted
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
            HASHED: stream.repartition(WORKERS, "key"),
            "`bounded`": sk.keyed(stream, "key", workers=WORKERS, split="bounded").repartition(),
        }
        for name, kind in TIMED.items():
            Path(folder, kind.__name__).mkdir()
            timed = kind(folder=f"{folder}/{kind.__name__}")
            ways[name] = sk.keyed(stream, "key", workers=WORKERS, split=timed).repartition()
        found: dict[str, list[float]] = {name: [] for name in ways}
        for i in range(ROUNDS):
            for name in (list(ways), list(ways)[::-1])[i % 2]:  # none always follows the same other one
                found[name] += _batch_times(ways[name], f"{folder}/{i}-{list(ways).index(name)}")
        parts = {name: _medians(Path(folder, kind.__name__)) for name, kind in TIMED.items()}
    finally:
        shutil.rmtree(folder)
    times = {name: np.array(each) for name, each in found.items()}
    lines = _compared(times, parts, spark.sparkContext.defaultParallelism)
    print("\n".join(lines))
    return lines


def _compared(times: dict[str, FloatArray], parts: dict[str, tuple[float, float]], cores: int) -> list[str]:
    """Micro-batches and tasks by way, and what planning takes by the clock of the tasks and by difference."""
    task, plan = parts[PLANNED]
    waves, batch = ceil(FILES / cores), float(np.median(times[PLANNED]))
    hashed = float(np.median(times[HASHED]))
    in_tasks = {name: " | ".join(f"{1000 * part:.0f}" for part in each) for name, each in parts.items()}
    return [
        f"A stream of micro-batches of {ROWS:,} rows in {FILES} tasks each, {WORKERS} workers, other hot keys in each,",
        f"on {cores} cores. Each way runs {BATCHES} of them {ROUNDS} times, in turn with the others and in the other",
        f"order every second time, and the first of each run is not counted: {len(times[HASHED])} micro-batches a way.",
        "Task and end are medians of tasks: from its first row until all are routed, and of that, what lies between",
        "its last row and the first that is routed.",
        "",
        "| | s, median | least | most | ratio | task, ms | end, ms |",
        "|---|---|---|---|---|---|---|",
        *[
            f"| {name} | {np.median(each):.2f} | {each.min():.2f} | {each.max():.2f} | "
            f"{hashed / np.median(each):.2f} | {in_tasks.get(name, '- | -')} |"
            for name, each in times.items()
        ],
        "",
        f"A task of `prompt` has {ROWS // FILES:,} rows. It takes {1000 * task:.0f} ms from the first until all are",
        f"routed, and {1000 * plan:.0f} ms of these ({plan / task:.0%}) lie between its last row and the first that is",
        f"routed: sorting, counting, planning and a block for each row, {1e9 * plan * FILES / ROWS:.0f} ns a row.",
        f"{FILES} tasks on {cores} cores run in {waves} wave{'s' * (waves > 1)}, so that this is",
        f"{1000 * waves * plan:.0f} ms or {waves * plan / batch:.1%} of a micro-batch. The paper's receiver plans",
        "after the end of an interval and before its micro-batch, and releases micro-batches early to hide that. Here",
        "the map tasks of a micro-batch plan it. No interval is cut, since a plan is ready when the tasks' input ends.",
        "",
        "The last two lines of the table are of tasks that keep their rows until the last one too, and then send each",
        "row to its home, one of them after a plan that is made and ignored. Differences of micro-batches with the",
        "same rows in the same round, as the mean and its standard error:",
        "",
        "| | s |",
        "|---|---|",
        f"| planning: plan made and ignored, over waiting | {_apart(times, IGNORED, WAITED)} |",
        f"| blocks of equal size: `prompt`, over plan made and ignored | {_apart(times, PLANNED, IGNORED)} |",
        f"| both: `prompt`, over waiting | {_apart(times, PLANNED, WAITED)} |",
    ]


def _apart(times: dict[str, FloatArray], longer: str, shorter: str) -> str:
    """The mean difference of micro-batches, and its standard error."""
    apart = times[longer] - times[shorter]
    return f"{apart.mean():+.3f} ± {apart.std(ddof=1) / len(apart) ** 0.5:.3f}"


def _medians(folder: Path) -> tuple[float, float]:
    """Of the tasks of a way: the seconds of a task, and those at its end."""
    whole, end = np.median([np.loadtxt(each) for each in folder.iterdir()], axis=0)
    return float(whole), float(end)


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
    """Prompt that writes down how long each task took, and the part of that between its last row and its blocks."""

    def __init__(self, workers: int = 1, *, folder: str = "") -> None:
        super().__init__(workers)
        self.folder = folder

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """As Prompt, with a clock."""
        start = time.perf_counter()
        kept = list(parts)
        ended = time.perf_counter()
        blocks = self.divided(kept)
        planned = time.perf_counter()
        yield from blocks
        took = time.perf_counter() - start
        if kept:
            Path(self.folder, uuid4().hex).write_text(f"{took} {planned - ended}")

    def divided(self, kept: Sequence[Int64Array]) -> list[Int32Array]:
        """Blocks as Prompt has them, when the input has ended."""
        receiver = self.receiver()
        for part in kept:
            receiver.take(part)
        return receiver.finish()


class Waiting(Timed):
    """Keeps the rows of a task as Prompt does, and then sends each to its home."""

    def divided(self, kept: Sequence[Int64Array]) -> list[Int32Array]:
        """Homes, when the input has ended."""
        return [homes(part, self.workers) for part in kept]


class Ignoring(Waiting):
    """Makes the plan of a task as Prompt does, and then sends each row to its home all the same."""

    def divided(self, kept: Sequence[Int64Array]) -> list[Int32Array]:
        """Homes, when the input has ended and is planned."""
        if kept:
            leave_home(np.concatenate(kept), self.workers, self.receiver().slack)
        return super().divided(kept)


HASHED, PLANNED = "`df.repartition(n, key)`", "`prompt`"
WAITED, IGNORED = "waiting, without a plan", "waiting, plan made and ignored"
TIMED: dict[str, type[Timed]] = {PLANNED: Timed, WAITED: Waiting, IGNORED: Ignoring}


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
