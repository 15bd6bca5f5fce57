"""PartLy that goes on learning while a stream runs: the same windows, and lessons from the times of its tasks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from skewless.control.teaching import Taught
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.policy import Policy
from support.streams import Rows, run, stream_of

ROWS, BATCHES, WORKERS = 3_000, 5, 3
WINDOW = ("ts", "1 second", "500 milliseconds")


def clicks() -> list[pa.Table]:
    """Micro-batches of a skewed stream, half a second long each."""
    chance, shares = np.random.default_rng(5), 1 / np.arange(1, 101) ** 1.3
    tables = []
    for batch in range(BATCHES):
        values = np.arange(ROWS) + batch * ROWS
        times = pa.array(values * (500_000 // ROWS), pa.timestamp("us", "UTC"))
        pages = chance.choice(100, ROWS, p=shares / shares.sum())
        tables.append(pa.table({"page": pages, "value": values, "ts": times}))
    return tables


def given(found: Rows) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The values of each window and page that a query gave."""
    return {tuple(row[:2]): tuple(row[2:]) for part in found.values() for row in part}


def sparks_own(spark: SparkSession, batches: list[pa.Table]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The same by Spark's own operator, of all rows at once."""
    rows = spark.createDataFrame(pa.concat_tables(batches))
    expected = rows.groupBy(F.window(*WINDOW), "page").agg(F.count("*"), F.sum("value")).collect()
    return {tuple(row[:2]): tuple(row[2:]) for row in expected}


def test_learning_is_refused_where_no_task_is_timed(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    stream = stream_of(spark, tmp_path / "in", clicks()[:1])
    learning = sk.split.PartLy(learning=True)
    with pytest.raises(SkewlessError, match=r"nothing times what follows repartition\(\)"):
        sk.keyed(stream, "page", split=learning).repartition()
    with pytest.raises(SkewlessError, match="a batch DataFrame has one only"):
        sk.keyed(spark.createDataFrame(clicks()[0]), "page", split=learning).agg(n=sk.count())


@pytest.mark.long
def test_windows_are_those_of_spark_while_a_plan_of_the_network_is_in_force(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches, policies = clicks(), list[Policy]()

    def after(number: int, watching: Watch) -> None:
        assert watching.wait(number)  # the next micro-batch has a plan from the one before this
        if number:  # the query is not heard of before its first micro-batch is done
            policies.append(watching.policy)

    stream = stream_of(spark, tmp_path / "in", batches)
    windows = sk.keyed(stream, "page", workers=WORKERS, split="partly").window(*WINDOW, watermark="0 seconds")
    found, _ = run(windows.agg(n=sk.count(), s=sk.sum("value")), tmp_path / "to", after)
    mine, expected = given(found), sparks_own(spark, batches)
    assert len(mine) > 100
    assert mine.items() <= expected.items()
    versions = [policy.version for policy in policies]
    assert versions == sorted(versions)
    assert versions[0] < versions[-1]
    # By hash every key is at home; a plan of the network has keys elsewhere.
    placed = policies[-1].keys
    lanes = [set(policies[-1].lanes_of(key).tolist()) for key in placed.tolist()]
    assert any(lane != {home} for lane, home in zip(lanes, homes(placed, WORKERS).tolist(), strict=True))


@pytest.mark.long
def test_windows_are_those_of_spark_while_lessons_go_on(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    batches = clicks()
    stream = stream_of(spark, tmp_path / "in", batches)
    keyed = sk.keyed(stream, "page", workers=WORKERS, split=sk.split.PartLy(learning=True))
    found, watching = run(
        keyed.window(*WINDOW, watermark="0 seconds").agg(n=sk.count(), s=sk.sum("value")), tmp_path / "to"
    )
    mine = given(found)
    assert len(mine) > 100
    assert mine.items() <= sparks_own(spark, batches).items()

    assert watching.wait(BATCHES)
    loop = watching._loop()
    assert isinstance(loop, Taught)
    loop.teacher.wait()
    told = re.search(r"(\d+) lessons, new weights \d+ times; a row takes", watching.explain())
    assert told is not None
    assert int(told[1]) >= 1
    model = loop.teacher.model
    assert 0 < model.fixed + ROWS * (model.row + model.state) < 60  # seconds, of the notes of its tasks
