"""Gedik, Figure 9: what the scaler of the frequency threshold does to the size of the function."""

from __future__ import annotations

from typing import Any

from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import RUNS, WINDOW, Setting
from experiments.gedik.size import counted, mapped
from experiments.gedik.sweep import SIGMAS
from experiments.picture import legend, lines

LETTERS = ("LCL", "LLL", "LQL")
DEFAULT = SIGMAS.index(0.1)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count the items in the lossy counter and in the explicit map over sigma."""
    counters: dict[str, list[Measured]] = {}
    maps: dict[str, list[Measured]] = {}
    for letters in LETTERS:
        tell(f"{letters}, a lossy counter for each sigma")
        settings = [Setting(letters=letters, sigma=sigma) for sigma in SIGMAS]
        counters[letters] = [counted(each, RUNS[scale]) for each in settings]
        maps[letters] = [mapped(each, RUNS[scale]) for each in settings]
    lcl, lll, lql = ([each.mean for each in counters[letters]] for letters in LETTERS)
    mine, quadratic = ([each.mean for each in maps[letters]] for letters in ("LCL", "LQL"))
    exactly = {
        letters: [round(mapped(Setting(letters=letters, sigma=sigma, window=None), 1).mean) for sigma in SIGMAS]
        for letters in LETTERS
    }
    checks = (
        Check("items in the counter, lowest sigma over the highest, LCL", lcl[0] / lcl[-1], low=10),
        Check("items in the counter at sigma = 0.1, LCL", lcl[DEFAULT], low=1000, high=5000),
        Check("items in the counter at sigma = 0.1, LQL over LCL", lql[DEFAULT] / lcl[DEFAULT], low=10, high=40),
        Check(
            "items in the counter, LLL over LCL, the most", max(a / b for a, b in zip(lll, lcl, strict=True)), high=1.0
        ),
        Check("items in the map, the most", max(mine), low=400, high=600),
        Check("items in the map at sigma = 0.1", mine[DEFAULT], low=30, high=70),
        Check(
            "items in the map, LQL over LCL up to sigma = 0.25, the most that they differ",
            max(abs(a / b - 1) for a, b in zip(quadratic[:4], mine[:4], strict=True)),
            high=0.02,
            why="The counter returns items that may pass delta: those up to its error below it. Its error is a tenth "
            "of delta, and delta is far lower under LQL until the second filter, so that fewer items come along there. "
            f"By the true frequencies the maps have {exactly['LCL'][DEFAULT]} and {exactly['LQL'][DEFAULT]} items at "
            "sigma = 0.1 (table).",
        ),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (sigma, *(counters[letters][i] for letters in LETTERS), *(maps[letters][i] for letters in LETTERS))
        for i, sigma in enumerate(SIGMAS)
    )
    columns = ("sigma", *(f"counter, {letters}" for letters in LETTERS), *(f"map, {letters}" for letters in LETTERS))
    return Outcome(
        (
            Scaled("runs", "5", str(RUNS[scale])),
            Scaled("rows through the lossy counter", "not said", f"{WINDOW:,} at least"),
            Scaled("items in the domain", "1,000,000", "1,000,000"),
            Scaled("channels N, Zipf exponent z", "10, 1", "10, 1"),
            Scaled("error of the counter", "a tenth of delta", "a tenth of delta"),
        ),
        f"At sigma = 0.1 the counter has {lcl[DEFAULT]:,.0f} items under LCL and {lql[DEFAULT]:,.0f} under LQL, and "
        f"the map {mine[DEFAULT]:.0f} and {quadratic[DEFAULT]:.0f}.",
        checks,
        (
            Table("Items", columns, rows),
            Table(
                "Items in the map by the true frequencies",
                ("sigma", *LETTERS),
                tuple((sigma, *(exactly[letters][i] for letters in LETTERS)) for i, sigma in enumerate(SIGMAS)),
            ),
        ),
        lambda figure: _draw(figure, counters, maps),
    )


def _draw(figure: Any, counters: dict[str, list[Measured]], maps: dict[str, list[Measured]]) -> None:
    left, right = figure.subplots(1, 2)
    lines(left, SIGMAS, counters, x="sigma", y="items", title="in the lossy counter")
    lines(right, SIGMAS, maps, x="sigma", y="", title="in the explicit map")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
    legend(figure, left)


FIGURE = Figure(
    "gedik-9",
    "Frequency threshold scaler and size",
    "The lossy counter grows as sigma falls: around 2,500 items at 0.1, and 50,000 under LQL; the explicit map has 1 "
    "to 500 items, around 50 at 0.1, and the same for all resource functions.",
    run,
)
