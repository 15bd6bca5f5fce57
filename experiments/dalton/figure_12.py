"""Dalton, Figure 12: throughput of a word count by the rate of its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import DEFAULTS, PAPERS, RIVALS
from experiments.dalton.scaling import THREADS, streams
from experiments.dalton.word_count import (
    Setup,
    at_rate,
    capacity,
    gains,
    gains_by_costs,
    longer,
    of_a_run,
    part,
    printed_why,
)
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines

FRACTION: dict[Scale, float] = {"small": 1 / 8, "full": 1.0}
RATES = (5_000.0, 10_000.0, 20_000.0, 40_000.0)
SECONDS, SINCE = 240.0, 120.0
STREAM = "Elections-like"
NAMES = (*PAPERS, "dagreedy, no forwarding", "dalton", "bounded")
PRINTED = "dalton as printed"  # with the most threads at the highest rate


def run(scale: Scale, tell: Tell) -> Outcome:
    """Give each algorithm the same rates, with 8 to 64 threads, and see what gets through."""
    fraction = FRACTION[scale]
    keys = streams(fraction)[STREAM]
    found: dict[tuple[str, int], list[float]] = {}
    peaks: dict[float, dict[str, float]] = {merging: {} for merging in MULTIPLES}
    for name in NAMES:
        for threads in THREADS:
            tell(f"{name} on {threads} threads")
            setup = Setup(threads, fraction)
            runs = [at_rate(setup, RIVALS[name], keys, rate, SECONDS) for rate in RATES]
            found[name, threads] = [
                min(rate, capacity(each, fraction, SINCE, SECONDS)) for rate, each in zip(RATES, runs, strict=True)
            ]
            if (name, threads) == ("dalton", 16):
                free = capacity(runs[0], fraction, SINCE, SECONDS, merging=0.0)
        for merging, peak_of in peaks.items():
            peak_of[name] = min(RATES[-1], capacity(runs[-1], fraction, SINCE, SECONDS, merging))
    peak = {name: found[name, 64][-1] for name in NAMES}
    tell(PRINTED)
    printed = at_rate(Setup(64, fraction), RIVALS[PRINTED], keys, RATES[-1], SECONDS)
    peak[PRINTED] = min(RATES[-1], capacity(printed, fraction, SINCE, SECONDS))
    paper = (*PAPERS, "dalton")
    checks = (
        Check(
            "dalton: gain of 64 over 8 threads at 5,000 tuples a second, over that at 40,000",
            (found["dalton", 64][0] / found["dalton", 8][0]) / (found["dalton", 64][-1] / found["dalton", 8][-1]),
            high=0.5,
        ),
        Check(
            "dalton on 16 threads at 5,000 tuples a second: share that gets through",
            found["dalton", 16][0] / RATES[0],
            low=0.99,
            why="Combiners emit a partial result for each key of a window every second, whatever the rate. If partial "
            f"results cost nothing, 16 threads could do {free:,.0f} tuples a second here.",
        ),
        Check(
            "64 threads at 40,000 tuples a second: largest share that gets through, of the paper's algorithms",
            max(peak[name] for name in paper) / RATES[-1],
            high=0.999,
        ),
        Check("64 threads at 40,000 tuples a second: least gain of dalton", gains(peak, PAPERS)[0], low=1.0),
        Check(
            "64 threads at 40,000 tuples a second: least gain of dalton with the paper's parameters",
            gains(peak, PAPERS, of=PRINTED)[0],
            low=1.0,
            why=printed_why(peak, PAPERS),
        ),
    )
    return Outcome(
        (
            Scaled("data", "not said", f"{STREAM}, {part(fraction)} of 200,000 keys{longer(fraction)}"),
            Scaled("threads", "not said", "8, 16, 32, 64; an eighth of them reducers"),
            Scaled("rate", "up to 40,000 tuples a second", f"5,000 to 40,000, {part(fraction)} of it simulated"),
            Scaled("windows", "60 s by 1 s", "60 s by 1 s"),
            Scaled("time at a rate", "not said", f"{SECONDS:g} s, the first {SINCE:g} s not counted"),
            of_a_run(RATES[-1], fraction, SECONDS),
            DEFAULTS,
            Scaled("costs", "not said", said()),
        ),
        f"At 5,000 tuples a second dalton gets {found['dalton', 8][0]:,.0f} through on 8 threads and "
        f"{found['dalton', 64][0]:,.0f} on 64; at 40,000 {found['dalton', 8][-1]:,.0f} and {peak['dalton']:,.0f}, hash "
        f"{found['hash', 8][-1]:,.0f} and {peak['hash']:,.0f}.",
        checks,
        (
            *_tables(found),
            gains_by_costs(f"At {RATES[-1]:,.0f} tuples a second and {THREADS[-1]} threads", {"": peaks}),
        ),
        lambda figure: _draw(figure, found),
    )


def _tables(found: dict[tuple[str, int], list[float]]) -> Iterator[Table]:
    for threads in THREADS:
        yield Table(
            f"{threads} threads: tuples a second that get through, by the rate of the input",
            ("", *(f"{rate:,.0f}" for rate in RATES)),
            tuple(_row(name, found[name, threads]) for name in NAMES),
        )


def _row(name: str, rates: list[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)


def _draw(figure: Any, found: dict[tuple[str, int], list[float]]) -> None:
    plots = figure.subplots(1, len(THREADS), sharey=True)
    for axes, threads in zip(plots, THREADS, strict=True):
        shown = {name: [rate / 1000 for rate in found[name, threads]] for name in NAMES}
        y = "1,000 tuples a second" if axes is plots[0] else ""
        lines(axes, [rate / 1000 for rate in RATES], shown, x="input, 1,000 a second", y=y, title=f"{threads} threads")
    legend(figure, plots[0])


FIGURE = Figure(
    "dalton-12",
    "Throughput by the rate of the input",
    "At low rates the number of threads matters less, as few sustain the input; at 40,000 tuples a second no algorithm "
    "sustains it, and each reaches its peak.",
    run,
)
