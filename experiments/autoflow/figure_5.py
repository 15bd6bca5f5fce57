"""AutoFlow, Figure 5: hot spots that stay where they are, on three and on five reducers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

import numpy as np

from experiments.autoflow.reducers import (
    AUTOFLOW,
    BATCHES,
    EVEN,
    OFF,
    SHORT,
    SLOWER,
    SPARK,
    TUPLES,
    Runs,
    draw,
    kinds,
    moving,
    of_batch,
    peaks,
    run_all,
    run_batches,
    run_tuples,
    setup,
)
from experiments.autoflow.setting import FACTOR, FIXED, START, WORK, Case
from experiments.autoflow.trace import WITHIN, in_batches
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from skewless.simulate.dataflow import Flow

PARTS = {TUPLES: 3, BATCHES: 2, SPARK: 2}
"""In so many parts of the hot spot, latency has to rise without moving; there may be few micro-batches."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """All workloads, and one of them by three protocols."""
    all_runs = run_all(FIXED, scale, tell)
    tell("a move by three protocols")
    protocols = {case.name: _protocols(case, WORK * SLOWER[scale]) for case in FIXED}
    checks = [check for runs in all_runs for check in _checks(runs)]
    longest = {
        name: {how: float(found.latency.max()) for how, found in by_protocol.items()}
        for name, by_protocol in protocols.items()
    }
    most = max(all_runs, key=lambda runs: longest[runs.case.name]["announce"])
    mild, harsh = longest[all_runs[0].case.name], longest[most.case.name]
    kept = {how: sum(found[how].kept for found in protocols.values()) for how in next(iter(protocols.values()))}
    checks.append(
        Check(
            "rows that AutoFlow keeps over those that a global barrier holds",
            kept["AutoFlow"] / kept["barrier"],
            high=0.5,
        )
    )
    one = all_runs[0]
    return Outcome(
        (
            *setup(FIXED, scale),
            Scaled("the hot spot begins", "not said; moves are seen at 25 and 30 s", f"at {START:g} s, and stays"),
        ),
        f"With 50 % on one of three reducers from {START:g} s on, its latency is {one.tuples[OFF].peak:.1f} s after "
        f"{one.case.seconds:g} s without moving and rises; with AutoFlow no row takes longer than "
        f"{one.tuples[AUTOFLOW].peak:.1f} s, with even {one.tuples[EVEN].peak:.1f} s. With 80 % it is "
        f"{all_runs[1].tuples[OFF].peak:.0f}, {all_runs[1].tuples[AUTOFLOW].peak:.1f} and "
        f"{all_runs[1].tuples[EVEN].peak:.1f} s: state leaves only behind the giver's queue. In all four, AutoFlow "
        f"keeps {kept['AutoFlow']:,} rows, a global barrier {kept['barrier']:,}, and announce, copy, in force none. "
        "Micro-batches have latency of their own: where they cost as much as on Spark, and all rows are waited for, "
        f"the longest latency of {one.case.on} is {mild['announce']:.1f} s, {mild['batches']:.1f} s without moving and "
        f"{mild['calm']:.1f} s without a hot spot; that of {most.case.on} is {harsh['announce']:.1f} s, and "
        f"{harsh['batches']:.1f} s without moving.",
        tuple(checks),
        (peaks(all_runs), _table(protocols), moving(all_runs)),
        lambda figure: draw(figure, all_runs),
    )


def _checks(runs: Runs) -> Sequence[Check]:
    found: list[Check] = []
    case = runs.case
    for kind, traces in kinds(runs).items():
        rising = min(traces[OFF].rising(worker, PARTS[kind], case.start) for worker in case.hot)
        found.append(
            Check(f"{case.off}, {kind}: smallest slope of a hot reducer's latency, s a second", rising, low=0.005)
        )
        for name in (AUTOFLOW, EVEN):
            if name not in traces:
                continue
            panel, trace = case.on if name == AUTOFLOW else f"{case.on} by even", traces[name]
            periods, why = trace.until_no_rise(case.hot, case.start), ""
            if kind != TUPLES:
                never = "No placement brings the loads within the factor. " if isnan(periods) else ""
                why = never + _longer(runs, name)
            found += [
                Check(
                    f"{panel}, {kind}: periods from the move until no hot reducer's latency rises",
                    periods,
                    high=WITHIN,
                    essential=name == AUTOFLOW,
                    why=why,
                ),
                Check(
                    f"{panel}, {kind}: difference of loads over the largest, in the last third",
                    trace.spread,
                    high=FACTOR,
                    essential=name == AUTOFLOW,
                    why="" if kind == TUPLES else f"The same as for the latency of {panel}.",
                ),
            ]
    return found


def _longer(runs: Runs, name: str) -> str:
    """The same in micro-batches that cost less, and in micro-batches without a hot spot."""
    case, without = runs.case, replace(runs.case, spots=())
    calm = in_batches(run_batches(without, OFF, WORK), without)
    same = in_batches(run_batches(case, name, WORK), case)
    short = in_batches(run_batches(case, name, WORK, SHORT), case)
    return (
        "A micro-batch has the rows that came during the one before, so that one which a hot reducer makes long brings "
        "the next one more rows, and a decision reaches the second one after it. Simulated runs isolate that: the "
        f"same workload and placer in micro-batches that cost {of_batch():.2f} s each whatever their rows, as on "
        f"Spark, has a longest latency of {same.peak:.1f} s, and loads are {same.spread:.2f} apart in the last third. "
        f"Where they cost {SHORT:g} s it is {short.peak:.1f} s and {short.spread:.2f}. Without a hot spot and a move, "
        f"the longest latency is {calm.peak:.1f} s at {of_batch():.2f} s each."
    )


def _protocols(case: Case, work: float) -> dict[str, Flow]:
    return {
        "AutoFlow": run_tuples(case, AUTOFLOW, work),
        "barrier": run_tuples(case, AUTOFLOW, work, "barrier"),
        "announce": run_batches(case, AUTOFLOW, work),
        "batches": run_batches(case, OFF, work),
        "calm": run_batches(replace(case, spots=()), OFF, work),
    }


_NAMES = {
    "AutoFlow": "AutoFlow's, as printed",
    "barrier": "a global barrier",
    "announce": "micro-batches: announce, copy, in force",
    "batches": "micro-batches, nothing moves",
    "calm": "micro-batches, no hot spot, nothing moves",
}


def _table(protocols: dict[str, dict[str, Flow]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for case, by_protocol in protocols.items():
        for how, found in by_protocol.items():
            kept = found.held[found.held > 0]
            rows.append(
                (
                    case,
                    _NAMES[how],
                    len(found.moves),
                    found.kept,
                    round(float(kept.max()), 2) if len(kept) else 0,
                    round(float(np.median(found.latency)), 2),
                    round(float(np.quantile(found.latency, 0.99)), 2),
                    round(float(found.latency.max()), 2),
                )
            )
    columns = ("workload", "protocol", "moves", "rows kept", "longest kept, s", "median latency, s", "99 %", "longest")
    return Table(
        "The placer AutoFlow by three protocols, and what micro-batches take without a move, simulated",
        columns,
        tuple(rows),
    )


FIGURE = Figure(
    "autoflow-5",
    "Hot spots that stay, by reducer",
    "Without moving state, the hot reducers' latency rises throughout, and their throughput is above that of the "
    "others; with AutoFlow it stops rising after the migration, which itself is a slight spike, and loads are "
    "balanced.",
    run,
)
