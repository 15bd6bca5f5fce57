"""Dalton, Figure 9: how throughput follows a distribution that shifts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.costs import MULTIPLES, said, work
from experiments.dalton.clustering import PAIR, Pairs, pairs
from experiments.dalton.planning import PLANNING, planning_table, told_planning
from experiments.dalton.rivals import BATCHED, PAPERS, PAPERS_BATCHED, RIVALS, SHOWN
from experiments.dalton.scaling import MILDER
from experiments.dalton.shifts import FREE, Phases, phases
from experiments.dalton.word_count import (
    PEAK,
    THIRDS,
    Setup,
    at_rate,
    capacity,
    gain_checks,
    gains,
    gains_by_costs,
    longer,
    of_a_run,
    part,
)
from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from skewless.workload import Zipf, new_skews, uniform_then_zipf, voters_like

FRACTION: dict[Scale, float] = {"small": 1 / 8, "full": 1 / 2}
PHASE = 240.0
BATCHED_PHASE: dict[Scale, float] = {"small": 60.0, "full": 120.0}
DRAWN_PHASE: dict[Scale, float] = {"small": 240.0, "full": 1000.0}
KEYS, EXPONENT = 100_000, 1.5
BATCHED_RATE = 200_000.0
COUNT, DRAWN = 4, 6
SKEWED = slice(1, None, 2)
UNIFORM = slice(0, None, 2)
VOTERS_RATE, VOTERS_SLIDES = 5_000.0, 15
SEEDS = range(1, 9)
MEMBERS, CLUSTERS = "all members", "one member of each"  # what GREEDY compares of two clusters


def run(scale: Scale, tell: Tell) -> Outcome:
    """Alternate uniform and Zipf streams, in three settings, and draw exponents in a fourth."""
    setup = Setup(64, FRACTION[scale])
    batched = Setup(64, FRACTION[scale], batches=True)
    keys, phase, short, drawn = round(KEYS * setup.fraction), PHASE, BATCHED_PHASE[scale], DRAWN_PHASE[scale]
    a = phases(
        setup,
        RIVALS,
        lambda every: uniform_then_zipf(EXPONENT, every, keys),
        rate=PEAK,
        phase=phase,
        count=COUNT,
        tell=tell,
    )
    mild = phases(
        setup,
        {name: RIVALS[name] for name in (*PAPERS, "dalton")},
        lambda every: uniform_then_zipf(MILDER, every, keys),
        rate=PEAK,
        phase=phase,
        count=2,
        tell=tell,
        multiples=(1.0,),
    ).mean(SKEWED)
    b = phases(
        batched,
        BATCHED,
        lambda every: uniform_then_zipf(EXPONENT, every, keys),
        rate=BATCHED_RATE,
        phase=short,
        count=COUNT,
        tell=tell,
    )
    mild_b = phases(
        batched,
        {name: BATCHED[name] for name in (*PAPERS_BATCHED, "dalton")},
        lambda every: uniform_then_zipf(MILDER, every, keys),
        rate=BATCHED_RATE,
        phase=short,
        count=2,
        tell=tell,
        multiples=(1.0,),
    ).mean(SKEWED)
    planned = {times: _planned(replace(batched, planning=times), short, keys) for times in PLANNING}
    by_pairs = _clustering(tell)
    c = {how: found[1.0] for how, found in by_pairs.items()}
    again = {how: _routed_again(c[how], members=how == MEMBERS, tell=tell) for how in c}
    d = phases(
        setup,
        RIVALS,
        lambda every: new_skews(every=every, keys=keys),
        rate=PEAK,
        phase=drawn,
        count=DRAWN,
        tell=tell,
    )
    hottest = float(Zipf(EXPONENT, keys).frequencies[0])
    all_d, free_d = d.mean(slice(None)), d.mean(slice(None), FREE)
    skewed, uniform, skewed_b = a.mean(SKEWED), a.mean(UNIFORM), b.mean(SKEWED)
    free = a.mean(SKEWED, FREE), a.mean(UNIFORM, FREE)
    most = max((*PAPERS, "dalton"), key=lambda name: free[0][name] / free[1][name])
    found_a, found_b = gains(skewed, PAPERS), gains(skewed_b, PAPERS_BATCHED)
    found_c, found_d = routed_gains(again[MEMBERS]), gains(all_d, PAPERS)
    slowest, second, *_ = sorted(PAPERS, key=lambda name: all_d[name])
    rest = all_d["dalton"] / all_d[second]
    share = max(float(new_skews(every=1, keys=keys).phase(number).frequencies[0]) for number in range(DRAWN))
    why_hash = (
        "Nothing but partitioners, combiners and reducers is ever the bottleneck here, so that whoever leaves a key of "
        f"{hottest:.0%} on one worker gets no more than {1 / (hottest * work(setup.slides).tuple):,.0f} tuples a "
        f"second: hash has {skewed['hash']:,.0f}. With Zipf {MILDER} in the skewed phases of 9a the gains are "
        f"{_range(gains(mild, PAPERS))}."
    )
    mild_said = f"With Zipf {MILDER} in the skewed phases of 9b the gains are {_range(gains(mild_b, PAPERS_BATCHED))}."
    why_b = (
        f"It is that over {max(PAPERS_BATCHED, key=lambda name: skewed_b[name])}. Prompt sees the whole batch before "
        f"it routes it. {told_planning(planned, skewed_b)} {mild_said}"
    )
    why_most_b = (
        f"A worker that has a key of {hottest:.0%} alone combines no more than {1 / (hottest * work(1).tuple):,.0f} "
        f"tuples a second in micro-batches, and hash, which reduces after that, has {skewed_b['hash']:,.0f}. "
        f"{mild_said}"
    )
    why_d = (
        f"The largest gain is over {slowest}: if partial results cost nothing, dalton would have "
        f"{free_d['dalton'] / free_d[slowest]:.2f} times its rate. Over the others of the paper the largest is "
        f"{rest:.2f}, over {second}; the hottest key of a phase has up to {share:.0%} of the tuples here."
    )
    checks = (
        *gain_checks("9a, Zipf phases", found_a, (1.3, 6.0), why_hash),
        Check("9a, uniform phases: dalton over hash", uniform["dalton"] / uniform["hash"], low=0.8),
        Check(
            "9a: rate in Zipf phases over uniform ones, the most of the paper's algorithms",
            max(skewed[name] / uniform[name] for name in (*PAPERS, "dalton")),
            high=1.0,
            essential=False,
            why="A Zipf stream has fewer keys in a window, so that those who split all keys emit and merge fewer "
            f"partial results. If these cost nothing, the most is {free[0][most] / free[1][most]:.2f}, by {most}, "
            f"which then has {free[1][most] / free[1]['shuffle']:.2f} times the rate of shuffle in uniform phases: "
            "hashing keys is less even than shuffling them.",
        ),
        *gain_checks("9b, Zipf phases", found_b, (1.1, 1.8), why_b, why_most_b),
        *clustering_checks(again),
        *gain_checks("9d, all phases", found_d, (1.1, 1.3), why_d),
    )
    exponents = tuple(f"s = {new_skews(every=1).phase(number).s:.2f}" for number in range(DRAWN))
    turns = ("uniform", "Zipf 1.5") * (COUNT // 2)
    return Outcome(
        (
            Scaled("servers", "64 threads", "64: 56 combiners and 8 reducers, or 64 combiners where no key is split"),
            Scaled(
                "keys, rate",
                "100,000 to 1,000,000, not said",
                f"{keys:,}: {part(setup.fraction)} of 100,000, and of the rate{longer(setup.fraction)}",
            ),
            Scaled("windows", "60 s by 1 s; clustering 60 s by 20 s", "the same"),
            Scaled(
                "a phase",
                "1,000 s (9d), else not said",
                f"{phase:g} s, four windows (9a); {short:g} s (9b); 100 s (9c); {drawn:g} s (9d)",
            ),
            of_a_run(BATCHED_RATE, setup.fraction, short * COUNT),
            Scaled("Zipf exponent", "not said (9a, b); 0.5 to 1.5 (9d)", "1.5 (9a, b); 0.5 to 1.5 (9d)"),
            Scaled("voters", "100,000 keys, hottest up to 38.45 %", "the same, generated"),
            Scaled(
                "rate", "as the system takes it", "fixed; shown is the rate that keeps the busiest server just busy"
            ),
            Scaled(
                "rate (9c)",
                "as the system takes it",
                f"found in two steps: routed at {VOTERS_RATE:,.0f} tuples a second and extrapolated, as the pairs of a "
                f"window grow with the square of its tuples, to as few as {min(c[MEMBERS].values()):,.0f} a second; "
                f"then routed at that rate, with {len(SEEDS)} seeds. Checks and gains are of the second step, as the "
                "first one starts it and no more",
            ),
            Scaled("costs", "not said", f"{said()}; {1e6 * PAIR:.3g} us to compare two texts"),
        ),
        f"In Zipf phases dalton is {found_a[0]:.2f} to {found_a[1]:.1f} times as fast as the paper's rivals (9a), in "
        f"micro-batches {found_b[0]:.2f} to {found_b[1]:.1f} times (9b), in clustering {found_c[0]:.2f} to "
        f"{found_c[1]:.2f} times (9c), and with random exponents {found_d[0]:.2f} to {found_d[1]:.1f} times (9d).",
        checks,
        (
            a.table("9a: word count, tuples a second", turns),
            b.table("9b: word count in micro-batches, tuples a second", turns),
            Table(
                "9c: clustering of voters in skewed phases, tuples a second, by how GREEDY compares clusters",
                ("", *(f"{how}{step}" for how in again for step in (", extrapolated", ""))),
                tuple(
                    (name, *(cell for how, found in again.items() for cell in (round(c[how][name], 1), found[name])))
                    for name in RIVALS
                ),
            ),
            d.table("9d: word count, tuples a second", exponents),
            a.by_costs("9a: gain in Zipf phases", SKEWED),
            b.by_costs("9b: gain in Zipf phases", SKEWED),
            planning_table("9b, Zipf phases", planned, skewed_b),
            gains_by_costs("9c: gain in skewed phases, extrapolated, by what comparing costs a reducer", by_pairs),
            d.by_costs("9d: gain, all phases", slice(None)),
        ),
        lambda figure: _draw(figure, a, b, again, d),
    )


def _range(found: tuple[float, float]) -> str:
    return f"{found[0]:.2f} to {found[1]:.1f}"


def _planned(setup: Setup, phase: float, keys: int) -> float:
    """Prompt's mean rate in Zipf phases."""
    stream = uniform_then_zipf(EXPONENT, round(phase * BATCHED_RATE * setup.fraction), keys)
    found = at_rate(setup, BATCHED["prompt"], stream, BATCHED_RATE, phase * COUNT)
    each = [capacity(found, setup.fraction, number * phase, (number + 1) * phase) for number in range(COUNT)]
    return float(np.mean(each[SKEWED]))


