"""Dalton, Figure 15: imbalance and fragments over time, by the number of partitioners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import RIVALS
from experiments.dalton.team import PRINTED, TELL, WORK, cooperation
from experiments.dalton.word_count import THIRDS, Setup, longer, of_a_run, part, together
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from skewless.core.arrays import FloatArray
from skewless.simulate.arrivals import Keys
from skewless.workload import Zipf

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
THREADS, KEYS, EXPONENT = 64, 100_000, 1.5
PARTITIONERS = (1, 2, 4, 8)
FEW = (2, 8)  # with other times of messages
RATE, SECONDS, SETTLED = 200_000.0, 600.0, 300.0
INTERVAL = 10.0
NEAR = 1.2  # of the final level, from which on a curve counts as converged
VARIANTS: dict[str, dict[str, Any]] = {
    "tables averaged": {},
    "loads and fragments shared": {"merge": "shared"},
    "the paper's parameters": {"options": PRINTED},
    "the paper's parameters and its merge as printed": {"merge": "printed", "options": PRINTED},
}


@dataclass(frozen=True)
class Curve:
    """The busiest combiner over the average, and the combiners that hold the hottest key, window by window."""

    time: FloatArray
    excess: FloatArray
    fragments: FloatArray

    @property
    def level(self) -> float:
        """The imbalance at the end, as a share of the average load."""
        return float(self.excess[self.time > SETTLED].mean())

    @property
    def held(self) -> float:
        """The fragments at the end."""
        return float(self.fragments[self.time > SETTLED].mean())

    @property
    def converged(self) -> float:
        """When the imbalance first comes near its final level."""
        near = self.excess <= NEAR * self.level + 0.01
        return float(self.time[np.argmax(near)])


def run(scale: Scale, tell: Tell) -> Outcome:
    """Let 1 to 8 partitioners learn together, half of them with a uniform and half with a Zipf source."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    found = {
        variant: {partitioners: _curve(setup, partitioners, variant, tell) for partitioners in PARTITIONERS}
        for variant in VARIANTS
    }
    ours = found["tables averaged"]
    faster = _curve(setup, PARTITIONERS[-1], "tables averaged", tell, INTERVAL / 2)
    by_messages = {
        times: ours if times == 1 else {each: _curve(setup, each, "tables averaged", tell, times=times) for each in FEW}
        for times in MULTIPLES
    }
    several = [ours[partitioners] for partitioners in PARTITIONERS[1:]]
    checks = (
        Check(
            "max/avg with 2 partitioners over that with 1",
            (1 + ours[2].level) / (1 + ours[1].level),
            low=1.0,
            high=1.25,
        ),
        Check(
            "max/avg with 4 partitioners over that with 2",
            (1 + ours[4].level) / (1 + ours[2].level),
            high=1.1,
            why=MORE,
        ),
        Check(
            "max/avg with 8 partitioners over that with 2",
            (1 + ours[8].level) / (1 + ours[2].level),
            high=1.1,
            why=MORE,
        ),
        Check(
            "fragments of the hottest key with 8 partitioners over those with 2",
            ours[8].held / ours[2].held,
            high=1.25,
        ),
        Check("seconds until 1 partitioner converges over those of 2", ours[1].converged / ours[2].converged, high=1.0),
        Check(
            "seconds until 2, 4 and 8 partitioners converge, the most over the least",
            max(each.converged for each in several) / min(each.converged for each in several),
            high=1.5,
            essential=False,
            why="Eight partitioners come down as fast as the others at first, and then need many messages for the "
            f"rest: {ours[8].converged:.0f} s with messages every {INTERVAL:g} s, but {faster.converged:.0f} s with "
            f"messages every {INTERVAL / 2:g} s. The average of eight tables moves by an eighth of what one of them "
            "learns.",
        ),
        Check(
            "spread of the fragments after half the time, over their mean, the most of all",
            max(float(np.ptp(each.fragments[each.time > SETTLED])) / each.held for each in ours.values()),
            high=0.25,
        ),
    )
    return Outcome(
        (
            Scaled("servers", "64 threads", f"{THREADS}: 56 combiners, 8 reducers"),
            Scaled("partitioners", "1, 2, 4, 8", "1, 2, 4, 8"),
            Scaled("windows", "60 s by 20 s", "60 s by 20 s"),
            Scaled("sources", "half uniform, half Zipf 1.5", "the same; at one partitioner, both in turn"),
            Scaled(
                "keys",
                "100,000 to 1,000,000",
                f"{round(KEYS * setup.fraction):,}: {part(setup.fraction)} of 100,000{longer(setup.fraction)}",
            ),
            Scaled("rate", "not said", f"{part(setup.fraction)} of {RATE:,.0f} tuples a second"),
            Scaled("DSYNC, time", "10 s at best, not said", f"{INTERVAL:g} s, {SECONDS:g} s"),
            of_a_run(RATE, setup.fraction, SECONDS),
            Scaled(
                "time of a message",
                "not said",
                f"{TELL:.2g} s of a partitioner, and {WORK:.2g} s of the reducer for all: measured; of the costs, only "
                "these enter here, as tuples and fragments are counted",
            ),
            Scaled("costs", "not said", said()),
        ),
        "With 1, 2, 4 and 8 partitioners, the busiest combiner has "
        + ", ".join(f"{1 + ours[each].level:.3f}" for each in PARTITIONERS)
        + " times the average, and the hottest key is on "
        + ", ".join(f"{ours[each].held:.0f}" for each in PARTITIONERS)
        + " combiners.",
        checks,
        (
            *(
                Table(
                    f"Partitioners that learn together, {variant}",
                    ("partitioners", "max/avg", "fragments of the hottest key", "converged after, s"),
                    tuple((each, 1 + curve.level, curve.held, curve.converged) for each, curve in curves.items()),
                )
                for variant, curves in found.items()
            ),
            Table(
                "Partitioners that learn together, tables averaged, by what messages and merging them take",
                ("", *(f"{each} partitioners: {what}" for each in FEW for what in ("max/avg", "fragments"))),
                tuple(
                    (f"x {times:g}", *(cell for each in FEW for cell in (1 + curves[each].level, curves[each].held)))
                    for times, curves in by_messages.items()
                ),
            ),
        ),
        lambda figure: _draw(figure, ours),
    )


