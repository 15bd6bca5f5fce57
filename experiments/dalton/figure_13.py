"""Dalton, Figure 13: two partitioners, each with a source of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from experiments.costs import MULTIPLES, said, work
from experiments.dalton.rivals import DEFAULTS, PAPERS
from experiments.dalton.scaling import MILDER
from experiments.dalton.team import (
    FORWARDING,
    PARAMETERS,
    PRINTED,
    SEVERAL,
    TELL,
    WORK,
    Point,
    apart,
    cooperation,
    point,
)
from experiments.dalton.word_count import (
    SEARCHED,
    THIRDS,
    TOLERANCE,
    Setup,
    gain_checks,
    gains,
    gains_by_costs,
    longer,
    of_a_run,
    part,
    printed_checks,
    together,
)
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from skewless.simulate import Partitioners, Run, sustainable
from skewless.simulate.arrivals import Keys
from skewless.workload import Zipf
from skewless.workload.shift import spread

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
THREADS, KEYS, EXPONENT = 64, 100_000, 1.5
SECONDS, SINCE, START = 240.0, 120.0, 200_000.0
INTERVAL = 10.0
APART, SHARED = "dalton, apart", "dalton, loads shared"
NAMES = (*SEVERAL, APART, SHARED)
TOGETHER = 1.4  # the least that cooperation brings in the paper over partitioners that do not talk
DEAR = (4.0, 16.0)  # times what merging costs, to see whether cooperation pays then
COMPARED = (*PAPERS, "dalton")  # with other costs


def run(scale: Scale, tell: Tell) -> Outcome:
    """Find the rate that two partitioners sustain by each algorithm, for two pairs of sources."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    keys = round(KEYS * setup.fraction)
    pairs, milder = _pairs(keys, EXPONENT), _pairs(keys, MILDER)
    points = {pair: _points(setup, sources, NAMES, pair, tell) for pair, sources in pairs.items()}
    rates = {pair: _rates(found) for pair, found in points.items()}
    costs = {
        pair: {
            merging: rates[pair]
            if merging == 1
            else _rates(_points(replace(setup, merging=merging), sources, COMPARED, pair, tell, rates[pair]))
            for merging in MULTIPLES
        }
        for pair, sources in pairs.items()
    }
    mild = {
        pair: _rates(_points(setup, sources, COMPARED, pair, tell, rates[pair])) for pair, sources in milder.items()
    }
    dear: dict[str, dict[float, float]] = {}
    for pair, sources in pairs.items():
        dear[pair] = {}
        for times in DEAR:
            found = _points(replace(setup, merging=times), sources, ("dalton", APART), pair, tell, rates[pair])
            dear[pair][times] = found["dalton"].rate / found[APART].rate
    why = {pair: _why_most(costs[pair], mild[pair]) for pair in pairs}
    mixed, both = rates["uniform and Zipf"], rates["Zipf and Zipf"]
    one_choice = {pair: max(found["hash"], found["cam"]) for pair, found in rates.items()}
    hottest = float(Zipf(EXPONENT, keys).frequencies[0]) / 2
    bound = 1 / (hottest * work(setup.slides).tuple)
    checks = (
        *(
            check
            for pair, found in rates.items()
            for check in (
                *gain_checks(pair, gains(found, PAPERS), (1.4, 3.4), why_least(points[pair], costs[pair]), why[pair]),
                *printed_checks(pair, found, PAPERS, (1.4, 3.4), why[pair], PARAMETERS),
            )
        ),
        Check(
            "uniform and Zipf: the better of hash and cam over dagreedy",
            one_choice["uniform and Zipf"] / mixed["dagreedy"],
            low=1.0,
            why=f"Half of the tuples are Zipf 1.5, so the hottest key has {hottest:.0%} of all. One worker has to do "
            f"them if they are hashed, which bounds the rate at {bound:,.0f} tuples a second. DAGreedy splits the key, "
            "and its two partitioners, which balance their own tuples, balance the sum well enough.",
        ),
        Check(
            "Zipf and Zipf: the better of hash and cam over dagreedy",
            one_choice["Zipf and Zipf"] / both["dagreedy"],
            high=1.0,
        ),
        *(_together(pair, found, dear[pair]) for pair, found in points.items()),
    )
    return Outcome(
        (
            Scaled("servers", "64 threads", f"{THREADS}, and 2 partitioners"),
            Scaled("windows", "60 s by 20 s", "60 s by 20 s"),
            Scaled(
                "keys, rate",
                "100,000 to 1,000,000, not said",
                f"{keys:,}: {part(setup.fraction)} of 100,000, and of the rate{longer(setup.fraction)}",
            ),
            Scaled("Zipf exponent", "1.5", "1.5"),
            Scaled(
                "DSYNC",
                "10 s at best",
                f"{INTERVAL:g} s; merging takes {WORK:.2g} s, a message {TELL:.2g} s of a partitioner: measured",
            ),
            Scaled("time at a rate", "not said", f"{SECONDS:g} s, the last {SECONDS - SINCE:g} s counted"),
            of_a_run(max(max(found.values()) for found in rates.values()), setup.fraction, SECONDS),
            Scaled("forwarding", "of dalton and dagreedy", FORWARDING),
            SEARCHED,
            DEFAULTS,
            Scaled("costs", "not said", said()),
        ),
        f"Dalton sustains {mixed['dalton']:,.0f} tuples a second with a uniform and a Zipf source and "
        f"{both['dalton']:,.0f} with two Zipf sources; DAGreedy {mixed['dagreedy']:,.0f} and {both['dagreedy']:,.0f}, "
        f"hash {mixed['hash']:,.0f} and {both['hash']:,.0f}, shuffle {mixed['shuffle']:,.0f} and "
        f"{both['shuffle']:,.0f}. {_forwarding(list(rates.values()))} Two Daltons that do not talk "
        f"sustain {mixed[APART]:,.0f} and {both[APART]:,.0f}: "
        f"learning together brings {mixed['dalton'] / mixed[APART]:.2f} and {both['dalton'] / both[APART]:.2f} times "
        f"as much. Bounded, which needs no messages, sustains {mixed['bounded']:,.0f} and {both['bounded']:,.0f}.",
        checks,
        (
            Table(
                "Tuples a second with two partitioners",
                ("", *pairs),
                tuple((name, *(round(rates[pair][name]) for pair in pairs)) for name in NAMES),
            ),
            Table(
                "The busiest combiner over the average, and the combiners that hold the hottest key",
                ("", *(f"{pair}: {what}" for pair in pairs for what in ("max/avg", "fragments"))),
                tuple((name, *(cell for pair in pairs for cell in _spread(points[pair][name]))) for name in NAMES),
            ),
            gains_by_costs("Gain of dalton, by the costs of merging", costs),
            Table(
                f"Tuples a second with Zipf {MILDER} in place of Zipf {EXPONENT}",
                ("", *pairs),
                tuple((name, *(round(mild[pair][name]) for pair in pairs)) for name in COMPARED),
            ),
        ),
        lambda figure: _draw(figure, rates),
    )


