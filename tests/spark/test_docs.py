"""The examples of the guides that need Spark."""

from __future__ import annotations

import re
import subprocess
import sys
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


def test_the_readmes_lines_print_rows(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python spark\n(.*?)```", (GUIDES.parent / "README.md").read_text(), re.DOTALL)
    # In a process of its own, as a person would: Spark reads and writes where its JVM was started.
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"\|window +\|page +\|n +\|spent *\|p99 *\|", done.stdout)
    first = re.search(r"\|/page/1\|(\d+) *\|", done.stdout)
    assert first, done.stdout
    assert 500 < int(first[1]) < 680  # of the 2,000 clicks of the first second 29 %
    assert "bounded over 4 workers, because p99 costs more for a row than moving it" in done.stdout
