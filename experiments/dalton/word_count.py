"""Word counts on a simulated cluster: the rates that it sustains, by partitioning algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.costs import work
from experiments.dalton.rivals import Rival
from experiments.figure import Cell, Check, Scaled, Table
from skewless.core.windows import Windows
from skewless.simulate import Cluster, MicroBatches, Partitioners, Run, Source, run, sustainable
from skewless.simulate.arrivals import Keys
from skewless.simulate.partitioners import Router

MINUTE = Windows.of("60 seconds", "1 second")
THIRDS = Windows.of("60 seconds", "20 seconds")
PEAK = 40_000.0  # tuples a second of 64 threads, which none sustains in the paper
TOLERANCE = 0.02


@dataclass(frozen=True)
class Setup:
    """A cluster of the paper, or a part of it.

    Attributes
    ----------
    threads
        Servers; one in eight is a reducer, unless nothing is to be reduced.
    fraction
        The part of the paper's keys and rate that is simulated, on servers that are slower by as much.
    windows
        The windows of the word count.
    batches
        Whether tuples come in micro-batches of a second.
    merging
        A multiple of the costs of partial results and keys.
    reducing
        A multiple of what merging a partial result costs a reducer, apart from what emitting it costs a combiner.
    routing
        A multiple of what routing a tuple costs a partitioner.
    planning
        A multiple of what it costs to plan a whole micro-batch, as Prompt does.
    """

    threads: int
    fraction: float
    windows: Windows = MINUTE
    batches: bool = False
    merging: float = 1.0
    reducing: float = 1.0
    routing: float = 1.0
    planning: float = 1.0

    @property
    def slides(self) -> int:
        """Slides in a window, and windows of a tuple."""
        return self.windows.size // self.windows.slide

    def cluster(self, rival: Rival) -> Cluster:
        """The cluster as an algorithm uses it."""
        reducers = 1 if rival.whole else self.threads // 8
        costs = work(1 if self.batches else self.slides, self.fraction, self.merging)
        return Cluster(
            self.threads if rival.whole else self.threads - reducers,
            reducers,
            self.windows,
            replace(
                costs,
                route=self.routing * costs.route,
                plan=self.planning * costs.plan,
                partial=self.reducing * costs.partial,
            ),
            forward=rival.forwards,
            engine=MicroBatches(1.0) if self.batches else None,
        )

    def partitioner(self, rival: Rival) -> Router:
        """The splitter of an algorithm for this cluster."""
        return rival.make(self.cluster(rival).combiners, 1 if self.batches else self.slides)


def part(fraction: float) -> str:
    """How much is simulated, in words.

    >>> part(1 / 8), part(1.0)
    ('1/8', 'all')
    """
    return "all" if fraction == 1 else f"1/{1 / fraction:g}"


def longer(fraction: float) -> str:
    """What simulating all of it would take, for the setup of a figure.

    >>> longer(1 / 2), longer(1.0)
    ('; all of it would take one core about 2 times as long', '')
    """
    return "" if fraction == 1 else f"; all of it would take one core about {1 / fraction:g} times as long"


def slower(fraction: float) -> str:
    """What it means for the servers that a part is simulated, for the setup of a figure.

    >>> slower(1 / 2), slower(1.0)
    (', on servers that are slower by as much', '')
    """
    return "" if fraction == 1 else ", on servers that are slower by as much"


def of_a_run(rate: float, fraction: float, seconds: float) -> Scaled:
    """The tuples of the longest run, for the setup of a figure; `rate` is the highest of the paper's cluster.

    >>> of_a_run(40_000.0, 1 / 8, 240.0).ours
    'up to 1,200,000'
    """
    return Scaled(
        "tuples of a run", "not said: what is in memory, again and again", f"up to {rate * fraction * seconds:,.0f}"
    )


SEARCHED = Scaled(
    "rates",
    "measured",
    f"found to {TOLERANCE:.0%}, the tolerance of the search; where a learner acts otherwise at another rate, they vary "
    "by more",
)
"""How near the rates are that were searched, for the setup of a figure."""


def at_rate(setup: Setup, rival: Rival, keys: Keys, rate: float, seconds: float) -> Run:
    """A run with one partitioner at a rate of the paper's cluster."""
    source = Source(keys, rate * setup.fraction)
    return run(setup.cluster(rival), source, setup.partitioner(rival), seconds)


def sustained(setup: Setup, rival: Rival, keys: Keys, seconds: float, since: float, start: float = PEAK) -> float:
    """The rate of the paper's cluster that is sustained with one partitioner."""
    found = sustainable(lambda rate: at_rate(setup, rival, keys, rate, seconds), start, since, TOLERANCE)
    return found.rate


def imbalance(setup: Setup, rival: Rival, keys: Keys, rate: float, seconds: float, since: float) -> float:
    """The busiest combiner over the average, the mean of the windows that end after some seconds."""
    found = at_rate(setup, rival, keys, rate, seconds)
    return float(found.max_over_avg[found.time > since].mean())


def together(
    setup: Setup,
    sources: Sequence[Keys],
    rival: Rival,
    team: Partitioners,
    rate: float,
    seconds: float,
    watch: Sequence[int] = (),
) -> Run:
    """A run with a source for each of these keys, which share the rate, and several partitioners."""
    each = [Source(keys, rate * setup.fraction / len(sources)) for keys in sources]
    return run(setup.cluster(rival), each, team, seconds, watch)


