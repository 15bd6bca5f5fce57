"""Deduplication: a row passes if no other row of its id came within the ten minutes before it.

A source that sends a row again until it is acknowledged repeats rows, and some ids far more often than others. The
state of an id is the time of its last row, and `ttl` deletes it when it is no longer needed. The rows come a slot at a
time, as Arrow tables, so that there is no call of Python for each id.

    python examples/deduplicate.py
"""

from __future__ import annotations

import random
import tempfile
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

TTL = timedelta(minutes=10)
DELAY = "1 minute"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
ROWS = "id string, ts timestamp, amount long"
PASSED = "ts timestamp, amount long"

Payment = tuple[str, datetime, int]


class FirstOfEach(sk.SlotProcessor):
    """Passes a row if its id had no row for as long as the TTL before it."""

    state = "last timestamp"
    ttl = "10 minutes"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Take the rows of many ids, sorted by id and time, and return those that pass and the new states."""
        never = np.iinfo(np.int64).min // 2  # before any time, and it can be subtracted from one
        group = rows["group"].to_numpy()
        times = rows["ts"].cast(pa.int64()).to_numpy()  # microseconds
        last = states["last"].cast(pa.int64()).fill_null(never).to_numpy()
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        before = np.concatenate([[never], times[:-1]])
        before[starts] = never
        before = np.maximum(before, last[group])  # the time of the row before each, of the same id
        passes = times - before >= TTL // timedelta(microseconds=1)
        last = np.maximum(last, np.maximum.reduceat(times, starts))
        kept = pa.array(last).cast(states["last"].type)
        return rows.filter(pa.array(passes)), pa.table({"last": kept})  # `rows` has `group`, which names their ids


def deduplicated(payments: DataFrame, folder: str) -> DataFrame:
    """A stream of payments without repeated ones; `folder` is the query's own folder."""
    keyed = sk.keyed(payments, "id")
    return keyed.process(FirstOfEach(), PASSED, folder=folder, order="ts", time="ts", watermark=DELAY)


def make_payments(batches: int = 4, rows: int = 300, seed: int = 1) -> list[list[Payment]]:
    """Ten minutes of payments for each micro-batch; many are sent again, and some for as long as the stream runs."""
    rng = random.Random(seed)
    made = []
    for batch in range(batches):
        part = []
        for _ in range(rows):
            number = int(rng.paretovariate(0.3)) % 1000
            ts = START + timedelta(minutes=10 * batch, seconds=rng.randrange(600))
            part.append((f"payment {number}", ts, number))
        made.append(part)
    return made


def main() -> None:
    """Make some payments, and count those that pass."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        batches = make_payments()
        write(f"{folder}/payments", ROWS, batches)
        query = (
            deduplicated(stream(spark, f"{folder}/payments", ROWS), f"{folder}/query")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/passed")
        )
        query.awaitTermination()
        passed = spark.read.parquet(f"{folder}/passed")
        print(f"{sum(map(len, batches))} rows came, {passed.count()} passed; most often")
        passed.groupBy("id").count().orderBy("count", "id", ascending=False).show(5, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
