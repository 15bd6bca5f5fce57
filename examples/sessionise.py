"""Sessions: runs of clicks of a user, with less than a gap of time between one click and the next.

A session ends when the watermark has reached the time of its last click plus the gap, or when a click comes that is
later than that. The clicks of a micro-batch are sorted by time. A click that comes in a later micro-batch than newer
clicks, though not too late, counts in the session that is open then.

    python examples/sessionise.py
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

GAP = timedelta(minutes=30)
DELAY = "10 minutes"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
CLICKS = "user string, ts timestamp"
SESSIONS = "start timestamp, end timestamp, events long"

Click = tuple[str, datetime]
Session = tuple[datetime, datetime, int]


class Sessions(sk.Processor):
    """Keeps the open session of each user, and gives it once it is over."""

    state = "start timestamp, last timestamp, events long"

    def __init__(self, gap: timedelta = GAP) -> None:
        self.gap = gap

    def process(self, key: tuple[str], rows: sk.Rows, state: sk.State) -> Iterator[Session]:
        """Take the clicks of a user."""
        for ts in rows["ts"]:
            if not state.new and ts >= state["last"] + self.gap:
                yield self._closed(state)
            if state.new:
                state.update(start=ts, last=ts, events=0)
            state.update(start=min(state["start"], ts), last=max(state["last"], ts), events=state["events"] + 1)
        state.timer = state["last"] + self.gap

    def expire(self, key: tuple[str], state: sk.State) -> Iterator[Session]:
        """No click of the session can come any more."""
        yield self._closed(state)

    @staticmethod
    def _closed(state: sk.State) -> Session:
        session = state["start"], state["last"], state["events"]
        state.forget()
        return session


def sessions(clicks: DataFrame, folder: str) -> DataFrame:
    """The sessions in a stream of clicks; `folder` is the query's own folder."""
    keyed = sk.keyed(clicks, "user")
    return keyed.process(Sessions(), SESSIONS, folder=folder, order="ts", time="ts", watermark=DELAY)


def make_clicks(batches: int = 4, rows: int = 300, users: int = 50, seed: int = 1) -> list[list[Click]]:
    """Two hours of clicks for each micro-batch, in no order, with some users far busier than others.

    The last click is by a user of its own, a day later: it moves the watermark forward, so that all other sessions end.
    """
    rng, made = random.Random(seed), []
    for batch in range(batches):
        part = []
        for _ in range(rows):
            user = f"user {int(rng.paretovariate(0.5)) % users}"
            part.append((user, START + timedelta(hours=2 * batch, seconds=rng.randrange(2 * 3600))))
        made.append(part)
    return [*made, [("nobody", START + timedelta(days=1))]]


def main() -> None:
    """Make some clicks, and show the sessions in them."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/clicks", CLICKS, make_clicks())
        query = (
            sessions(stream(spark, f"{folder}/clicks", CLICKS), f"{folder}/query")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/sessions")
        )
        query.awaitTermination()
        found = spark.read.parquet(f"{folder}/sessions")
        print(f"{found.count()} sessions, of which those with the most clicks are")
        found.orderBy("events", ascending=False).show(8, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
