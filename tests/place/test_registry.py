from __future__ import annotations

import pytest

from skewless import place
from skewless.core.errors import SkewlessError


def test_every_name_makes_a_placer_of_that_name() -> None:
    for name in place.NAMES:
        placer = place.make(name, slots=7)
        assert isinstance(placer, place.Placer)
        assert (placer.name, placer.slots) == (name, 7)


def test_the_algorithms_of_the_papers_are_all_there_and_one_of_our_own() -> None:
    assert place.NAMES == ("uniform", "consistent", "scan", "redist", "readj", "autoflow", "even")


def test_hash_is_uniform() -> None:
    assert isinstance(place.make("hash"), place.Uniform)


def test_options_reach_the_placer() -> None:
    readj = place.make("readj", resources="LQL", sigma=0.05, utility="ATM", most_moves=3, alpha=(1.1, 1.2, 1.3))
    assert isinstance(readj, place.Readj)
    assert (readj.resources, readj.sigma, readj.utility, readj.most_moves) == (place.Resources("LQL"), 0.05, "ATM", 3)
    assert readj.alpha == place.Tolerance(1.1, 1.2, 1.3)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(SkewlessError, match=f"no placer 'scann'; there are {', '.join(place.NAMES)}"):
        place.make("scann")


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(SkewlessError, match="autoflow has no option 'sigma'; it takes slots, factor, window_length"):
        place.make("autoflow", sigma=0.1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"utility": "AXM"}, "no utility 'AXM'; there are A, APM, APLM, ATM, ATLM"),
        ({"sigma": 0}, "sigma is 0"),
        ({"sigma": "x"}, "sigma is 'x'; give a number above 0"),
        ({"replicas": 0}, "replicas is 0; give a whole number of at least 1, such as 1000"),
        ({"replicas": 2.5}, "replicas is 2.5; give a whole number of at least 1"),
        ({"slots": True}, "slots is True; give a whole number from 1 to"),
        ({"most_moves": -1}, "most_moves is -1; give a whole number of at least 0, such as 5"),
        ({"most_moves": float("nan")}, "most_moves is nan; give a whole number"),
        ({"most_moves": 2.5}, "most_moves is 2.5; give a whole number"),
        ({"most_moves": "x"}, "most_moves is 'x'; give a whole number"),
        ({"tail": "yes"}, "tail is 'yes'; give True if tail slots are to move as keys do, or False"),
        ({"alpha": True}, "alpha for state is True; give a number above 1"),
        ({"alpha": (1.2, 1.2)}, "give one number, or one each for state, computation, communication"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(SkewlessError, match=says):
        place.make("readj", **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"factor": "x"}, "factor is 'x'; give a number above 0"),
        ({"window_length": 0}, "window_length is 0; give a whole number of at least 1 round"),
        ({"window_length": 2.5}, "window_length is 2.5; give a whole number"),
    ],
)
def test_values_out_of_range_of_autoflow_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(SkewlessError, match=says):
        place.make("autoflow", **options)
