"""Dalton, Figure 15: imbalance and fragments over time, by the number of partitioners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import BATCHED, DEFAULTS, RIVALS
from experiments.dalton.team import PRINTED, WORK, apart, cooperation, telling
from experiments.dalton.word_count import THIRDS, Setup, longer, of_a_run, part, together
from experiments.figure import Cell, Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from skewless.core.arrays import FloatArray
from skewless.simulate import Run
from skewless.simulate.arrivals import Keys
from skewless.workload import Zipf

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
THREADS, KEYS, EXPONENT = 64, 100_000, 1.5
PARTITIONERS = (1, 2, 4, 8)
FEW = (2, 8)  # with other times of messages
RATE, SECONDS, SETTLED = 200_000.0, 600.0, 300.0
INTERVAL = 10.0
NEAR = 1.2  # of the worst final level of all: a curve that comes below it has converged
FLOOR = 0.01  # of the average load, which noise of a nearly perfect balance reaches
SLIGHTLY, NO_HIGHER = 1.25, 1.1
SEEDS: dict[Scale, int] = {"small": 4, "full": 2}  # of the exploration where tables are averaged
OURS, VALUELESS = "tables averaged", "hot keys and load told, but no values"
FEW_SEEDS = 2  # where no values are told
VARIANTS: dict[str, dict[str, Any]] = {
    OURS: {},
    VALUELESS: {"values": False},
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

    def reached(self, target: float) -> float:
        """When the imbalance first comes down to a target, infinite if it never does."""
        near = self.excess <= target
        return float(self.time[np.argmax(near)]) if near.any() else math.inf


@dataclass(frozen=True)
class Curves:
    """The same with several seeds of the exploration."""

    each: tuple[Curve, ...]

    @property
    def levels(self) -> Measured:
        """The imbalance at the end, and its error."""
        return Measured.of([curve.level for curve in self.each])

    @property
    def level(self) -> float:
        """The mean imbalance at the end."""
        return self.levels.mean

    @property
    def held(self) -> float:
        """The mean fragments at the end."""
        return float(np.mean([curve.held for curve in self.each]))

    @property
    def mean(self) -> Curve:
        """The mean of all curves."""
        excess, fragments = (
            np.mean([getattr(curve, name) for curve in self.each], axis=0) for name in ("excess", "fragments")
        )
        return Curve(self.each[0].time, excess, fragments)

    def reached(self, target: float) -> float:
        """When the imbalance first comes down to a target, the mean of the seeds; infinite if one never does."""
        return float(np.mean([curve.reached(target) for curve in self.each]))

    @property
    def drift(self) -> float:
        """The imbalance in the last quarter of the time over that in the quarter before."""
        curve = self.mean
        middle = (SETTLED + SECONDS) / 2
        before = curve.excess[(curve.time > SETTLED) & (curve.time <= middle)].mean()
        return float((curve.excess[curve.time > middle].mean() + FLOOR) / (before + FLOOR))

    @property
    def spread(self) -> float:
        """The most that fragments change after half the time, over their mean."""
        return max(float(np.ptp(curve.fragments[curve.time > SETTLED])) / curve.held for curve in self.each)

    def row(self, target: float) -> tuple[Cell, ...]:
        """The cells of a table: max/avg, fragments, and when it converged."""
        several = len(self.each) > 1
        level: Cell = Measured(1 + self.level, self.levels.error) if several else 1 + self.level
        return level, self.held, _seconds(self.reached(target))


def common_target(curves: Iterable[Curve | Curves]) -> float:
    """The imbalance that all of these curves have to reach to count as converged.

    It is one for all, as one that depended on a curve's own end would be reached at once by whoever never learns.
    """
    return NEAR * max(curve.level for curve in curves) + FLOOR


def over(one: Curve | Curves, other: Curve | Curves) -> float:
    """The final imbalance of one over that of another, by Equation 1: what the busiest has more than the average."""
    return (one.level + FLOOR) / (other.level + FLOOR)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Let 1 to 8 partitioners learn together, half of them with a uniform and half with a Zipf source."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    seeds = {OURS: SEEDS[scale], VALUELESS: FEW_SEEDS}
    found = {
        variant: {
            partitioners: _curves(setup, partitioners, variant, tell, seeds=seeds.get(variant, 1))
            for partitioners in (PARTITIONERS[1:] if variant == VALUELESS else PARTITIONERS)
        }
        for variant in VARIANTS
    }
    ours, shared = found[OURS], found["loads and fragments shared"]
    faster = {each: _curves(setup, each, OURS, tell, INTERVAL / 2) for each in PARTITIONERS[2:]}
    silent = {each: _silent(setup, each, tell) for each in PARTITIONERS[1:]}
    by_messages = {
        times: ours if times == 1 else {each: _curves(setup, each, OURS, tell, times=times) for each in FEW}
        for times in MULTIPLES
    }
    several = [ours[partitioners] for partitioners in PARTITIONERS[1:]]
    target = common_target(ours.values())
    reached = {partitioners: curve.reached(target) for partitioners, curve in ours.items()}
    more = why_more(ours, found[VALUELESS], silent, faster, shared)
    checks = (
        Check(
            "imbalance with 2 partitioners over that with 1",
            over(ours[2], ours[1]),
            low=1.0,
            high=SLIGHTLY,
            why=_why_two(ours, shared, _hashed(setup)),
        ),
        Check("imbalance with 4 partitioners over that with 2", over(ours[4], ours[2]), high=NO_HIGHER, why=more),
        Check("imbalance with 8 partitioners over that with 2", over(ours[8], ours[2]), high=NO_HIGHER, why=more),
        Check(
            "fragments of the hottest key with 8 partitioners over those with 2",
            ours[8].held / ours[2].held,
            high=1.25,
        ),
        Check(
            "seconds until 2, 4 and 8 partitioners converge, the most over the least",
            max(each.reached(target) for each in several) / min(each.reached(target) for each in several),
            high=1.5,
            essential=False,
            why="They take "
            + ", ".join(f"{reached[each]:.0f} s with {each}" for each in PARTITIONERS[1:])
            + f", with messages every {INTERVAL:g} s. With messages every {INTERVAL / 2:g} s it is "
            + " and ".join(f"{_in_words(curve.reached(target))} with {each}" for each, curve in faster.items())
            + ", and if messages tell no values "
            + ", ".join(f"{_in_words(curve.reached(target))} with {each}" for each, curve in found[VALUELESS].items())
            + ".",
        ),
        Check(
            "imbalance in the last quarter of the time over that in the quarter before, the most of all",
            max(each.drift for each in ours.values()),
            high=SLIGHTLY,
            why="It is "
            + ", ".join(f"{curve.drift:.2f} with {each}" for each, curve in ours.items())
            + ", so that the imbalance still rises.",
        ),
        Check(
            "spread of the fragments after half the time, over their mean, the most of all",
            max(each.spread for each in ours.values()),
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
            Scaled(
                "imbalance",
                "Equation 1: what the busiest combiner has more than the average",
                f"the same, as a share of the average; {FLOOR:g} is added to both sides of a ratio, so that noise of a "
                "nearly perfect balance does not decide",
            ),
            Scaled(
                "converged",
                "not said",
                f"at an imbalance of {target:.3f} for all curves: {NEAR:g} times the worst final one, and {FLOOR:g}",
            ),
            Scaled(
                "resolution of time",
                "not said",
                f"a window every {THIRDS.slide / 1e6:g} s: whether 1 partitioner, after {reached[1]:.0f} s, converges "
                f"faster than 2, after {reached[2]:.0f} s, is not checked, as less than a slide cannot be told",
            ),
            Scaled("DSYNC, time", "10 s at best, not said", f"{INTERVAL:g} s, {SECONDS:g} s"),
            Scaled(
                "seeds of the exploration",
                "not said",
                f"{SEEDS[scale]} where tables are averaged, {FEW_SEEDS} where no values are told, with the mean and "
                "its standard error; else 1",
            ),
            DEFAULTS,
            of_a_run(RATE, setup.fraction, SECONDS),
            Scaled(
                "time of a message",
                "not said",
                f"{telling(INTERVAL, 8, RATE):.2g} to {telling(INTERVAL, 1, RATE):.2g} s of a partitioner, by its "
                f"tuples since the last one, and {WORK:.2g} s of the reducer for all: measured; of the costs, only "
                "these enter here, as tuples and fragments are counted",
            ),
            Scaled("costs", "not said", said()),
        ),
        "With 1, 2, 4 and 8 partitioners, the busiest combiner has "
        + ", ".join(f"{1 + ours[each].level:.3f}" for each in PARTITIONERS)
        + " times the average, and the hottest key is on "
        + ", ".join(f"{ours[each].held:.0f}" for each in PARTITIONERS)
        + " combiners. Two have "
        + f"{over(ours[2], ours[1]):.1f} times the imbalance of one, four {over(ours[4], ours[2]):.2f} times and eight "
        f"{over(ours[8], ours[2]):.2f} times that of two.",
        checks,
        (
            *(
                Table(
                    f"Partitioners that learn together, {variant}",
                    ("partitioners", "max/avg", "fragments of the hottest key", "converged after, s"),
                    tuple((each, *curve.row(target)) for each, curve in curves.items()),
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
        lambda figure: _draw(figure, {each: curves.mean for each, curves in ours.items()}),
    )


def _why_two(ours: Mapping[int, Curves], shared: Mapping[int, Curves], hashed: float) -> str:
    return (
        "The keys of the uniform source are not hot, so they are hashed: hashing it alone leaves an imbalance of "
        f"{hashed:.3f}, which is {hashed / 2:.3f} of the load of both sources, and two partitioners have "
        f"{ours[2].level:.3f}. A partitioner of the Zipf source balances its own tuples and does not see the other's "
        f"load. If both share their loads and fragments, the imbalance is {shared[2].level:.3f}; a single partitioner, "
        f"which sees all, has {ours[1].level:.3f}."
    )


def why_more(
    ours: Mapping[int, Curves],
    valueless: Mapping[int, Curves],
    silent: Mapping[int, Curve],
    faster: Mapping[int, Curves],
    shared: Mapping[int, Curves],
) -> str:
    """What partitioners have with these messages, with others, and with none."""

    def levels(curves: Mapping[int, Curves]) -> str:
        return ", ".join(_told(curve) for each, curve in curves.items() if each > 1)

    better = [each for each, curve in valueless.items() if curve.level < ours[each].level]
    values = (
        f"Common values do not make it worse: without them it is higher with {_numbers(valueless)}"
        if not better
        else f"Without common values it is lower with {_numbers(better)}"
    )
    return (
        f"With {_numbers(silent)} partitioners the imbalance is {levels(ours)} with messages every {INTERVAL:g} s, "
        + ", ".join(f"{curve.level:.3f}" for curve in silent.values())
        + " without any, when each balances its own tuples, and "
        f"{levels(valueless)} with messages that tell which keys are hot and the load of all, but no values. {values}. "
        f"With messages every {INTERVAL / 2:g} s it is "
        + " and ".join(f"{curve.level:.3f} with {each}" for each, curve in faster.items())
        + f"; with loads and fragments shared in the messages {levels(shared)}."
    )


def _told(curves: Curves) -> str:
    error = f" (± {curves.levels.error:.3f})" if len(curves.each) > 1 else ""
    return f"{curves.level:.3f}{error}"


def _numbers(several: Iterable[int]) -> str:
    *rest, last = (str(each) for each in several)
    return f"{', '.join(rest)} and {last}" if rest else last


def _seconds(at: float) -> float | str:
    return at if math.isfinite(at) else "never"


def _in_words(at: float) -> str:
    return f"{at:.0f} s" if math.isfinite(at) else "never"


def _sources(setup: Setup, partitioners: int) -> list[Keys]:
    keys = round(KEYS * setup.fraction)
    return [Zipf(EXPONENT if number % 2 else 0.0, keys, seed=number + 1) for number in range(max(2, partitioners))]


def _hashed(setup: Setup) -> float:
    """The imbalance of a uniform source whose keys are hashed."""
    rival = BATCHED["hash"]  # on the combiners alone, as for those who split keys
    return _of(together(setup, _sources(setup, 1)[:1], rival, apart(setup, rival, 1), RATE, SECONDS, watch=(0,))).level


def _silent(setup: Setup, partitioners: int, tell: Tell) -> Curve:
    """The levels over time of partitioners that do not talk."""
    tell(f"{partitioners} partitioners that do not talk")
    rival = RIVALS["dalton"]
    team = apart(setup, rival, partitioners)
    return _of(together(setup, _sources(setup, partitioners), rival, team, RATE, SECONDS, watch=(0,)))


def _of(found: Run) -> Curve:
    return Curve(found.time, found.max_over_avg - 1, found.watched[:, 0].astype(np.float64))


def _curves(
    setup: Setup,
    partitioners: int,
    variant: str,
    tell: Tell,
    interval: float = INTERVAL,
    *,
    times: float = 1.0,
    seeds: int = 1,
) -> Curves:
    """The levels over time; `times` is a multiple of what messages and merging them take."""
    told, sources, found = times * telling(interval, partitioners, RATE), _sources(setup, partitioners), []
    for seed in range(seeds):
        tell(f"{partitioners} partitioners, {variant}, seed {seed}")
        team = cooperation(setup, partitioners, interval, work=times * WORK, tell=told, seed=seed, **VARIANTS[variant])
        found.append(_of(together(setup, sources, RIVALS["dalton"], team, RATE, SECONDS, watch=(0,))))
    return Curves(tuple(found))


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
