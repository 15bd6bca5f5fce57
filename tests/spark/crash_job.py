"""Run by test_crash.py as a program of its own, to be killed: up to eight queries, each into a folder of its own.

Two have windows of aggregates, and three functions of whole windows: by batches, by batches whose size changes as often
as it can, and by panes. One has panes of so many rows, of all rows. In another one slots and keys move from worker to
worker as often as they can, and the number of workers follows the load, with timers and with state that expires. The
last delivers rows in order.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.core.hashing import xxhash64
from skewless.spark.listen import _streams
from support.streams import DAEMON, INTERPRETED, PATIENT, QUICK, begin

AGAIN = {"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"}
"""A kill while the first micro-batch is noted leaves a temporary file, and Spark would not start the query again."""
RISING = sk.elastic.Range(1, 3, "1 millisecond", d=1)
"""Every micro-batch takes too long, so that the most workers are asked for after each that is counted."""
PAGES = ["hot", "hot0", "hot1", "p1", "p2", "p3"]
ROWS, SLIDE = 60, 24
Change = Callable[[Any, np.random.Generator], None]


class Running(sk.Processor):
    """Numbers the rows of a page, and adds up their prices; numbers anew, and says so, after three quiet seconds."""

    state = "n long, total decimal(20,2)"
    ttl = "8 seconds"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for price in rows["price"]:
            state["n"] = (state["n"] or 0) + 1
            state["total"] = (state["total"] or Decimal(0)) + price
            yield state["n"], state["total"]
        state.timer = max(rows["ts"]) + timedelta(seconds=3)

    def expire(self, key: tuple[Any, ...], state: sk.State) -> Iterator[tuple[Any, ...]]:
        yield -state["n"], state["total"]
        state["n"] = 0


Sums = tuple[int, Decimal, int, int]


def sums(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> Sums:
    """What the aggregates of the other windows are."""
    return len(rows), rows["price"].sum(), int(rows["n"].max()), int(rows["n"].sum())


def of_sums(key: tuple[Any, ...], window: Any, panes: list[Sums]) -> Sums:
    """The same from those of panes."""
    count, spent, most, total = zip(*panes, strict=True)
    return sum(count), sum(spent, Decimal(0)), max(most), sum(total)


def counted(events: DataFrame) -> DataFrame:
    """Windows of so many rows of all pages, by panes."""
    schema = "rows long, spent decimal(22,2), most long, total long"
    return sk.windowed(events, "ts", ROWS, SLIDE).apply(of_sums, schema, pane=sums)


def windows_of(events: DataFrame, way: str, folder: Path) -> DataFrame:
    """The same windows in one of five ways."""
    split = {"split": way} if way in ("dalton", "local") else {}
    keyed = sk.keyed(events, "page", workers=None if way == "local" else 3, **split)
    windows = keyed.window("ts", size="20 seconds", slide="5 seconds", watermark="5 seconds")
    schema = "rows long, spent decimal(22,2), most long, total long"
    if way == "batch":
        return windows.apply(sums, schema, chop="batch")
    if way == "tuned":
        return windows.apply(sums, schema, tune="1 hour", folder=str(folder / "sizes"))
    if way == "pane":
        return windows.apply(of_sums, schema, pane=sums)
    return windows.agg(rows=sk.count(), spent=sk.sum("price"), most=sk.max("n"), total=sk.sum("n"))


def placed(events: DataFrame, folder: Path, seed: int) -> StreamingQuery:
    """A query whose slots move all the time, by announcements that are made up and by those of its range of workers."""
    result = sk.keyed(events, "page", workers=RISING, place="even").process(
        Running(),
        "n long, total decimal(20,2)",
        folder=str(folder / "placement"),
        time="ts",
        watermark="5 seconds",
        order="price",
        slots=8,
        rule=sk.place.Rule(alpha=1e9),  # only what is announced below, and what the range asks for
    )
    return to_parquet(result, folder, "placed", seed, _another_placement)


def to_parquet(result: DataFrame, folder: Path, way: str, seed: int, change: Change | None = None) -> StreamingQuery:
    """Start a query, and have its loop announce something new as often as it can.

    A micro-batch that comes again is written again. Spark's own sink of files would leave it out if it has its rows
    already, and with it what the watermark is raised by: rows that are late would be let in after a kill.
    """
    loop = next(reversed(_streams.values()))  # at once, and not when the first micro-batch is done

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(folder / way / f"batch={batch}"))

    writer = result.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / f"{way}-checkpoint"))
    query = writer.trigger(availableNow=True).start()
    if change is not None:
        threading.Thread(target=_keep_changing, args=(loop, change, seed), daemon=True).start()
    return query


def _keep_changing(loop: Any, change: Change, seed: int) -> None:
    chance = np.random.default_rng(seed)
    while True:
        with contextlib.suppress(sk.SkewlessError):  # nothing was heard yet, or the last one is still on its way
            change(loop, chance)
        time.sleep(0.2)


def _another_placement(loop: Any, chance: np.random.Generator) -> None:
    workers = int(chance.integers(1, RISING.most))  # the most are announced by the range alone
    tracked = chance.choice(xxhash64(PAGES).tolist(), int(chance.integers(0, 4)), replace=False).tolist()
    own = {key: int(chance.integers(workers)) for key in tracked}
    loop.announce(sk.place.Placement.of(workers, chance.integers(0, workers, 8).tolist(), own))


def _another_size(loop: Any, chance: np.random.Generator) -> None:
    loop.change(int(chance.integers(1, 5)))


def in_order(events: DataFrame, folder: Path) -> StreamingQuery:
    """A query that delivers rows in order: what it gives again after a crash has to be the same."""
    (folder / "ordered").mkdir(exist_ok=True)

    def deliver(rows: pa.Table, batch: int) -> None:
        path, columns = folder / "ordered" / f"{batch:03d}.json", rows.select(["ts", "n"]).to_pylist()
        text = json.dumps([[row["ts"].timestamp(), row["n"]] for row in columns])
        if path.exists():
            assert path.read_text() == text, f"micro-batch {batch} was delivered twice, and differently"
        aside = path.with_suffix(".new")
        aside.write_text(text)
        aside.rename(path)

    ordered = sk.ordered(events, by="ts", delay="30 seconds")
    return ordered.write(deliver, str(folder / "ordered-checkpoint")).trigger(availableNow=True).start()


def started(events: DataFrame, way: str, folder: Path, seed: int) -> StreamingQuery:
    """Start the query of that name."""
    if way == "ordered":
        return in_order(events, folder)
    if way == "placed":
        return placed(events, folder, seed)
    result = counted(events) if way == "counted" else windows_of(events, way, folder)
    return to_parquet(result, folder, way, seed, _another_size if way == "tuned" else None)


def main(folder: Path, seed: int, *ways: str) -> None:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.bindAddress": "127.0.0.1"}
    settings |= {"spark.driver.extraJavaOptions": QUICK, "spark.python.daemon.module": DAEMON, **INTERPRETED, **PATIENT}
    settings |= AGAIN
    spark = sk.session(2, memory="1g", **settings, **{"spark.sql.shuffle.partitions": "3"})
    schema = "ts timestamp, page string, price decimal(12,2), n long"
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    print("started", flush=True)
    queries = []
    for way in random.sample(ways, len(ways)):  # another one is first in every run
        queries.append(started(events, way, folder, seed))
        begin(queries[-1])
    for query in queries:
        query.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
