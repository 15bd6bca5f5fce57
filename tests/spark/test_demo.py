"""The demo with a tiny stream, and the command without Java."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from skewless.demo.clicks import START, Clicks
from skewless.demo.compare import compare, same, sorted_rows
from skewless.demo.measured import Comparison, Run
from skewless.demo.query import WORKERS

CLICKS = Clicks(batches=6, rows=1500, pages=200)


@pytest.fixture(scope="module")
def shown() -> dict[str, list[Run]]:
    """The runs as they were shown, by strategy."""
    return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def comparison(spark: SparkSession, folder: Path, shown: dict[str, list[Run]]) -> Comparison:
    @contextmanager
    def keep(strategy: str) -> Iterator[Callable[[Run], None]]:
        runs = shown.setdefault(strategy, [])
        yield runs.append

    return compare(spark, CLICKS, folder, keep)


def test_the_results_are_the_same(comparison: Comparison) -> None:
    assert comparison.identical
    assert comparison.spark.results == comparison.skewless.results > 1000


def test_a_closed_window_has_all_the_clicks_of_its_time(comparison: Comparison, folder: Path) -> None:
    rows = sorted_rows(folder / "dalton")
    # The stream begins in the middle of this window, which has its first minute.
    window = rows.filter(pc.equal(rows["end"], START + 60_000_000))
    assert pc.sum(window["clicks"]).as_py() == 60 // CLICKS.seconds * CLICKS.rows


def test_results_that_differ_in_a_single_value_are_seen(comparison: Comparison, folder: Path) -> None:
    rows = sorted_rows(folder / "dalton")
    clicks = rows["clicks"].to_pylist()
    clicks[-1] += 1
    wrong = rows.set_column(rows.schema.get_field_index("clicks"), "clicks", pa.array(clicks))
    assert same(rows, sorted_rows(folder / "spark"))
    assert not same(rows, wrong)
    assert not same(rows, rows.slice(1))


def test_the_balance_is_learned_and_learned_again(comparison: Comparison) -> None:
    run = comparison.skewless
    assert run.before is not None
    assert run.after is not None
    assert run.before > 2
    assert run.after < 1.3
    imbalances = [batch.imbalance for batch in run.batches if batch.imbalance is not None]
    assert imbalances[2] < 1.3
    assert imbalances[CLICKS.change] > 2
    assert [batch.number for batch in run.batches if batch.changed] == [CLICKS.change]


def test_every_row_has_a_worker(comparison: Comparison) -> None:
    routed = [batch for batch in comparison.skewless.batches if batch.rows]
    assert [sum(batch.loads) for batch in routed] == [CLICKS.rows] * CLICKS.batches
    assert {len(batch.loads) for batch in routed} == {WORKERS}
    assert not any(batch.loads or batch.hot for batch in comparison.spark.batches)


def test_the_hottest_page_is_split_and_the_policy_follows(comparison: Comparison) -> None:
    for batch in (comparison.skewless.batches[1], comparison.skewless.batches[5]):
        assert [page.name for page in batch.hot] == CLICKS.hottest(batch.number)
        assert batch.hot[0].workers > 2


def test_each_batch_is_shown_once_with_those_before(comparison: Comparison, shown: dict[str, list[Run]]) -> None:
    for strategy in ("spark", "dalton"):
        assert [len(run.batches) for run in shown[strategy]] == [1, 2, 3, 4, 5, 6]
        assert [run.batches[-1].number for run in shown[strategy]] == [0, 1, 2, 3, 4, 5]


def test_without_java_one_line_says_what_to_do(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "skewless.cli", "demo"]
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "install Java 17 or newer and set JAVA_HOME" in line
    assert list(tmp_path.glob("skewless-demo-*")) == []
