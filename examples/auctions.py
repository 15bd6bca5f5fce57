"""Auctions: the sum of all bids on each auction, while most bids are for auctions that lie on one worker.

Auctions and bids are those of Nexmark, and the query that of AutoFlow's evaluation. Some auctions are hot, and by the
first placement they all belong to worker 0. What each worker had to do is printed after every micro-batch: as soon as
that is known to be uneven, auctions move to other workers, with their sums.

    python examples/auctions.py
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import skewless as sk
from skewless.core import hashing

SLOTS = 64
BIDS = "auction long, bidder long, price long"
TOTALS = "auction long, bids long, total long"


class Total(sk.Processor):
    """Keeps the number and the sum of the bids on each auction."""

    state = "bids long, total long"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[int, int, int]]:
        """Bids on an auction."""
        state["bids"] = (state["bids"] or 0) + len(rows)
        state["total"] = (state["total"] or 0) + sum(rows["price"])
        yield (*key, state["bids"], state["total"])


def totals(bids: DataFrame, location: str) -> tuple[sk.KeyedStream, DataFrame]:
    """The stream, to look at, and in every micro-batch the new sums; `location` is the stream's own folder."""
    stream = sk.keyed(bids, "auction", name="auctions")
    return stream, stream.process(Total(), TOTALS, location=location, slots=SLOTS)


def make_bids(workers: int, batches: int = 5, rows: int = 20_000, hot: float = 0.5, seed: int = 1) -> list[pa.Table]:
    """Bids on 1,000 auctions: that part of them which is `hot` is for 20 auctions of worker 0."""
    rng = np.random.default_rng(seed)
    auctions = np.arange(1000)
    # A slot of the first placement belongs to the worker of its number, modulo the workers.
    first = hashing.xxhash64(auctions) % SLOTS % workers
    many = auctions[first == 0][:20]
    made = []
    for _ in range(batches):
        auction = np.where(rng.random(rows) < hot, rng.choice(many, rows), rng.choice(auctions, rows))
        price = np.round(10 ** (6 * rng.random(rows)) * 100).astype(np.int64)  # in cents, as in Nexmark
        made.append(pa.table({"auction": auction, "bidder": rng.integers(0, 10_000, rows), "price": price}))
    return made


def write(folder: str, table: pa.Table, number: int) -> None:
    """Put a file where the stream reads; it is there whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    pq.write_table(table, f"{folder}/.{number:03}")
    os.replace(f"{folder}/.{number:03}", f"{folder}/{number:03}.parquet")


def main() -> None:
    """Make some bids, and show what each worker had to do."""
    workers = 4
    spark = sk.session(2, spark_sql_shuffle_partitions=str(workers))
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/bids")
        bids = spark.readStream.schema(BIDS).parquet(f"{folder}/bids")
        stream, result = totals(bids, f"{folder}/placement")
        query = (
            result.writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start(f"{folder}/totals")
        )
        for number, table in enumerate(make_bids(workers)):
            write(f"{folder}/bids", table, number)
            query.processAllAvailable()
            stream.await_learned(number + 1)  # a moment: what is learned never holds up a query
            show_loads(stream, number)
        query.stop()
        largest = spark.read.parquet(f"{folder}/totals").groupBy("auction").agg({"bids": "max", "total": "max"})
        largest.orderBy("max(total)", ascending=False).show(5)
    spark.stop()


def show_loads(stream: sk.KeyedStream, batch: int) -> None:
    """What each worker had to do in the last micro-batch, and which placement the next one goes by."""
    loads = " + ".join(f"{rows:,}" for _worker, rows in sorted(stream.loads.items()))
    print(
        f"batch {batch}: workers had {loads} bids, the busiest {stream.imbalance:.2f} times the average; "
        f"next is placement {stream.placement.version}"
    )


if __name__ == "__main__":
    main()
