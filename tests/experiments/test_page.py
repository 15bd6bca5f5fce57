from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import costs, page, results
from experiments.figure import Cell, Check, Measured, Scaled, Table
from experiments.results import Record

SMALL = Record(
    "dalton-9",
    "small",
    "Shifts",
    "Dalton adapts.",
    (Scaled("tuples", "10^9", "10^7"),),
    "Dalton gains 1.4.",
    (Check("gain", 1.4, low=1.3), Check("drop | fall", 3.0, high=2, essential=False, why="It is slow.")),
    (Table("Throughput", ("algorithm", "rows/s"), (("hash", 12_345), ("dalton", Measured(20_000.4, 10.0)))),),
    "figures/dalton-9-small.svg",
    12.5,
)
FULL = replace(SMALL, scale="full", checks=SMALL.checks[:1], found="Dalton gains 1.5.", picture="figures/x.svg")


def test_a_section_has_all_that_a_figure_says() -> None:
    text = page.render([SMALL])
    assert "| [dalton-9](#dalton-9) | Dalton adapts. | Dalton gains 1.4. | partly | not run |" in text
    assert "### dalton-9" in text
    assert "Made by `make figures FIG=dalton-9` in 12 s of one core." in text
    assert "| tuples | 10^9 | 10^7 |" in text
    assert "![Shifts](figures/dalton-9-small.svg)" in text
    assert "| gain | 1.40 | at least 1.3 | yes |" in text
    assert "| drop \\| fall (a detail) | 3.00 | at most 2 | **no** |" in text
    assert "- drop | fall: It is slow." in text
    assert "| dalton | 20,000 ± 10 |" in text
    assert "part here" not in text


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Check("late", 0.7512, high=0.75), "0.751"),
        (Check("late", 0.75000012, high=0.75), "0.7500001"),
        (Check("late", 0.7499, high=0.75), "0.75"),
        (Check("gain", 12_344.8, low=12_345), "12,344.800"),
        (Check("gain", float("nan"), low=1.0), "nan"),
    ],
)
def test_a_value_has_the_digits_that_show_whether_it_keeps_its_bound(check: Check, said: str) -> None:
    assert f"| {check.name} | {said} | " in page.render([replace(SMALL, checks=(check,))])


def test_verdicts_that_part_are_named() -> None:
    text = page.render([SMALL, FULL])
    assert "| partly | agrees |" in text
    parted = "- [dalton-9](#dalton-9): partly at the small scale, agrees at the full scale, because of: drop | fall."
    assert parted in text
    assert "Made by `make figures-full FIG=dalton-9`" in text


def test_verdicts_that_do_not_part_are_said_to_be_the_same() -> None:
    text = page.render([replace(SMALL, checks=FULL.checks), FULL])
    assert "Figures that were made at both scales have the same verdict at both." in text


@pytest.mark.parametrize(
    ("line", "outdated"),
    [
        (costs.said(), False),
        (costs.said(slower=46.2), False),
        (costs.said().partition("; chosen")[0] + ", 4.38 us to route", False),
        ("500, 499 and 121 µs, as in the figures of chapter 2", False),
        ("200, 126 and 31 µs, as in the figures of chapter 2", True),
        (
            "measured on Spark, 28.5 times as long: 140 us to read a tuple, 21 us for each window that has it, 101 us "
            "to emit a partial result, 25 us to merge it, 0 us a key",
            True,
        ),
        ("measured on Spark, 28.5 times as long: 140 us to read a tuple", True),
        ("measured on Spark: rows wait for 1 ms", False),
        ("none: statistics alone", False),
    ],
)
@pytest.mark.parametrize("name", ["dalton-9", "prompt-5.4"])
def test_a_figure_that_was_made_with_other_costs_says_so(name: str, line: str, outdated: bool) -> None:
    small = replace(SMALL, id=name)
    full = replace(FULL, id=name, setup=(*FULL.setup, Scaled("costs", "not said", line)))
    text = page.render([small, full])
    assert ("What work costs was measured anew since then" in text) == outdated
    assert ("the full scale was made with older costs." in text) == outdated


def test_figures_are_grouped_by_paper() -> None:
    text = page.render([SMALL, replace(SMALL, id="dalton-10"), replace(SMALL, id="gedik-3")])
    assert re.findall(r"^##+ (\S+)", text, re.MULTILINE) == [
        "Dalton",
        "dalton-9",
        "dalton-10",
        "Partitioning",
        "gedik-3",
    ]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("x", "x"),
        (1234567, "1,234,567"),
        (1234.5, "1,234"),
        (12.345, "12.3"),
        (1.2345, "1.23"),
        (0.0, "0.00"),
        (0.0004321, "0.00043"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (Measured(10.03, 1.26), "10.0 ± 1.3"),
    ],
)
def test_cells_have_three_digits_or_so(cell: Cell, text: str) -> None:
    assert page.written(cell) == text


DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_data_gives() -> None:
    records = results.read(DOCS / "results" / "figures.json")
    assert (DOCS / "figures.md").read_text() == page.render(records)


def test_every_picture_is_there_and_none_is_left_over() -> None:
    records = results.read(DOCS / "results" / "figures.json")
    shown = {DOCS / record.picture for record in records}
    assert shown == set((DOCS / "figures").iterdir())
