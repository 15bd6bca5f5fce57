from __future__ import annotations

from dataclasses import asdict
from math import isfinite

import numpy as np
import pytest

from skewless import metrics, split
from skewless.core.errors import SkewlessError
from skewless.simulate import Costs
from skewless.simulate.compare import check_splits, compare, window_and_slide
from skewless.simulate.map_reduce import Divided
from skewless.simulate.source import open_stream
from skewless.split import Prompt, Shuffle, TwoChoices


def test_every_strategy_sees_the_whole_stream() -> None:
    routed: dict[str, int] = {}

    def add(name: str, tuples: int) -> None:
        routed[name] = routed.get(name, 0) + tuples

    with open_stream("zipf:1.5:keys=1000", tuples=20_000) as stream:
        comparison = compare(stream, ["hash", "two-choices", "shuffle"], 8, 5_000, 500, add)
    assert routed == {"hash": 20_000, "two-choices": 20_000, "shuffle": 20_000}
    assert [result.tuples for result in comparison.replays.values()] == [20_000] * 3
    hashed, two, shuffled = comparison.replays.values()
    assert hashed.worst_window > two.worst_window > shuffled.worst_window
    assert hashed.fragments_per_key.tolist() == [1.0] * 4


def test_prompt_sees_each_window_first_and_is_not_chosen_over_those_that_do_not() -> None:
    with open_stream("zipf:1.5:keys=1000", tuples=20_500) as stream:
        comparison = compare(stream, ["prompt", "hash", "bounded"], 8, 5_000, 500)
    prompt = comparison.replays["prompt"]
    assert prompt.loads.tolist() == [[625] * 8] * 4
    assert prompt.tuples == 20_500
    assert comparison.verdict.split == "bounded"


def test_a_report_has_the_measures_that_an_average_over_the_tail_hides() -> None:
    with open_stream("zipf:1.5:keys=1000", tuples=20_000) as stream:
        report = compare(stream, ["hash", "shuffle"], 8, 5_000, 500).as_dict()
    hashed, shuffled = report["splitters"]
    assert (hashed["fragments_per_hot_key"], hashed["fragments_of_the_top_key"]) == (1.0, 1)
    assert (shuffled["fragments_per_hot_key"], shuffled["fragments_of_the_top_key"]) == (8.0, 8)
    assert hashed["imbalance"] > 1_000 > 1 > shuffled["imbalance"]
    assert shuffled["gamma"] > hashed["gamma"]


def test_a_report_has_prompts_costs_as_metrics_computes_them() -> None:
    with open_stream("zipf:1.5:keys=1000", tuples=10_000) as stream:
        keys = np.concatenate(list(stream.blocks()))
        report = compare(stream, ["prompt", "two-choices"], 8, 10_000, 1_000).as_dict()
    for found, routed in zip(report["splitters"], (Prompt(8).partition(keys), TwoChoices(8).route(keys)), strict=True):
        costs = metrics.prompt_costs(keys, routed, 8)
        assert {name: found[name] for name in asdict(costs)} == pytest.approx(asdict(costs))
        for to in ("hash", "shuffle"):
            expected = asdict(metrics.prompt_costs_relative(keys, routed, 8, to))
            finite = {name: value if isfinite(value) else None for name, value in expected.items()}
            assert found[f"relative_to_{to}"] == pytest.approx(finite)


def test_the_makespan_is_that_of_the_slowest_map_and_of_the_slowest_reduce_task() -> None:
    with open_stream("zipf:1.5:keys=1000", tuples=10_000) as stream:
        keys = np.concatenate(list(stream.blocks()))
        result = compare(stream, ["shuffle"], 8, 10_000, 1_000).replays["shuffle"]
    costs = Costs(tuple=1.0, emit=2.0, partial=3.0)
    divided = Divided.routed(keys, Shuffle(8).route(keys), 8, 8)
    expected = metrics.makespan(divided.map_times(costs), divided.reduce_times(costs))
    assert result.mean_makespan(costs) == pytest.approx(expected)


def test_all_strategies_unless_some_are_named() -> None:
    assert check_splits([]) == list(split.NAMES)
    assert check_splits(["shuffle", "hash", "shuffle"]) == ["shuffle", "hash"]


def test_an_unknown_strategy_is_refused_with_those_there_are() -> None:
    with pytest.raises(SkewlessError, match="no splitter 'magic'; there are hash, shuffle"):
        check_splits(["hash", "magic"])


@pytest.mark.parametrize(
    ("tuples", "window", "slide", "expected"),
    [
        (1, None, None, (10_000, 1_000)),
        (1_000_000, None, None, (100_000, 10_000)),
        (10**9, None, None, (1_000_000, 100_000)),
        (1_000_000, 700, None, (700, 70)),
        (1_000_000, 7, None, (7, 1)),
        (1_000_000, 13, None, (13, 13)),
        (1_000_000, None, 50, (500, 50)),
        (1_000_000, 60, 20, (60, 20)),
    ],
)
def test_window_and_slide_suit_the_stream(
    tuples: int, window: int | None, slide: int | None, expected: tuple[int, int]
) -> None:
    assert window_and_slide(tuples, window, slide) == expected


@pytest.mark.parametrize(
    ("window", "slide", "message"),
    [
        (0, None, "--window must be at least 1"),
        (None, -1, "--slide must be at least 1"),
        (10, 3, "multiple of --slide"),
    ],
)
def test_windows_that_do_not_work_are_refused(window: int | None, slide: int | None, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        window_and_slide(1000, window, slide)
