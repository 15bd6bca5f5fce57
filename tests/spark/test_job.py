"""Jobs from their file to their result, against Spark's own windows."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner, Result

from skewless.api import checks
from skewless.cli import app
from skewless.job.file import SPLITS
from skewless.job.run import root_message

ROWS = 1000
SECONDS = 30  # of a file
JOB = """
name = "clicks"
master = "local[2]"
spark."spark.sql.session.timeZone" = "UTC"
[source]
format = "parquet"
path = "{here}/in/*.parquet"
schema = "ts timestamp, `the page` string, price long"
options.maxFilesPerTrigger = 1
[key]
columns = ["the page"]
workers = 2
[window]
time = "ts"
size = "20 seconds"
slide = "10 seconds"
watermark = "5 seconds"
[aggregates]
n = "count"
spent = "sum(price)"
[sink]
format = "parquet"
path = "{here}/out"
checkpoint = "{here}/checkpoint"
[trigger]
available_now = true
"""
BATCH = (
    JOB.replace("[source]", "[source]\nstream = false")
    .replace('checkpoint = "{here}/checkpoint"', "")
    .replace("[trigger]\navailable_now = true", "")
)


def write(file: int) -> None:
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(ROWS) * SECONDS / ROWS + file * SECONDS, unit="s")
    pages = np.random.default_rng(file).zipf(1.5, ROWS) % 20
    rows = {"ts": times.astype("datetime64[us]"), "the page": [f"p{page}" for page in pages], "price": np.arange(ROWS)}
    pd.DataFrame(rows).to_parquet(f"in/{file}.parquet")


@pytest.fixture(autouse=True)
def here(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with input; a job sets what it likes in the session that all tests share, so that is undone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for file in range(3):
        write(file)
    before = dict(spark.conf.getAll)
    yield tmp_path
    spark.sparkContext.setLogLevel("ERROR")
    for name, value in spark.conf.getAll.items():
        if name.startswith("spark.sql.") and before.get(name) != value:
            spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)


def command(text: str) -> Result:
    # The paths are absolute because the session runs in another directory.
    Path("job.toml").write_text(text.replace("{here}", str(Path.cwd())))
    return CliRunner().invoke(app, ["run", "job.toml"])


def windows(spark: SparkSession, here: Path) -> DataFrame:
    """What Spark makes of the whole input."""
    rows = spark.read.parquet(str(here / "in"))
    window = F.window("ts", "20 seconds", "10 seconds")
    return rows.groupBy(window, "the page").agg(F.count(F.lit(1)).alias("n"), F.sum("price").alias("spent"))


def closed(spark: SparkSession, here: Path, files: int) -> set[Row]:
    """The windows that end before the watermark after so many files."""
    end = pd.Timestamp("2026-01-01") + pd.Timedelta(seconds=files * SECONDS - 5)
    return set(windows(spark, here).where(F.col("window.end") < F.lit(end)).collect())


def result(spark: SparkSession, here: Path) -> list[Row]:
    return spark.read.parquet(str(here / "out")).collect()


def test_a_stream_gives_the_windows_of_spark_and_goes_on_from_its_checkpoint(spark: SparkSession, here: Path) -> None:
    done = command(JOB)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(" rows")[0] for line in lines[:3]] == [f"batch {n} | 1,000" for n in range(3)]
    assert lines[2].endswith("behind")
    assert lines[-1].startswith("3,000 rows in ")
    assert lines[-1].endswith(f" s; the result is in {here}/out")
    rows = result(spark, here)
    assert len(rows) == len(set(rows)) > 50
    assert set(rows) == closed(spark, here, files=3)

    write(3)
    assert "\n1,000 rows in " in command(JOB).stdout
    rows = result(spark, here)
    assert len(rows) == len(set(rows))
    assert set(rows) == closed(spark, here, files=4)


def test_a_batch_gives_the_windows_of_spark(spark: SparkSession, here: Path) -> None:
    done = command(BATCH)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("3,000 rows in ")
    assert sorted(result(spark, here)) == sorted(windows(spark, here).collect())


def test_an_interrupted_job_stops_and_goes_on_when_it_is_run_again(
    spark: SparkSession, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def echo(text: str) -> None:
        said.append(text)
        if text.startswith("batch 0"):
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("skewless.cli.typer.echo", echo)
        assert command(JOB).exit_code == 0
    assert said[1].startswith("stopped: 1,000 rows in ")
    assert said[2:] == [f"Run it again to go on from the checkpoint in {here}/checkpoint."]
    assert not [query for query in spark.streams.active if query.name == "clicks"]

    assert command(JOB).exit_code == 0
    rows = result(spark, here)
    assert len(rows) == len(set(rows))
    assert set(rows) == closed(spark, here, files=3)


def test_a_stream_that_is_routed_shows_its_imbalance() -> None:
    done = command(JOB.replace("workers = 2", 'workers = 2\nsplit = "hash"'))
    assert (done.exit_code, done.stderr) == (0, "")
    # What a batch observed is known when the next has begun.
    assert re.search(r"^batch 2 .* \| imbalance \d\.\d\d \| watermark", done.stdout, re.MULTILINE)


def test_a_range_of_workers_follows_the_load_until_the_job_is_interrupted(
    spark: SparkSession, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(3)  # the first micro-batch of a run does not count, and three are to
    said: list[str] = []

    def echo(text: str) -> None:
        said.append(text)
        if text.startswith("batch 4"):  # the micro-batch without rows that closes the last windows
            signal.raise_signal(signal.SIGINT)

    text = JOB.replace("workers = 2", 'workers = [1, 3]\nsplit = "bounded"\nfolder = "{here}/folder"')
    text = text.replace("available_now = true", 'every = "1 millisecond"')  # every micro-batch takes longer
    with monkeypatch.context() as patched:
        patched.setattr("skewless.cli.typer.echo", echo)
        assert command(text).exit_code == 0
    assert [int(active) for active in re.findall(r"(\d) active at W", "\n".join(said))][-1] == 3
    rows = result(spark, here)
    assert len(rows) == len(set(rows))
    assert set(rows) == closed(spark, here, files=4)


def test_a_query_that_fails_is_told_in_one_line(here: Path) -> None:
    (here / "in" / "bad.parquet").write_bytes(b"this is not parquet")
    done = command(JOB)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "bad.parquet is not a Parquet file" in done.stderr
    assert "rows in" not in done.stdout


def test_what_only_spark_can_find_wrong_is_told_in_one_line() -> None:
    no_schema = BATCH.replace('schema = "ts timestamp, `the page` string, price long"\n', "")
    done = command(no_schema.replace('["the page"]', '["pgae"]'))
    assert (done.exit_code, done.stderr) == (2, "skewless: no column 'pgae'; there are ts, the page, price\n")
    done = command(JOB.replace('[source]\nformat = "parquet"', '[source]\nformat = "no-such-format"'))
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Failed to find the data source: no-such-format" in done.stderr


def test_an_exception_in_a_python_worker_is_the_root_of_a_failure(spark: SparkSession) -> None:
    def wrong(value: int) -> int:
        raise ValueError(f"no luck with {value}")

    spark.sparkContext.setLogLevel("FATAL")
    with pytest.raises(PySparkException) as failed:
        spark.range(7, 8).select(F.udf(wrong, "long", useArrow=False)("id")).collect()
    assert root_message(failed.value) == "ValueError: no luck with 7"


def test_a_job_may_ask_for_every_split() -> None:
    assert SPLITS == checks.SPLITS
