"""The measured costs are used alike by all figures, on servers as fast as the paper's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.costs_page import page
from benchmarks.messages import told_and_merged
from experiments.costs import MEASURED, SLOWER, said, work
from experiments.dalton.team import TELL, WORK

DATA = Path("experiments/costs.json")


def test_a_word_count_of_64_threads_peaks_at_40_000_tuples_a_second() -> None:
    assert 56 / work(windows=60).tuple == pytest.approx(40_000)


def test_with_slides_of_20_seconds_one_partitioner_is_a_bottleneck_and_two_are_not() -> None:
    costs = work(windows=3)
    combiners = 56 / costs.tuple
    assert 1 / costs.route < combiners < 2 / costs.route


def test_a_partitioner_takes_longer_than_to_decide_and_less_than_to_decide_and_move() -> None:
    assert SLOWER * MEASURED["decide"] < work(windows=3).route < SLOWER * MEASURED["route"]


def test_what_one_thing_costs_beside_another_is_as_measured() -> None:
    costs = work(windows=3)
    for name in ("plan", "emit", "partial", "key"):
        expected = MEASURED[name] / (MEASURED["parse"] + 3 * MEASURED["add"])
        assert getattr(costs, name) / costs.tuple == pytest.approx(expected)


def test_every_cost_is_between_the_least_and_the_most() -> None:
    for name, found in json.loads(DATA.read_text())["costs"].items():
        assert found["seconds"] == MEASURED[name]
        assert 0 <= found["least"] <= found["seconds"] <= found["most"]


def test_the_page_is_that_of_the_data() -> None:
    assert Path("docs/results/costs.md").read_text() == page(json.loads(DATA.read_text()))


def test_the_setup_of_a_figure_says_what_a_tuple_costs() -> None:
    measured, chosen = said().split("; chosen: ")
    assert f"{1e6 * SLOWER * MEASURED['parse']:.3g} us to read a tuple" in measured
    assert "to route" not in measured
    assert chosen.startswith(f"{1e6 * work(windows=3).route:.3g} us to route a tuple")


def test_messages_cost_what_was_measured_of_them() -> None:
    charged = {"tell": TELL, "merge": WORK}
    assert charged == {name: SLOWER * MEASURED[name] for name in charged}
    found = told_and_merged(8, tuples=2000, rounds=2)
    assert all(0 < each.least <= each.seconds <= each.most for each in found.values())
    assert list(found) == ["tell", "merge"]


def test_a_fraction_of_the_stream_keeps_servers_as_busy() -> None:
    whole, part = work(windows=60), work(windows=60, fraction=0.25)
    for name in ("route", "plan", "tuple", "emit", "partial", "key"):
        assert 0.25 * getattr(part, name) == pytest.approx(getattr(whole, name))


def test_merging_changes_only_what_follows_the_combining_of_tuples() -> None:
    once, twice = work(windows=60), work(windows=60, merging=2)
    assert (twice.route, twice.plan, twice.tuple) == (once.route, once.plan, once.tuple)
    assert (twice.emit, twice.partial, twice.key) == (2 * once.emit, 2 * once.partial, 2 * once.key)
