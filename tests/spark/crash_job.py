"""Run by test_crash.py as a program of its own, to be killed: five queries, each into its parquet sink.

Two have windows of aggregates, and two functions of whole windows, by batches and by panes. In the last, slots and keys
move from worker to worker as often as they can.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.core.hashing import xxhash64
from skewless.spark.listen import _streams

PAGES = ["hot", "hot0", "hot1", "p1", "p2", "p3"]


class Running(sk.Processor):
    """Numbers the rows of a page, and adds up their prices."""

    state = "n long, total decimal(20,2)"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for price in rows["price"]:
            state["n"] = (state["n"] or 0) + 1
            state["total"] = (state["total"] or Decimal(0)) + price
            yield state["n"], state["total"]


Sums = tuple[int, Decimal, int, int]


def sums(key: tuple[Any, ...], window: Any, rows: pd.DataFrame) -> Sums:
    """What the aggregates of the other windows are."""
    return len(rows), rows["price"].sum(), int(rows["n"].max()), int(rows["n"].sum())


def of_sums(key: tuple[Any, ...], window: Any, panes: list[Sums]) -> Sums:
    """The same from those of panes."""
    count, spent, most, total = zip(*panes, strict=True)
    return sum(count), sum(spent, Decimal(0)), max(most), sum(total)


def windows_of(events: DataFrame, way: str) -> DataFrame:
    """The same windows in one of four ways."""
    split = {} if way in ("batch", "pane") else {"split": way}
    keyed = sk.keyed(events, "page", workers=None if way == "local" else 3, **split)
    windows = keyed.window("ts", size="20 seconds", slide="5 seconds", watermark="5 seconds")
    schema = "rows long, spent decimal(22,2), most long, total long"
    if way == "batch":
        return windows.apply(sums, schema, chop="batch")
    if way == "pane":
        return windows.apply(of_sums, schema, pane=sums)
    return windows.agg(rows=sk.count(), spent=sk.sum("price"), most=sk.max("n"), total=sk.sum("n"))


def placed(events: DataFrame, folder: Path) -> StreamingQuery:
    """A query whose slots move all the time."""
    result = sk.keyed(events, "page", place="even").process(
        Running(),
        "n long, total decimal(20,2)",
        folder=str(folder / "placement"),
        order="price",
        slots=8,
        rule=sk.place.Rule(alpha=1e9),  # only what is announced below
    )
    loop = next(reversed(_streams.values()))  # at once, and not when the first micro-batch is done
    writer = result.writeStream.format("parquet").option("checkpointLocation", str(folder / "placed-checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "placed"))
    threading.Thread(target=_wander, args=(loop,), daemon=True).start()
    return query


def _wander(loop: Any) -> None:
    chance = np.random.default_rng(int(time.time()))
    hashes = xxhash64(PAGES).tolist()
    while True:
        workers = int(chance.integers(1, 4))
        tracked = chance.choice(hashes, int(chance.integers(0, 4)), replace=False).tolist()
        own = {key: int(chance.integers(workers)) for key in tracked}
        placement = sk.place.Placement.of(workers, chance.integers(0, workers, 8).tolist(), own)
        with contextlib.suppress(sk.SkewlessError):  # nothing was heard yet, or the last one is still on its way
            loop.announce(placement)
        time.sleep(0.2)


def main(folder: Path) -> None:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.bindAddress": "127.0.0.1"}
    # A machine that is busy elsewhere starts Python slowly, and that is not what is tested.
    settings["spark.python.authenticate.socketTimeout"] = "120s"
    spark = sk.session(2, memory="1g", **settings, **{"spark.sql.shuffle.partitions": "3"})
    schema = "ts timestamp, page string, price decimal(12,2), n long"
    queries = []
    for way in ("dalton", "local", "batch", "pane"):
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        result = windows_of(events, way)
        checkpoint = folder / f"{way}-checkpoint"
        writer = result.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        queries.append(writer.trigger(availableNow=True).start(str(folder / way)))
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    queries.append(placed(events, folder))
    print("started", flush=True)
    for query in queries:
        query.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
