from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from skewless import __version__, split
from skewless.cli import app

COMPARE = ("compare", "zipf:1.5:keys=1000", "--tuples", "20000")
FEW = ("--split", "hash", "--split", "shuffle")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """1,000 clicks, nine in ten of them by one user."""
    users = ["ann" if i % 10 else f"user-{i}" for i in range(1000)]
    path = tmp_path / "clicks.parquet"
    parquet.write_table(pa.table({"user": users, "page": [i % 7 for i in range(1000)]}), path)
    return path


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"skewless {__version__}\n")


def test_the_table_has_a_row_for_each_strategy_and_ends_with_a_choice() -> None:
    result = run(*COMPARE)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for name in split.NAMES:
        assert any(line.replace("│", " ").split()[:1] == [name] for line in lines)
    assert lines[-1].startswith("Choose ")
    assert lines[-1].endswith(".")


def test_the_table_fits_80_columns_without_colours() -> None:
    result = run(*COMPARE, "--workers", 64)
    assert "\x1b" not in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()[:-1]) <= 80
    assert result.stderr == ""


def test_a_stream_without_skew_is_hashed() -> None:
    result = run("compare", "zipf:0", "--workers", 2, *FEW, "--tuples", 50_000)
    assert result.stdout.splitlines()[-1].startswith("Choose hash: the stream is not skewed enough")


def test_json_is_one_object_and_nothing_else() -> None:
    result = run(*COMPARE, "--workers", 4, "--window", 5000, "--json", *FEW)
    report = json.loads(result.stdout)
    assert (report["tuples"], report["workers"], report["window"], report["slide"]) == (20_000, 4, 5000, 500)
    assert [entry["split"] for entry in report["splitters"]] == ["hash", "shuffle"]
    assert all(sum(entry["loads"]) == 20_000 and len(entry["loads"]) == 4 for entry in report["splitters"])
    assert report["choice"]["split"] == "shuffle"


def test_a_seed_is_a_stream() -> None:
    loads = [json.loads(run(*COMPARE, "--json", "--split", "hash", "--seed", seed).stdout) for seed in (1, 1, 2)]
    first, again, other = (report["splitters"][0]["loads"] for report in loads)
    assert first == again != other


def test_keys_come_from_the_columns_named(clicks: Path) -> None:
    alone = json.loads(run("compare", clicks, "--key", "user", "--json", "--split", "hash").stdout)
    both = json.loads(run("compare", clicks, "--key", "user", "--key", "page", "--json", "--split", "hash").stdout)
    assert max(alone["splitters"][0]["loads"]) >= 900
    assert max(both["splitters"][0]["loads"]) < 900


@pytest.mark.slow
def test_a_plot_is_a_png(clicks: Path, tmp_path: Path) -> None:
    result = run("compare", clicks, "--key", "user", "--plot", tmp_path / "loads.png", "--window", 100)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "loads.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_plot_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_refused(run(*COMPARE, "--plot", tmp_path / "loads.png"), "pip install 'skewless[plot]'")


def assert_refused(result: Result, message: str) -> None:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "nowhere.parquet", "--key", "user"), "nowhere.parquet: no such file"),
        ((*COMPARE, "--workers", "0"), "--workers must be at least 1, not 0"),
        ((*COMPARE, "--split", "magic"), f"no splitter 'magic'; there are {', '.join(split.NAMES)}"),
        ((*COMPARE, "--key", "user"), "leave out --key"),
        ((*COMPARE, "--window", "10", "--slide", "3"), "--window must be a multiple of --slide"),
        ((*COMPARE, "--plot", "loads.docx"), "loads.docx: a plot is a .png"),
        ((*COMPARE, "--plot", "nowhere/loads.png"), "there is no directory nowhere"),
        (("compare", "zipf:1.5", "--tuples", "0"), "--tuples must be at least 1, not 0"),
        (("compare", "zipf:steep"), "write zipf:EXPONENT"),
        (("compare", "zipf:-1"), "exponent must be at least 0"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert_refused(run(*arguments), message)


def test_a_missing_column_is_answered_with_those_there_are(clicks: Path) -> None:
    assert_refused(run("compare", clicks, "--key", "usr"), f"no column 'usr'; {clicks} has the columns user, page")
    assert_refused(run("compare", clicks), "Name it with --key")


def test_an_unknown_ending_is_answered_with_those_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "clicks.xlsx").touch()
    assert_refused(run("compare", tmp_path / "clicks.xlsx", "--key", "user"), "these can be read: .parquet .csv")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").write_text("user,page\n")
    assert_refused(run("compare", tmp_path / "clicks.csv", "--key", "user"), "is empty")


def test_the_command_works_in_a_pipe() -> None:
    command = [sys.executable, "-m", "skewless.cli", *COMPARE, *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].startswith("Choose shuffle: ")


def test_learning_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "jax" else name)
    for name in [name for name in sys.modules if name.startswith("skewless.learn")]:
        monkeypatch.delitem(sys.modules, name)
    result = run("learn", "--updates", 1)
    assert result.exit_code == 2
    assert "learning needs jax; install the extra: pip install 'skewless[learn]'" in result.output