def _clustering(tell: Tell) -> dict[str, dict[float, dict[str, float]]]:
    """Rates in the skewed phase, by how reducers compare clusters and what that costs them; a phase has 5 slides."""
    setup = Setup(64, 1.0, THIRDS)
    every = round(VOTERS_RATE * 20 * VOTERS_SLIDES / 3)
    found: dict[str, Pairs] = {}
    for name, rival in RIVALS.items():
        tell(f"clustering by {name}")
        found[name] = pairs(setup, rival, voters_like(every), VOTERS_RATE, VOTERS_SLIDES)
    # Of the second phase, the slides in which the window has nothing of the first.
    return {
        how: {
            merging: {
                name: each.rate(VOTERS_RATE, 20.0, members=how == MEMBERS, start=7, end=10, merging=merging)
                for name, each in found.items()
            }
            for merging in MULTIPLES
        }
        for how in (MEMBERS, CLUSTERS)
    }


def routed_gains(again: Mapping[str, Measured]) -> tuple[float, float]:
    """The least and the largest gain over the paper's rivals, of rates at which tuples were routed."""
    return gains({name: found.mean for name, found in again.items()}, PAPERS)


def clustering_checks(again: Mapping[str, Mapping[str, Measured]]) -> tuple[Check, ...]:
    """Checks of 9c, by how clusters are compared, from the rates at which tuples were routed."""
    members, clusters = routed_gains(again[MEMBERS]), routed_gains(again[CLUSTERS])
    best = max(PAPERS, key=lambda name: again[MEMBERS][name].mean)
    return gain_checks(
        "9c, skewed phases",
        members,
        (1.1, 1.8),
        f"The least is over {best}, with {again[MEMBERS][best].mean:.1f} tuples a second against "
        f"{again[MEMBERS]['dalton'].mean:.1f}. A key that is split leaves all pairs across combiners to one reducer, "
        "so that splitting moves the quadratic work instead of dividing it. If clusters are compared by one member "
        f"each, the gains are {_range(clusters)}: how GREEDY compares clusters decides, and the paper does not say.",
    )


