"""Anomalies: a small model for each sensor, which learns from every value and marks those it would not have expected.

The model is an average and a variance in which older values count less and less (EWMA). A value is an anomaly if it is
more than `k` standard deviations away from the average of the values before it. A model depends on the order of its
values, so two models of a sensor cannot be merged: each model is on one worker, and the values of a micro-batch are
sorted by time.

    python examples/anomalies.py
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
VALUES = "sensor string, ts timestamp, value double"
MARKED = "ts timestamp, value double, expected double, anomaly boolean"

Value = tuple[str, datetime, float]
Marked = tuple[datetime, float, float, bool]


class Model(sk.Processor):
    """Marks the values of each sensor, and learns from them.

    Parameters
    ----------
    k
        Standard deviations from the average that are still normal.
    alpha
        The weight of a new value.
    warm
        Values that a sensor must have had before any is an anomaly.
    """

    state = "n long, mean double, variance double"

    def __init__(self, k: float = 4.0, alpha: float = 0.1, warm: int = 10) -> None:
        self.k, self.alpha, self.warm = k, alpha, warm

    def process(self, key: tuple[str], rows: sk.Rows, state: sk.State) -> Iterator[Marked]:
        """Take the values of a sensor, in the order of time."""
        for ts, value in zip(rows["ts"], rows["value"], strict=True):
            if state.new:
                state.update(n=0, mean=value, variance=0.0)
            away = value - state["mean"]
            anomaly = state["n"] >= self.warm and abs(away) > self.k * math.sqrt(state["variance"])
            yield ts, value, state["mean"], anomaly
            state["n"] += 1
            state["mean"] += self.alpha * away
            state["variance"] = (1 - self.alpha) * (state["variance"] + self.alpha * away * away)


def marked(values: DataFrame, folder: str) -> DataFrame:
    """Every value of a stream, with the value that was expected; `folder` is the query's own folder."""
    return sk.keyed(values, "sensor").process(Model(), MARKED, folder=folder, order="ts")


def make_values(batches: int = 4, rows: int = 400, sensors: int = 12, seed: int = 1) -> list[list[Value]]:
    """An hour of values for each micro-batch, in no order; one in a hundred is far from the others of its sensor."""
    rng, made = random.Random(seed), []
    for batch in range(batches):
        part = []
        for second in rng.sample(range(3600), rows):
            number = min(int(rng.paretovariate(0.8)), sensors)
            value = rng.gauss(20.0 + number, 1.0) + (15.0 if rng.random() < 0.01 else 0.0)
            part.append((f"sensor {number}", START + timedelta(hours=batch, seconds=second), value))
        made.append(part)
    return made


def main() -> None:
    """Make some values, and show the anomalies among them."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/values", VALUES, make_values())
        query = (
            marked(stream(spark, f"{folder}/values", VALUES), f"{folder}/query")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/marked")
        )
        query.awaitTermination()
        found = spark.read.parquet(f"{folder}/marked")
        print(f"{found.count()} values, of which these are not as expected:")
        found.where("anomaly").orderBy("ts").selectExpr(
            "sensor", "ts", "round(value, 1) as value", "round(expected, 1) as expected"
        ).show(truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