MORE = (
    "Each partitioner sees only its own loads, and a table that is as old as the last message, so the more there are, "
    "the less of the load a decision knows. The other tables have other ways to merge."
)


def _curve(
    setup: Setup, partitioners: int, variant: str, tell: Tell, interval: float = INTERVAL, times: float = 1.0
) -> Curve:
    """The levels over time; `times` is a multiple of what messages and merging them take."""
    tell(f"{partitioners} partitioners, {variant}")
    keys = round(KEYS * setup.fraction)
    sources: list[Keys] = [
        Zipf(EXPONENT if number % 2 else 0.0, keys, seed=number + 1) for number in range(max(2, partitioners))
    ]
    team = cooperation(setup, partitioners, interval, work=times * WORK, tell=times * TELL, **VARIANTS[variant])
    found = together(setup, sources, RIVALS["dalton"], team, RATE, SECONDS, watch=(0,))
    return Curve(found.time, found.max_over_avg - 1, found.watched[:, 0].astype(np.float64))


def _draw(figure: Any, curves: dict[int, Curve]) -> None:
    left, right = figure.subplots(1, 2)
    time = curves[1].time.tolist()
    names = {each: f"{each} partitioner{'s' if each > 1 else ''}" for each in curves}
    lines(left, time, {names[each]: list(1 + curve.excess) for each, curve in curves.items()}, x="seconds", y="max/avg")
    held = {names[each]: list(curve.fragments) for each, curve in curves.items()}
    lines(right, time, held, x="seconds", y="fragments of the hottest key")
    left.set_ylim(bottom=1)
    right.set_ylim(bottom=0)
    legend(figure, left)


FIGURE = Figure(
    "dalton-15",
    "Convergence by the number of partitioners",
    "Learning converges to a stable cost with 1, 2, 4 and 8 partitioners: two have a slightly higher imbalance than "
    "one, more than two no higher one, and the rate of convergence does not depend on their number beyond one.",
    run,
)
