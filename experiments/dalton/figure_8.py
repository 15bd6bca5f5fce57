"""Dalton, Figure 8: how a word count in micro-batches scales with the threads, for three data sets."""

from __future__ import annotations

from dataclasses import replace

from experiments.costs import work
from experiments.dalton.planning import PLANNING, cut, cut_table, planning_table, told_cut, told_planning
from experiments.dalton.rivals import BATCHED, PAPERS_BATCHED, RIVALS
from experiments.dalton.scaling import SYNTHETIC, THREADS, by_costs, draw, rates_of, scales, streams, tables
from experiments.dalton.word_count import Setup, gain_checks, gains, growth, part, printed_checks, slower, sustained
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Tell

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
TIMES, TUPLE_TIMES = (72.0, 60.0), (240.0, 120.0)
PEAK = 100_000.0


def run(scale: Scale, tell: Tell) -> Outcome:
    """Find the rate that each algorithm sustains in micro-batches of a second, with 8 to 64 threads."""
    setup = Setup(THREADS[-1], FRACTION[scale], batches=True)
    rates = rates_of(setup, BATCHED, TIMES, tell, PEAK)
    compared = {name: BATCHED[name] for name in (*PAPERS_BATCHED, "dalton")}
    last = {name: rates[SYNTHETIC][name][-1] for name in BATCHED}
    costs = by_costs(setup, compared, streams(setup.fraction)[SYNTHETIC], TIMES, last, tell)
    tell("prompt with other costs of planning")
    planned = {
        times: sustained(
            replace(setup, planning=times),
            BATCHED["prompt"],
            streams(setup.fraction)[SYNTHETIC],
            *TIMES,
            last["prompt"],
        )
        for times in PLANNING
    }
    tell("how a micro-batch is cut")
    cuts = cut(setup, streams(setup.fraction)[SYNTHETIC], last["prompt"])
    slowest = min(rates, key=lambda data: growth(rates[data]["dalton"], THREADS))
    routed = work(1).route
    unrouted = [
        sustained(
            replace(setup, threads=threads, routing=0.0),
            BATCHED["dalton"],
            streams(setup.fraction)[slowest],
            *TIMES,
            rate,
        )
        for threads, rate in zip(THREADS, rates[slowest]["dalton"], strict=True)
    ]
    tell("one tuple at a time")
    apart = Setup(THREADS[-1], FRACTION[scale])
    t4sa, zipf = rates["T4SA-like"], rates[SYNTHETIC]
    single = {
        name: sustained(apart, RIVALS[name], streams(apart.fraction)["T4SA-like"], *TUPLE_TIMES)
        for name in ("hash", "shuffle")
    }
    found = gains(last, PAPERS_BATCHED)
    mild = gains({name: rates["Elections-like"][name][-1] for name in BATCHED}, PAPERS_BATCHED)
    nearer = (t4sa["hash"][-1] / t4sa["shuffle"][-1]) / (single["hash"] / single["shuffle"])
    elections = f"On the Elections-like stream, with a top key of 7.2 %, the gains are {mild[0]:.2f} to {mild[1]:.2f}."
    why = (
        f"It is that over {max(PAPERS_BATCHED, key=lambda name: last[name])}. {told_cut(cuts)} "
        f"{told_planning(planned, last)} {elections}"
    )
    why_most = (
        "Hashing gets no more than the hottest key lets one worker do, which is 38 % of the tuples on one of 56 here. "
        f"{elections}"
    )
    checks = (
        *gain_checks(f"{SYNTHETIC}, 64 threads", found, (1.6, 2.1), why, why_most),
        *printed_checks(f"{SYNTHETIC}, 64 threads", last, PAPERS_BATCHED, (1.6, 2.1), why_most),
        Check(
            "T4SA-like: hash over shuffle in micro-batches, over the same for one tuple at a time",
            nearer,
            high=1.0,
        ),
        Check(
            "least growth of dalton with the threads, of the three data sets (1: in proportion)",
            growth(rates[slowest]["dalton"], THREADS),
            low=0.8,
            why=f"It is that on the {slowest} stream. One partitioner routes a micro-batch before it is combined, and "
            "does not become faster with the threads: on 64 it takes "
            f"{rates[slowest]['dalton'][-1] * routed:.0%} of the time. If routing cost nothing, the growth would be "
            f"{growth(unrouted, THREADS):.2f}.",
        ),
        Check(
            f"{SYNTHETIC}: growth of hash with the threads",
            growth(zipf["hash"], THREADS),
            high=0.25,
            why="The time of a micro-batch is that of combiners and reducers one by one, and reducers do scale.",
        ),
    )
    return Outcome(
        (
            *(line for line in scales(setup, TIMES, rates) if line.what != "rate"),
            Scaled("micro-batches", "not said", "1 s, partitioned, combined and reduced one after the other"),
            Scaled("rate", "not said", f"{part(setup.fraction)} of what is shown{slower(setup.fraction)}"),
        ),
        f"On {SYNTHETIC} with 64 threads dalton sustains {zipf['dalton'][-1]:,.0f} tuples a second, prompt "
        f"{zipf['prompt'][-1]:,.0f}, shuffle {zipf['shuffle'][-1]:,.0f}, hash {zipf['hash'][-1]:,.0f}. On T4SA-like, "
        f"hash is {t4sa['hash'][-1] / t4sa['shuffle'][-1]:.2f} times as fast as shuffle, and "
        f"{single['hash'] / single['shuffle']:.2f} times with one tuple at a time.",
        checks,
        (
            *tables(rates, {SYNTHETIC: costs}),
            planning_table(f"{SYNTHETIC}, 64 threads", planned, last),
            cut_table(f"{SYNTHETIC}, 56 combiners", cuts),
        ),
        lambda figure: draw(figure, rates, ("prompt",)),
    )


FIGURE = Figure(
    "dalton-8",
    "Scalability of a word count, micro-batches",
    "In micro-batches hashing needs the final aggregation too, which brings it nearer to those who split keys; Dalton "
    "scales almost linearly, and is 1.6 to 2.1 times faster than the others on Zipf.",
    run,
)
