"""Run by test_crash.py as a program of its own, to be killed: three queries, each into its parquet sink.

Two have windows. In the third, slots and keys move from worker to worker as often as they can.
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
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.hashing import xxhash64

PAGES = ["hot", "hot0", "hot1", "p1", "p2", "p3"]


class Running(sk.Processor):
    """Numbers the rows of a page, and adds up their prices."""

    state = "n long, total decimal(20,2)"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        for price in rows["price"]:
            state["n"] = (state["n"] or 0) + 1
            state["total"] = (state["total"] or Decimal(0)) + price
            yield key[0], state["n"], state["total"]


def placed(events: DataFrame, folder: Path) -> StreamingQuery:
    """A query whose slots move all the time."""
    stream = sk.keyed(events, "page", strategy="even")
    rule = sk.Rule(alpha=1e9)  # only what is announced below
    result = stream.process(
        Running(), "page string, n long, total decimal(20,2)", location=str(folder / "placement"), order="price",
        slots=8, rule=rule,
    )  # fmt: skip
    threading.Thread(target=_wander, args=(stream,), daemon=True).start()
    writer = result.writeStream.format("parquet").option("checkpointLocation", str(folder / "placed-checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "placed"))


def _wander(stream: sk.KeyedStream) -> None:
    chance = np.random.default_rng(int(time.time()))
    hashes = xxhash64(PAGES).tolist()
    while True:
        workers = int(chance.integers(1, 4))
        tracked = chance.choice(hashes, int(chance.integers(0, 4)), replace=False).tolist()
        own = {key: int(chance.integers(workers)) for key in tracked}
        with contextlib.suppress(sk.SkewlessError):  # the last one is still on its way
            stream._placing.announce(sk.place.Placement.of(workers, chance.integers(0, workers, 8).tolist(), own))  # type: ignore[union-attr]
        time.sleep(0.2)


def main(folder: Path) -> None:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.driver.bindAddress": "127.0.0.1"}
    spark = sk.session(2, memory="1g", **settings, **{"spark.sql.shuffle.partitions": "3"})
    schema = "ts timestamp, page string, price decimal(12,2), n long"
    queries = []
    for strategy in ("dalton", "local"):
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        windows = sk.keyed(events, "page", workers=3, strategy=strategy).window(
            "ts", size="20 seconds", slide="5 seconds", watermark="5 seconds"
        )
        result = windows.agg(rows=sk.count(), spent=sk.sum("price"), most=sk.max("n"), total=sk.sum("n"))
        checkpoint = folder / f"{strategy}-checkpoint"
        writer = result.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        queries.append(writer.trigger(availableNow=True).start(str(folder / strategy)))
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    queries.append(placed(events, folder))
    print("started", flush=True)
    for query in queries:
        query.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
