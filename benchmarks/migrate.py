"""State that moves while a query runs, in wall-clock time: sixteen workers, and a processor that takes 20 us a row.

The processor sleeps, so that two cores can hold sixteen workers that are busy at once. 60 % of the rows are of keys
whose slots are on two of the workers at first: 40 % are of ten hot keys on each, the others of many keys. Claims
tested: within five micro-batches the slowest worker is near the mean, a micro-batch in which state moves takes hardly
longer than others, and a hot spot that wanders is followed. A tenth of the slots is also moved by hand, on a stream
without a hot spot, so that nothing but the moving changes the time of a micro-batch.

What measuring taught. In the fifth micro-batch the slowest worker takes 1.06 times the mean with "even" and with scan,
redist and readj that move tail slots too, 1.9 times if these move hot keys only, and 4.8 times by hash. After a hot
spot has gone elsewhere, the third micro-batch is balanced again where there is idle time, and the fourth back to back.
The micro-batches in which a tenth of the slots is given away or taken take 0.9 to 1.1 times as long as others; those
in which 10^5 keys of 1 KB each all move take twice as long, and no row waits for the next one.

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
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.place.base import Owners

WORKERS, SLOTS, ROWS, KEYS = 16, 256, 600_000, 40_000
FIXED, WANDERING, EVERY = 9, 18, 6
"""Micro-batches of the two streams, and for how many a hot spot stays where it is."""
MICROSECONDS, SHARE, HOT = 20, 0.6, 10
TENTHS, AT = 20, (6, 10, 14)
"""Micro-batches without a hot spot, and after which of them a tenth of the slots is told to move."""
LARGE, BYTES, LARGE_BATCHES, LARGE_AT = 100_000, 1_000, 16, (5, 9, 13)
"""Keys with much state, its bytes, micro-batches, and after which of them all state is told to move."""
STRATEGIES: dict[str, str | place.Placer] = {
    "hash": "hash",
    "consistent": "consistent",
    "scan": "scan",
    "redist": "redist",
    "readj": "readj",
    "scan, tail": place.Scan(SLOTS, tail=True),
    "redist, tail": place.Redist(SLOTS, tail=True),
    "readj, tail": place.Readj(SLOTS, tail=True),
    "autoflow": "autoflow",
    "even": "even",
}


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
        took = pa.table(
            {"group": [0], "worker": [worker], "seconds": [time.perf_counter() - start], "came": [rows.num_rows]}
        )
        return took, pa.table({"n": n})


class Kilobyte(sk.SlotProcessor):
    """Counts the rows of a key, and keeps a kilobyte beside the number."""

    state = "n long, data binary"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """All keys of a slot."""
        n = np.bincount(np.asarray(rows["group"]), minlength=states.num_rows)
        n = n + np.asarray(states["n"].fill_null(0))
        data = states["data"].fill_null(bytes(BYTES))
        return pa.table({"n": n}), pa.table({"n": n, "data": data})


class All(place.Placer):
    """Moves all slots to other workers, whenever it is asked."""

    name = "all"

    def _place(self, seen: Counts, previous: place.Placement | None, workers: int) -> Owners:
        at = np.arange(self.slots, dtype=np.int32) if previous is None else previous.tail + 1
        return Owners((at % workers).astype(np.int32))


class Tenth(place.Placer):
    """Moves a tenth of the slots to other workers, whenever it is asked."""

    name = "tenth"

    def _place(self, seen: Counts, previous: place.Placement | None, workers: int) -> Owners:
        tail = np.arange(self.slots, dtype=np.int32) % workers if previous is None else previous.tail.copy()
        if previous is not None:
            some = np.random.default_rng(previous.version).choice(self.slots, self.slots // 10, replace=False)
            tail[some] = (tail[some] + 1) % workers
        return Owners(tail)


@dataclass(frozen=True)
class Batch:
    """A micro-batch.

    Attributes
    ----------
    seconds
        How long it took.
    slowest, busiest
        The time of the slowest worker over the mean, and the rows of the busiest one.
    moving
        Whether a placement was announced in it.
    """

    seconds: float
    slowest: float
    busiest: float
    moving: bool


def table(spark: SparkSession, folder: Path) -> list[str]:
    """Each placer on a hot spot that stays, and the best on one that wanders."""
    lines = [
        f"{WORKERS} workers, {ROWS:,} rows a micro-batch, {KEYS:,} keys, {SLOTS} slots; {SHARE:.0%} of the rows in the",
        f"slots that two workers have at first, two thirds of them of {HOT} keys on each; a processor that sleeps",
        f"{MICROSECONDS} us a row. Slowest is the time of the slowest worker over the mean: of the first micro-batch,",
        "of the fifth and of the last. Seconds are the median of a micro-batch in the second half; during a move, the",
        "longest while a placement was announced. With tail, the slots that keys share move as hot keys do.",
        "",
        "| strategy | slowest, first | fifth | last | s a micro-batch | s during a move | placements |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, strategy in STRATEGIES.items():
        batches, placements = run(spark, folder, strategy, FIXED, FIXED)
        later = float(np.median([batch.seconds for batch in batches[FIXED // 2 :]]))
        moves = max((batch.seconds for batch in batches[1:] if batch.moving), default=None)
        moving = "-" if moves is None else f"{moves:.2f}"
        figures = " | ".join(f"{batches[i].slowest:.2f}" for i in (0, 4, -1))
        lines.append(f"| {name} | {figures} | {later:.2f} | {moving} | {placements} |")
        print(lines[-1], flush=True)
    return [*lines, "", *wandering(spark, folder), "", *tenth(spark, folder), "", *large(spark, folder)]


def wandering(spark: SparkSession, folder: Path) -> list[str]:
    """A hot spot that goes elsewhere: the busiest worker of every micro-batch."""
    lines = [
        f"A hot spot that goes to two other workers every {EVERY} micro-batches: rows of the busiest worker over the",
        "mean, of each micro-batch. With idle time, the driver has heard of a micro-batch before the next one begins;",
        "back to back, it hears of it while the next one runs.",
        "",
    ]
    for strategy, idle in (("hash", False), ("even", False), ("even", True)):
        batches, placements = run(spark, folder, strategy, WANDERING, EVERY, idle=idle)
        spots = [batches[at : at + EVERY] for at in range(0, WANDERING, EVERY)]
        figures = " / ".join(" ".join(f"{batch.busiest:.2f}" for batch in spot) for spot in spots)
        lines.append(
            f"- {strategy}, {'with idle time' if idle else 'back to back'}: {figures}; {placements} placements"
        )
        print(lines[-1], flush=True)
    return lines


def tenth(spark: SparkSession, folder: Path) -> list[str]:
    """What a micro-batch takes in which a tenth of the slots is given, and the one in which it is taken."""
    batches, placements = run(spark, folder, Tenth(SLOTS), TENTHS, TENTHS, share=0.0, tell=AT)
    assert placements == len(AT), f"{placements} placements came into force, not {len(AT)}"
    gives, takes = _given_and_taken(AT)
    others = [batch.seconds for i, batch in enumerate(batches) if i > 3 and i not in gives and i not in takes]
    median = float(np.median(others))

    def figures(which: list[int]) -> str:
        return ", ".join(f"{batches[i].seconds / median:.2f}" for i in which)

    lines = [
        f"No hot spot, and {placements} times {SLOTS // 10} of the {SLOTS} slots told to move. The median of the other",
        f"micro-batches is {median:.2f} s. In times of that, those in which slots were given away: {figures(gives)};",
        f"in which they were taken: {figures(takes)}.",
    ]
    print("\n".join(lines), flush=True)
    return lines


def _given_and_taken(told: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The micro-batches in which state is given and in which it is taken, if it is told to move in these."""
    return [at + 1 for at in told], [at + 2 for at in told]


