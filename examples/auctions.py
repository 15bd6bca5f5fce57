"""Auctions: the sum of all bids on each auction, while most bids are for auctions that lie on one worker.

Auctions and bids are those of Nexmark, and the query that of AutoFlow's evaluation. Some auctions are hot, and by the
first placement they all belong to worker 0. After every micro-batch the script prints how many bids each worker had: as
soon as that is known to be uneven, auctions move to other workers, with their sums.

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
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.core import hashing

SLOTS = 64
BIDS = "auction long, bidder long, price long"
TOTALS = "bids long, total long"


class Total(sk.Processor):
    """Keeps the number and the sum of the bids on each auction."""

    state = "bids long, total long"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[int, int]]:
        """Take the bids on an auction."""
        state["bids"] = (state["bids"] or 0) + len(rows)
        state["total"] = (state["total"] or 0) + sum(rows["price"])
        yield state["bids"], state["total"]


def totals(bids: DataFrame, folder: str) -> DataFrame:
    """In every micro-batch the new sums of the auctions that had bids; `folder` is the query's own folder."""
    return sk.keyed(bids, "auction", name="auctions").process(Total(), TOTALS, folder=folder, slots=SLOTS)


def make_bids(workers: int, batches: int = 5, rows: int = 20_000, hot: float = 0.5, seed: int = 1) -> list[pa.Table]:
    """Bids on 1,000 auctions; the share `hot` of the bids is for 20 auctions of worker 0."""
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
    """Put a file into the folder that the stream reads; the stream sees it whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    pq.write_table(table, f"{folder}/.{number:03}")
    os.replace(f"{folder}/.{number:03}", f"{folder}/{number:03}.parquet")


def main() -> None:
    """Make some bids, and show how many each worker had."""
    workers = 4
    spark = sk.session(2, spark_sql_shuffle_partitions=str(workers))
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/bids")
        bids = spark.readStream.schema(BIDS).parquet(f"{folder}/bids")
        query = (
            totals(bids, f"{folder}/query")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .start(f"{folder}/totals")
        )
        for number, table in enumerate(make_bids(workers)):
            write(f"{folder}/bids", table, number)
            query.processAllAvailable()
            sk.watch(query).wait(number + 1)  # until the loop has learned from it, which never holds up the query
            show_loads(query, number)
        query.stop()
        largest = spark.read.parquet(f"{folder}/totals").groupBy("auction").agg({"bids": "max", "total": "max"})
        largest.orderBy("max(total)", ascending=False).show(5)
    spark.stop()


def show_loads(query: StreamingQuery, batch: int) -> None:
    """Print the bids of each worker in the last micro-batch, and the placement that the next one goes by."""
    watching = sk.watch(query)
    loads = " + ".join(f"{rows:,}" for _worker, rows in sorted(watching.loads.items()))
    print(
        f"batch {batch}: workers had {loads} bids, the busiest {watching.imbalance:.2f} times the average; "
        f"next is placement {watching.placement.version}"
    )


if __name__ == "__main__":
    main()
