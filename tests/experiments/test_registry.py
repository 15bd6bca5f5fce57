from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from experiments import registry, results
from experiments.figure import Figure
from skewless.core.errors import SkewlessError

MODULES = registry.modules()
KNOWN = ["dalton-9", "dalton-10", "gedik-3", "prompt-2.6"]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_a_figure_has_exactly_one(name: str) -> None:
    module = import_module(MODULES[name])
    found = [each for each in vars(module).values() if isinstance(each, Figure)]
    assert [figure.id for figure in found] == [name]
    assert module.__doc__
    assert found[0].claim.endswith(".")


def test_every_figure_was_made_at_the_small_scale() -> None:
    records = results.read(Path(__file__).parents[2] / "docs" / "results" / "figures.json")
    assert [record.id for record in records if record.scale == "small"] == list(MODULES)


def test_every_record_has_the_title_and_the_claim_of_its_figure() -> None:
    for record in results.read(Path(__file__).parents[2] / "docs" / "results" / "figures.json"):
        figure = registry.load(MODULES[record.id])
        assert (record.title, record.claim) == (figure.title, figure.claim), f"make {record.id} {record.scale} again"


def test_ids_are_those_of_folder_and_file(tmp_path: Path) -> None:
    for path in ("dalton/figure_10.py", "dalton/figure_9.py", "prompt/figure_2_6.py", "dalton/stream.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    found = registry.modules(tmp_path)
    assert list(found) == ["dalton-9", "dalton-10", "prompt-2.6"]
    assert found["prompt-2.6"] == f"{tmp_path.name}.prompt.figure_2_6"


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ([], KNOWN),
        (["dalton-9"], ["dalton-9"]),
        (["dalton"], ["dalton-9", "dalton-10"]),
        (["prompt-2.6", "dalton-10", "dalton-10"], ["dalton-10", "prompt-2.6"]),
    ],
)
def test_figures_are_chosen_by_id_or_paper(wanted: list[str], chosen: list[str]) -> None:
    assert registry.choose(wanted, KNOWN) == chosen


@pytest.mark.parametrize("wanted", ["dalton-99", "dalton-", "dal", "9", "prompt-2"])
def test_an_unknown_figure_is_refused_with_the_list(wanted: str) -> None:
    with pytest.raises(SkewlessError) as refused:
        registry.choose(["gedik-3", wanted], KNOWN)
    assert str(refused.value).startswith(f"no figure {wanted!r}; there are {', '.join(KNOWN)}")
