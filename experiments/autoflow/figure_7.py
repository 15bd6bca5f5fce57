"""AutoFlow, Figure 7: a hot spot that wanders, and reducers that are hot in turn."""

from __future__ import annotations

from experiments.autoflow.reducers import (
    AUTOFLOW,
    DELAY,
    OFF,
    PERIOD,
    PLACERS,
    SHORT,
    SLOW,
    SPARK,
    TUPLES,
    Runs,
    draw,
    enough,
    kinds,
    longest,
    moving,
    of_batch,
    peaks,
    run_all,
    run_batches,
    run_tuples,
    setup,
    shorter,
    work_of,
)
from experiments.autoflow.setting import WANDERING, Case
from experiments.autoflow.trace import Trace, in_batches, simulated
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell

GREATLY = 0.5
"""Latency is greatly reduced if it is halved."""
LEFT = 0.5
"""A hot spot is left if its latency is more than this of what it is without moving: if it is not halved."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both workloads."""
    mild, harsh = all_runs = run_all(WANDERING, scale, tell)
    checks: list[Check] = []
    for kind in kinds(mild):
        peak = {
            panel: longest(runs, kind)[name]
            for runs in all_runs
            for panel, name in ((runs.case.off, OFF), (runs.case.on, AUTOFLOW))
        }
        costs = ["" if kind == TUPLES else shorter(runs, kind, scale) for runs in all_runs]
        checks += [
            Check(f"{kind}: longest latency, 7b over 7a", peak["7b"] / peak["7a"], high=0.999, why=costs[0]),
            Check(f"{kind}: longest latency, 7d over 7c", peak["7d"] / peak["7c"], high=0.999, why=costs[1]),
            Check(
                f"{kind}: longest latency, 7d over 7c, greatly reduced",
                peak["7d"] / peak["7c"],
                high=GREATLY,
                essential=False,
                why=costs[1],
            ),
            Check(f"{kind}: longest latency, 7d over 7b", peak["7d"] / peak["7b"], low=1.001, why=" ".join(costs)),
            Check(
                f"{kind}: hot spots left of four, 7b",
                left(mild, kind),
                low=1,
                high=1,
                essential=False,
                why=_slower(mild, scale) if kind == TUPLES else _cheaper(mild, kind, scale),
            ),
            Check(
                f"{kind}: hot spots left of four, 7d",
                left(harsh, kind),
                low=1,
                high=3,
                essential=False,
                why=_slower(harsh, scale) if kind == TUPLES else _cheaper(harsh, kind, scale),
            ),
        ]
    checks += enough(all_runs)
    measured = "".join(
        f" On Spark, with {what}, it is {longest(runs, SPARK)[OFF]:.1f} and {longest(runs, SPARK)[AUTOFLOW]:.1f} s."
        for runs, what in ((mild, "50 %"), (harsh, "80 %"))
        if runs.spark
    )
    return Outcome(
        (
            *setup(WANDERING, scale),
            Scaled("a hot spot stays", "not said", "for 20 s, four of them one after the other"),
        ),
        f"With 50 % that wander, the longest latency is {mild.tuples[OFF].peak:.1f} s without moving and "
        f"{mild.tuples[AUTOFLOW].peak:.1f} s with AutoFlow; with 80 % in turn {harsh.tuples[OFF].peak:.1f} and "
        f"{harsh.tuples[AUTOFLOW].peak:.1f} s.{measured}",
        tuple(checks),
        (peaks(all_runs), _by_spot(all_runs), moving(all_runs)),
        lambda figure: draw(figure, all_runs),
    )


def left(runs: Runs, kind: str) -> int:
    """The hot spots in whose time latency is still high, compared with no moving."""
    traces = kinds(runs)[kind]
    return _left(runs.case, traces[OFF], traces[AUTOFLOW])


def _left(case: Case, off: Trace, on: Trace, anyway: float = 0.0) -> int:
    """The same of two runs, where every row takes so many seconds anyway."""
    spans = [(spot.start, spot.end) for spot in case.spots]
    return sum(on.peak_within(*span) - anyway > LEFT * (off.peak_within(*span) - anyway) for span in spans)


def _slower(runs: Runs, scale: Scale) -> str:
    """The same where messages take longer, so that AutoFlow hears of a hot spot later."""
    case, work = runs.case, work_of(TUPLES, scale)
    off, on = (simulated(run_tuples(case, name, work, delay=SLOW), case, PERIOD) for name in (OFF, AUTOFLOW))
    return (
        "How many are left depends on how soon AutoFlow hears of a hot spot and moves it, which the paper does not "
        f"say. Here a message takes {DELAY * 1e3:g} ms. In a run in which it takes {SLOW:g} s, "
        f"{_left(case, off, on, 2 * SLOW)} of the four hot spots keep half of their latency above the {2 * SLOW:g} s "
        "that every row takes anyway."
    )


def _cheaper(runs: Runs, kind: str, scale: Scale) -> str:
    """The same in simulated micro-batches that cost as much as on Spark, and less."""
    case, work, found = runs.case, work_of(kind, scale), []
    for fixed in (of_batch(), SHORT):
        off, on = (in_batches(run_batches(case, name, work, fixed), case) for name in (OFF, AUTOFLOW))
        found.append(f"{_left(case, off, on)} of the four where they cost {fixed:.2f} s")
    return (
        "A decision reaches the second micro-batch after the one that it learned from. In simulated micro-batches "
        f"AutoFlow leaves {' and '.join(found)} whatever their rows."
    )


def _by_spot(all_runs: list[Runs]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for runs in all_runs:
        for kind, traces in kinds(runs).items():
            for spot in runs.case.spots:
                there = [
                    round(traces[name].peak_within(spot.start, spot.end), 2) if name in traces else "not measured"
                    for name in PLACERS
                ]
                rows.append((runs.case.name, kind, f"{spot.start:g} to {spot.end:g} s, on {spot.workers[0]}", *there))
    return Table(
        "Longest latency while each hot spot lasts, seconds; a row that is not done then counts with its wait",
        ("workload", "run", "hot spot", "off", "autoflow", "even"),
        tuple(rows),
    )


FIGURE = Figure(
    "autoflow-7",
    "Hot spots that wander, by reducer",
    "Where 50 % of the rows wander, AutoFlow reduces the latency of all hot spots but one (7b); where 80 % are on each "
    "reducer in turn, it greatly reduces it, but some hot spots remain (7d).",
    run,
)
