"""Break-ins: logins that succeed after several failures in a row, within five minutes.

The pattern is in the order of the logins, so it cannot be put together from parts: the function has to see all logins
of a window. Windows slide by a minute, so that a pattern is found wherever it starts. Consecutive windows of an account
are on different workers, and even an account with most of the logins keeps all workers busy.

    python examples/break_ins.py
"""

from __future__ import annotations

import random
import tempfile
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

FAILURES = 4
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
LOGINS = "account string, ts timestamp, address string, succeeded boolean"
FOUND = "failures long, address string"

Login = tuple[str, datetime, str, bool]


def break_in(key: tuple[str], window: Any, logins: pd.DataFrame) -> list[tuple[int, str]]:
    """Every success after so many failures; the logins are those of one window of an account, sorted by time."""
    found, failures = [], 0
    for address, succeeded in zip(logins["address"], logins["succeeded"], strict=True):
        if succeeded and failures >= FAILURES:
            found.append((failures, address))
        failures = 0 if succeeded else failures + 1
    return found


def break_ins(logins: DataFrame) -> DataFrame:
    """A row for each window and success that the function finds."""
    windows = sk.keyed(logins, "account").window("ts", size="5 minutes", slide="1 minute", watermark="1 minute")
    return windows.apply(break_in, FOUND)


def make_logins(batches: int = 4, rows: int = 400, accounts: int = 30, seed: int = 1) -> list[list[Login]]:
    """Ten minutes of logins for each micro-batch, each at a time of its own, and many to the account of the admin."""
    rng, made = random.Random(seed), []
    for batch in range(batches):
        part = []
        for tenth in rng.sample(range(6000), rows):
            account = "admin" if rng.random() < 0.4 else f"account {rng.randrange(accounts)}"
            ts = START + timedelta(minutes=10 * batch, seconds=tenth / 10)
            part.append((account, ts, f"10.0.0.{rng.randrange(20)}", rng.random() < 0.4))
        made.append(part)
    return made


def main() -> None:
    """Make some logins, and show the accounts that were broken into."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/logins", LOGINS, make_logins())
        query = (
            break_ins(stream(spark, f"{folder}/logins", LOGINS))
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/found")
        )
        query.awaitTermination()
        found = spark.read.parquet(f"{folder}/found")
        print(f"{found.count()} windows have a break-in; those after the most failures are")
        found.orderBy("failures", "window", ascending=False).show(8, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
