from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import costs, page, results
from experiments.figure import Cell, Check, Measured, Scaled, Table
from experiments.results import Record
from experiments.text import written

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


def test_the_first_page_has_a_row_and_a_picture_of_each_figure() -> None:
    text = page.render([SMALL])["figures.md"]
    link = "figures/dalton.md#dalton-9"
    assert f"| [dalton-9]({link}) | Dalton adapts. | Dalton gains 1.4. | partly, 1 of 2 | not run |" in text
    assert "### dalton-9" in text
    told = "Shifts. Small scale: partly, 1 of 1 checks and 0 of 1 details hold."
    assert f"{told} [Setup, checks and tables]({link})." in text
    assert "![Shifts](figures/dalton-9-small.svg)" in text
    assert "part here" not in text
    both = page.render([SMALL, FULL])["figures.md"]
    assert "0 of 1 details hold. Full scale: agrees, 1 of 1 checks hold." in both
    assert "![Shifts](figures/x.svg)" in both


def test_a_section_has_all_that_a_figure_says() -> None:
    text = page.render([SMALL])["figures/dalton.md"]
    assert "## dalton-9" in text
    assert "Made by `make figures FIG=dalton-9` in 12 s of one core." in text
    assert "| tuples | 10^9 | 10^7 |" in text
    assert "![Shifts](dalton-9-small.svg)" in text
    assert "| gain | 1.40 | at least 1.3 | yes |" in text
    assert "| drop \\| fall (a detail) | 3.00 | at most 2 | **no** |" in text
    assert "- drop | fall: It is slow." in text
    assert "| dalton | 20,000 ± 10 |" in text


def test_the_page_of_dalton_says_that_it_has_our_defaults() -> None:
    pages = page.render([SMALL, replace(SMALL, id="gedik-3")])
    note = "What is called dalton on this page has our defaults"
    before, figure, _rest = pages["figures/dalton.md"].partition("## dalton-9")
    assert note in before
    assert "(../split.md#dalton)" in before
    assert figure
    assert note not in pages["figures/gedik.md"]


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
    assert f"| {check.name} | {said} | " in page.render([replace(SMALL, checks=(check,))])["figures/dalton.md"]


def test_verdicts_that_part_are_named() -> None:
    pages = page.render([SMALL, FULL])
    assert "| partly, 1 of 2 | agrees, 1 of 1 |" in pages["figures.md"]
    assert "dalton-9): partly at the small scale, agrees at the full scale.\n" in pages["figures.md"]
    assert "Made by `make figures-full FIG=dalton-9`" in pages["figures/dalton.md"]


def test_checks_that_hold_at_one_scale_only_are_named_though_the_verdicts_are_the_same() -> None:
    full = replace(FULL, checks=(Check("gain", 1.2, low=1.3), Check("drop | fall", 1.5, high=2, essential=False)))
    small = replace(SMALL, checks=(*SMALL.checks, Check("only here", 1.0, low=2)))
    text = page.render([small, replace(full, checks=(*full.checks, Check("also", 1.0, low=0)))])["figures.md"]
    assert (
        "dalton-9): gain, at least 1.3: 1.40 at the small scale (holds), 1.20 at the full scale (does not).\n" in text
    )
    assert "drop | fall, at most 2: 3.00 at the small scale (does not), 1.50 at the full scale (holds).\n" in text
    assert "only here" not in text


def test_checks_that_do_not_part_are_said_to_be_the_same() -> None:
    text = page.render([replace(SMALL, checks=FULL.checks), FULL])["figures.md"]
    assert "Of the figures that were made at both scales, the same checks hold at both." in text


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
    pages = page.render([small, full])
    first, of_paper = pages.values()
    assert ("What work costs was measured anew since then" in of_paper) == outdated
    assert ("the full scale was made with older costs." in first) == outdated


def test_figures_are_grouped_by_paper() -> None:
    pages = page.render([SMALL, replace(SMALL, id="dalton-10"), replace(SMALL, id="gedik-3")])
    found = {path: re.findall(r"^#+ (\S+)", text, re.MULTILINE) for path, text in pages.items()}
    assert found == {
        "figures.md": ["Figures", "Dalton", "dalton-9", "dalton-10", "Partitioning", "gedik-3"],
        "figures/dalton.md": ["Dalton", "dalton-9", "dalton-10"],
        "figures/gedik.md": ["Partitioning", "gedik-3"],
    }


def test_checks_that_fail_for_the_same_reason_are_named_together() -> None:
    checks = (
        Check("gain", 1.0, low=1.3, why="It is slow."),
        Check("drop", 3.0, high=2, why="It is late."),
        Check("rise", 3.0, high=2, why="It is slow."),
    )
    text = page.render([replace(SMALL, checks=checks)])["figures/dalton.md"]
    assert "- gain; rise: It is slow.\n- drop: It is late.\n" in text


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
    assert written(cell) == text


DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_what_the_data_gives() -> None:
    records = results.read(DOCS / "results" / "figures.json")
    for path, text in page.render(records).items():
        assert (DOCS / path).read_text() == text


def test_every_picture_and_page_is_there_and_none_is_left_over() -> None:
    records = results.read(DOCS / "results" / "figures.json")
    shown = {record.picture for record in records} | set(page.render(records)) - {page.FIRST}
    assert {DOCS / path for path in shown} == set((DOCS / "figures").iterdir())
