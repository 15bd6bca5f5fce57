"""Run by test_crash.py as a program of its own, to be killed: two windowed queries, each into its parquet sink."""

from __future__ import annotations

import sys
from pathlib import Path

import skewless as sk


def main(folder: Path) -> None:
    spark = sk.session(2, memory="1g", spark_sql_session_timeZone="UTC", spark_driver_bindAddress="127.0.0.1")
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
    print("started", flush=True)
    for query in queries:
        query.awaitTermination()
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