def capacity(found: Run, fraction: float, start: float, end: float, merging: float = 1.0) -> float:
    """The rate of the paper's cluster that would have kept the busiest server just busy between two times.

    `merging` is a multiple of the costs of partial results and keys, as tuples are routed in the same way whatever
    these are.
    """
    inside = (found.time > start + 1e-9) & (found.time <= end + 1e-9)
    work = found.work[inside].sum(axis=0) + (merging - 1) * found.merging[inside].sum(axis=0)
    return float(found.tuples[inside].sum() / work.max() / fraction)


def gains(rates: Mapping[str, float], over: Sequence[str], of: str = "dalton") -> tuple[float, float]:
    """The least and the largest factor by which one is faster than each of the others.

    >>> gains({"dalton": 6.0, "hash": 2.0, "cm": 4.0}, ("hash", "cm"))
    (1.5, 3.0)
    """
    factors = [rates[of] / rates[name] for name in over]
    return min(factors), max(factors)


def in_range(found: tuple[float, float]) -> str:
    """The least and the largest gain, in words.

    >>> in_range((1.5, 19.28))
    '1.50 to 19.3'
    """
    return f"{found[0]:.2f} to {found[1]:.1f}"


def gains_by_costs(title: str, rates: Mapping[str, Mapping[float, Mapping[str, float]]], of: str = "dalton") -> Table:
    """The factor by which one is faster than each of the others, by data set and multiple of the costs of merging."""
    columns = [(data, merging) for data, found in rates.items() for merging in found]
    known = [rates[data][merging] for data, merging in columns]
    rows: list[tuple[Cell, ...]] = [
        (name, *(round(found[of] / found[name], 2) for found in known))
        for name in known[0]
        if name != of and all(name in found for found in known)
    ]
    names = (f"{data}, merging x {merging:g}" if data else f"merging x {merging:g}" for data, merging in columns)
    return Table(title, (f"gain of {of} over", *names), tuple(rows))


def gain_checks(
    what: str,
    found: tuple[float, float],
    paper: tuple[float, float],
    why: str = "",
    why_most: str = "",
    *,
    why_about: str = "",
    of: str = "dalton",
) -> tuple[Check, ...]:
    """Checks of a range of gains: the winner, and whether the least and the largest gain are about the paper's.

    About a gain is what exceeds 1 by half to twice as much, so that a loss is never about it. `why_about` says why the
    least gain is not about the paper's, and `why_most` why the largest is not, if they have another reason than a loss.
    """
    least, most = found
    (low, high), (low_most, high_most) = (about(each) for each in paper)
    return (
        Check(f"{what}: least gain of {of} over a rival of the paper", least, low=1.0, why=why),
        Check(
            f"{what}: the least gain of {of}, about {paper[0]:g} as in the paper",
            least,
            low=low,
            high=high,
            essential=False,
            why=why_about or why,
        ),
        Check(
            f"{what}: largest gain of {of}, about {paper[1]:g} as in the paper",
            most,
            low=low_most,
            high=high_most,
            essential=False,
            why=why_most or why,
        ),
    )


def about(gain: float) -> tuple[float, float]:
    """The bounds of a gain that exceeds 1 by half to twice as much as another.

    >>> about(1.1), about(6.0)
    ((1.05, 1.2), (3.5, 11.0))
    """
    return round(1 + (gain - 1) / 2, 3), round(1 + 2 * (gain - 1), 3)


def printed_checks(
    what: str,
    rates: Mapping[str, float],
    rivals: Sequence[str],
    paper: tuple[float, float],
    why_most: str,
    name: str = "dalton as printed",
) -> tuple[Check, ...]:
    """The checks of gains for the paper's parameters: its claim is about these."""
    why, found = printed_why(rates, rivals, name), gains(rates, rivals, of=name)
    return gain_checks(what, found, paper, why, why_most, of="dalton with the paper's parameters")


def printed_why(rates: Mapping[str, float], rivals: Sequence[str], name: str = "dalton as printed") -> str:
    """What Dalton with the paper's parameters does beside ours, which balances better where its rate is higher.

    >>> printed_why({"dalton": 12.0, "dalton as printed": 9.0, "hash": 6.0, "cm": 10.0}, ("hash", "cm"))
    "With the paper's parameters dalton sustains 9 tuples a second, and the best rival, cm, 10. With our defaults, ..."
    >>> printed_why({"dalton": 9.0, "dalton as printed": 9.0, "cm": 10.0}, ("cm",)).partition("cm, 10. ")[2]
    'With our defaults it is 9, so that they make no difference.'
    """
    best = max(rivals, key=lambda rival: rates[rival])
    said = (
        f"With the paper's parameters dalton sustains {rates[name]:,.0f} tuples a second, and the best rival, {best}, "
        f"{rates[best]:,.0f}."
    )
    if rates["dalton"] > (1 + TOLERANCE) * rates[name]:
        return (
            f"{said} With our defaults, which balance better, it is {rates['dalton']:,.0f}; docs/split.md says what "
            "they change."
        )
    less = rates["dalton"] < (1 - TOLERANCE) * rates[name]
    return (
        f"{said} With our defaults it is {rates['dalton']:,.0f}, so that they {'cost' if less else 'make no'} "
        f"{'some of it' if less else 'difference'}."
    )


def growth(rates: Sequence[float], threads: Sequence[int]) -> float:
    """How a rate grows with the threads: 1 if in proportion, 0 if not at all.

    >>> growth([100, 200, 400], [8, 16, 32])
    1.0
    """
    return float(np.log(rates[-1] / rates[0]) / np.log(threads[-1] / threads[0]))
