"""What Prompt's planning takes inside the tasks of Spark.

Claim tested: no plan is on the path between micro-batches, as it is for the paper's receiver, which releases them early
to hide it, because each task plans for its own rows, in a small part of its time.

`make bench-planning` runs this and writes docs/results/planning.md.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless import split
from skewless.core.arrays import Int32Array, Int64Array

ROWS, BATCHES, FILES, WORKERS = 2_000_000, 6, 4, 16
SKEWED = "bigint(pow(rand(1), -2))"  # a power law: the hottest key has 29 % of the rows


def main() -> None:
    """Run it and write the results."""
    target = Path("docs/results/planning.md")
    if not target.parent.is_dir():
        sys.exit(
            "there is no docs/results here; run this from the top of the repository, as `make bench-planning` does"
        )
    spark = sk.session(memory="3g")
    try:
        lines = ["# Planning blocks on Spark", "", "Made by `make bench-planning`.", "", *planning(spark)]
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
        spark.conf.set("spark.sql.files.openCostInBytes", "512m")  # a file is a task
        source = spark.readStream.schema("key long, id long").option("maxFilesPerTrigger", FILES)
        stream = source.parquet(f"{folder}/rows")
        ways: dict[str, DataFrame] = {
            "`df.repartition(n, key)`": stream.repartition(WORKERS, "key"),
            "`bounded`": sk.keyed(stream, "key", workers=WORKERS, split="bounded").repartition(),
            "`prompt`": sk.keyed(stream, "key", workers=WORKERS, split=Timed(folder=f"{folder}/times")).repartition(),
        }
        Path(folder, "times").mkdir()
        times = {name: _batch_times(df, f"{folder}/{i}") for i, (name, df) in enumerate(ways.items())}
        parts = np.array([np.loadtxt(each) for each in Path(folder, "times").iterdir()])
    finally:
        shutil.rmtree(folder)
    parts = parts[parts[:, 2] > 0]
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
        "micro-batch, and releases micro-batches early to hide that. Here the map tasks of a micro-batch plan it:",
        "nothing waits for a plan between micro-batches, so no interval is cut. Planning is part of the tasks' time.",
    ]
    print("\n".join(lines))
    return lines


class Timed(split.Prompt):
    """Prompt that writes down how long each task took, and its planning in it."""

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


def _batch_times(df: DataFrame, checkpoint: str) -> list[float]:
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    times = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return [each / 1000 for each in times[1:]]


if __name__ == "__main__":
    main()
