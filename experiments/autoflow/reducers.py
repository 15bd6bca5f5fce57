"""Runs of a workload without moving, with AutoFlow and with `even`, and their pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from experiments.autoflow.setting import FACTOR, LOAD, SLOTS, WORK, Case, first, rate, stream
from experiments.autoflow.trace import Points, Trace, fixed_cost, in_batches, measured, on_spark, simulated
from experiments.figure import Cell, Check, Scale, Scaled, Table, Tell
from skewless.place import AutoFlow, Even, Placer
from skewless.simulate.dataflow import Batching, Flow, HotSpots, Network, announced, flow
from skewless.simulate.dataflow.engine import Protocol

OFF, AUTOFLOW, EVEN = PLACERS = ("off", "autoflow", "even")
TUPLES, BATCHES, SPARK = "tuple at a time, simulated", "micro-batches, simulated", "Spark"
FONT = "DejaVu Sans"
PERIOD = 1.0
DELAY = 1e-3
"""Seconds of a message in a channel."""
SLOW = 0.5
"""The same in runs that isolate what messages take."""
SHORT = 0.05
"""Seconds of a micro-batch in runs that isolate what micro-batches cost."""
LAG = 0.05
"""Seconds by which each source is behind the one before it."""
SLOWER: dict[Scale, float] = {"small": 1.0, "full": 0.25}
FIXED_COST = 0.3  # seconds of a micro-batch, until it was measured
ENOUGH = 30
"""Micro-batches on Spark with AutoFlow, from which a run can be judged."""
POINTS, PACES, PEAKS, MARKS = 9, 6, 36, 9
"""Points of a reducer's latency, of its throughput, and of the line of peaks, and marks of moves, at most.

