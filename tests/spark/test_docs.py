"""The examples of the guides that need Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import skewless as sk
from support.streams import COMPILED, settings

GUIDES = Path(__file__).parents[2] / "docs"
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{i}", marks=[pytest.mark.long] if i else [])
    for page in sorted(GUIDES.glob("*.md"))
    for i, code in enumerate(re.findall(r"```python spark\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_runs(spark: SparkSession, code: str) -> None:
    exec(compile(code, "example", "exec"), {})


def readmes_lines() -> str:
    (code,) = re.findall(r"```python spark\n(.*?)```", (GUIDES.parent / "README.md").read_text(), re.DOTALL)
    return str(code)


def assert_prints(printed: str, workers: int) -> None:
    assert re.search(r"\|window +\|page +\|n +\|spent *\|p99 *\|", printed)
    first = re.search(r"\|/page/1\|(\d+) *\|", printed)
    assert first, printed
    assert 500 < int(first[1]) < 680  # of the 2,000 clicks of the first second 29 %
    assert f"bounded over {workers} workers, because p99 costs more for a row than moving it" in printed


def test_fewer_clicks_through_the_readmes_lines_print_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = readmes_lines()
    changes = [("400_000", "40_000"), ("workers=4", "workers=2")]
    # Spark reads and writes where its JVM was started.
    changes += [(f'"{name}"', repr(str(tmp_path / name))) for name in ("clicks", "checkpoint", "views")]
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    monkeypatch.setattr(sk, "session", lambda: spark)
    with settings(spark, COMPILED):
        exec(compile(code, "README", "exec"), {})
    assert_prints(capsys.readouterr().out, 2)


@pytest.mark.long  # a session of its own, and some hundred thousand clicks
def test_the_readmes_lines_copied_into_a_file_print_rows(tmp_path: Path) -> None:
    file = tmp_path / "ten_lines.py"
    file.write_text(readmes_lines())
    # Nothing that the tests set for Spark, such as the Python of its workers.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    environment["PYTHONPATH"] = str(GUIDES.parent / "src")
    command = [sys.executable, file.name]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_prints(done.stdout, 4)
