"""The rates of a word count by data set, algorithm and number of threads, for Figures 7 and 8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import DEFAULTS, SHOWN, Rival
from experiments.dalton.word_count import (
    PEAK,
    SEARCHED,
    Setup,
    gains_by_costs,
    longer,
    of_a_run,
    part,
    slower,
    sustained,
)
from experiments.figure import Cell, Scaled, Table, Tell
from experiments.picture import legend, lines
from skewless.workload import Zipf, zipf_with_top
from skewless.workload.datasets import ELECTIONS_KEYS, ELECTIONS_TOP, T4SA_KEYS, T4SA_TOP

THREADS = (8, 16, 32, 64)
SYNTHETIC = "Zipf 1.5"
MILDER = 1.1
KEYS = 100_000

Rates = dict[str, dict[str, list[float]]]
"""By data set and algorithm, a rate for each number of threads."""


def streams(fraction: float) -> dict[str, Zipf]:
    """The data sets with this part of their keys, and the hottest key's share of Table 2."""
    return {
        "T4SA-like": zipf_with_top(T4SA_TOP, round(T4SA_KEYS * fraction)),
        "Elections-like": zipf_with_top(ELECTIONS_TOP, round(ELECTIONS_KEYS * fraction)),
        SYNTHETIC: Zipf(1.5, round(KEYS * fraction)),
    }


def rates_of(
    setup: Setup, rivals: Mapping[str, Rival], times: tuple[float, float], tell: Tell, peak: float = PEAK
) -> Rates:
    """The rates that are sustained; `times` are the seconds of a run and those that do not count."""
    found: Rates = {}
    for data, keys in streams(setup.fraction).items():
        found[data] = {name: [] for name in rivals}
        for name, rival in rivals.items():
            for threads in THREADS:
                tell(f"{data}: {name} on {threads} threads")
                guess = 2 * found[data][name][-1] if threads > THREADS[0] else peak * threads / 64
                found[data][name].append(sustained(replace(setup, threads=threads), rival, keys, *times, guess))
    return found


def by_costs(
    setup: Setup,
    rivals: Mapping[str, Rival],
    keys: Zipf,
    times: tuple[float, float],
    known: Mapping[str, float],
    tell: Tell,
) -> dict[float, dict[str, float]]:
    """The rates of all with half and twice the costs of merging; those of the measured costs are known."""
    found: dict[float, dict[str, float]] = {}
    for merging in MULTIPLES:
        tell(f"merging costs {merging:g} times as much")
        other = replace(setup, merging=merging)
        found[merging] = (
            dict(known)
            if merging == 1
            else {name: sustained(other, rival, keys, *times, known[name]) for name, rival in rivals.items()}
        )
    return found


def tables(rates: Rates, costs: Mapping[str, Mapping[float, Mapping[str, float]]]) -> tuple[Table, ...]:
    """A table for each data set, and the gains of Dalton by the costs of merging."""
    every = [
        Table(
            f"{data}: tuples a second by threads",
            ("", *(f"{threads} threads" for threads in THREADS)),
            tuple(_row(name, found) for name, found in by_name.items()),
        )
        for data, by_name in rates.items()
    ]
    every.append(gains_by_costs(f"Gain of dalton at {THREADS[-1]} threads, by the costs of merging", costs))
    return tuple(every)


def _row(name: str, rates: list[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)


def scales(setup: Setup, times: tuple[float, float], rates: Rates) -> tuple[Scaled, ...]:
    """The setup beside the paper's."""
    most = max(rate for found in rates.values() for by_threads in found.values() for rate in by_threads)
    them = f"{part(setup.fraction)} of them{longer(setup.fraction)}"
    return (
        Scaled("threads", "8, 16, 32, 64; 1, 2, 4, 8 of them reducers", "the same"),
        Scaled("keys of T4SA, Elections", "450,000, 200,000", them),
        Scaled("keys of the synthetic stream", "100,000 to 1,000,000", f"{round(KEYS * setup.fraction):,}"),
        Scaled("hottest keys", "2.69 %, 7.2 %, up to 38.45 %", "2.69 %, 7.2 %, 38 % (Zipf 1.5)"),
        Scaled("windows", "60 s by 1 s", "60 s by 1 s"),
        Scaled(
            "rate",
            "up to 40,000 tuples a second",
            f"{part(setup.fraction)} of it{slower(setup.fraction)}",
        ),
        Scaled("time at a rate", "not said", f"{times[0]:g} s, the first {times[1]:g} s not counted"),
        of_a_run(most, setup.fraction, times[0]),
        SEARCHED,
        DEFAULTS,
        Scaled("costs", "not said", said()),
    )


def draw(figure: Any, rates: Rates, extra: tuple[str, ...] = ()) -> None:
    """A plot for each data set."""
    plots = figure.subplots(1, len(rates))
    for axes, (data, found) in zip(plots, rates.items(), strict=True):
        shown = {name: [rate / 1000 for rate in found[name]] for name in (*SHOWN, *extra) if name in found}
        lines(axes, THREADS, shown, x="threads", y="1,000 tuples a second" if axes is plots[0] else "", title=data)
        axes.set_xticks(THREADS)
        axes.set_ylim(bottom=0)
    legend(figure, plots[0])
