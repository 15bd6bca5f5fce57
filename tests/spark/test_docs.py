"""The examples of the guides that need Spark."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

GUIDES = Path(__file__).parents[2] / "docs"
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{i}")
    for page in sorted(GUIDES.glob("*.md"))
    for i, code in enumerate(re.findall(r"```python spark\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_runs(spark: SparkSession, code: str) -> None:
    exec(compile(code, "example", "exec"), {})


def test_the_readmes_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python spark\n(.*?)```", (GUIDES.parent / "README.md").read_text(), re.DOTALL)
    for folder in ("events/", "checkpoint/", "views/"):
        assert f'"{folder}"' in code
        code = code.replace(f'"{folder}"', f'"{tmp_path}/{folder}"')
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = [(start + timedelta(seconds=i), f"page {i % 3}", i / 4) for i in range(300)]
    spark.createDataFrame(rows, "ts timestamp, page string, price double").write.parquet(f"{tmp_path}/events/")
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    query, watching = names["query"], names["watching"]
    query.processAllAvailable()
    assert watching.wait(1)
    assert sum(watching.loads.values()) == 300
    assert "dalton over 16 workers, because p99 costs more for a row than moving it" in str(watching)
    query.stop()
    found = spark.read.parquet(f"{tmp_path}/views/").where("page = 'page 1' and minute(window.end) = 2")
    found = found.orderBy("window").first()
    assert (found.n, found.spent) == (20, sum(i / 4 for i in range(60, 120) if i % 3 == 1))
    assert found.p99 == 118 / 4
