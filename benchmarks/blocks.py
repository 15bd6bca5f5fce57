"""Prompt's costs of every way to divide a micro-batch, and what Prompt's planning takes inside the tasks of Spark.

Claims tested: Prompt's blocks are equal in tuples and nearly so in keys, whether one receiver plans them or eight tasks
that do not talk (Prompt, Figures 2.3 and 2.6, with all rivals); and on Spark no plan is on the path between
micro-batches, as it is for the paper's receiver, because each task plans for itself, in a small part of its time.

`make bench-blocks` runs this and writes docs/results/blocks.md.
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
from experiments.prompt.rivals import PACKINGS
from skewless import metrics, split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.metrics import PromptCosts
from skewless.simulate import Costs
from skewless.simulate.map_reduce import Divided
from skewless.split.receiver import Receiver
from skewless.workload import Zipf

TUPLES, KEYS, BLOCKS, TASKS = 1_000_000, 100_000, 64, (1, 2, 8)
COSTS = Costs(tuple=1e-6, emit=1e-6, partial=1e-6)
ROWS, BATCHES, FILES, WORKERS = 2_000_000, 6, 4, 16
SKEWED = "bigint(pow(rand(1), -2))"  # a power law: the hottest key has 29 % of the rows


def main() -> None:
    """Run both parts and write the results."""
    target = Path("docs/results/blocks.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-blocks` does")
    spark = sk.session(memory="3g")
    lines = ["# Blocks: Prompt's costs, and planning on Spark", "", "Made by `make bench-blocks`.", ""]
    try:
        lines += [*costs(), "", *planning(spark)]
    finally:
        spark.stop()
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def costs() -> Iterator[str]:
    """Every way to divide a micro-batch, by Prompt's costs."""
    yield "## What blocks cost"
    yield ""
    yield f"A micro-batch of {TUPLES:,} tuples of {KEYS:,} keys, Zipf, in {BLOCKS} blocks. BSI is the largest block"
    yield "less the average, in tuples; BCI the same in keys; KSR the fragments a key; MPI the mean of the three."
    yield "Then each over that of hash and of shuffle, as in Figure 2.6. The makespan (eq. 2.1) is the longest map"
    yield f"task and then the longest of {BLOCKS} reduce tasks, at 1 us for a tuple, for emitting and for merging a"
    yield "partial result. cAM is at its best number of candidates (2, 3, 5, 10, all). Time-based blocks see a fixed"
    yield 'rate. "In tasks" are receivers that never talk, as in streams on Spark; `prompt` sees the whole batch.'
    for s in (0.6, 1.0, 1.5):
        keys = Zipf(s, keys=KEYS, seed=7).take(TUPLES)
        ways = dict(_divisions(keys))
        found = {name: metrics.prompt_costs(keys, block, BLOCKS) for name, block in ways.items()}
        yield ""
        yield f"### Zipf {s:g}"
        yield ""
        yield "| | BSI | BCI | KSR | MPI | BSI of hash | BCI of hash | MPI of hash | BCI of shuffle | makespan, ms |"
        yield "|---|---|---|---|---|---|---|---|---|---|"
        for name, each in found.items():
            row = f"| {name} | {_cells(each, found)} | {1000 * _makespan(keys, ways[name]):.1f} |"
            print(f"{s:g} {row}")
            yield row


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
        "## Planning on Spark",
        "",
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


def _divisions(keys: Int64Array) -> Iterator[tuple[str, Int32Array]]:
    """Every way to divide a micro-batch, by its name, with a block for each tuple."""
    yield "prompt", split.Prompt(BLOCKS).partition(keys)
    for tasks in TASKS:
        pieces = [Receiver(BLOCKS).partition(part) for part in np.array_split(keys, tasks)]
        yield f"prompt in {tasks} task{'s' * (tasks > 1)}", np.concatenate(pieces)
    for name, label in (("hash", "hash"), ("shuffle", "shuffle"), ("two-choices", "PK2"), ("five-choices", "PK5")):
        yield label, split.make(name, BLOCKS).route(keys)
    candidates, routed = split.best_cam(keys, BLOCKS)
    yield f"cAM, {candidates} candidates", routed
    yield "time-based", split.time_blocks(np.arange(len(keys)), 0, len(keys), BLOCKS)
    seen = split.Counts.of(keys)
    for name, plan in PACKINGS.items():
        yield name, plan(seen.keys, seen.whole, BLOCKS).route(keys)
    yield "bounded", split.Bounded(BLOCKS, slide=None).route(keys)


def _cells(each: PromptCosts, found: dict[str, PromptCosts]) -> str:
    hashed, shuffled = (each.relative_to(found[to]) for to in ("hash", "shuffle"))
    relative = (hashed.bsi, hashed.bci, hashed.mpi, shuffled.bci)
    return f"{each.bsi:,.1f} | {each.bci:,.1f} | {each.ksr:.3f} | {each.mpi:,.1f} | " + " | ".join(
        f"{value:.4f}" if value < 0.1 else f"{value:.2f}" for value in relative
    )


def _makespan(keys: Int64Array, block: Int32Array) -> float:
    divided = Divided.routed(keys, block, BLOCKS, BLOCKS)
    return metrics.makespan(divided.map_times(COSTS), divided.reduce_times(COSTS))


def _batch_times(df: DataFrame, checkpoint: str) -> list[float]:
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    times = [batch["durationMs"]["triggerExecution"] for batch in query.recentProgress if batch["numInputRows"]]
    return [each / 1000 for each in times[1:]]


if __name__ == "__main__":
    main()
