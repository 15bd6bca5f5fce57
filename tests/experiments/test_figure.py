from __future__ import annotations

import math

import pytest

from experiments.figure import Check, Measured, Outcome, Scaled, Table, command, verdict
from skewless.core.errors import SkewlessError

HOLDS = Check("holds", 2.0, low=1.0)
FAILS = Check("fails", 0.5, low=1.0)
DETAIL = Check("detail", 2.0, low=1.0, essential=False)
MISSED = Check("missed", 0.5, low=1.0, essential=False)


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([HOLDS], "agrees"),
        ([HOLDS, DETAIL], "agrees"),
        ([HOLDS, MISSED], "partly"),
        ([HOLDS, FAILS], "partly"),
        ([FAILS], "does not"),
        ([FAILS, FAILS, DETAIL], "does not"),
    ],
)
def test_the_verdict_is_the_outcome_of_the_checks(checks: list[Check], expected: str) -> None:
    assert verdict(checks) == expected


@pytest.mark.parametrize("checks", [[], [DETAIL]])
def test_details_alone_give_no_verdict(checks: list[Check]) -> None:
    with pytest.raises(SkewlessError, match="at least one essential check"):
        verdict(checks)
    with pytest.raises(SkewlessError, match="at least one essential check"):
        Outcome((Scaled("n", "64", "8"),), "", tuple(checks), (), lambda figure: None)


@pytest.mark.parametrize(
    ("value", "low", "high", "holds"),
    [
        (1.0, 1.0, None, True),
        (0.999, 1.0, None, False),
        (2.0, None, 2.0, True),
        (2.001, None, 2.0, False),
        (1.5, 1.0, 2.0, True),
        (2.5, 1.0, 2.0, False),
        (0.5, 1.0, 2.0, False),
        (math.inf, None, 2.0, False),
        (math.nan, 0.0, None, False),
        (math.nan, None, 2.0, False),
    ],
)
def test_a_check_holds_within_its_bounds(value: float, low: float | None, high: float | None, holds: bool) -> None:
    assert Check("x", value, low, high).holds == holds


def test_bounds_are_said_in_words() -> None:
    assert [Check("x", 1, low=1.5).bound, Check("x", 1, high=10_000).bound, Check("x", 1, 0, 2).bound] == [
        "at least 1.5",
        "at most 10000",
        "0 to 2",
    ]


def test_a_check_that_cannot_fail_is_refused() -> None:
    with pytest.raises(SkewlessError, match="'x' has no bound"):
        Check("x", 1.0)


def test_an_outcome_says_its_scale() -> None:
    with pytest.raises(SkewlessError, match="says its scale beside the paper's"):
        Outcome((), "", (HOLDS,), (), lambda figure: None)


def test_a_row_fits_its_columns() -> None:
    with pytest.raises(SkewlessError, match="2 columns"):
        Table("t", ("a", "b"), (("1", 2), ("3",)))


def test_the_error_of_a_mean_is_that_of_the_textbook() -> None:
    # 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sample variance 32 / 7.
    found = Measured.of([2, 4, 4, 4, 5, 5, 7, 9])
    assert found.mean == 5
    assert found.error == pytest.approx(math.sqrt(32 / 7 / 8))
    assert Measured.of([3.0]) == Measured(3.0, 0.0)


def test_commands_are_those_of_the_makefile() -> None:
    assert command("dalton-9", "small") == "make figures FIG=dalton-9"
    assert command("dalton-9", "full") == "make figures-full FIG=dalton-9"
