from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from skewless.demo.lines import table, verdict
from skewless.demo.measured import Batch, Comparison, HotPage, Run
from skewless.demo.screen import Screen

FIRST = Run("dalton", (Batch(0, 1000, 9.0, (750, 250), (HotPage("/news/0", 2),)),))
BOTH = Run("dalton", (*FIRST.batches, Batch(1, 1000, 0.25, (510, 490), changed=True)))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(screen: Screen) -> None:
    with screen.shown("dalton") as shown:
        shown(FIRST)
        shown(BOTH)
    screen.say(table(Comparison(BOTH, BOTH, identical=False)))
    screen.say(verdict(Comparison(BOTH, BOTH, identical=False)))


def test_in_a_pipe_there_is_a_line_for_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen.of_stdout())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "skewless (dalton):"
    assert [line.split(" |")[0] for line in lines[1:3]] == ["  batch 0", "  batch 1"]
    assert not any("batch 0" in line for line in lines[2:])
    assert lines[-1] == "identical results: no"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_plain_terminal_gets_no_codes(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    show(Screen.of_stdout())
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().count("batch 0 |") == 1


def test_a_terminal_is_updated_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    show(Screen.of_stdout())
    assert "\x1b[1A" in terminal.getvalue()  # one line up
    assert "\x1b[1;31mno" in terminal.getvalue()


def test_blocks_that_a_terminal_lacks_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    show(Screen.of_stdout())
    assert b"busiest 1.50 x average" in raw.getvalue()


def test_what_is_said_is_not_cut_or_marked_up() -> None:
    console = Console(width=20, file=io.StringIO())
    Screen(console, updating=False).say("[bold] a line that is longer than the console")
    assert console.file.getvalue() == "[bold] a line that is longer than the console\n"  # type: ignore[attr-defined]