def _pairs(keys: int, s: float) -> dict[str, tuple[Keys, Keys]]:
    return {
        "uniform and Zipf": (Zipf(0.0, keys, seed=1), Zipf(s, keys, seed=2)),
        "Zipf and Zipf": (Zipf(s, keys, seed=1), Zipf(s, keys, seed=2, hottest=spread(1, keys))),
    }


def why_least(found: Mapping[str, Point], costs: Mapping[float, Mapping[str, float]]) -> str:
    """What the best rival loses to Dalton: its busiest combiner, or what it has to merge."""
    best = max(PAPERS, key=lambda name: found[name].rate)
    by_costs = ", ".join(f"{costs[merging]['dalton'] / costs[merging][best]:.2f}" for merging in MULTIPLES)
    return (
        f"It is that over {best}. At the rates that they sustain, its busiest combiner has "
        f"{found[best].imbalance:.2f} times the average load, and dalton's {found['dalton'].imbalance:.2f} times. "
        f"With half, once and twice the costs of merging the gain over it is {by_costs}: with slides of 20 s a window "
        "ends only once in 20 s, so that partial results cost little beside tuples."
    )


def _why_most(rates: Mapping[float, Mapping[str, float]], mild: Mapping[str, float]) -> str:
    """What decides between Dalton and those that split no key."""
    least, most = gains(mild, PAPERS)
    over = ", ".join(f"{rates[merging]['dalton'] / rates[merging]['hash']:.2f}" for merging in MULTIPLES)
    return (
        "The bottleneck of those who leave a key on one or two workers is the worker of the hottest key: the gains "
        f"over hash are {over} with half, once and twice the costs of merging. With Zipf {MILDER} the gains are "
        f"{least:.2f} to {most:.1f}: {mild['dalton'] / mild['hash']:.1f} over hash, "
        f"{mild['dalton'] / mild['dagreedy']:.2f} over dagreedy and {mild['dalton'] / mild['shuffle']:.2f} over "
        "shuffle."
    )


