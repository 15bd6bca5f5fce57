"""`skewless run` of a job that is wrong: one line says what, before Spark is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skewless.cli import app
from support.jobs import edited

pytestmark = pytest.mark.usefixtures("here")


def run(path: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["run", path])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_says_what_is_wrong_in_one_line_and_exits_with_2() -> None:
    Path("job.toml").write_text(edited("workers = 16", "workers = 0"))
    code, out, err = run("job.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("skewless: job.toml:18: [key] workers is 0; give at least 1")


def test_a_file_that_cannot_be_read_is_refused(here: Path) -> None:
    assert run("nowhere.toml") == (2, "", "skewless: nowhere.toml: no such file\n")
    (here / "latin.toml").write_bytes(b'name = "\xe9"')
    code, _, err = run("latin.toml")
    assert code == 2
    assert err.startswith("skewless: latin.toml: cannot be read as a text in UTF-8")


def test_a_bad_job_is_refused_before_spark_is_loaded(here: Path) -> None:
    (here / "job.toml").write_text("nmae = 1")
    code = f"""
import sys
from skewless.cli import app
try:
    app(["run", {str(here / "job.toml")!r}])
finally:
    print("pyspark" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.stdout == "False\n"
    assert "nmae is unknown" in done.stderr
