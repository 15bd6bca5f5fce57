"""AutoFlow, Figure 5: hot spots that stay where they are, on three and on five reducers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

import numpy as np

from experiments.autoflow.reducers import (
    AUTOFLOW,
    BATCHES,
    EVEN,
    OFF,
    SHORT,
    SPARK,
    TUPLES,
    Runs,
    draw,
    enough,
    kinds,
    limit,
    moving,
    of_batch,
    peaks,
    run_all,
    run_batches,
    run_tuples,
    setup,
    work_of,
)
from experiments.autoflow.setting import FACTOR, FIXED, START, Case, rate
from experiments.autoflow.trace import WITHIN, Trace, in_batches
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from skewless.simulate.dataflow import Flow

SLIGHT = 2.0
"""A spike is slight if latency is at most so many times what it was before."""
FULL = 0.9
"""The share of the limit's rows from which a micro-batch is as large as the source lets it be."""
LEVEL = 0.005
"""Seconds a second: latency with a smaller slope does not rise."""
PARTS = {TUPLES: 3, BATCHES: 2, SPARK: 2}
"""In so many parts of the hot spot, latency has to rise without moving; there may be few micro-batches."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """All workloads, and one of them by three protocols."""
    all_runs = run_all(FIXED, scale, tell)
    tell("a move by three protocols")
    protocols = {case.name: _protocols(case, work_of(TUPLES, scale)) for case in FIXED}
    checks = [check for runs in all_runs for check in _checks(runs, scale)]
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
    checks += enough(all_runs)
    one = all_runs[0]
    return Outcome(
        (
            *setup(FIXED, scale),
            Scaled("the hot spot begins", "not said; moves are seen at 25 and 30 s", f"at {START:g} s, and stays"),
            Scaled(
                "periods from the move",
                "not said",
                f"from the first move after which loads are within {FACTOR:g} over {WITHIN} periods, which need not be "
                "the first, as a move takes slots from one reducer only; inf if there is none; a table says when it is",
            ),
            Scaled(
                "the migration is a slight spike",
                "by how much is not said",
                f"from the first move until {WITHIN} periods after its state has left, no latency is above "
                f"{SLIGHT:g} times the median of the hot reducers in the period before the move",
            ),
        ),
        f"With 50 % on one of three reducers from {START:g} s on, its latency is {one.tuples[OFF].peak:.1f} s after "
        f"{one.case.seconds:g} s without moving and rises; with AutoFlow no row takes longer than "
        f"{one.tuples[AUTOFLOW].peak:.1f} s, with even {one.tuples[EVEN].peak:.1f} s. With 80 % it is "
        f"{all_runs[1].tuples[OFF].peak:.0f}, {all_runs[1].tuples[AUTOFLOW].peak:.1f} and "
        f"{all_runs[1].tuples[EVEN].peak:.1f} s: state leaves only behind the giver's queue. In all four, AutoFlow "
        f"keeps {kept['AutoFlow']:,} rows, a global barrier {kept['barrier']:,}, and announce, copy, in force none by "
        "construction, as its rows wait for micro-batches instead. "
        "Micro-batches have latency of their own: where they cost as much as on Spark, and all rows are waited for, "
        f"the longest latency of {one.case.on} is {mild['announce']:.1f} s, {mild['batches']:.1f} s without moving and "
        f"{mild['calm']:.1f} s without a hot spot; that of {most.case.on} is {harsh['announce']:.1f} s, and "
        f"{harsh['batches']:.1f} s without moving.",
        tuple(checks),
        (peaks(all_runs), _when(all_runs), _table(protocols), _isolated(all_runs, scale), moving(all_runs)),
        lambda figure: draw(figure, all_runs),
    )


def _checks(runs: Runs, scale: Scale) -> Sequence[Check]:
    found: list[Check] = []
    case = runs.case
    for kind, traces in kinds(runs).items():
        rising = min(traces[OFF].rising(worker, PARTS[kind], case.start) for worker in case.hot)
        found.append(
            Check(f"{case.off}, {kind}: smallest slope of a hot reducer's latency, s a second", rising, low=LEVEL)
        )
        found.append(
            Check(
                f"{case.off}, {kind}: throughput of hot reducers over the others', in the last third",
                traces[OFF].over_others(case.hot),
                low=1.05,
            )
        )
        found.append(
            Check(
                f"{case.on}, {kind}: longest latency during the first move over the median before it",
                traces[AUTOFLOW].over_before(case.hot, case.start),
                low=1,
                high=SLIGHT,
                essential=False,
                why=_backlog(traces, case),
            )
        )
        for name in (AUTOFLOW, EVEN):
            if name not in traces:
                continue
            panel, trace = case.on if name == AUTOFLOW else f"{case.on} by even", traces[name]
            periods = trace.until_no_rise(case.hot, case.start)
            why = _never(trace, case) + (room(case, trace) if kind == SPARK else "")
            why += "" if kind == TUPLES else _longer(runs.case, name, work_of(kind, scale))
            found += [
                Check(
                    f"{panel}, {kind}: periods from the move until no hot reducer's latency rises",
                    periods,
                    high=WITHIN,
                    essential=name == AUTOFLOW,
                    why=why,
                ),
                Check(
                    f"{panel}, {kind}: largest slope of a hot reducer's latency in the last third, s a second",
                    trace.trend(case.hot),
                    high=LEVEL,
                    essential=name == AUTOFLOW,
                    why=why,
                ),
                Check(
                    f"{panel}, {kind}: difference of loads over the largest, in the last third",
                    trace.spread,
                    high=FACTOR,
                    essential=name == AUTOFLOW,
                    why=why,
                ),
                Check(
                    f"{panel}, {kind}: throughput of hot reducers over the others', in the last third",
                    trace.over_others(case.hot),
                    low=1 - FACTOR,
                    high=1 / (1 - FACTOR),
                    essential=False,
                    why=why,
                ),
            ]
    return found


def _when(all_runs: Sequence[Runs]) -> Table:
    """When state moved first, and when the move came after which loads are level."""
    rows: list[tuple[Cell, ...]] = []
    for runs in all_runs:
        start = runs.case.start
        for kind, traces in kinds(runs).items():
            for name in (AUTOFLOW, EVEN):
                if name in traces:
                    trace = traces[name]
                    number = trace.settled(start)
                    changes = trace.changed[trace.changed >= start]
                    moves = len(changes) if number is None else int((trace.changed[: number + 1] >= start).sum())
                    rows.append(
                        (
                            runs.case.name,
                            kind,
                            name,
                            round(float(changes[0]) - start, 1) if len(changes) else "never",
                            "never" if number is None else round(float(trace.changed[number]) - start, 1),
                            moves,
                            round(trace.period, 1),
                        )
                    )
    return Table(
        "Seconds from the beginning of the hot spot to moves",
        (
            "workload",
            "run",
            "placer",
            "to the first move",
            "to the move after which loads are level",
            "moves until then",
            "median seconds of a period",
        ),
        tuple(rows),
    )


def _backlog(traces: dict[str, Trace], case: Case) -> str:
    """How much of the spike is there without the migration: the same time in the run without moving isolates that."""
    on, off = traces[AUTOFLOW], traces[OFF]
    changes = np.flatnonzero(on.changed >= case.start)
    if not len(changes):
        return "There was no move after the hot spot had begun."
    start, end = on.changed[changes[0]], max(on.moved[changes[0]], on.changed[changes[0]]) + WITHIN * on.period
    return (
        "The rows that came to a hot reducer before the move are done before its state leaves, and "
        f"latency rises meanwhile. The run without moving isolates that: from {start:.0f} to {end:.0f} s its longest "
        f"latency is {off.peak_within(start, end):.1f} s, and with AutoFlow {on.peak_within(start, end):.1f} s."
    )


def _never(trace: Trace, case: Case) -> str:
    """Why there is no period to count from, if there is none."""
    if trace.settled(case.start) is not None:
        return ""
    if not any(trace.changed >= case.start):
        return "No placement came while the hot spot lasted. "
    if not trace.seen(case.start):
        return "The run ended before a placement could be judged. "
    return "No placement brought the loads within the factor before the run ended. "


def room(case: Case, trace: Trace) -> str:
    """How fast a backlog goes down: what micro-batches of as many rows as the source gives take, when loads are level.

    Empty if there are none.
    """
    took = np.diff(trace.ends, prepend=0.0)
    came = trace.rows.sum(axis=1) / rate(case.workers)
    full = (trace.ends > trace.seconds * 2 / 3) & (came >= FULL * (case.most or np.inf))
    if not full.any():
        return ""
    took_of, came_of = float(np.median(took[full])), float(np.median(came[full]))
    gains = 1 - took_of / came_of
    falls = f"goes down by {gains:.0%} of the time" if gains >= 0.005 else "does not go down"
    return (
        f"In the last third {int(full.sum())} micro-batches are as large as the source lets them be: they have the "
        f"rows of {came_of:.1f} s and take {took_of:.1f} s, so that a backlog {falls}. "
    )


def _isolating(case: Case, name: str, work: float) -> dict[str, Trace]:
    """Simulated runs in micro-batches that differ in what one costs, and in whether the source has a limit."""
    fixed, free = of_batch(), replace(case, most=None)
    kinds_of = {
        f"{fixed:.2f} s each, {limit(case)}": (case, fixed),
        _without(): (free, fixed),
        _cheap(): (free, SHORT),
    }
    return {how: in_batches(run_batches(each, name, work, cost), each) for how, (each, cost) in kinds_of.items()}


def _without() -> str:
    return f"{of_batch():.2f} s each, no limit"


def _cheap() -> str:
    return f"{SHORT:g} s each, no limit"


def _longer(case: Case, name: str, work: float) -> str:
    """What isolates it: the same without a limit, and in micro-batches that cost less."""
    found = _isolating(case, name, work)
    told = "; ".join(f"{how}: {_settles(found[how], case)}" for how in (_without(), _cheap()))
    return (
        "A decision reaches the second micro-batch after the one that it learned from, and micro-batches are long as "
        "long as a reducer is hot, up to the limit of the source. Runs in simulated micro-batches isolate that, with "
        f"the same workload and placer, and a table below has them all. {told}."
    )


def _settles(trace: Trace, case: Case) -> str:
    """What is checked of a run, in words."""
    periods = trace.until_no_rise(case.hot, case.start)
    if trace.settled(case.start) is None:
        since = "the loads never come within the factor"
    elif isinf(periods):
        since = "the loads come within the factor, and latency still rises"
    else:
        since = f"no rise {periods:g} periods after a move"
    return (
        f"{since}, slope {trace.trend(case.hot):+.3f} s a second and loads {trace.spread:.2f} apart in the last third"
    )


def _isolated(all_runs: Sequence[Runs], scale: Scale) -> Table:
    """The same as a table."""
    rows: list[tuple[Cell, ...]] = []
    for runs in all_runs:
        case = runs.case
        for name in (AUTOFLOW, EVEN):
            for how, trace in _isolating(case, name, work_of(BATCHES, scale)).items():
                periods = trace.until_no_rise(case.hot, case.start)
                shown: Cell = "never" if isinf(periods) else periods
                rows.append(
                    (
                        case.name,
                        name,
                        how,
                        shown,
                        round(trace.trend(case.hot), 3),
                        round(trace.spread, 2),
                        round(trace.peak, 1),
                    )
                )
    return Table(
        "What micro-batches do to it, simulated: they cost so much each, whatever their rows, and the source may have "
        "a limit",
        (
            "workload",
            "placer",
            "micro-batches",
            "periods from the move that levels the loads",
            "slope of the hot reducers in the last third",
            "loads apart there",
            "longest latency, s",
        ),
        tuple(rows),
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
        "The placer AutoFlow by three protocols, and what micro-batches take without a move, simulated; "
        "in micro-batches no row is kept, by construction",
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
