"""Gedik, Figure 7: what the utility function does to readj and redist."""

from __future__ import annotations

from typing import Any

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import RUNS, Sample, Setting, measure
from experiments.gedik.sweep import setup
from experiments.picture import legend

UTILITIES = ("A", "APM", "APLM", "ATM", "ATLM")
LETTERS = ("LCL", "LLL", "LQL")
ALGORITHMS = ("readj", "redist")

Found = dict[tuple[str, str], dict[str, Sample]]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Measure readj and redist with every utility under three combinations of resource functions."""
    found: Found = {
        (name, letters): {
            utility: measure(name, Setting(letters=letters, utility=utility), RUNS[scale], tell)
            for utility in UTILITIES
        }
        for name in ALGORITHMS
        for letters in LETTERS
    }
    readj = [found["readj", letters] for letters in LETTERS]
    redist = [found["redist", letters] for letters in LETTERS]
    quadratic = found["readj", "LQL"]
    checks = (
        Check(
            "readj: migration by A over the most of the others, the least",
            min(each["A"].m.mean / max(each[u].m.mean for u in UTILITIES[1:]) for each in readj),
            low=1.2,
        ),
        Check(
            "readj: highest imbalance over the lowest, LCL and LLL",
            max(max(s.b.mean for s in each.values()) / min(s.b.mean for s in each.values()) for each in readj[:2]),
            high=1.05,
        ),
        Check(
            "readj: imbalance by APM over the lowest, LQL",
            quadratic["APM"].b.mean / min(s.b.mean for s in quadratic.values()),
            high=1.02,
        ),
        Check(
            "redist: imbalance by ATM over APM, LQL",
            redist[2]["ATM"].b.mean / redist[2]["APM"].b.mean,
            low=2,
            high=4,
        ),
        Check(
            "redist: imbalance by the worse of APM and APLM over the better of ATM and ATLM, the most",
            max(max(e["APM"].b.mean, e["APLM"].b.mean) / min(e["ATM"].b.mean, e["ATLM"].b.mean) for e in redist),
            high=1.0,
        ),
        Check(
            "redist: migration by ATM over APM, mean",
            sum(each["ATM"].m.mean / each["APM"].m.mean for each in redist) / 3,
            low=0.5,
            high=0.75,
        ),
        Check(
            "redist: migration by APLM over APM, the most",
            max(each["APLM"].m.mean / each["APM"].m.mean for each in redist),
            low=1.15,
            high=1.5,
        ),
        Check(
            "readj: migration by APM over the least of the others, LLL and LQL, the most",
            max(each["APM"].m.mean / min(each[u].m.mean for u in UTILITIES if u != "APM") for each in readj[1:]),
            high=1.02,
            essential=False,
            why="All utilities but A move nearly the same here; by the logarithms a little less moves. The differences "
            "between them are about two standard errors.",
        ),
    )
    return Outcome(
        setup(scale, Scaled("utilities", ", ".join(UTILITIES), ", ".join(UTILITIES))),
        f"Redist under LQL has {checks[3].value:.1f} times the imbalance by ATM that it has by APM, for "
        f"{1 - checks[5].value:.0%} less migration; readj moves {checks[0].value:.1f} times as much by A.",
        checks,
        tuple(_table(found, which) for which in (0, 1)),
        lambda figure: _draw(figure, found),
    )


def _table(found: Found, which: int) -> Table:
    return Table(
        ("Relative imbalance b", "Relative migration m")[which],
        ("algorithm, resources", *UTILITIES),
        tuple(
            (f"{name}, {letters}", *((each[u].b, each[u].m)[which] for u in UTILITIES))
            for (name, letters), each in found.items()
        ),
    )


def _draw(figure: Any, found: Found) -> None:
    figure.set_size_inches(7.2, 4.2)
    grid = figure.subplots(2, 2)
    for row, name in enumerate(ALGORITHMS):
        for column, what in enumerate(("imbalance b", "migration m")):
            axes = grid[row, column]
            for number, utility in enumerate(UTILITIES):
                samples = [found[name, letters][utility] for letters in LETTERS]
                cells = [(sample.b, sample.m)[column] for sample in samples]
                places = [at + 0.16 * (number - 2) for at in range(len(LETTERS))]
                axes.bar(
                    places, [c.mean for c in cells], 0.15, yerr=[c.error for c in cells], label=utility, capsize=1.5
                )
            axes.set_xticks(range(len(LETTERS)), LETTERS)
            axes.set_title(f"{name}: {what}", fontsize=9)
            if column == 0:
                axes.set_yscale("log")
    legend(figure, grid[0, 0])


FIGURE = Figure(
    "gedik-7",
    "Utility functions",
    "For readj, the utility A moves most and the imbalance is nearly the same by all; for redist, APM and APLM balance "
    "best, up to 3 times better under LQL, while ATM moves 35 to 40 % less and APLM 30 to 35 % more than APM.",
    run,
)
