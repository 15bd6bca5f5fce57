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


def test_the_readmes_lines_print_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python spark\n(.*?)```", (GUIDES.parent / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert re.search(r"\|window +\|page +\|n +\|spent *\|p99 *\|", printed)
    (n,) = re.findall(r"\{2025-12-31 23:59:01, 2026-01-01 00:00:01\}\|/page/1\|(\d+)", printed)
    assert 500 < int(n) < 680  # of the 2,000 of the first second 29 %
    assert "dalton over 4 workers, because p99 costs more for a row than moving it" in printed
