"""The one Spark session that all tests under this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skewless.spark.session import FILE_SYSTEM, MANAGER, configure
from support.streams import DAEMON, INTERPRETED, PATIENT, QUICK

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need Spark, and have them begin first: the longest of all must not be the last to begin."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: (item.path.name != "test_crash.py", HERE not in item.path.parents))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = (
        configure(SparkSession.builder)
        .master("local[2]")
        .appName("skewless-tests")
        .config(map={**INTERPRETED, **PATIENT})
        .config(MANAGER, FILE_SYSTEM)
        .config("spark.driver.extraJavaOptions", QUICK)
        .config("spark.python.daemon.module", DAEMON)
        .config("spark.ui.liveUpdate.period", "-1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