def _routed_again(rates: dict[str, float], *, members: bool, tell: Tell) -> dict[str, Measured]:
    """The rates if each algorithm routes at about the rate that was extrapolated for it."""
    setup, found = Setup(64, 1.0, THIRDS), {}
    for name, rate in rates.items():
        tell(f"clustering by {name}, {rate:.0f} tuples a second")
        found[name] = Measured.of(
            [
                pairs(
                    setup, RIVALS[name], voters_like(round(rate * 20 * VOTERS_SLIDES / 3), seed), rate, VOTERS_SLIDES
                ).rate(rate, 20.0, members=members, start=7, end=10)
                for seed in SEEDS
            ]
        )
    return found


def _draw(figure: Any, a: Phases, b: Phases, c: Mapping[str, Mapping[str, Measured]], d: Phases) -> None:
    plots = figure.subplots(1, 4, width_ratios=(3, 3, 2, 3))
    for axes, found, title in (
        (plots[0], a, "a: word count"),
        (plots[1], b, "b: micro-batches"),
        (plots[3], d, "d: s drawn"),
    ):
        for number, name in enumerate(name for name in SHOWN if name in found.curves):
            curve = [rate / 1000 for rate in found.curves[name]]
            axes.plot(
                [found.step * (i + 0.5) for i in range(len(curve))], curve, color=f"C{number}", label=name, lw=0.9
            )
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("seconds")
        axes.set_ylim(bottom=0)
    plots[0].set_ylabel("1,000 tuples a second")
    lines(
        plots[2],
        range(2),
        {name: [found[name].mean for found in c.values()] for name in SHOWN},
        x="",
        y="",
        title="c: clustering, skewed",
    )
    plots[2].set_xticks(range(2), ["members", "clusters"])
    plots[2].set_yscale("log")
    legend(figure, plots[0])


FIGURE = Figure(
    "dalton-9",
    "Adaptivity to shifts of the distribution",
    "While the distribution is skewed, Dalton outperforms the others by 1.3 to 6 times (word count), 1.1 to 1.8 times "
    "(micro-batches) and 1.1 to 1.8 times (clustering), with the performance of hashing while it is uniform; with "
    "exponents drawn from 0.5 to 1.5 by 1.1 to 1.3 times.",
    run,
)
