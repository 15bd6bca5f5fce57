"""Dalton, Figure 9: how throughput follows a distribution that shifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.costs import said, work
from experiments.dalton.clustering import CLUSTERS, NEAR, PAIR
from experiments.dalton.planning import PLANNING, cut, cut_table, planning_table, told_cut, told_planning
from experiments.dalton.rivals import BATCHED, DEFAULTS, PAPERS, PAPERS_BATCHED, RIVALS, SHOWN
from experiments.dalton.scaling import MILDER
from experiments.dalton.shifts import FREE, Phases, drawn_skews, phases
from experiments.dalton.voters import (
    CHEAPER,
    MEMBERS,
    PRINTED,
    SEEDS,
    VOTERS_RATE,
    Clustered,
    clustering_checks,
    clustering_tables,
    extrapolated,
    settled_cheaper,
    settled_from,
    settled_gains,
    unsettled,
)
from experiments.dalton.word_count import (
    PEAK,
    Setup,
    at_rate,
    capacity,
    gain_checks,
    gains,
    gains_by_costs,
    in_range,
    longer,
    of_a_run,
    part,
    printed_checks,
    printed_why,
)
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Tell
from experiments.picture import legend, lines
from skewless.workload import Zipf, uniform_then_zipf

FRACTION: dict[Scale, float] = {"small": 1 / 8, "full": 1 / 2}
PHASE = 240.0
BATCHED_PHASE: dict[Scale, float] = {"small": 60.0, "full": 120.0}
DRAWN_PHASE: dict[Scale, float] = {"small": 240.0, "full": 1000.0}
KEYS, EXPONENT = 100_000, 1.5
BATCHED_RATE = 200_000.0
COUNT, DRAWN = 4, 6
SKEWED = slice(1, None, 2)
UNIFORM = slice(0, None, 2)


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
    tell("9b: how a micro-batch is cut")
    cuts = cut(batched, Zipf(EXPONENT, keys), BATCHED_RATE)
    planned = {times: _planned(replace(batched, planning=times), short, keys) for times in PLANNING}
    by_pairs = extrapolated(tell)
    c = {how: found[1.0] for how, found in by_pairs.items()}
    again = {how: settled_from(found, how, tell) for how, found in c.items()}
    cheap = {(how, times): settled_cheaper(again[how], how, times, tell) for how in c for times in CHEAPER[how]}
    d = phases(
        setup,
        RIVALS,
        lambda every: drawn_skews(every, keys, DRAWN),
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
    found_c, found_d = settled_gains(again[MEMBERS]), gains(all_d, PAPERS)
    drawn_from = [drawn_skews(1, keys, DRAWN).phase(number) for number in range(DRAWN)]
    exponents = tuple(f"s = {stream.s:.2f}" for stream in drawn_from)
    shares = [float(stream.frequencies[0]) for stream in drawn_from]
    why_hash = (
        "Nothing but partitioners, combiners and reducers is ever the bottleneck here, so that whoever leaves a key of "
        f"{hottest:.0%} on one worker gets no more than {1 / (hottest * work(setup.slides).tuple):,.0f} tuples a "
        f"second: hash has {skewed['hash']:,.0f}. With Zipf {MILDER} in the skewed phases of 9a the gains are "
        f"{in_range(gains(mild, PAPERS))}."
    )
    why_a = (
        f"It is that over {max(PAPERS, key=lambda name: skewed[name])}. With Zipf {MILDER} in the skewed phases of 9a "
        f"the gains are {in_range(gains(mild, PAPERS))}."
    )
    mild_in_b = in_range(gains(mild_b, PAPERS_BATCHED))
    mild_said = f"With Zipf {MILDER} in the skewed phases of 9b the gains are {mild_in_b}."
    why_b = (
        f"It is that over {max(PAPERS_BATCHED, key=lambda name: skewed_b[name])}. {told_cut(cuts)} "
        f"{told_planning(planned, skewed_b)} {mild_said}"
    )
    why_most_b = (
        f"A worker that has a key of {hottest:.0%} alone combines no more than {1 / (hottest * work(1).tuple):,.0f} "
        f"tuples a second in micro-batches, and hash, which reduces after that, has {skewed_b['hash']:,.0f}. "
        f"{mild_said}"
    )
    why_d = largest_drawn(all_d, free_d, d.rates[1.0], exponents, shares)
    why_d_least = (
        f"It is that over {max(PAPERS, key=lambda name: all_d[name])}. With the paper's parameters the least gain is "
        f"{gains(all_d, PAPERS, of=PRINTED)[0]:.2f}, so that it depends on our defaults."
    )
    checks = (
        *gain_checks("9a, Zipf phases", found_a, (1.3, 6.0), why_a, why_hash),
        *printed_checks("9a, Zipf phases", skewed, PAPERS, (1.3, 6.0), why_hash),
        Check("9a, uniform phases: dalton over hash", uniform["dalton"] / uniform["hash"], low=0.8),
        Check(
            "9a, uniform phases: dalton with the paper's parameters over hash",
            uniform[PRINTED] / uniform["hash"],
            low=0.8,
            why=printed_why(uniform, PAPERS),
        ),
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
        *printed_checks("9b, Zipf phases", skewed_b, PAPERS_BATCHED, (1.1, 1.8), why_most_b),
        *clustering_checks(again, cheap),
        *gain_checks("9d, all phases", found_d, (1.1, 1.3), why_d_least, why_d),
        *printed_checks("9d, all phases", all_d, PAPERS, (1.1, 1.3), why_d),
    )
    turns = ("uniform", "Zipf 1.5") * (COUNT // 2)
    return Outcome(
        (
            Scaled("servers", "64 threads", "64: 56 combiners and 8 reducers, or 64 combiners where no key is split"),
            Scaled(
                "keys, rate",
                "100,000 to 1,000,000, not said",
                f"{keys:,}: {part(setup.fraction)} of 100,000, and of the rate{longer(setup.fraction)}",
            ),
            Scaled("full scale", "all of it", "half of the keys and of the rate, as said at each scale"),
            Scaled("windows", "60 s by 1 s; clustering 60 s by 20 s", "the same"),
            Scaled(
                "a phase",
                "1,000 s (9d), else not said",
                f"{phase:g} s, four windows (9a); {short:g} s (9b); 100 s (9c); {drawn:g} s (9d)",
            ),
            of_a_run(BATCHED_RATE, setup.fraction, short * COUNT),
            Scaled(
                "Zipf exponent",
                "not said (9a, b); 0.5 to 1.5 (9d)",
                f"1.5 (9a, b); one from each of {DRAWN} parts of 0.5 to 1.5, in a drawn order (9d)",
            ),
            Scaled("voters", "100,000 keys, hottest up to 38.45 %", "the same, generated"),
            Scaled(
                "rate", "as the system takes it", "fixed; shown is the rate that keeps the busiest server just busy"
            ),
            Scaled(
                "rate (9c)",
                "as the system takes it",
                f"routed at {VOTERS_RATE:,.0f} tuples a second and extrapolated, as the pairs of a window grow with "
                f"the square of its tuples, to as few as {min(c[MEMBERS].values()):,.0f} a second; then routed at ever "
                f"better rates, with {len(SEEDS)} seeds, until what follows repeats the rate within {NEAR:.0%}: "
                f"{unsettled(again)}. Checks and gains are of these rates",
            ),
            Scaled(
                "what GREEDY compares (9c)",
                "all members of two clusters: each record with every record of its key, in the code that its authors "
                "published",
                f"the same; to see what that decides, also one member of each cluster, with {CLUSTERS} clusters of a "
                "key on a combiner, which is chosen, or as many as it has tuples there if these are fewer",
            ),
            DEFAULTS,
            Scaled("costs", "not said", f"{said()}; {1e6 * PAIR:.3g} us to compare two texts"),
        ),
        f"In Zipf phases dalton is {found_a[0]:.2f} to {found_a[1]:.1f} times as fast as the paper's rivals (9a), in "
        f"micro-batches {found_b[0]:.2f} to {found_b[1]:.1f} times (9b), in clustering {found_c[0]:.2f} to "
        f"{found_c[1]:.2f} times (9c), and with random exponents {found_d[0]:.2f} to {found_d[1]:.1f} times (9d).",
        checks,
        (
            a.table("9a: word count, tuples a second", turns),
            b.table("9b: word count in micro-batches, tuples a second", turns),
            *clustering_tables(c, again, cheap),
            d.table("9d: word count, tuples a second", exponents),
            a.by_costs("9a: gain in Zipf phases", SKEWED),
            b.by_costs("9b: gain in Zipf phases", SKEWED),
            planning_table("9b, Zipf phases", planned, skewed_b),
            cut_table("9b, Zipf phases", cuts),
            gains_by_costs("9c: gain in skewed phases, extrapolated, by what comparing costs a reducer", by_pairs),
            d.by_costs("9d: gain, all phases", slice(None)),
        ),
        lambda figure: _draw(figure, a, b, again, d),
    )


def _planned(setup: Setup, phase: float, keys: int) -> float:
    """Prompt's mean rate in Zipf phases."""
    stream = uniform_then_zipf(EXPONENT, round(phase * BATCHED_RATE * setup.fraction), keys)
    found = at_rate(setup, BATCHED["prompt"], stream, BATCHED_RATE, phase * COUNT)
    each = [capacity(found, setup.fraction, number * phase, (number + 1) * phase) for number in range(COUNT)]
    return float(np.mean(each[SKEWED]))


