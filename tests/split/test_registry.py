from __future__ import annotations

import pytest

from skewless import split
from skewless.core.errors import SkewlessError


def test_every_name_makes_a_splitter_of_that_name() -> None:
    for name in split.NAMES:
        splitter = split.make(name, 3)
        assert isinstance(splitter, split.Splitter)
        assert (splitter.name, splitter.workers) == (name, 3)


def test_the_strategies_of_the_papers_are_all_there_and_our_own() -> None:
    expected = "hash shuffle two-choices five-choices d-choices w-choices cam cm dagreedy dalton prompt partly bounded"
    assert sorted(split.NAMES) == sorted(expected.split())


@pytest.mark.parametrize("name", split.NAMES)
def test_a_window_may_be_asked_of_all(name: str) -> None:
    splitter = split.make(name, 3, slide=50, slides=2)
    assert getattr(splitter, "slide", 50) == 50
    assert getattr(splitter, "slides", 2) in (1, 2)  # the choices keep their loads for ever


def test_options_reach_the_splitter() -> None:
    assert split.make("cam", 3, candidates=5).candidates == 5
    assert split.make("dagreedy", 3, slide=7, slides=4).slides == 4


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(SkewlessError, match=f"no splitter 'hashh'; there are {', '.join(split.NAMES)}"):
        split.make("hashh", 3)


@pytest.mark.parametrize(
    ("name", "takes"), [("hash", "no options"), ("cam", "slide, slides, candidates"), ("prompt", "slide, buffer")]
)
def test_an_unknown_option_is_refused_with_those_there_are(name: str, takes: str) -> None:
    with pytest.raises(SkewlessError, match=f"{name} has no option 'epsilonn'; it takes {takes}"):
        split.make(name, 3, slide=10, epsilonn=0.1)
