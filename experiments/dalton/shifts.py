"""The rates of algorithms over time, phase by phase, on streams whose distribution shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.dalton.rivals import Rival
from experiments.dalton.word_count import Setup, at_rate, capacity
from experiments.figure import Cell, Table, Tell
from skewless.simulate.arrivals import Keys


@dataclass(frozen=True)
class Phases:
    """Rates that would keep the busiest server just busy: by algorithm and phase, and over time for the picture."""

    rates: dict[str, list[float]]
    curves: dict[str, list[float]]
    step: float

    def mean(self, phases: slice) -> dict[str, float]:
        """The mean rate of each algorithm over some phases."""
        return {name: float(np.mean(rates[phases])) for name, rates in self.rates.items()}

    def table(self, title: str, names: tuple[str, ...]) -> Table:
        """A row for each algorithm, a column for each phase."""
        rows = tuple(_row(name, rates) for name, rates in self.rates.items())
        return Table(title, ("", *names), rows)


def phases(
    setup: Setup,
    rivals: Mapping[str, Rival],
    stream: Callable[[int], Keys],
    *,
    rate: float,
    phase: float,
    count: int,
    tell: Tell,
    points: int = 40,
) -> Phases:
    """Run every algorithm at the same rate over `count` phases; `stream` is given the tuples of a phase."""
    keys = stream(round(phase * rate * setup.fraction))
    rates, curves = {}, {}
    step = phase * count / points
    for name, rival in rivals.items():
        tell(f"{name} over {count} phases")
        found = at_rate(setup, rival, keys, rate, phase * count)
        rates[name] = [capacity(found, setup.fraction, i * phase, (i + 1) * phase) for i in range(count)]
        curves[name] = [capacity(found, setup.fraction, i * step, (i + 1) * step) for i in range(points)]
    return Phases(rates, curves, step)


def _row(name: str, rates: list[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)
