"""Gedik, Figure 10: what skew does to the size of the function."""

from __future__ import annotations

from typing import Any

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import RUNS, WINDOW, Setting
from experiments.gedik.size import counted, mapped, within
from experiments.gedik.sweep import SKEWS
from experiments.picture import legend, lines

PARTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # of a bucket of the counter


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count the items in the lossy counter and in the explicit map over Zipf exponents."""
    counters: dict[str, list[Measured]] = {}
    maps: dict[str, list[Measured]] = {}
    for letters, skews in SKEWS.items():
        tell(f"{letters}, a lossy counter for each exponent")
        settings = [Setting(letters=letters, z=z) for z in skews]
        counters[letters] = [counted(each, RUNS[scale]) for each in settings]
        maps[letters] = [mapped(each, RUNS[scale]) for each in settings]
    looks = {part: [within(Setting(letters="LQL", z=z), RUNS[scale], part) for z in SKEWS["LQL"]] for part in PARTS}
    rising = [part for part, (low, middle, _) in looks.items() if middle.mean > low.mean]
    humped = [part for part in rising if looks[part][1].mean > looks[part][2].mean]
    lcl, lll, lql = ([each.mean for each in counters[letters]] for letters in SKEWS)
    to = SKEWS["LCL"].index(0.8)
    tail, quadratic = [each.mean for each in maps["LCL"][to:]], [each.mean for each in maps["LQL"]]
    checks = (
        Check(
            "items in the counter up to z = 0.8, the most over the least, LCL",
            max(lcl[: to + 1]) / min(lcl[: to + 1]),
            high=1.2,
        ),
        Check("items in the counter at z = 1 over z = 0.1, LCL", lcl[-1] / lcl[0], low=0.4, high=0.95),
        Check(
            "items in the counter, LLL over LCL, the most", max(a / b for a, b in zip(lll, lcl, strict=True)), high=1.0
        ),
        Check("items in the counter, the most over the least, LQL", max(lql) / min(lql), high=1.2),
        Check(
            "items in the map, growth from z = 0.9 to 1 over growth from 0.8 to 0.9, LCL",
            (tail[2] - tail[1]) / max(1.0, tail[1] - tail[0]),
            low=1.0,
        ),
        Check(
            "items in the map, growth from z = 0.35 to 0.5 over all before, LQL",
            quadratic[2] / max(1.0, quadratic[1]),
            low=2,
        ),
        Check(
            "items in the counter at z = 0.35 over z = 0.25, LQL",
            lql[1] / lql[0],
            low=1.0,
            essential=False,
            why="The paper has an increase before the decrease, and does not say when it looks at the counter. Here "
            "the counter is shown at its fullest, at the end of a bucket of 238,048 rows, a tenth of delta. With skew "
            "more items survive the eviction at the end of a bucket, and fewer distinct ones come in the next (table): "
            f"the number rises from z = 0.25 to 0.35 {_parts(rising)}, and also falls from 0.35 to 0.5 "
            f"{_parts(humped)}.",
        ),
    )
    rows = tuple(
        (f"{letters}, z = {z:g}", counters[letters][i], maps[letters][i])
        for letters, skews in SKEWS.items()
        for i, z in enumerate(skews)
    )
    return Outcome(
        (
            Scaled("runs", "5", str(RUNS[scale])),
            Scaled("rows through the lossy counter", "not said", f"{WINDOW:,} at least"),
            Scaled("items in the domain", "1,000,000", "1,000,000"),
            Scaled("channels N, sigma", "10, 0.1", "10, 0.1"),
            Scaled("Zipf exponent z", "0.1 to 1, LQL 0.25 to 0.5", "0.1 to 1, LQL 0.25 to 0.5"),
        ),
        f"Under LCL the counter has {lcl[0]:,.0f} items at z = 0.1 and {lcl[-1]:,.0f} at 1; the map grows from "
        f"{tail[0]:.0f} items at z = 0.8 over {tail[1]:.0f} to {tail[2]:.0f}.",
        checks,
        (
            Table("Items", ("resources, skew", "counter", "map"), rows),
            Table(
                "Items in the counter by the part of a bucket since the last eviction, LQL",
                ("part", *(f"z = {z:g}" for z in SKEWS["LQL"])),
                tuple((f"{part:.0%}", *each) for part, each in looks.items()),
            ),
        ),
        lambda figure: _draw(figure, counters, maps),
    )


def _parts(parts: list[float]) -> str:
    return f"at {', '.join(f'{part:.0%}' for part in parts)} of a bucket" if parts else "at none of these times"


def _draw(figure: Any, counters: dict[str, list[Measured]], maps: dict[str, list[Measured]]) -> None:
    left, right = figure.subplots(1, 2)
    for number, (letters, skews) in enumerate(SKEWS.items()):
        shown = (left, counters, "in the lossy counter"), (right, maps, "in the explicit map")
        for axes, items, title in shown:
            lines(axes, skews, {letters: items[letters]}, x="Zipf exponent z", y="items", title=title, first=number)
    left.set_yscale("log")
    legend(figure, left)


FIGURE = Figure(
    "gedik-10",
    "Skew and size",
    "Skew hardly changes the number of items in the lossy counter, which falls slightly when it is high, while the "
    "explicit map grows faster and faster with it.",
    run,
)
