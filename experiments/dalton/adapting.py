"""The half of Figure 14 in which the interval between messages follows the time of the Q-table reducer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from experiments.dalton.rivals import RIVALS
from experiments.dalton.team import cooperation
from experiments.dalton.two_sources import KEYS, SINCE, START, THREADS, two_streams
from experiments.dalton.word_count import THIRDS, Setup, capacity, together
from experiments.figure import Check, Measured, Scale, Tell

PHASE: dict[Scale, float] = {"small": 500.0, "full": 5000.0}
FRACTION = 1 / 32
SEEDS = range(8)  # the rates vary more than those of 14a
ALONE = 500.0  # seconds of a run that isolates what makes a difference
ADAPTIVE = "adaptive"
ISOLATED = {
    # The interval, when the first messages are sent, and what merging takes.
    "every 10 s": (10.0, 10.0, 1.0),
    "every 20 s": (20.0, 20.0, 1.0),
    "every 40 s": (40.0, 40.0, 1.0),
    "every 10 s, 5 s into a slide": (10.0, 5.0, 1.0),
    "every 20 s, 5 s into a slide": (20.0, 5.0, 1.0),
    "every 20 s, 10 s into a slide": (20.0, 10.0, 1.0),
    "every 10 s, merging takes no time": (10.0, 10.0, 0.0),
    "every 20 s, merging takes no time": (20.0, 20.0, 0.0),
}
BASE = 7.0  # seconds that the Q-table reducer takes here: an interval of 10 s is the shortest that is long enough
TIMES = tuple(BASE * factor for factor in (1, 2, 4, 1))
"""The same phase by phase."""
EXPECTED = (10.0, 20.0, 40.0, 10.0)


def rates(scale: Scale, tell: Tell) -> tuple[list[tuple[float, float]], list[float], dict[str, list[Measured]]]:
    """The intervals over time; where they settle; and the rate of each phase for the adaptive and fixed intervals."""
    setup, phase = Setup(THREADS, FRACTION, THIRDS), PHASE[scale]
    streams = [next(iter(two_streams(round(KEYS * setup.fraction), seed).values())) for seed in SEEDS]

    def work(at: float) -> float:
        return TIMES[min(3, int(at // phase))]

    paces: dict[str, list[Measured]] = {}
    intervals: list[list[tuple[float, float]]] = []
    for name, interval, adaptive in (
        (ADAPTIVE, 20.0, True),
        ("fixed, 10 s", 10.0, False),
        ("fixed, 20 s", 20.0, False),
    ):
        found: list[list[float]] = []
        for seed, sources in zip(SEEDS, streams, strict=True):
            tell(f"14b: {name}, seed {seed}")
            team = cooperation(setup, 2, interval, adaptive=adaptive, work=work, seed=seed)
            each = together(setup, sources, RIVALS["dalton"], team, START / 2, 4 * phase)
            found.append(
                [capacity(each, setup.fraction, number * phase + SINCE, (number + 1) * phase) for number in range(4)]
            )
            if adaptive:
                intervals.append([(at, interval) for at, _query, interval in team.intervals])
        paces[name] = [Measured.of(rates) for rates in zip(*found, strict=True)]
    adapted = intervals[0]  # the times of the reducer are the same for all seeds
    return adapted, [settled_in(intervals, number * phase, phase) for number in range(4)], paces


def settled_in(intervals: Sequence[Sequence[tuple[float, float]]], start: float, phase: float) -> float:
    """The interval of all messages of all seeds in the last half of a phase; nan if they do not have one.

    >>> settled_in([[(3.0, 20.0), (6.0, 10.0), (9.0, 10.0)]], start=0.0, phase=10.0)
    10.0
    >>> settled_in([[(3.0, 20.0), (6.0, 20.0), (9.0, 10.0)]], start=0.0, phase=10.0)
    nan
    """
    late = {each for found in intervals for at, each in found if start + phase / 2 < at <= start + phase}
    return late.pop() if len(late) == 1 else math.nan


def isolated(tell: Tell) -> dict[str, Measured]:
    """The rates with a fixed interval in runs in which only the clock differs, or what merging takes."""
    setup = Setup(THREADS, FRACTION, THIRDS)
    keys, found = round(KEYS * setup.fraction), {}
    for name, (interval, first, times) in ISOLATED.items():
        tell(f"14b: {name}")
        rates = []
        for seed in SEEDS:
            sources = next(iter(two_streams(keys, seed).values()))
            team = cooperation(setup, 2, interval, work=times * BASE, first=first, seed=seed)
            each = together(setup, sources, RIVALS["dalton"], team, START / 2, ALONE)
            rates.append(capacity(each, setup.fraction, SINCE, ALONE))
        found[name] = Measured.of(rates)
    return found


def _best_fixed(paces: Mapping[str, Sequence[Measured]]) -> str:
    """The fixed interval with the highest rate over all phases."""
    return max((name for name in paces if name != ADAPTIVE), key=lambda name: _over_phases(paces[name]))


def _over_phases(rates: Sequence[Measured]) -> float:
    return sum(each.mean for each in rates) / len(rates)


def beaten(paces: Mapping[str, Sequence[Measured]]) -> str:
    """What the adaptive interval brings over the best fixed one."""
    best = _best_fixed(paces)
    won = sum(fixed.mean > each.mean for fixed, each in zip(paces[best], paces[ADAPTIVE], strict=True))
    return (
        f"The best fixed interval, {best.removeprefix('fixed, ')}, has a higher rate than the adaptive one in {won} of "
        f"{len(paces[best])} phases: "
        + ", ".join(
            f"{fixed.mean:,.0f} and {each.mean:,.0f}" for fixed, each in zip(paces[best], paces[ADAPTIVE], strict=True)
        )
        + " tuples a second."
    )


def check(paces: Mapping[str, Sequence[Measured]], isolated: Mapping[str, Measured]) -> Check:
    """Whether an interval that adapts is at least as good as the best fixed one."""

    def rates(*names: str) -> str:
        return " and ".join(f"{isolated[name].mean:,.0f} (± {isolated[name].error:,.0f})" for name in names)

    same = [paces[name][0] for name in (ADAPTIVE, "fixed, 10 s")]
    apart = abs(same[0].mean / same[1].mean - 1)
    error = math.hypot(*(each.error / each.mean for each in same))
    return Check(
        "14b: rate of the adaptive interval over that of the best fixed one, mean of the phases",
        _over_phases(paces[ADAPTIVE]) / _over_phases(paces[_best_fixed(paces)]),
        low=1.0,
        essential=False,
        why="While partitioners wait for the reducer they keep back what they would learn, and the adaptive interval "
        f"is the shortest that is longer than the reducer's work, so that they wait {BASE / 10:.0%} of the time in "
        f"phase 1, and at 20 s {BASE / 20:.0%}. In runs of that phase messages every 10, 20 and 40 s sustain "
        f"{rates('every 10 s', 'every 20 s', 'every 40 s')} tuples a second; if merging takes no time, every 10 and 20 "
        f"s {rates('every 10 s, merging takes no time', 'every 20 s, merging takes no time')}. Where the clock stands "
        f"beside the slides counts too: every 20 s, but 5 or 10 s into a slide, it is "
        f"{rates('every 20 s, 5 s into a slide', 'every 20 s, 10 s into a slide')}, and every 10 s, 5 s into a slide, "
        f"{rates('every 10 s, 5 s into a slide')}. The adaptive interval and 10 s are the same in phase 1, and differ "
        f"there by {apart:.1%}, with a standard error of {error:.1%} over {len(SEEDS)} seeds.",
    )