def large(spark: SparkSession, folder: Path) -> list[str]:
    """All of 100 MB of state moves while rows come: what the micro-batches around it take."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "in").mkdir(parents=True)
    came = [LARGE if i == 0 else LARGE // 10 for i in range(LARGE_BATCHES)]
    for i, rows in enumerate(came):
        keys = np.random.default_rng(i).choice(LARGE, rows, replace=False)
        path = work / "in" / f"{i:03}.parquet"
        pq.write_table(pa.table({"key": keys}), path, row_group_size=rows // 2)
        os.utime(path, (1_000_000 + i,) * 2)
    source = spark.readStream.schema("key long").option("maxFilesPerTrigger", 1).parquet(str(work / "in"))
    keyed = sk.keyed(source, "key", workers=WORKERS, place=All(SLOTS))
    result = keyed.process(
        Kilobyte(), "n long", folder=str(work / "placement"), slots=SLOTS, rule=place.Rule(alpha=float("inf"))
    )
    handle: SimpleQueue[Watch] = SimpleQueue()
    given: list[int] = []

    def take(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        given.append(df.count())
        watching.wait(batch)
        if batch in LARGE_AT:
            watching.rebalance()

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    handle.put(sk.watch(query))
    query.awaitTermination()
    watching = sk.watch(query)
    watching.wait(LARGE_BATCHES)
    placements = watching.placement.version
    assert placements == len(LARGE_AT), f"{placements} placements came into force, not {len(LARGE_AT)}"
    seconds = [p["durationMs"]["triggerExecution"] / 1000 for p in query.recentProgress if p["numInputRows"]]
    gives, takes = _given_and_taken(LARGE_AT)
    others = [took for i, took in enumerate(seconds) if i > 3 and i not in (*gives, *takes)]

    def figures(which: list[int]) -> str:
        return ", ".join(f"{seconds[i]:.2f}" for i in which)

    waited = sum(max(0, rows - results) for rows, results in zip(came, given, strict=True))
    lines = [
        f"{LARGE:,} keys of {BYTES:,} bytes each, {LARGE // 10:,} of them with a row in every micro-batch, and all of",
        f"them moved to other workers, {placements} times. Rows without a result in their own micro-batch:",
        f"{waited}. Seconds of the micro-batches in which the state was given: {figures(gives)}; in which it was",
        f"taken: {figures(takes)}; median of the others:",
        f"{np.median(others):.2f}.",
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
    idle: bool = False,
) -> tuple[list[Batch], int]:
    """The micro-batches of a query, and how many placements came into force; after those in `tell` it is rebalanced.

    With `idle` the driver hears of a micro-batch before the next one begins, and otherwise while that one runs.
    """
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    write_stream(work / "all", strategy, batches, every, share)
    (work / "in").mkdir()
    files = sorted((work / "all").iterdir())
    if not idle:
        for path in files:
            path.rename(work / "in" / path.name)
    source = spark.readStream.schema("key long").option("maxFilesPerTrigger", 1).parquet(str(work / "in"))
    stream = sk.keyed(source, "key", workers=WORKERS, place=strategy)
    rule = place.Rule(alpha=float("inf")) if tell else None
    result = stream.process(
        Slow(), "worker int, seconds double, came long", folder=str(work / "placement"), slots=SLOTS, rule=rule
    )
    over_mean: list[tuple[float, float]] = []
    moving: list[bool] = []
    handle: SimpleQueue[Watch] = SimpleQueue()  # the first micro-batch may be there before start() has returned

    def take(df: DataFrame, batch: int) -> None:
        watching = handle.get()
        handle.put(watching)
        moving.append(watching.moving)
        totals = np.zeros((2, WORKERS))
        for row in df.groupBy("worker").sum("seconds", "came").collect():
            totals[:, row["worker"]] = row["sum(seconds)"], row["sum(came)"]
        watching.wait(batch)
        slowest, busiest = totals.max(axis=1) / totals.mean(axis=1)
        over_mean.append((float(slowest), float(busiest)))
        if batch in tell:
            watching.rebalance()

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(work / "checkpoint"))
    query = (writer if idle else writer.trigger(availableNow=True)).start()
    watching = sk.watch(query)
    handle.put(watching)
    if idle:
        for i, path in enumerate(files, 1):
            path.rename(work / "in" / path.name)
            query.processAllAvailable()
            watching.wait(i)
        query.stop()
    query.awaitTermination()
    seconds = [
        batch["durationMs"]["triggerExecution"] / 1000 for batch in query.recentProgress if batch["numInputRows"]
    ]
    watching.wait(batches)
    found = [Batch(*each) for each in zip(seconds, *zip(*over_mean, strict=True), moving, strict=True)]
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
