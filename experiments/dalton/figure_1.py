"""Dalton, Figure 1: a second partitioner, and then a source that becomes skewed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from experiments.costs import MULTIPLES, said
from experiments.dalton.rivals import DEFAULTS
from experiments.dalton.team import FORWARDING, PARAMETERS, PRINTED, SEVERAL, apart, cooperation
from experiments.dalton.word_count import (
    SEARCHED,
    THIRDS,
    TOLERANCE,
    Setup,
    longer,
    of_a_run,
    part,
    printed_why,
    together,
)
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.picture import legend, lines
from skewless.simulate import Partitioners, Run, sustainable
from skewless.workload import Zipf

FRACTION: dict[Scale, float] = {"small": 1 / 16, "full": 1.0}
THREADS, KEYS, EXPONENT = 64, 100_000, 1.5
SECONDS, SINCE, START = 240.0, 120.0, 160_000.0
INTERVAL = 10.0
APART = "dalton, apart"
NAMES = ("hash", "two-choices", "dagreedy", "dalton", APART, PARAMETERS, "dagreedy, no forwarding", "bounded")
COMPARED = NAMES[:4]  # with other costs
ROUTED = ("hash", "two-choices", "dalton")  # with other costs of routing
ROUTED_PHASES = ((1, 0.0), (2, 0.0))
PHASES = {
    "uniform, 1 partitioner": (1, 0.0),
    "uniform, 2 partitioners": (2, 0.0),
    "skewed, 2 partitioners": (2, EXPONENT),
}


def run(scale: Scale, tell: Tell) -> Outcome:
    """Find the rates with one and with two partitioners, and when the second source becomes skewed."""
    setup = Setup(THREADS, FRACTION[scale], THIRDS)
    rates: dict[str, list[float]] = {}
    for name in NAMES:
        tell(f"{name} in three phases")
        rates[name] = [_rate(setup, name, partitioners, s) for partitioners, s in PHASES.values()]
    alone = _rate(setup, "dagreedy", 1, EXPONENT)
    by_costs: dict[float, dict[str, list[float]]] = {1.0: rates}
    for merging in MULTIPLES:
        if merging != 1:
            tell(f"merging costs {merging:g} times as much")
            other = replace(setup, merging=merging)
            by_costs[merging] = {
                name: [
                    _rate(other, name, *phase, start) for phase, start in zip(PHASES.values(), rates[name], strict=True)
                ]
                for name in COMPARED
            }
    by_routing: dict[float, dict[str, list[float]]] = {1.0: {name: rates[name] for name in ROUTED}}
    for routing in MULTIPLES:
        if routing != 1:
            tell(f"routing costs {routing:g} times as much")
            other = replace(setup, routing=routing)
            by_routing[routing] = {
                name: [
                    _rate(other, name, *phase, start) for phase, start in zip(ROUTED_PHASES, rates[name], strict=False)
                ]
                for name in ROUTED
            }
    second = {name: found[1] / found[0] for name, found in rates.items()}
    last = {name: found[2] for name, found in rates.items()}
    printed = printed_why(last, COMPARED[:3], PARAMETERS)
    checks = (
        Check("uniform: hash with 2 partitioners over 1", second["hash"], low=1.1),
        Check("uniform: two-choices with 2 partitioners over 1", second["two-choices"], low=1.1),
        Check(
            "dagreedy with 2 partitioners over 1, the more of uniform and skewed",
            max(second["dagreedy"], last["dagreedy"] / alone),
            high=1.1,
            why="In a uniform stream no key is hot, and two partitioners of DAGreedy hash as one does, with twice the "
            f"capacity; in the skewed one two sustain {last['dagreedy'] / alone:.2f} times as much as one, since "
            "each balances its own tuples and the sums are balanced too. Nothing in the algorithm keeps two replicas "
            "from converging here.",
        ),
        Check("hash: skewed over uniform, 2 partitioners", last["hash"] / rates["hash"][1], high=0.67),
        Check(
            "skewed: dalton over the best of hash, two-choices and dagreedy",
            last["dalton"] / max(last[name] for name in ("hash", "two-choices", "dagreedy")),
            low=1.0,
        ),
        Check(
            "skewed: dalton with the paper's parameters over the best of hash, two-choices and dagreedy",
            last[PARAMETERS] / max(last[name] for name in ("hash", "two-choices", "dagreedy")),
            low=1.0,
            why=printed,
        ),
        Check("dalton: skewed over uniform, 2 partitioners", last["dalton"] / rates["dalton"][1], low=0.8),
        Check(
            "dalton with the paper's parameters: skewed over uniform, 2 partitioners",
            last[PARAMETERS] / rates[PARAMETERS][1],
            low=0.8,
            why=printed,
        ),
    )
    return Outcome(
        (
            Scaled("servers", "not said", f"{THREADS}: an eighth reducers"),
            Scaled("sources", "2, uniform; then one is skewed", "the same; Zipf 1.5"),
            Scaled(
                "keys",
                "not said",
                f"{round(KEYS * setup.fraction):,}: {part(setup.fraction)} of 100,000{longer(setup.fraction)}",
            ),
            Scaled("windows", "not said", "60 s by 20 s"),
            Scaled(
                "time", "one run; partitioners doubled at t = 50k", f"a run of {SECONDS:g} s for each phase and rate"
            ),
            of_a_run(max(rate for found in rates.values() for rate in found), setup.fraction, SECONDS),
            Scaled("forwarding with 2 partitioners", "of dalton and dagreedy", FORWARDING),
            SEARCHED,
            DEFAULTS,
            Scaled("costs", "not said", said()),
        ),
        "With a second partitioner, "
        + ", ".join(f"{name} sustains {factor:.2f} times as much" for name, factor in list(second.items())[:4])
        + "; once a source is skewed, dalton sustains "
        + f"{last['dalton']:,.0f} tuples a second, dagreedy {last['dagreedy']:,.0f}, hash {last['hash']:,.0f}, and two "
        f"daltons that do not talk {last[APART]:,.0f}. That a second partitioner brings anything follows from what "
        "routing costs, which is chosen so that one partitioner is a bottleneck and two are not: with half of it, hash "
        f"sustains {_second(by_routing[0.5]['hash']):.2f} times as much with the second.",
        checks,
        (
            Table("Tuples a second", ("", *PHASES), tuple(_row(name, found) for name, found in rates.items())),
            Table(
                "DAGreedy while one source is skewed",
                ("partitioners", "tuples a second"),
                ((1, round(alone)), (2, round(last["dagreedy"]))),
            ),
            _costs_table(by_costs),
            Table(
                "2 partitioners over 1, uniform, by the cost of routing, which is chosen",
                ("", *(f"routing x {routing:g}" for routing in MULTIPLES)),
                tuple((name, *(round(_second(by_routing[each][name]), 2) for each in MULTIPLES)) for name in ROUTED),
            ),
        ),
        lambda figure: _draw(figure, rates),
    )


def _row(name: str, rates: list[float]) -> tuple[Cell, ...]:
    return name, *(round(rate) for rate in rates)


def _second(rates: list[float]) -> float:
    """What the second partitioner brings."""
    return rates[1] / rates[0]


def _costs_table(rates: dict[float, dict[str, list[float]]]) -> Table:
    """What the second partitioner brings, and how far Dalton is ahead in the end, by the costs of merging."""
    rows: list[tuple[Cell, ...]] = []
    for name in COMPARED:
        found = [rates[merging] for merging in MULTIPLES]
        second = (round(each[name][1] / each[name][0], 2) for each in found)
        ahead = (round(each["dalton"][2] / each[name][2], 2) for each in found)
        rows.append((name, *second, *ahead))
    what = ("2 partitioners over 1, uniform", "dalton over it, skewed")
    columns = (f"{each}, merging x {merging:g}" for each in what for merging in MULTIPLES)
    return Table("By the costs of merging", ("", *columns), tuple(rows))


def _rate(setup: Setup, name: str, partitioners: int, s: float, start: float = START) -> float:
    return sustainable(partial(_at, setup, name, partitioners, s), start, SINCE, TOLERANCE).rate


def _at(setup: Setup, name: str, partitioners: int, s: float, rate: float) -> Run:
    keys, rival = round(KEYS * setup.fraction), SEVERAL["dalton" if name == APART else name]
    team: Partitioners
    if partitioners > 1 and name == "dalton":
        team = cooperation(setup, partitioners, INTERVAL)
    elif partitioners > 1 and name == PARAMETERS:
        team = cooperation(setup, partitioners, INTERVAL, options=PRINTED)
    else:
        team = apart(setup, rival, partitioners, told=name == "dagreedy")
    return together(setup, (Zipf(0.0, keys, seed=1), Zipf(s, keys, seed=2)), rival, team, rate, SECONDS)


def _draw(figure: Any, rates: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    shown = {name: [rate / 1000 for rate in found] for name, found in rates.items()}
    lines(axes, range(len(PHASES)), shown, x="", y="1,000 tuples a second")
    axes.set_xticks(range(len(PHASES)), list(PHASES))
    axes.set_ylim(bottom=0)
    legend(figure, axes)


FIGURE = Figure(
    "dalton-1",
    "A second partitioner, and a source that becomes skewed",
    "A second partitioner raises the throughput of static policies (hashing, two choices), which a skewed source then "
    "lowers; DAGreedy does not benefit from the second one, as each of its replicas acts on its own.",
    run,
)
