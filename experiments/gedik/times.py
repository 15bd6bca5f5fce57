"""Construction times over a parameter: what Figures 12 to 14 share. The ring and the explicit map are timed apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.figure import Cell, Measured, Table
from experiments.gedik.grow import TRACKING, Sample
from experiments.gedik.sweep import Series
from experiments.picture import legend, lines

RING = "ring"
WITH_RING = ("consistent", *TRACKING)
Times = dict[str, list[Measured]]
"""Milliseconds of the ring, and of the map of each algorithm, for each value of the parameter."""


def milliseconds(series: Series) -> Times:
    """Of the ring, which all algorithms have, and of each one's explicit map.

    A ring is timed with every algorithm at every value of the parameter, and the least of a run counts.
    """
    maps = {name: [sample.map_ms for sample in series[name]] for name in TRACKING}
    return {RING: [_ring(samples) for samples in zip(*(series[name] for name in WITH_RING), strict=True)], **maps}


def _ring(samples: tuple[Sample, ...]) -> Measured:
    runs = zip(*(sample.runs for sample in samples), strict=True)
    return Measured.of([1000 * min(run.ring_seconds for run in same) for same in runs])


def whole(times: Times, name: str, at: int) -> float:
    """The ring and the map of an algorithm together, which is what the paper's figures show."""
    return times[RING][at].mean + times[name][at].mean


def table(label: str, values: Sequence[object], times: Times) -> Table:
    """The times as a table."""
    columns = (label, RING, *(f"map of {name}" for name in TRACKING))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(value), *(times[name][i] for name in times)) for i, value in enumerate(values)
    )
    return Table("Milliseconds to construct", columns, rows)


def draw(values: Sequence[float], times: Times, x: str, log: bool = False) -> Callable[[Any], None]:
    """The times as a plot."""

    def drawn(figure: Any) -> None:
        axes = figure.subplots()
        named = {RING: times[RING], **{f"map of {name}": times[name] for name in TRACKING}}
        lines(axes, values, named, x=x, y="milliseconds to construct")
        axes.set_yscale("log")
        if log:
            axes.set_xscale("log")
        legend(figure, axes)

    return drawn
