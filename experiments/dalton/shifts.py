"""The rates of algorithms over time, phase by phase, on streams whose distribution shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.costs import MULTIPLES
from experiments.dalton.rivals import Rival
from experiments.dalton.word_count import Setup, at_rate, capacity, gains_by_costs
from experiments.figure import Cell, Table, Tell
from skewless.simulate.arrivals import Keys
from skewless.workload import Shift, Zipf

FREE = 0.0
"""A multiple of the costs of merging, to see what they explain."""
EVERY = (FREE, *MULTIPLES)


@dataclass(frozen=True)
class Phases:
    """Rates that would keep the busiest server just busy.

    Attributes
    ----------
    rates
        By a multiple of the costs of merging, by algorithm and phase.
    curves
        By algorithm, over time, for the picture.
    step
        Seconds between two points of a curve.
    """

    rates: dict[float, dict[str, list[float]]]
    curves: dict[str, list[float]]
    step: float

    def mean(self, phases: slice, merging: float = 1.0) -> dict[str, float]:
        """The mean rate of each algorithm over some phases."""
        return {name: float(np.mean(rates[phases])) for name, rates in self.rates[merging].items()}

    def table(self, title: str, names: tuple[str, ...]) -> Table:
        """A row for each algorithm, a column for each phase."""
        rows = tuple(_row(name, rates) for name, rates in self.rates[1.0].items())
        return Table(title, ("", *names), rows)

    def by_costs(self, title: str, phases: slice) -> Table:
        """The gain of Dalton over each of the others in some phases, by the costs of merging."""
        return gains_by_costs(title, {"": {merging: self.mean(phases, merging) for merging in MULTIPLES}})


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
    multiples: Sequence[float] = EVERY,
) -> Phases:
    """Run every algorithm at the same rate over `count` phases; `stream` is given the tuples of a phase.

    `multiples` are those of the costs of merging for which rates are computed.
    """
    keys = stream(round(phase * rate * setup.fraction))
    rates: dict[float, dict[str, list[float]]] = {merging: {} for merging in multiples}
    curves = {}
    step = phase * count / points
    for name, rival in rivals.items():
        tell(f"{name} over {count} phases")
        found = at_rate(setup, rival, keys, rate, phase * count)
        curves[name] = [capacity(found, setup.fraction, i * step, (i + 1) * step) for i in range(points)]
        for merging in rates:
            other, times = found, merging
            if setup.batches and merging != 1:  # the stages of a micro-batch have to be timed anew
                other, times = (
                    at_rate(replace(setup, merging=merging * setup.merging), rival, keys, rate, phase * count),
                    1.0,
                )
            rates[merging][name] = [
                capacity(other, setup.fraction, i * phase, (i + 1) * phase, times) for i in range(count)
            ]
    return Phases(rates, curves, step)


def drawn_skews(every: int, keys: int, count: int, low: float = 0.5, high: float = 1.5, seed: int = 1) -> Shift:
    """Zipf with a new exponent and new hot keys for each phase, and exponents from all parts of the range.

    The range is cut into as many parts as there are phases. Each part gives one exponent, in an order that is drawn, so
    that few phases have steep ones and flat ones alike.

    >>> stream = drawn_skews(every=1000, keys=100, count=4)
    >>> sorted(int(4 * (stream.phase(number).s - 0.5)) for number in range(4))
    [0, 1, 2, 3]
    """
    draw = np.random.default_rng(seed)
    exponents = low + (high - low) * (draw.permutation(count) + draw.random(count)) / count
    hottest = (draw.random(count) * keys).astype(np.int64)
    drawn = [Zipf(float(s), keys, hottest=int(key)) for s, key in zip(exponents, hottest, strict=True)]
    return Shift(every, lambda number: drawn[number % count], seed)


def _row(name: str, rates: list[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)
