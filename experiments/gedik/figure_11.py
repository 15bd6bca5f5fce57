"""Gedik, Figure 11: what the number of channels does to the size of the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import RUNS, WINDOW, Setting
from experiments.gedik.size import counted, mapped
from experiments.gedik.sweep import CHANNELS
from experiments.picture import lines


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count the items in the lossy counter and in the explicit map over the number of channels."""
    tell("a lossy counter for each number of channels")
    settings = [Setting(channels=n) for n in CHANNELS]
    in_counter = [counted(each, RUNS[scale]) for each in settings]
    in_map = [mapped(each, RUNS[scale]) for each in settings]
    counters, maps = ([each.mean for each in some] for some in (in_counter, in_map))
    at_8, at_32 = CHANNELS.index(8), CHANNELS.index(32)
    checks = (
        Check("correlation of the items in the counter with N", float(np.corrcoef(CHANNELS, counters)[0, 1]), low=0.99),
        Check("correlation of the items in the map with N", float(np.corrcoef(CHANNELS, maps)[0, 1]), low=0.99),
        Check("items in the counter at N = 32 over N = 8", counters[at_32] / counters[at_8], low=2.5, high=4.5),
        Check("items in the map at N = 32 over N = 8", maps[at_32] / maps[at_8], low=3, high=4.5),
    )
    return Outcome(
        (
            Scaled("runs", "5", str(RUNS[scale])),
            Scaled("rows through the lossy counter", "not said", f"{WINDOW:,} at least"),
            Scaled("items in the domain", "1,000,000", "1,000,000"),
            Scaled("channels N", "2 to 32", f"{CHANNELS[0]} to {CHANNELS[-1]}"),
        ),
        f"From N = 8 to 32 the counter grows from {counters[at_8]:,.0f} to {counters[at_32]:,.0f} items and the map "
        f"from {maps[at_8]:.0f} to {maps[at_32]:.0f}.",
        checks,
        (Table("Items", ("N", "counter", "map"), tuple(zip(CHANNELS, in_counter, in_map, strict=True))),),
        lambda figure: _draw(figure, in_counter, in_map),
    )


def _draw(figure: Any, counters: list[Measured], maps: list[Measured]) -> None:
    left, right = figure.subplots(1, 2)
    lines(left, CHANNELS, {"LCL": counters}, x="channels N", y="items", title="in the lossy counter")
    lines(right, CHANNELS, {"LCL": maps}, x="channels N", y="", title="in the explicit map")


FIGURE = Figure(
    "gedik-11",
    "Channels and size",
    "The number of items in the lossy counter and in the explicit map grows in proportion to the number of channels.",
    run,
)
