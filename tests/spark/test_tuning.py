"""Batches of windows that change in size while a query runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import skewless as sk


def middle(key: tuple[int], window: Any, rows: Any) -> tuple[float, int]:
    return float(rows["v"].median()), len(rows)


def test_a_query_whose_batches_change_gives_the_same_windows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(7):
        chance = np.random.default_rng(i)
        times = 1_700_000_000_000_000 + ((chance.random(300) + i) * 20e6).astype(np.int64)
        rows = {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "k": chance.integers(0, 5, 300)}
        path = tmp_path / "in" / f"{i}.parquet"
        pq.write_table(pa.table({**rows, "v": chance.normal(size=300)}), path)
        os.utime(path, (1_000_000 + i,) * 2)
    schema, folder = "ts timestamp, k long, v double", str(tmp_path / "in")
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    stream = sk.keyed(source, "k")
    windows = stream.window("ts", "12 seconds", "3 seconds", watermark="5 seconds")
    result = windows.apply(middle, "m double, n long", location=str(tmp_path / "plans"), retune="1 hour")
    got, sizes = [], [5, 2]

    def take(df: DataFrame, batch: int) -> None:
        got.extend(tuple(row) for row in df.collect())
        stream.await_learned(batch)
        assert stream._tuning is not None
        if batch >= 2 and sizes and not stream._tuning.announced:
            stream._tuning.change(sizes.pop(0))

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert stream._tuning is not None
    assert stream._tuning.deal.batch in (5, 2)  # one, or both, came into force
    still = sk.keyed(spark.read.schema(schema).parquet(folder), "k").window("ts", "12 seconds", "3 seconds")
    over = max(row[0][1] for row in got)
    wanted = [tuple(row) for row in still.apply(middle, "m double, n long").collect() if row[0][1] <= over]
    assert sorted(got) == sorted(wanted)
    work = stream._tuning.plans.read_work(2, batch=6)
    assert sum(each.rows for each in work) >= 300
