"""Construction times over a parameter: what Figures 12 to 14 share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.figure import Cell, Table
from experiments.gedik.grow import TRACKING
from experiments.gedik.sweep import Series
from experiments.picture import legend, lines

BUILT = ("consistent", *TRACKING)
Times = dict[str, list[float]]
"""Milliseconds by algorithm, for each value of the parameter."""


def milliseconds(series: Series) -> Times:
    """Of the ring and the explicit map together."""
    return {name: [1000 * sample.seconds for sample in series[name]] for name in BUILT}


def explicit(times: Times, name: str) -> list[float]:
    """Of the explicit map alone: without the ring, which is all that consistent hashing builds."""
    return [
        max(whole - ring, 0.001) for whole, ring in zip(times[name], times["consistent"], strict=True)
    ]  # at least a microsecond, so that ratios exist


def table(label: str, values: Sequence[object], times: Times) -> Table:
    """The times as a table."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(value), *(times[name][i] for name in BUILT)) for i, value in enumerate(values)
    )
    return Table("Milliseconds to construct", (label, *BUILT), rows)


def draw(values: Sequence[float], times: Times, x: str, log: bool = False) -> Callable[[Any], None]:
    """The times as a plot."""

    def drawn(figure: Any) -> None:
        axes = figure.subplots()
        lines(axes, values, times, x=x, y="milliseconds to construct")
        axes.set_yscale("log")
        if log:
            axes.set_xscale("log")
        legend(figure, axes)

    return drawn
