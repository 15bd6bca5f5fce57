"""Figures are made one by one, and none takes the results of another with it."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from experiments import __main__ as program
from experiments import page, registry, results
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell

MODULES = {f"toy-{number}": f"toys.figure_{number}" for number in (1, 2, 3)}


def toy(number: int, value: float = 1.0) -> Figure:
    def run(scale: Scale, tell: Tell) -> Outcome:
        tell("playing")
        return Outcome(
            (Scaled("tuples", "100", "100" if scale == "full" else "10"),),
            f"It is {value}.",
            (Check("value", value, low=0.5),),
            (Table("Values", ("value",), ((value,),)),),
            lambda figure: figure.subplots().plot([0, value]),
        )

    return Figure(f"toy-{number}", "A toy", "It is 1.", run)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures by module, which a test may replace."""
    found: dict[str, Any] = {}
    for number in (1, 2, 3):
        module = ModuleType(f"toys.figure_{number}")
        module.FIGURE = toy(number)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        found[f"toy-{number}"] = module
    return found


def make(ids: list[str], docs: Path, scale: Scale = "small") -> tuple[list[str], str]:
    out = StringIO()
    failed = program.make(ids, MODULES, scale, docs, Console(file=out, width=200))
    return failed, out.getvalue()


def made(docs: Path) -> dict[tuple[str, str], str]:
    records = results.read(docs / "results" / "figures.json")
    for path, text in page.render(records).items():
        assert (docs / path).read_text() == text
    return {(record.id, record.scale): record.found for record in records}


def test_figures_are_written_as_data_as_a_page_and_as_pictures(tmp_path: Path, toys: dict[str, Any]) -> None:
    failed, told = make(["toy-1", "toy-2"], tmp_path)
    assert failed == []
    assert "toy-1        agrees" in told
    assert made(tmp_path) == {("toy-1", "small"): "It is 1.0.", ("toy-2", "small"): "It is 1.0."}
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "toy-1-small.svg",
        "toy-2-small.svg",
        "toy.md",
    ]


def test_one_figure_made_again_keeps_the_rest(tmp_path: Path, toys: dict[str, Any]) -> None:
    make(list(MODULES), tmp_path)
    toys["toy-2"].FIGURE = toy(2, 0.25)
    make(["toy-2"], tmp_path)
    assert made(tmp_path) == {
        ("toy-1", "small"): "It is 1.0.",
        ("toy-2", "small"): "It is 0.25.",
        ("toy-3", "small"): "It is 1.0.",
    }
    assert "**Small scale: does not.** It is 0.25." in (tmp_path / "figures" / "toy.md").read_text()


def test_scales_are_kept_apart(tmp_path: Path, toys: dict[str, Any]) -> None:
    make(["toy-1"], tmp_path)
    toys["toy-1"].FIGURE = toy(1, 0.25)
    make(["toy-1"], tmp_path, "full")
    assert made(tmp_path) == {("toy-1", "small"): "It is 1.0.", ("toy-1", "full"): "It is 0.25."}
    assert "agrees at the small scale, does not at the full scale" in (tmp_path / "figures.md").read_text()


def test_a_figure_that_raises_loses_nothing(tmp_path: Path, toys: dict[str, Any]) -> None:
    make(list(MODULES), tmp_path)

    def run(scale: Scale, tell: Tell) -> Outcome:
        raise ZeroDivisionError("no [tuples]")

    toys["toy-2"].FIGURE = Figure("toy-2", "A toy", "It is 1.", run)
    toys["toy-3"].FIGURE = toy(3, 2.0)
    failed, told = make(list(MODULES), tmp_path)
    assert failed == ["toy-2"]
    assert "no [tuples]" in told
    assert made(tmp_path) == {
        ("toy-1", "small"): "It is 1.0.",
        ("toy-2", "small"): "It is 1.0.",
        ("toy-3", "small"): "It is 2.0.",
    }


def test_a_module_that_cannot_be_loaded_is_a_figure_that_failed(tmp_path: Path, toys: dict[str, Any]) -> None:
    del toys["toy-1"].FIGURE
    failed, _ = make(list(MODULES), tmp_path)
    assert failed == ["toy-1"]
    assert set(made(tmp_path)) == {("toy-2", "small"), ("toy-3", "small")}


def test_a_figure_that_is_no_more_leaves_the_page(tmp_path: Path, toys: dict[str, Any]) -> None:
    make(list(MODULES), tmp_path)
    program.keep(tmp_path, {"toy-1": MODULES["toy-1"]})
    assert set(made(tmp_path)) == {("toy-1", "small")}


def test_pictures_of_the_same_numbers_are_the_same(tmp_path: Path, toys: dict[str, Any]) -> None:
    make(["toy-1"], tmp_path / "a")
    make(["toy-1"], tmp_path / "b")
    first, again = (tmp_path / name / "figures" / "toy-1-small.svg" for name in "ab")
    assert first.read_bytes() == again.read_bytes()


def test_the_program_refuses_what_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], toys: dict[str, Any]
) -> None:
    monkeypatch.setattr(registry, "modules", lambda: MODULES)
    assert program.main(["toy-9"], tmp_path) == 2
    assert "no figure 'toy-9'; there are toy-1, toy-2, toy-3" in capsys.readouterr().out
    assert program.main(["toy-1,toy-3"], tmp_path) == 0
    assert set(made(tmp_path)) == {("toy-1", "small"), ("toy-3", "small")}
    assert program.main(["--full", "toy-1"], tmp_path) == 0
    assert ("toy-1", "full") in made(tmp_path)
    del toys["toy-2"].FIGURE
    assert program.main([], tmp_path) == 1
    assert program.main([], tmp_path / "nowhere") == 2


def test_the_page_can_be_rendered_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toys: dict[str, Any]) -> None:
    monkeypatch.setattr(registry, "modules", lambda: MODULES)
    make(["toy-1"], tmp_path)
    (tmp_path / "figures.md").unlink()
    assert program.main(["--render"], tmp_path) == 0
    assert set(made(tmp_path)) == {("toy-1", "small")}
    assert json.loads((tmp_path / "results" / "figures.json").read_text())[0]["verdict"] == "agrees"