def largest_drawn(
    rates: Mapping[str, float],
    free: Mapping[str, float],
    by_phase: Mapping[str, Sequence[float]],
    exponents: Sequence[str],
    shares: Sequence[float],
) -> str:
    """Why the largest gain with drawn exponents is what it is, from the rates with merging and without."""
    slowest = min(PAPERS, key=lambda name: rates[name])
    gain, without = rates["dalton"] / rates[slowest], free["dalton"] / free[slowest]
    phases_ = [ours / theirs for ours, theirs in zip(by_phase["dalton"], by_phase[slowest], strict=True)]
    most = phases_.index(max(phases_))
    cause = (
        "merging is what makes it slow"
        if without < 1 + (gain - 1) / 2
        else "it is the busiest combiner that makes it slow, and not merging"
    )
    return (
        f"The largest gain is over {slowest}, {gain:.2f}. If partial results cost nothing it would be {without:.2f}, "
        f"so that {cause}. By phase it is {', '.join(f'{each:.2f}' for each in phases_)}; the largest is at "
        f"{exponents[most]}, where the hottest key has {shares[most]:.0%} of the tuples."
    )


def _draw(figure: Any, a: Phases, b: Phases, c: Clustered, d: Phases) -> None:
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
        {name: [found[name].rate.mean for found in c.values()] for name in SHOWN},
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
