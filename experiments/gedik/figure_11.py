"""Gedik, Figure 11: what the number of channels does to the size of the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.grow import Setting
from experiments.gedik.size import STREAM, counted, mapped
from experiments.gedik.sweep import CHANNELS
from experiments.picture import lines


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count the items in the lossy counter and in the explicit map over the number of channels."""
    tell("a lossy counter for each number of channels")
    settings = [Setting(channels=n) for n in CHANNELS]
    counters, maps = [counted(each) for each in settings], [mapped(each) for each in settings]
    at_8, at_32 = CHANNELS.index(8), CHANNELS.index(32)
    checks = (
        Check("correlation of the items in the counter with N", float(np.corrcoef(CHANNELS, counters)[0, 1]), low=0.99),
        Check("correlation of the items in the map with N", float(np.corrcoef(CHANNELS, maps)[0, 1]), low=0.99),
        Check("items in the counter at N = 32 over N = 8", counters[at_32] / counters[at_8], low=2.5, high=4.5),
        Check("items in the map at N = 32 over N = 8", maps[at_32] / maps[at_8], low=3, high=4.5),
    )
    return Outcome(
        (
            Scaled("rows through the lossy counter", "not said", f"{STREAM:,}"),
            Scaled("items in the domain", "1,000,000", "1,000,000"),
            Scaled("channels N", "2 to 32", f"{CHANNELS[0]} to {CHANNELS[-1]}"),
        ),
        f"From N = 8 to 32 the counter grows from {counters[at_8]:,} to {counters[at_32]:,} items and the map from "
        f"{maps[at_8]} to {maps[at_32]}.",
        checks,
        (Table("Items", ("N", "counter", "map"), tuple(zip(CHANNELS, counters, maps, strict=True))),),
        lambda figure: _draw(figure, counters, maps),
    )


def _draw(figure: Any, counters: list[int], maps: list[int]) -> None:
    left, right = figure.subplots(1, 2)
    lines(left, CHANNELS, {"LCL": counters}, x="channels N", y="items", title="in the lossy counter")
    lines(right, CHANNELS, {"LCL": maps}, x="channels N", y="", title="in the explicit map")


FIGURE = Figure(
    "gedik-11",
    "Channels and size",
    "The number of items in the lossy counter and in the explicit map grows in proportion to the number of channels.",
    run,
)
