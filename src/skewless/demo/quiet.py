"""Runs Spark without its log on the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skewless.job.run import SPARK_ERRORS, JobFailed, interrupts_raise, root_message
from skewless.spark.session import session

LOG = "spark.log"
MOST_CORES = 8
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",  # Spark has few cores here
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # the stream ends with its last micro-batch
}


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder, removed at the end. If Spark fails, its log is kept."""
    folder = Path(tempfile.mkdtemp(prefix="skewless-demo-"))
    waste = [folder]
    try:
        with _stderr_in(folder / LOG):
            yield folder
    except SPARK_ERRORS as error:
        waste = [each for each in folder.iterdir() if each.name != LOG]
        raise JobFailed(f"{_reason(error)} (Spark's log is {folder / LOG})") from error
    finally:
        for each in waste:
            shutil.rmtree(each, ignore_errors=True)


@contextmanager
def local_session(folder: Path) -> Iterator[SparkSession]:
    """A Spark session on this machine, stopped at the end."""
    try:
        spark = session(min(os.cpu_count() or 1, MOST_CORES), **SETTINGS)
    except PySparkException as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise JobFailed(_no_java(folder / LOG)) from error
    with interrupts_raise():
        try:
            yield spark
        finally:
            spark.stop()


def _reason(error: Exception) -> str:
    """The last of the causes that Java lists; an error in Python is often only a consequence of it."""
    causes = re.findall("^Caused by: (.+)$", str(error), re.MULTILINE)
    return causes[-1] if causes else root_message(error)


def _no_java(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    said = next(filter(None, lines), "it gave no reason")
    return f"Java did not start ({said}): install Java 17 or newer and set JAVA_HOME to its folder"


@contextmanager
def _stderr_in(file: Path) -> Iterator[None]:
    """Send all that this process and Java write to stderr to a file, including what does not pass through Python."""
    sys.stderr.flush()
    before = os.dup(2)
    with file.open("wb") as out:
        os.dup2(out.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