def _forwarding(rates: Sequence[Mapping[str, float]]) -> str:
    """What forwarding brings DAGreedy."""
    factors = [found["dagreedy"] / found["dagreedy, no forwarding"] for found in rates]
    said = f"Forwarding lets DAGreedy sustain {' and '.join(f'{each:.3f}' for each in factors)} times as much"
    if max(factors) > 1.02:
        return f"{said}."
    return f"{said}: it saves the reducers work, and with slides of 20 s these are not the bottleneck."


def _together(pair: str, found: Mapping[str, Point], dear: Mapping[float, float]) -> Check:
    together, alone = found["dalton"], found[APART]
    return Check(
        f"{pair}: dalton that learns together over partitioners of dalton that do not talk",
        together.rate / alone.rate,
        low=TOGETHER,
        why="Partitioners that balance their own tuples also balance the sum: the busiest combiner has "
        f"{alone.imbalance:.3f} times the average with those that do not talk, so that perfect balance would bring at "
        f"most that many times their rate, and {together.imbalance:.3f} times with those that learn together. The "
        f"hottest key then has {together.fragments:.0f} fragments instead of {alone.fragments:.0f}, but few keys are "
        "split at all: if partial results cost "
        + " and ".join(f"{times:g}" for times in dear)
        + " times as much, learning together brings "
        + " and ".join(f"{ratio:.2f}" for ratio in dear.values())
        + ".",
    )


def _spread(found: Point) -> tuple[float, float]:
    return found.imbalance, found.fragments


def _rates(points: Mapping[str, Point]) -> dict[str, float]:
    return {name: found.rate for name, found in points.items()}


def _points(
    setup: Setup,
    sources: Sequence[Keys],
    names: Sequence[str],
    pair: str,
    tell: Tell,
    known: Mapping[str, float] | None = None,
) -> dict[str, Point]:
    """What each sustains; the search begins at a rate that is known to be near."""
    found = {}
    for name in names:
        tell(f"{pair}: {name}")
        start = known[name] if known else START
        found[name] = point(sustainable(partial(_at, setup, sources, name), start, SINCE, TOLERANCE), SINCE)
    return found


def _at(setup: Setup, sources: Sequence[Keys], name: str, rate: float) -> Run:
    rival = SEVERAL["dalton" if name in (APART, SHARED) else name]
    team: Partitioners
    if name == "dalton":
        team = cooperation(setup, 2, INTERVAL)
    elif name == SHARED:
        team = cooperation(setup, 2, INTERVAL, merge="shared")
    elif name == PARAMETERS:
        team = cooperation(setup, 2, INTERVAL, options=PRINTED)
    else:
        team = apart(setup, rival, 2, told=name == "dagreedy")
    return together(setup, sources, rival, team, rate, SECONDS, watch=(0,))


def _draw(figure: Any, rates: dict[str, dict[str, float]]) -> None:
    plots = figure.subplots(1, 2, sharey=True)
    for axes, (pair, found) in zip(plots, rates.items(), strict=True):
        axes.barh(range(len(NAMES)), [found[name] / 1000 for name in NAMES], color="C0")
        axes.set_yticks(range(len(NAMES)), NAMES)
        axes.set_xlabel("1,000 tuples a second")
        axes.set_title(pair, fontsize=9)
    plots[0].invert_yaxis()


FIGURE = Figure(
    "dalton-13",
    "Another distribution for each source",
    "With two partitioners, Dalton outperforms the others by 1.4 to 3.4 times, both with a uniform and a Zipf source "
    "and with two Zipf sources that have different hot keys; hashing outperforms DAGreedy in the first case, and the "
    "other way round in the second. The protocol achieves 1.4 to 3.4 times the throughput of simply replicating the "
    "partitioner.",
    run,
)
