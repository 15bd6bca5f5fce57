"""AutoFlow, Figure 5: hot spots that stay where they are, on three and on five reducers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments.autoflow.reducers import (
    AUTOFLOW,
    EVEN,
    FIXED_COST,
    OFF,
    SLOWER,
    Runs,
    draw,
    kinds,
    moving,
    peaks,
    run_all,
    run_batches,
    run_tuples,
    setup,
)
from experiments.autoflow.setting import FACTOR, FIXED, WORK, Case
from experiments.autoflow.trace import WITHIN, fixed_cost, in_batches
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Table, Tell
from skewless.simulate.dataflow import Flow

PARTS = {"simulated": 3, "Spark": 2}
"""In so many parts of a run, latency has to rise without moving; on Spark a run may have few micro-batches."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """All workloads, and one of them by three protocols."""
    all_runs = run_all(FIXED, scale, tell)
    tell("a move by three protocols")
    protocols = {case.name: _protocols(case, WORK * SLOWER[scale]) for case in FIXED}
    checks = [check for runs in all_runs for check in _checks(runs)]
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
        setup(FIXED, scale),
        f"With 50 % on one of three reducers, its latency is {one.tuples[OFF].peak:.1f} s after {one.case.seconds:g} s "
        f"without moving and rises; with AutoFlow no row takes longer than {one.tuples[AUTOFLOW].peak:.1f} s, with "
        f"even {one.tuples[EVEN].peak:.1f} s. With 80 % it is {all_runs[1].tuples[OFF].peak:.0f}, "
        f"{all_runs[1].tuples[AUTOFLOW].peak:.1f} and {all_runs[1].tuples[EVEN].peak:.1f} s: state leaves only behind "
        f"the giver's queue. In all four, AutoFlow keeps {kept['AutoFlow']:,} rows, a global barrier "
        f"{kept['barrier']:,}, and announce, copy, in force none.",
        tuple(checks),
        (peaks(all_runs), _table(protocols), moving(all_runs)),
        lambda figure: draw(figure, all_runs),
    )


def _checks(runs: Runs) -> Sequence[Check]:
    found: list[Check] = []
    case = runs.case
    for kind, traces in kinds(runs).items():
        rising = min(traces[OFF].rising(worker, PARTS[kind]) for worker in case.hot)
        found.append(
            Check(f"{case.off}, {kind}: smallest slope of a hot reducer's latency, s a second", rising, low=0.005)
        )
        for name in (AUTOFLOW, EVEN):
            panel, trace = case.on if name == AUTOFLOW else f"{case.on} by even", traces[name]
            found += [
                Check(
                    f"{panel}, {kind}: periods from the move until no hot reducer's latency rises",
                    trace.until_no_rise(case.hot),
                    high=WITHIN,
                    essential=name == AUTOFLOW,
                    why=_longer(runs.case, name) if kind == "Spark" else "",
                ),
                Check(
                    f"{panel}, {kind}: difference of loads over the largest, in the last third",
                    trace.spread,
                    high=FACTOR,
                    essential=name == AUTOFLOW,
                ),
            ]
    return found


def _longer(case: Case, name: str) -> str:
    """Micro-batches that follow each other grow until they are as long as their own rows take; hot spots or none."""
    calm = replace(case, spots=())
    alone = in_batches(run_batches(calm, OFF, WORK), calm)
    same = in_batches(run_batches(case, name, WORK), case)
    grown = max(alone.rises_for(worker, 0.0) for worker in range(case.workers))
    return (
        "Micro-batches follow each other, so each has the rows that came during the one before, and they grow until "
        "what they take is what they bring. A simulated run isolates that: without any hot spot and without moving, "
        f"latency rises for {grown:g} micro-batches from the start, to {alone.peak:.1f} s. On Spark the move came "
        "early, while micro-batches were still shorter than that. The simulated run with this hot spot and this placer "
        f"does not show it: its longest latency is {same.peak:.1f} s, and after the move it rises for "
        f"{same.until_no_rise(case.hot):g} micro-batches. Both have the {fixed_cost() or FIXED_COST:.2f} s that a "
        "micro-batch costs on Spark whatever its rows."
    )


def _protocols(case: Case, work: float) -> dict[str, Flow]:
    return {
        "AutoFlow": run_tuples(case, AUTOFLOW, work),
        "barrier": run_tuples(case, AUTOFLOW, work, "barrier"),
        "announce": run_batches(case, AUTOFLOW, work),
    }


_NAMES = {"AutoFlow": "AutoFlow's, as printed", "barrier": "a global barrier", "announce": "announce, copy, in force"}


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
    return Table("The placer AutoFlow by three protocols, simulated", columns, tuple(rows))


FIGURE = Figure(
    "autoflow-5",
    "Hot spots that stay, by reducer",
    "Without moving state, the hot reducers' latency rises throughout, and their throughput is above that of the "
    "others; with AutoFlow it stops rising after the migration, which itself is a slight spike, and loads are "
    "balanced.",
    run,
)
