"""What a figure of a paper is here: a claim, a run, and computed checks whose outcome is the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

Scale = Literal["small", "full"]
SCALES: tuple[Scale, ...] = ("small", "full")

Tell = Callable[[str], None]
"""Says what a run is doing now."""


class Measured(NamedTuple):
    """A mean and its standard error, as a cell of a table."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float] | FloatArray) -> Measured:
        """The mean of several runs; the error of a single one is 0.

        >>> Measured.of([1.0, 2.0, 3.0])
        Measured(mean=2.0, error=0.577...)
        """
        many = np.asarray(values, np.float64)
        error = many.std(ddof=1) / math.sqrt(len(many)) if len(many) > 1 else 0.0
        return cls(float(many.mean()), float(error))


Cell = str | int | float | Measured


class Scaled(NamedTuple):
    """A quantity of the setup, in the paper and here."""

    what: str
    paper: str
    ours: str


@dataclass(frozen=True)
class Table:
    """Columns with their names, and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise SkewlessError(f"table {self.title!r} has {len(self.columns)} columns, but a row is {row}")


@dataclass(frozen=True)
class Check:
    """A number that was measured, and the bounds it has to keep for the claim to hold.

    Whether it holds is computed, never stated.

    Parameters
    ----------
    name
        What is compared, in words.
    value
        The value measured.
    low, high
        The bounds, both included; at least one of them.
    essential
        Whether the claim stands or falls with it. Details of a paper's curve are not essential.
    why
        Why it does not hold, for the page, which says so only where that is the case.

    Examples
    --------
    >>> check = Check("readj over scan", 0.93, high=1.0)
    >>> check.holds, check.bound
    (True, 'at most 1')
    >>> Check("gain", 1.05, low=1.1, high=1.8).holds
    False
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    essential: bool = True
    why: str = ""

    def __post_init__(self) -> None:
        """Refuse a check that nothing could fail."""
        if self.low is None and self.high is None:
            raise SkewlessError(f"check {self.name!r} has no bound; give low, high or both")

    @property
    def holds(self) -> bool:
        """Whether the value is within the bounds; a value that is not a number never is."""
        above = self.low is None or self.value >= self.low
        below = self.high is None or self.value <= self.high
        return above and below

    @property
    def bound(self) -> str:
        """The bounds in words."""
        if self.low is None:
            return f"at most {self.high:g}"
        return f"at least {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"


def verdict(checks: Sequence[Check]) -> str:
    """What the checks say together, and nothing else.

    "agrees" if all hold, "does not" if no essential one does, and "partly" otherwise.

    >>> verdict([Check("a", 1, low=0), Check("b", 1, low=2)])
    'partly'
    """
    if not any(check.essential for check in checks):
        raise SkewlessError("a verdict needs at least one essential check")
    if all(check.holds for check in checks):
        return "agrees"
    return "partly" if any(check.holds for check in checks if check.essential) else "does not"


@dataclass(frozen=True)
class Outcome:
    """What a run of a figure found.

    Parameters
    ----------
    setup
        The scale, quantity by quantity, beside the paper's.
    found
        What was found, in a sentence with the numbers.
    checks, tables
        The checks of shape, and the numbers behind them.
    draw
        Draws the picture into a matplotlib figure.
    """

    setup: tuple[Scaled, ...]
    found: str
    checks: tuple[Check, ...]
    tables: tuple[Table, ...]
    draw: Callable[[Any], None]

    def __post_init__(self) -> None:
        """Refuse an outcome without a verdict or without a scale."""
        verdict(self.checks)
        if not self.setup:
            raise SkewlessError("an outcome says its scale beside the paper's; give at least one line of setup")


@dataclass(frozen=True)
class Figure:
    """A figure of a paper that can be made again.

    A module `experiments/<paper>/figure_<number>.py` has exactly one, called FIGURE.

    Parameters
    ----------
    id
        Paper and number, as in "dalton-9".
    title
        What it shows, in a few words.
    claim
        What the paper found, in a sentence.
    run
        Measures at a scale, and says meanwhile what it is doing.
    """

    id: str
    title: str
    claim: str
    run: Callable[[Scale, Tell], Outcome]


def command(figure: str, scale: Scale) -> str:
    """The command that makes a figure.

    >>> command("dalton-9", "full")
    'make figures-full FIG=dalton-9'
    """
    return f"make figures{'-full' if scale == 'full' else ''} FIG={figure}"
