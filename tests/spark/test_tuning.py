"""Batches of windows that change in size while a query runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.api.watch import Watch
from skewless.control.tuning import Tuning
from support.streams import run, settings, stream_of, write_files

FILES = 7


def middle(key: tuple[int], window: Any, rows: Any) -> tuple[float, int]:
    return float(rows["v"].median()), len(rows)


def tables(first: int = 0, count: int = FILES) -> list[pa.Table]:
    given = []
    for i in range(first, first + count):
        chance = np.random.default_rng(i)
        times = 1_700_000_000_000_000 + ((chance.random(300) + i) * 20e6).astype(np.int64)
        rows = {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "k": chance.integers(0, 5, 300)}
        given.append(pa.table({**rows, "v": chance.normal(size=300)}))
    return given


def tuned(source: DataFrame, folder: Path) -> DataFrame:
    windows = sk.keyed(source, "k").window("ts", "12 seconds", "3 seconds", watermark="5 seconds")
    return windows.apply(middle, "m double, n long", tune="1 hour", folder=str(folder))


def tuning_of(watching: Watch) -> Tuning:
    loop = watching._loop()
    assert isinstance(loop, Tuning)
    return loop


def test_a_query_whose_batches_change_gives_the_same_windows(spark: SparkSession, tmp_path: Path) -> None:
    source, sizes = stream_of(spark, tmp_path / "in", tables()), [5, 2]

    def change(batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        if batch >= 2 and sizes and not watching.moving:
            tuning_of(watching).change(sizes.pop(0))

    given, watching = run(tuned(source, tmp_path / "folder"), tmp_path / "checkpoint", change)
    assert watching.wait(FILES)
    assert tuning_of(watching).sizes.batch in (5, 2)  # one, or both, came into force
    assert "chopped by batch over 2 workers" in watching.explain()
    assert sum(watching.loads.values()) >= 300  # a row may be needed by both workers
    got = [row for rows in given.values() for row in rows]
    still = sk.keyed(spark.read.parquet(str(tmp_path / "in")), "k").window("ts", "12 seconds", "3 seconds")
    over = max(row[0][1] for row in got)
    wanted = [tuple(row) for row in still.apply(middle, "m double, n long").collect() if row[0][1] <= over]
    assert sorted(got) == sorted(wanted)
    work = tuning_of(watching).folder.take_work(FILES - 1)
    assert sum(each.rows for each in work) >= 300


def test_a_second_query_on_a_folder_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    result = tuned(stream_of(spark, tmp_path / "in", tables(count=1)), tmp_path / "folder")
    _, watching = run(result, tmp_path / "first")
    assert watching.wait(1)
    write_files(tmp_path / "in", tables(1, 1), first=1)
    with pytest.raises(StreamingQueryException, match=f"belongs to query {watching.query.id}, and this is query"):
        run(result, tmp_path / "second")


def test_a_control_file_that_is_gone_stops_a_query_that_is_tuned_and_loses_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = tuned(stream_of(spark, tmp_path / "in", tables(count=2)), tmp_path / "folder")
    given, watching = run(result, tmp_path / "checkpoint")
    assert watching.wait(2)
    control = tmp_path / "folder" / "control.json"
    kept = control.read_bytes()
    write_files(tmp_path / "in", tables(2, 2), first=2)
    for left in (b" " * len(kept), None):
        control.unlink() if left is None else control.write_bytes(left)
        ignored = {"spark.sql.files.ignoreMissingFiles": str(left is None).lower()}
        with (
            settings(spark, ignored),
            pytest.raises(StreamingQueryException, match="the control file of the stream's folder is empty or gone"),
        ):
            run(result, tmp_path / "checkpoint")
    control.write_bytes(kept)
    later, _ = run(result, tmp_path / "checkpoint")
    got = [row for rows in (*given.values(), *later.values()) for row in rows]
    still = sk.keyed(spark.read.parquet(str(tmp_path / "in")), "k").window("ts", "12 seconds", "3 seconds")
    over = max(row[0][1] for row in got)
    wanted = [tuple(row) for row in still.apply(middle, "m double, n long").collect() if row[0][1] <= over]
    assert sorted(got) == sorted(wanted)
    assert any(later.values())
