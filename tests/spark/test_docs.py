"""The examples of the guides that need Spark."""

from __future__ import annotations

import re
from pathlib import Path

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
