"""A ledger: entries are numbered where they are made, overtake each other on their way, and are to be booked in order.

An entry comes at most so many numbers late. Strict order makes every entry wait until all before it are there. A reader
who bears two entries that are a few places out of order waits less: the script books the same entries both ways and
prints what the order cost.

    python examples/ledger.py
"""

from __future__ import annotations

import random
import tempfile

import pyarrow as pa
from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

DELAY = 20
ENTRIES = "number long, amount long"

Entry = tuple[int, int]


def book(entries: DataFrame, folder: str, max_disorder: int) -> tuple[list[Entry], str]:
    """The entries of a stream as they are booked, and what their order cost, in words."""
    booked: list[Entry] = []

    def deliver(rows: pa.Table, batch_id: int) -> None:
        # A replayed micro-batch comes with the same id again: a real ledger would skip an id that it has booked.
        booked.extend(zip(rows["number"].to_pylist(), rows["amount"].to_pylist(), strict=True))

    ordered = sk.ordered(entries, by="number", max_disorder=max_disorder, delay=DELAY, parts=1)
    ordered.write(deliver, folder).trigger(availableNow=True).start().awaitTermination()
    cost = str(ordered.waits)
    ordered.flush(deliver, folder)  # nothing more will come
    return booked, cost


def make_entries(batches: int = 8, rows: int = 25, seed: int = 1) -> list[list[Entry]]:
    """Numbered entries, each once, that come up to DELAY numbers late."""
    rng = random.Random(seed)
    entries = [(number, rng.randrange(-500, 1000)) for number in range(batches * rows)]
    arrival = sorted(entries, key=lambda entry: entry[0] + rng.uniform(0, DELAY))
    return [arrival[start : start + rows] for start in range(0, len(arrival), rows)]


def main() -> None:
    """Make some entries, and book them in strict order and nearly so."""
    spark = sk.session(2)
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/entries", ENTRIES, make_entries())
        for most in (0, 5):
            entries = stream(spark, f"{folder}/entries", ENTRIES)
            booked, cost = book(entries, f"{folder}/checkpoint-{most}", most)
            print(f"{len(booked)} entries booked with max_disorder={most}, the balance is {sum(dict(booked).values())}")
            print(cost)
    spark.stop()


if __name__ == "__main__":
    main()
