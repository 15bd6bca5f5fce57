"""State that moves while a query runs, in wall-clock time: sixteen workers, and a processor that takes 20 us a row.

The processor sleeps, so that two cores can hold sixteen workers that are busy at once. 60 % of the rows are of keys
whose slots are on two of the workers at first: 40 % are of ten hot keys on each, the others of many keys. Claims
tested: within five micro-batches the slowest worker is near the mean, a micro-batch in which state moves takes hardly
longer than others, and a hot spot that wanders is followed. A tenth of the slots is also moved by hand, on a stream
without a hot spot, so that nothing but the moving changes the time of a micro-batch.

What measuring taught. In the fifth micro-batch the slowest worker takes 1.05 times the mean with "even", 2.3 times with
scan, redist and readj, and 4.8 times by hash. After a hot spot has gone elsewhere, the fourth micro-batch is balanced
again. The micro-batches in which a tenth of the slots is given away or taken take 0.9 to 1.4 times as long as others.

`make bench-place` runs this and writes it to docs/results/place.md.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless import place
from skewless.api.watch import Watch
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64

WORKERS, SLOTS, ROWS, KEYS = 16, 256, 600_000, 40_000
FIXED, WANDERING, EVERY = 9, 18, 6
"""Micro-batches of the two streams, and for how many a hot spot stays where it is."""
MICROSECONDS, SHARE, HOT = 20, 0.6, 10
TENTHS, AT = 20, (6, 10, 14)
"""Micro-batches without a hot spot, and after which of them a tenth of the slots is told to move."""
STRATEGIES = ("hash", "consistent", "scan", "redist", "readj", "autoflow", "even")


class Slow(sk.SlotProcessor):
    """Counts the rows of a key, and sleeps for each; gives how long a worker took."""

    state = "n long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """All keys of a slot."""
        start, context = time.perf_counter(), TaskContext.get()
        time.sleep(rows.num_rows * MICROSECONDS / 1e6)
        n = np.bincount(np.asarray(rows["group"]), minlength=states.num_rows)
        n = n + np.asarray(states["n"].fill_null(0))
        worker = context.partitionId() if context else 0
        took = pa.table({"group": [0], "worker": [worker], "seconds": [time.perf_counter() - start]})
        return took, pa.table({"n": n})


class Tenth(place.Placer):
    """Moves a tenth of the slots to other workers, whenever it is asked."""

    name = "tenth"

    def _place(
        self, seen: Counts, previous: place.Placement | None, workers: int
    ) -> tuple[Int32Array, Int64Array, Int32Array]:
        tail = np.arange(self.slots, dtype=np.int32) % workers if previous is None else previous.tail.copy()
        if previous is not None:
            some = np.random.default_rng(previous.version).choice(self.slots, self.slots // 10, replace=False)
            tail[some] = (tail[some] + 1) % workers
        return tail, np.zeros(0, np.int64), np.zeros(0, np.int32)


@dataclass(frozen=True)
class Batch:
    """A micro-batch: its seconds, those of the slowest worker over the mean, and whether a placement was announced."""

    seconds: float
    slowest: float
    moving: bool


def table(spark: SparkSession, folder: Path) -> list[str]:
    """Each placer on a hot spot that stays, and the best on one that wanders."""
    lines = [
        f"{WORKERS} workers, {ROWS:,} rows a micro-batch, {KEYS:,} keys, {SLOTS} slots; {SHARE:.0%} of the rows in the",
        f"slots that two workers have at first, two thirds of them of {HOT} keys on each; a processor that sleeps",
        f"{MICROSECONDS} us a row. Slowest is the time of the slowest worker over the mean: of the first micro-batch,",
        "of the fifth and of the last. Seconds are the median of a micro-batch in the second half; during a move, the",
        "longest while a placement was announced.",
        "",
        "| strategy | slowest, first | fifth | last | s a micro-batch | s during a move | placements |",
        "|---|---|---|---|---|---|---|",
    ]
    for strategy in STRATEGIES:
        batches, placements = run(spark, folder, strategy, FIXED, FIXED)
        later = float(np.median([batch.seconds for batch in batches[FIXED // 2 :]]))
        moves = max((batch.seconds for batch in batches[1:] if batch.moving), default=float("nan"))
        figures = " | ".join(f"{batches[i].slowest:.2f}" for i in (0, 4, -1))
        lines.append(f"| {strategy} | {figures} | {later:.2f} | {moves:.2f} | {placements} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        f"A hot spot that goes to two other workers every {EVERY} micro-batches, slowest over mean of each:",
        "",
    ]
    for strategy in ("hash", "even"):
        batches, placements = run(spark, folder, strategy, WANDERING, EVERY)
        lines.append(
            f"- {strategy}: " + " ".join(f"{batch.slowest:.2f}" for batch in batches) + f"; {placements} moves"
        )
        print(lines[-1], flush=True)
    return [*lines, "", *tenth(spark, folder)]


def tenth(spark: SparkSession, folder: Path) -> list[str]:
    """What a micro-batch takes in which a tenth of the slots is given, and the two in which it may be taken."""
    batches, placements = run(spark, folder, Tenth(SLOTS), TENTHS, TENTHS, share=0.0, tell=AT)
    gives = [i for i, batch in enumerate(batches) if batch.moving]
    takes = [j for i in gives for j in (i + 1, i + 2) if j < len(batches) and j not in gives]
    others = [batch.seconds for i, batch in enumerate(batches) if i > 3 and i not in gives and i not in takes]
    median = float(np.median(others))

    def figures(which: list[int]) -> str:
        return ", ".join(f"{batches[i].seconds / median:.2f}" for i in which)

    lines = [
        f"No hot spot, and {placements} times {SLOTS // 10} of the {SLOTS} slots told to move. The median of the other",
        f"micro-batches is {median:.2f} s. In times of that, those while slots were given away: {figures(gives)};",
        f"the two after each, in one of which they were taken: {figures(takes)}.",
    ]
    print("\n".join(lines), flush=True)
    return lines


def run(
    spark: SparkSession,
    folder: Path,
    strategy: str | place.Placer,
    batches: int,
    every: int,
    share: float = SHARE,
    tell: tuple[int, ...] = (),
) -> tuple[list[Batch], int]:
    """The micro-batches of a query, and how many placements came into force; after those in `tell` it is rebalanced."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    write_stream(work / "in", strategy, batches, every, share)
    source = spark.readStream.schema("key long").option("maxFilesPerTrigger", 1).parquet(str(work / "in"))
    stream = sk.keyed(source, "key", workers=WORKERS, place=strategy)
    rule = place.Rule(alpha=float("inf")) if tell else None
    result = stream.process(
        Slow(), "worker int, seconds double", folder=str(work / "placement"), slots=SLOTS, rule=rule
    )
    slowest: list[float] = []
    moving: list[bool] = []
    handle: SimpleQueue[Watch] = SimpleQueue()  # the first micro-batch may be there before start() has returned

    def take(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        watching.wait(batch)
        moving.append(watching.moving)
        times = np.zeros(WORKERS)
        for row in df.groupBy("worker").sum("seconds").collect():
            times[row["worker"]] = row["sum(seconds)"]
        slowest.append(float(times.max() / times.mean()))
        if batch in tell:
            watching.rebalance()

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    watching = sk.watch(query)
    handle.put(watching)
    query.awaitTermination()
    seconds = [
        batch["durationMs"]["triggerExecution"] / 1000 for batch in query.recentProgress if batch["numInputRows"]
    ]
    watching.wait(batches)
    found = [Batch(*each) for each in zip(seconds, slowest, moving, strict=True)]
    return found, watching.placement.version


def write_stream(folder: Path, strategy: str | place.Placer, batches: int, every: int, share: float) -> None:
    """Files in which a share of the rows is in the slots of two workers, by the strategy's first placement."""
    folder.mkdir(parents=True)
    none = Counts.none()
    placer = strategy if isinstance(strategy, place.Placer) else place.make(strategy, slots=SLOTS)
    first = placer.place(none, None, WORKERS)
    keys = np.arange(KEYS)
    owners = first.worker_of(xxhash64(keys))
    for i in range(batches):
        chance, spot = np.random.default_rng(i), i // every
        there = [keys[owners == (worker + 5 * spot) % WORKERS] for worker in (3, 11)]
        hot, hottest = np.concatenate(there), np.concatenate([keys[:HOT] for keys in there])
        kind = chance.random(ROWS)
        rows = np.where(kind < share, chance.choice(hot, ROWS), chance.choice(keys, ROWS))
        rows = np.where(kind < share * 2 / 3, chance.choice(hottest, ROWS), rows)
        path = folder / f"{i:03}.parquet"
        pq.write_table(pa.table({"key": rows}), path, row_group_size=ROWS // 2)
        os.utime(path, (1_000_000 + i,) * 2)
