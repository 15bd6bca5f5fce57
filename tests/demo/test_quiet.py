from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from typer.testing import CliRunner

from skewless.cli import app
from skewless.demo import main
from skewless.demo.quiet import scratch
from skewless.job.run import JobFailed


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_programs_write_to_stderr_goes_to_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with scratch() as folder:
        subprocess.run("echo noise >&2; echo answer", shell=True, check=True)
        os.write(2, b"more\n")
        said = (folder / "spark.log").read_text()
    os.write(2, b"mine\n")
    assert said == "noise\nmore\n"
    assert capfd.readouterr() == ("answer\n", "mine\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_folder_goes_whatever_happens(temporary: Path, error: type[BaseException]) -> None:
    with scratch() as folder:
        assert list(temporary.iterdir()) == [folder]
    assert list(temporary.iterdir()) == []
    with pytest.raises(error), scratch():
        raise error
    assert list(temporary.iterdir()) == []


def test_if_spark_fails_its_log_stays_and_nothing_else(temporary: Path) -> None:
    def fail() -> None:
        with scratch() as folder:
            (folder / "clicks").mkdir()
            os.write(2, b"a trace\n")
            raise PySparkException("the disk is full\nat line 1")

    with pytest.raises(JobFailed) as failed:
        fail()
    (log,) = [path for path in temporary.rglob("*") if path.is_file()]
    assert str(failed.value) == f"the disk is full (Spark's log is {log})"
    assert log.read_text() == "a trace\n"
    assert list(log.parent.iterdir()) == [log]


def test_of_what_java_lists_the_last_cause_is_told() -> None:
    trace = "the sink failed\n\tat f\nCaused by: the job failed\n\tat g\nCaused by: no space\n\tat h"

    def fail() -> None:
        with scratch():
            raise PySparkException(trace)

    with pytest.raises(JobFailed, match=r"^no space \(Spark's log"):
        fail()


@pytest.mark.parametrize(("identical", "code"), [(True, 0), (False, 1)])
def test_results_that_differ_are_a_failure(monkeypatch: pytest.MonkeyPatch, identical: bool, code: int) -> None:
    monkeypatch.setattr(main, "demo", lambda: identical)
    assert CliRunner().invoke(app, ["demo"]).exit_code == code


def test_ctrl_c_ends_it_in_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "demo", interrupted)
    result = CliRunner().invoke(app, ["demo"])
    assert (result.exit_code, result.stdout, result.stderr) == (130, "stopped\n", "")


def test_a_failure_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> bool:
        raise JobFailed("no Java")

    monkeypatch.setattr(main, "demo", failing)
    result = CliRunner().invoke(app, ["demo"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "skewless: no Java\n")
