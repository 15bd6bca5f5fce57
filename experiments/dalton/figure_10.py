"""Dalton, Figure 10: what the statistics cost by a map and by a sketch, and what more hot keys cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.costs import MULTIPLES, said, work
from experiments.dalton.hot_keys import Routed, route, throughput
from experiments.dalton.statistics import MODES, Cost, costs
from experiments.dalton.word_count import MINUTE, PEAK, SEARCHED, THIRDS, TOLERANCE, Setup, of_a_run, part
from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import lines
from skewless.workload import Zipf

TUPLES: dict[Scale, int] = {"small": 10_000_000, "full": 100_000_000}
REPEATS: dict[Scale, int] = {"small": 2, "full": 1}
WINDOWS: dict[Scale, tuple[int, ...]] = {
    "small": (10_000, 100_000, 1_000_000, 10_000_000),
    "full": (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
}
KEYS = 1_000_000
LATER = 200_000  # keys from which the sketch is faster on this machine, more or less
ROUTED: dict[Scale, int] = {"small": 3_000_000, "full": 30_000_000}
ROUTED_KEYS = 100_000
WORKERS = 56  # of the paper's 64 threads, 8 are reducers
HOT = (1, 2, 4, 8, 16, 64, 256, 600)
PAPERS = HOT.index(4)
FEWER = tuple(HOT.index(number) for number in (1, 4, 16, 600))  # with other costs
SHAPES = {"60 s by 1 s": MINUTE, "60 s by 20 s": THIRDS}
SEEDS = (0, 1, 2)  # of the stream: which rate is found varies by more than the tolerance of a search
FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
TIMES = 120.0, 80.0  # seconds at a rate, and those that do not count


def run(scale: Scale, tell: Tell) -> Outcome:
    """Count uniform and Zipf streams by each structure, and route a Zipf stream with ever more hot keys."""
    tuples, windows = TUPLES[scale], WINDOWS[scale]
    uniform, zipf = (costs(Zipf(s, KEYS), tuples, windows, REPEATS[scale], tell) for s in (0.0, 1.0))
    later = costs(Zipf(0.0, KEYS), tuples, windows[:2], REPEATS[scale], tell, switch_at=LATER)
    routed = route(Zipf(1.0, ROUTED_KEYS), ROUTED[scale], WORKERS, HOT, 2, tell)
    slower = [each.nanoseconds / routed[PAPERS].nanoseconds for each in routed]
    by_seed: dict[str, list[list[float]]] = {}
    for name, shape in SHAPES.items():
        there = Setup(64, FRACTION[scale], shape)
        by_seed[name] = [throughput(there, _stream(there, seed), HOT, slower, TIMES, tell) for seed in SEEDS]
    free = {name: _free(Setup(64, FRACTION[scale], SHAPES[name]), found, tell) for name, found in by_seed.items()}
    by_shape = {name: [float(rate) for rate in np.mean(found, axis=0)] for name, found in by_seed.items()}
    sustained, bottleneck = by_shape.values()
    by_costs = {
        shape: _by_costs(Setup(64, FRACTION[scale], windows), slower, known, tell)
        for (shape, windows), known in zip(SHAPES.items(), (found[0] for found in by_seed.values()), strict=True)
    }
    whole = WORKERS * float(Zipf(1.0, ROUTED_KEYS).frequencies[HOT[PAPERS]])

    def combined(each: Routed) -> float:
        return WORKERS / (each.imbalance * work(60, slower=1.0).tuple) / 1e6

    missed = [
        switch.seconds / min(a.seconds, b.seconds)
        for switch, a, b in zip(uniform["switch"], uniform["map"], uniform["sketch"], strict=True)
    ]
    kept = max(switch.seconds / each.seconds for switch, each in zip(later["switch"], later["map"], strict=True))
    sketch = [cost.seconds for cost in uniform["sketch"]]
    checks = (
        Check("10a: time of the sketch, the most over the least", max(sketch) / min(sketch), high=1.25),
        Check("10a: time of the map, the largest statistics window over the smallest", _growth(uniform), low=1.5),
        Check("10a: time of the map over the sketch, the smallest window", _over(uniform, 0), high=1.0),
        Check("10a: time of the map over the sketch, the largest window", _over(uniform, -1), low=1.0),
        Check(
            "10b: growth of the map's time under Zipf over that under uniform",
            _growth(zipf) / _growth(uniform),
            high=0.8,
        ),
        Check("10a: memory of the map over the sketch, the largest window", _memory(uniform), low=10),
        Check(
            "10a: time of the switch over the better of the two, the most of all windows",
            max(missed),
            high=1.25,
            essential=False,
            why=_switching(missed, windows, tuples, kept),
        ),
        Check(
            "10c: latency with the most hot keys over that with 4",
            routed[-1].nanoseconds / routed[PAPERS].nanoseconds,
            low=1.2,
        ),
        *(
            check
            for shape, rates in by_shape.items()
            for check in throughput_checks(shape, rates, why_rates(by_seed[shape], free[shape], routed))
        ),
        Check(
            "10c: imbalance with 1 hot key over that with 4", routed[0].imbalance / routed[PAPERS].imbalance, low=1.5
        ),
        Check(
            "10c: imbalance with 4 hot keys over the least",
            routed[PAPERS].imbalance / min(each.imbalance for each in routed),
            high=1.2,
            essential=False,
            why="By the paper's threshold, a fair share of a worker, keys just below it stay whole. The first of them "
            f"has {whole:.2f} times a fair share here, and its worker has a part of the tail besides. That more hot "
            "keys lower the throughput in the paper needs a partitioner that is the bottleneck: one sustains "
            f"{1e3 / routed[-1].nanoseconds:.2f} million tuples a second here with {routed[-1].hot} hot keys, and "
            f"{WORKERS} combiners that take as long as on Spark, with 60 windows a tuple, "
            f"{combined(routed[PAPERS]):.2f} million with 4 hot keys and {combined(routed[-1]):.2f} million with the "
            "most.",
        ),
    )
    return Outcome(
        (
            Scaled("tuples of the window (10a, b)", "100,000,000", f"{tuples:,}"),
            Scaled("STATS_WIN, tuples", "a curve without numbers in the text", f"{windows[0]:,} to {windows[-1]:,}"),
            Scaled("keys, Zipf exponent (10b)", "100,000 to 1,000,000, not said", f"{KEYS:,}, 1.0"),
            Scaled("workers n (10c)", "64 threads", f"{WORKERS} combiners"),
            Scaled("dalton (10c)", "its parameters", "the paper's parameters, with a threshold for so many hot keys"),
            Scaled("tuples (10c), Zipf exponent", "not said, 1.0", f"{ROUTED[scale]:,}, 1.0"),
            Scaled(
                "end-to-end throughput (10c)",
                "measured, windows not said",
                f"simulated: 64 threads, windows of 60 s by 1 s and by 20 s, {round(ROUTED_KEYS * FRACTION[scale]):,} "
                f"keys and {part(FRACTION[scale])} of the rate, {TIMES[0]:g} s, the "
                f"mean of {len(SEEDS)} streams; routing takes longer as measured here",
            ),
            of_a_run(max(*sustained, *bottleneck), FRACTION[scale], TIMES[0]),
            SEARCHED,
            Scaled("costs (10c)", "not said", said()),
        ),
        f"With uniform keys the map takes {_over(uniform, 0):.2f} times the sketch's time at windows of {windows[0]:,} "
        f"tuples and {_over(uniform, -1):.2f} times at {windows[-1]:,}; under Zipf {_over(zipf, 0):.2f} and "
        f"{_over(zipf, -1):.2f}. From 4 to {routed[-1].hot} hot keys a tuple takes {routed[PAPERS].nanoseconds:.0f} to "
        f"{routed[-1].nanoseconds:.0f} ns. " + _told_rates(by_shape),
        checks,
        (
            _table("10a: uniform", windows, uniform),
            _table("10b: Zipf 1.0", windows, zipf),
            _table(f"10a with a switch at {LATER:,} keys", windows[:2], later),
            Table(
                "10c: the paper's Dalton by the number of hot keys, Zipf 1.0",
                ("hot keys", "ns a tuple", "largest load over the mean", "workers that hold a key, mean"),
                tuple((each.hot, each.nanoseconds, each.imbalance, each.fragments) for each in routed),
            ),
            Table(
                "10c: tuples a second that are sustained, by about how many keys are hot",
                ("hot keys", "windows of 60 s by 1 s", "60 s by 20 s, where the partitioner is the bottleneck"),
                tuple(
                    (number, *(Measured.of([rates[at] for rates in found]) for found in by_seed.values()))
                    for at, number in enumerate(HOT)
                ),
            ),
            Table(
                "10c: the same by the costs of merging, the first stream",
                ("hot keys", *(f"{shape}, merging x {merging:g}" for shape in SHAPES for merging in MULTIPLES)),
                tuple(
                    (HOT[at], *(round(by_costs[shape][merging][i]) for shape in SHAPES for merging in MULTIPLES))
                    for i, at in enumerate(FEWER)
                ),
            ),
        ),
        lambda figure: _draw(figure, windows, uniform, zipf, routed),
    )


def _by_costs(setup: Setup, slower: list[float], known: list[float], tell: Tell) -> dict[float, list[float]]:
    """The rates by multiples of the costs of merging; those of the measured costs are known."""
    found = {}
    for merging in MULTIPLES:
        tell(f"merging costs {merging:g} times as much")
        starts = [known[at] for at in FEWER]
        found[merging] = (
            starts
            if merging == 1
            else throughput(
                replace(setup, merging=merging),
                _stream(setup),
                [HOT[at] for at in FEWER],
                [slower[at] for at in FEWER],
                TIMES,
                tell,
                starts,
            )
        )
    return found


def throughput_checks(shape: str, rates: list[float], why: str) -> tuple[Check, Check]:
    """Whether 4 hot keys are the best, and whether more of them lower the rate; rates are found to a tolerance."""
    return (
        Check(
            f"10c, {shape}: rate with 4 hot keys over the best", rates[PAPERS] / max(rates), low=1 - TOLERANCE, why=why
        ),
        Check(
            f"10c, {shape}: rate with 4 hot keys over that with {HOT[-1]}",
            rates[PAPERS] / rates[-1],
            low=1 + TOLERANCE,
            why=why,
        ),
    )


def _stream(setup: Setup, seed: int = 0) -> Zipf:
    return Zipf(1.0, round(ROUTED_KEYS * setup.fraction), seed=seed)


def _free(setup: Setup, known: list[list[float]], tell: Tell) -> dict[int, float]:
    """The mean rates by numbers of hot keys if routing a tuple took no time, found from the same rates on."""
    best = HOT.index(_best([float(rate) for rate in np.mean(known, axis=0)]))
    at = sorted({PAPERS, best, len(HOT) - 1})
    found = []
    for seed, rates in zip(SEEDS, known, strict=True):
        starts = [rates[each - 1] if each else PEAK for each in at]
        numbers = [HOT[each] for each in at]
        found.append(throughput(setup, _stream(setup, seed), numbers, [0.0] * len(at), TIMES, tell, starts))
    return {HOT[each]: float(rate) for each, rate in zip(at, np.mean(found, axis=0), strict=True)}


def why_rates(by_seed: list[list[float]], free: dict[int, float], routed: list[Routed]) -> str:
    """The rates with their errors over streams, what they would be if routing were free, and the imbalance."""
    measured = [Measured.of(rates) for rates in zip(*by_seed, strict=True)]
    rates = [each.mean for each in measured]
    found = ", ".join(
        f"{measured[at].mean:,.0f} (± {measured[at].error:,.0f}) with {HOT[at]}" for at in map(HOT.index, free)
    )
    apart = [
        f"{over.mean:,.0f} (± {over.error:,.0f}) above that with {HOT[other]}"
        for other in (HOT.index(_best(rates)), len(HOT) - 1)
        if other != PAPERS
        for over in [Measured.of([each[PAPERS] - each[other] for each in by_seed])]
    ]
    return (
        f"The rates are {found} hot keys, means of {len(by_seed)} streams and their standard errors. Stream by stream, "
        f"that with 4 is {' and '.join(apart)}. If routing took no time, they would be "
        + ", ".join(f"{rate:,.0f}" for rate in free.values())
        + ": where that changes a rate the partitioner is the bottleneck, and elsewhere combiners or reducers are. "
        f"With 4 hot keys the busiest combiner has {routed[PAPERS].imbalance:.2f} times the average, and with "
        f"{_best(rates)} hot keys {routed[HOT.index(_best(rates))].imbalance:.2f} times: keys just below the threshold "
        "stay whole."
    )


def _told_rates(by_shape: dict[str, list[float]]) -> str:
    """The rates with 4 hot keys beside the best and those with the most."""
    return " ".join(
        f"With windows of {shape} the throughput is highest with {_best(rates)} hot keys, {max(rates):,.0f} tuples a "
        f"second; with 4 it is {rates[PAPERS]:,.0f}, and with {HOT[-1]} it is {rates[-1]:,.0f}."
        for shape, rates in by_shape.items()
    )


def _best(rates: list[float]) -> int:
    """The number of hot keys with the highest rate."""
    return HOT[rates.index(max(rates))]


def _switching(missed: list[float], windows: tuple[int, ...], tuples: int, kept: float) -> str:
    """Why the switch is slower than the better of the two."""
    by_window = ", ".join(f"{each:.2f} at {window:,} tuples" for each, window in zip(missed, windows, strict=True))
    return (
        f"It is {by_window}. The switch goes to the sketch after a window with 8,192 keys or more. Where the map is "
        f"faster with that many keys, this is too early: told to switch at {LATER:,} keys, it takes {kept:.2f} times "
        f"as long as the map at {windows[0]:,} and {windows[1]:,} tuples. And it counts the first window by the map, "
        f"since it knows nothing of the stream: that is {_first(tuples, windows[-2]):.0%} of all tuples at "
        f"{windows[-2]:,}, and {_first(tuples, windows[-1]):.0%} at {windows[-1]:,}, where it never gets to switch."
    )


def _first(tuples: int, window: int) -> float:
    """The share of the tuples that are in the first window."""
    return min(1.0, window / tuples)


def _growth(found: dict[str, list[Cost]]) -> float:
    return found["map"][-1].seconds / found["map"][0].seconds


def _over(found: dict[str, list[Cost]], at: int) -> float:
    return found["map"][at].seconds / found["sketch"][at].seconds


def _memory(found: dict[str, list[Cost]]) -> float:
    return found["map"][-1].bytes / found["sketch"][-1].bytes


def _table(title: str, windows: tuple[int, ...], found: dict[str, list[Cost]]) -> Table:
    return Table(
        title,
        ("STATS_WIN", *(f"{name}, s" for name in MODES), *(f"{name}, MB" for name in MODES)),
        tuple(
            (
                f"{window:,}",
                *(found[name][i].seconds for name in MODES),
                *(found[name][i].bytes / 1e6 for name in MODES),
            )
            for i, window in enumerate(windows)
        ),
    )


def _draw(
    figure: Any,
    windows: tuple[int, ...],
    uniform: dict[str, list[Cost]],
    zipf: dict[str, list[Cost]],
    routed: list[Routed],
) -> None:
    left, middle, right = figure.subplots(1, 3)
    for axes, found, title in ((left, uniform, "a: uniform"), (middle, zipf, "b: Zipf 1.0")):
        shown = {name: [cost.seconds for cost in found[name]] for name in MODES}
        lines(axes, windows, shown, x="STATS_WIN, tuples", y="seconds" if axes is left else "", title=title)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=7)
    hot = [each.hot for each in routed]
    lines(
        right,
        hot,
        {"ns a tuple": [each.nanoseconds for each in routed]},
        x="hot keys",
        y="",
        title="c: Zipf 1.0",
        first=4,
    )
    right.set_xscale("log")
    right.set_ylim(bottom=0)
    other = right.twinx()
    lines(other, hot, {"imbalance": [each.imbalance for each in routed]}, x="", y="", first=5)
    other.set_ylim(bottom=1)
    handles = [axes.get_legend_handles_labels() for axes in (right, other)]
    right.legend(
        handles[0][0] + handles[1][0], handles[0][1] + handles[1][1], frameon=False, fontsize=7, loc="center right"
    )


FIGURE = Figure(
    "dalton-10",
    "Statistics and hot keys",
    "Of a uniform stream, a sketch costs the same whatever the statistics window, while a map costs more the larger it "
    "is, so that neither is always better; under Zipf the effect is milder. More hot keys lower the imbalance up to 4 "
    "of them and raise the latency beyond, so that the throughput is best with 4.",
    run,
)
