"""Page views: how often each page is read and how long it takes to load, in windows of ten minutes that slide by one.

A few pages have most of the clicks. A count alone would be made where the rows lie. A quantile costs more for each row
than moving the row does, so the clicks of a hot page are shared by several workers, and their partial results are
merged into one row for each window and page. The script prints what ran and why, and the busiest windows.

    python examples/page_views.py
"""

from __future__ import annotations

import random
import tempfile
from datetime import datetime, timedelta, timezone

from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
CLICKS = "page string, ts timestamp, milliseconds long"

Click = tuple[str, datetime, int]


def views(clicks: DataFrame) -> DataFrame:
    """A row for each window and page, once no click of the window can come any more."""
    windows = sk.keyed(clicks, "page", workers=4, name="clicks").window(
        "ts", size="10 minutes", slide="1 minute", watermark="2 minutes"
    )
    return windows.agg(views=sk.count(), slowest=sk.max("milliseconds"), p95=sk.quantile("milliseconds", 0.95))


def make_clicks(batches: int = 6, rows: int = 500, pages: int = 40, seed: int = 1) -> list[list[Click]]:
    """Five minutes of clicks for each micro-batch, in no order, with some pages far busier than others."""
    rng, made = random.Random(seed), []
    for batch in range(batches):
        part = []
        for _ in range(rows):
            page = f"page {int(rng.paretovariate(0.7)) % pages}"
            ts = START + timedelta(minutes=5 * batch, seconds=rng.randrange(300))
            part.append((page, ts, int(rng.lognormvariate(5, 1))))
        made.append(part)
    return made


def main() -> None:
    """Make some clicks, and show the busiest windows."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        batches = make_clicks()
        write(f"{folder}/clicks", CLICKS, batches)
        query = (
            views(stream(spark, f"{folder}/clicks", CLICKS))
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/views")
        )
        query.awaitTermination()
        watching = sk.watch(query)
        watching.wait(len(batches))  # until the loop has learned from all of them, which never holds up the query
        print(watching)
        found = spark.read.parquet(f"{folder}/views")
        print(f"{found.count()} windows of {found.select('page').distinct().count()} pages; the busiest are")
        found.orderBy("views", "window", ascending=False).show(8, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