A picture is to be committed, so that it has to be small; for the same reason lines have the width and the ends that
SVG has without being told, text names one font, and there are few ticks.
"""


@dataclass(frozen=True, eq=False)
class Runs:
    """A workload: simulated tuple at a time and in micro-batches, and on Spark, each by placer.

    On Spark it may not have been measured, or not with `even`.
    """

    case: Case
    tuples: dict[str, Trace]
    batches: dict[str, Trace]
    spark: dict[str, Trace]


def placer(name: str, window_length: int) -> Placer | None:
    """The placer of this name; None without moving."""
    if name == OFF:
        return None
    return AutoFlow(SLOTS, FACTOR, window_length) if name == AUTOFLOW else Even(SLOTS)


def scheduler(name: str, case: Case, window_length: int) -> HotSpots | None:
    """What decides; None without moving."""
    chosen = placer(name, window_length)
    return None if chosen is None else HotSpots(chosen, case.workers, window_length)


@cache
def run_tuples(
    case: Case,
    name: str,
    work: float,
    protocol: Protocol = "autoflow",
    seed: int = 1,
    delay: float = DELAY,
    at_once: bool = False,
) -> Flow:
    """The workload tuple at a time."""
    network = Network(work, work / 100, delay, tuple(LAG * source for source in range(case.workers)))
    owners = first(case.workers).tail.tolist()
    deciding = scheduler(name, case, case.window_length)
    return flow(stream(case, work, seed), owners, case.workers, network, deciding, PERIOD, protocol, at_once)


@cache
def run_batches(case: Case, name: str, work: float, fixed: float | None = None, seed: int = 1) -> Flow:
    """The workload in micro-batches, by announce, copy, in force: every one is a period, as on Spark."""
    owners = first(case.workers).tail.tolist()
    most = None if case.most is None else round(case.most * rate(case.workers, work))
    batching = Batching(work, fixed=fixed or of_batch(), most=most)
    return announced(stream(case, work, seed), owners, case.workers, batching, scheduler(name, case, 1))


def of_batch() -> float:
    """Seconds of a micro-batch whatever its rows, as measured on Spark."""
    return fixed_cost() or FIXED_COST


def shorter(runs: Runs, kind: str, scale: Scale) -> str:
    """What is left of the longest latency if micro-batches cost less: a run that isolates it."""
    case, work = runs.case, work_of(kind, scale)
    costs = {fixed: [run_batches(case, name, work, fixed) for name in (OFF, AUTOFLOW)] for fixed in (of_batch(), SHORT)}
    peak = {fixed: [in_batches(each, case).peak for each in found] for fixed, found in costs.items()}
    return (
        f"In simulated micro-batches that cost {of_batch():.2f} s whatever their rows, as on Spark, the longest "
        f"latency in {case.off} is {peak[of_batch()][0]:.1f} s and in {case.on} {peak[of_batch()][1]:.1f} s; where "
        f"they cost {SHORT:g} s it is {peak[SHORT][0]:.1f} and {peak[SHORT][1]:.1f} s. A decision reaches the second "
        "micro-batch after the one that it learned from, and micro-batches grow while a reducer is hot."
    )


def work_of(kind: str, scale: Scale) -> float:
    """Seconds of a row in a reducer: on Spark the same at both scales."""
    return WORK if kind == SPARK else WORK * SLOWER[scale]


def run_all(cases: Sequence[Case], scale: Scale, tell: Tell) -> list[Runs]:
    """All workloads."""
    work, found = work_of(TUPLES, scale), []
    for case in cases:
        tuples, batches = {}, {}
        for name in PLACERS:
            tell(f"{case.name}: {name}")
            tuples[name] = simulated(run_tuples(case, name, work), case, PERIOD)
            batches[name] = in_batches(run_batches(case, name, work), case)
        spark = {name: trace for name in PLACERS if (trace := on_spark(case, name)) is not None}
        found.append(Runs(case, tuples, batches, spark if OFF in spark and AUTOFLOW in spark else {}))
    return found


def kinds(runs: Runs) -> dict[str, dict[str, Trace]]:
    """The ways in which a workload was run: simulated as the paper has it and in micro-batches, and on Spark."""
    found = {TUPLES: runs.tuples, BATCHES: runs.batches, SPARK: runs.spark}
    return {kind: traces for kind, traces in found.items() if traces}


def enough(all_runs: Sequence[Runs]) -> list[Check]:
    """Whether every run on Spark has enough micro-batches; nothing if none was measured."""
    there = {runs.case.on: runs.spark[AUTOFLOW] for runs in all_runs if runs.spark}
    if not there:
        return []
    panel = min(there, key=lambda each: len(there[each].ends))
    least = there[panel]
    return [
        Check(
            "Spark: micro-batches with autoflow, the fewest",
            len(least.ends),
            low=ENOUGH,
            essential=False,
            why=f"{panel} was measured for {least.seconds:.0f} s, and half of its micro-batches take more than "
            f"{least.period:.1f} s.",
        )
    ]


def limit(case: Case) -> str:
    """What a micro-batch takes at most."""
    return "no limit" if case.most is None else f"at most the rows of {case.most:g} s"


def setup(cases: Sequence[Case], scale: Scale) -> tuple[Scaled, ...]:
    """What the figures share."""
    work = work_of(TUPLES, scale)
    paces = ", ".join(f"{rate(n, work):,.0f} rows/s with {n}" for n in sorted({case.workers for case in cases}))
    lengths = sorted({case.window_length for case in cases})
    return (
        Scaled("query", "source, map, state[bid.id] += bid.price", "the same"),
        Scaled("workers of each operator", _numbers(cases), _numbers(cases)),
        Scaled(
            "a row in a reducer", "not said", f"{work * 1e3:g} ms, chosen; a wait on Spark, always {WORK * 1e3:g} ms"
        ),
        Scaled("rate", "not said", f"{paces}: reducers with equal loads are busy for {LOAD:.0%} of the time"),
        Scaled("keys", "Nexmark's auctions", f"the same without the generator's own hot auction, in {SLOTS} slots"),
        Scaled(
            "control messages, window_length, factor",
            "not said",
            f"every {PERIOD:g} s, {' and '.join(map(str, lengths))} of them, {FACTOR:g}; "
            "on Spark every micro-batch, 1 of them",
        ),
        Scaled(
            "an instruction to move slots",
            "with the next control message",
            "the same; at once, in a message of its own, only in runs that are named so",
        ),
        Scaled(
            "latency",
            "of every 100th record",
            "the same; in a longest latency, a row that is not done when its time ends counts with what it has waited",
        ),
        Scaled("sources", "not said", f"each {LAG * 1e3:g} ms behind the one before, so that mappers have to wait"),
        Scaled(
            "rows of a micro-batch",
            "none: one tuple at a time",
            f"{' and '.join(dict.fromkeys(limit(case) for case in cases))}, by a limit of the source, so that a hot "
            "reducer's backlog does not make the next micro-batches longer and longer",
        ),
        Scaled("Spark", "Ray, 3 machines with 8 cores", _on_spark(cases)),
    )


def _on_spark(cases: Sequence[Case]) -> str:
    """Which workloads were measured, as not all may have been."""
    found = measured()
    there = [
        f"{case.off} {case.on}"
        for case in cases
        if all(name in found["runs"].get(case.name, ()) for name in (OFF, AUTOFLOW))
    ]
    missing = [f"{case.off} {case.on}" for case in cases if f"{case.off} {case.on}" not in there]
    lacking = f"not measured: {', '.join(missing)}" if missing else ""
    if not there:
        return lacking
    said = f"{found['spark']}, one machine with 2 cores, a task for each worker; measured: {', '.join(there)}"
    return f"{said}; {lacking}" if lacking else said


def _numbers(cases: Sequence[Case]) -> str:
    return " and ".join(str(n) for n in sorted({case.workers for case in cases}))


def longest(runs: Runs, kind: str) -> dict[str, float]:
    """The longest latency by placer, in the time for which rows come in all of the runs."""
    return {name: trace.peak_within(0.0, runs.case.seconds) for name, trace in kinds(runs)[kind].items()}


def peaks(all_runs: Sequence[Runs]) -> Table:
    """The longest latency of each run."""
    rows: list[tuple[Cell, ...]] = []
    for runs in all_runs:
        for kind in kinds(runs):
            found = longest(runs, kind)
            peaks_of = (round(found[name], 2) if name in found else "not measured" for name in PLACERS)
            rows.append((runs.case.name, kind, runs.case.seconds, *peaks_of))
    title = "Longest latency of a sampled row, seconds; one that is not done at the end counts with what it has waited"
    return Table(title, ("workload", "run", "until", *PLACERS), tuple(rows))


def moving(all_runs: Sequence[Runs]) -> Table:
    """Micro-batches on Spark while a placement was announced, by what their own rows bore."""
    rows: list[tuple[Cell, ...]] = []
    for runs in all_runs:
        for name in PLACERS[1:]:
            batches = measured()["runs"].get(runs.case.name, {}).get(name)
            if batches:
                took = np.array([batch["commit"] - batch["began"] for batch in batches])
                work = np.array([max(batch["rows"]) for batch in batches]) * measured()["work"]
                during = np.array([batch["announced"] for batch in batches])
                without = [
                    float(np.median((took - work)[which])) if which.any() else float("nan")
                    for which in (during, ~during)
                ]
                changes = len(runs.spark[name].changed) if runs.spark else 0
                rows.append(
                    (runs.case.name, name, len(batches), changes, int(during.sum()), *(round(b, 2) for b in without))
                )
    return Table(
        "On Spark: placements, and the median seconds of a micro-batch without the time of its busiest worker's rows",
        ("workload", "placer", "micro-batches", "placements", "with one announced", "s during a move", "s otherwise"),
        tuple(rows),
    )


def draw(figure: Any, all_runs: Sequence[Runs]) -> None:
    """Latency by placer, then throughput by placer; a row for each workload and kind of run."""
    lines = [(runs.case, kind, traces) for runs in all_runs for kind, traces in kinds(runs).items()]
    figure.set_size_inches(12.5, 1.15 * len(lines) + 0.8)
    grid = figure.subplots(len(lines), 2 * len(PLACERS), squeeze=False)
    for row, (case, kind, traces) in enumerate(lines):
        top = max(0.1, *(float(late.max()) for trace in traces.values() for _, late in trace.latency if len(late)))
        most = max(float(rates.max()) for trace in traces.values() for _, rates in trace.throughput if len(rates))
        for column, name in enumerate(PLACERS):
            latency, throughput = grid[row][column], grid[row][len(PLACERS) + column]
            if name not in traces:
                latency.set_axis_off()
                throughput.set_axis_off()
                continue
            _draw(latency, traces[name].latency, traces[name].seconds, POINTS)
            _draw_peaks(latency, traces[name])
            _mark(latency, traces[name])
            latency.set_ylim(0, top * 1.05)
            _draw(throughput, traces[name].throughput, traces[name].seconds, PACES)
            throughput.set_ylim(0, most * 1.05)
            if column:  # the scale is that of the first placer: a small file, and panels that can be compared
                for axes in (latency, throughput):
                    axes.tick_params(left=False, labelleft=False)
                    axes.spines["left"].set_visible(False)
        grid[row][0].set_ylabel(f"{case.off} {case.on}\n{kind.partition(',')[0]}", fontsize=7, fontfamily=FONT)
    for axes in grid[:-1].flat:
        axes.tick_params(bottom=False, labelbottom=False)
    for column, name in enumerate(PLACERS * 2):  # the seconds of a column are below it, for all of its panels
        end = max((traces[name].seconds for _case, _kind, traces in lines if name in traces), default=1.0)
        for axes in grid[:, column]:
            axes.set_xlim(0, end)
    for column, title in enumerate([f"{name}: {what}" for what in ("latency, s", "rows/s") for name in PLACERS]):
        grid[0][column].set_title(title, fontsize=9, fontfamily=FONT)
        grid[-1][column].set_xlabel("seconds", fontfamily=FONT)
    most = max(lines, key=lambda line: line[0].workers)[0].workers
    handles = [grid[0][0].plot([], [], color=f"C{worker}", label=f"reducer {worker}")[0] for worker in range(most)]
    handles.append(grid[0][0].plot([], [], color="black", linewidth=0.4, label="longest latency of all reducers")[0])
    handles.append(grid[0][0].plot([], [], "|", color="black", label="state has moved")[0])
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, prop={"family": FONT})


def _draw(axes: Any, lines: Sequence[Points], seconds: float, points: int) -> None:
    axes.tick_params(labelsize=6, labelfontfamily=FONT)
    axes.patch.set_visible(False)
    axes.spines["bottom"].set(linewidth=1.0, capstyle="butt", joinstyle="round")
    axes.grid(visible=False)
    axes.locator_params(nbins=2)
    for worker, (time, value) in enumerate(lines):
        binned = _binned(time, value, seconds, points)
        axes.plot(*binned, color=f"C{worker}", linewidth=1.0, solid_capstyle="butt", clip_on=False)


def _draw_peaks(axes: Any, trace: Trace) -> None:
    """The longest latency of all reducers: the means hide how high a short peak is."""
    time, late = (np.concatenate(each) for each in zip(*trace.latency, strict=True))
    bins, where = np.unique((time * PEAKS / trace.seconds).astype(int), return_inverse=True)
    highest = np.zeros(len(bins))
    np.maximum.at(highest, where, late)
    middle = np.minimum((bins + 0.5) * trace.seconds / PEAKS, trace.seconds)
    axes.plot(middle, highest, color="black", linewidth=0.4, solid_capstyle="butt", clip_on=False)


def _mark(axes: Any, trace: Trace) -> None:
    """When state had moved."""
    if len(trace.moved):
        apart = trace.seconds / MARKS
        inside = np.unique(np.round(trace.moved[trace.moved <= trace.seconds] / apart)) * apart
        marks = np.stack([inside, inside, np.full(len(inside), np.nan)], axis=1).ravel()  # one path is a small file
        heights = np.tile([0.0, 0.06, np.nan], len(inside))
        where = axes.get_xaxis_transform()
        axes.plot(marks, heights, transform=where, color="black", linewidth=0.5, solid_capstyle="butt", clip_on=False)


def _binned(time: Any, value: Any, seconds: float, points: int) -> tuple[Any, Any]:
    """The mean of the points of every bin."""
    if not len(time):
        return time, value
    _bins, where = np.unique((time * points / seconds).astype(int), return_inverse=True)
    counts = np.bincount(where)
    return np.bincount(where, time) / counts, np.bincount(where, value) / counts
