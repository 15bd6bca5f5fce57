"""Clustering of voters, Figure 9c: rates that repeat themselves, and what decides about them."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.costs import MULTIPLES
from experiments.dalton.clustering import LATE, NEAR, SLIDES, Pairs, Settled, pairs, settled
from experiments.dalton.rivals import PAPERS, RIVALS
from experiments.dalton.word_count import THIRDS, Setup, gain_checks, gains, in_range, printed_checks
from experiments.figure import Cell, Check, Table, Tell
from skewless.workload import voters_like

VOTERS_RATE = 2_500.0
SEEDS = range(1, 9)
MEMBERS, ONE = "all members", "one member of each"  # what GREEDY compares of two clusters
CHEAPER = {MEMBERS: (100.0, 1000.0), ONE: (100.0,)}  # times that comparing takes less, so that more tuples come
CHEAPER_SEEDS = {MEMBERS: range(1, 3), ONE: range(1, 2)}
PRINTED = "dalton as printed"

Clustered = Mapping[str, Mapping[str, Settled]]
"""By how clusters are compared, and by algorithm."""

Cheaper = Mapping[tuple[str, float], Mapping[str, Settled]]
"""The same by how clusters are compared, and how many times less that takes."""


def extrapolated(tell: Tell) -> dict[str, dict[float, dict[str, float]]]:
    """Rates in the skewed phase, by how reducers compare clusters and what that costs them; a phase has 5 slides."""
    setup = Setup(64, 1.0, THIRDS)
    every = round(VOTERS_RATE * 20 * SLIDES / 3)
    found: dict[str, Pairs] = {}
    for name, rival in RIVALS.items():
        tell(f"clustering by {name}")
        found[name] = pairs(setup, rival, voters_like(every), VOTERS_RATE, SLIDES)
    return {
        how: {
            merging: {
                name: each.rate(
                    VOTERS_RATE, 20.0, members=how == MEMBERS, start=LATE.start, end=LATE.stop, merging=merging
                )
                for name, each in found.items()
            }
            for merging in MULTIPLES
        }
        for how in (MEMBERS, ONE)
    }


_BUSY = (", combiner busy", ", reducer busy")


def _cells(guess: float, found: Settled) -> tuple[Cell, ...]:
    return round(guess, 1), found.rate, found.combiner, found.reducer


def _rate(found: Settled, how: str) -> Cell:
    """With its error, if there are seeds that it is of."""
    return found.rate if len(CHEAPER_SEEDS[how]) > 1 else found.rate.mean


def settled_from(rates: Mapping[str, float], how: str, tell: Tell) -> dict[str, Settled]:
    """The rates that repeat themselves, found from those that were extrapolated."""
    setup, found = Setup(64, 1.0, THIRDS), {}
    for name, rate in rates.items():
        tell(f"clustering by {name}, from {rate:.0f} tuples a second")
        found[name] = settled(setup, RIVALS[name], rate, SEEDS, members=how == MEMBERS)
    return found


def settled_cheaper(known: Mapping[str, Settled], how: str, times: float, tell: Tell) -> dict[str, Settled]:
    """The same if comparing takes so many times less, so that a slide has more tuples to learn from."""
    setup, found = Setup(64, 1.0, THIRDS), {}
    for name in (*PAPERS, PRINTED, "dalton"):
        tell(f"clustering by {name}, comparing takes {times:g} times less")
        start = known[name].rate.mean * times**0.5
        found[name] = settled(setup, RIVALS[name], start, CHEAPER_SEEDS[how], members=how == MEMBERS, cheaper=times)
    return found


def unsettled(again: Clustered) -> str:
    """Which rates did not repeat themselves."""
    found = [f"{name} ({how})" for how, rates in again.items() for name in rates if abs(rates[name].repeats - 1) > NEAR]
    return f"all do but {', '.join(found)}" if found else "all do"


def settled_gains(found: Mapping[str, Settled], of: str = "dalton") -> tuple[float, float]:
    """The least and the largest gain over the paper's rivals, of rates that repeat themselves."""
    return gains({name: each.rate.mean for name, each in found.items()}, PAPERS, of=of)


def clustering_checks(again: Clustered, cheap: Cheaper) -> tuple[Check, ...]:
    """Checks of 9c, from the rates at which tuples were routed."""
    found = again[MEMBERS]
    rates = {name: each.rate.mean for name, each in found.items()}
    best = max(PAPERS, key=lambda name: rates[name])
    one = "; ".join(
        f"{_with(how, times)} the gains are {in_range(settled_gains(each))}, and {_told_busy('dalton', each)}"
        for (how, times), each in (((ONE, 1.0), again[ONE]), *cheap.items())
    )
    why = (
        f"The least is over {best}, with {rates[best]:.1f} tuples a second against {rates['dalton']:.1f}: "
        f"{_told_busy(best, found)}, and {_told_busy('dalton', found)}. A slide has "
        f"{found['dalton'].slide:,.0f} tuples then, too few to learn from, so that dalton leaves most pairs of the "
        "hottest key to one combiner. With more tuples it splits the key, and then the pairs across combiners are left "
        "to one reducer: two even parts leave half of all pairs to it, and more parts leave more. In other runs: "
        f"{one}."
    )
    most = (
        f"The largest is over {min(PAPERS, key=lambda name: rates[name])}. The rate grows with the square root of what "
        "the busiest server is spared, and a key that is split spares its combiner what it brings its reducer."
    )
    return (
        *gain_checks("9c, skewed phases", settled_gains(found), (1.1, 1.8), why, most),
        *printed_checks("9c, skewed phases", rates, PAPERS, (1.1, 1.8), most),
    )


def _with(how: str, times: float) -> str:
    cheaper = "" if times == 1 else f", if comparing takes {times:,.0f} times less,"
    return f"with {how} of two clusters compared{cheaper}"


def _told_busy(name: str, found: Mapping[str, Settled]) -> str:
    each = found[name]
    return (
        f"the busiest combiner of {name} works {each.combiner:.0%} of the time and its busiest reducer "
        f"{each.reducer:.0%}"
    )


def clustering_tables(c: Mapping[str, Mapping[str, float]], again: Clustered, cheap: Cheaper) -> tuple[Table, ...]:
    """The rates by how clusters are compared: extrapolated, routed, and if comparing takes less."""
    return (
        Table(
            "9c: clustering of voters in skewed phases, tuples a second, by how GREEDY compares clusters",
            ("", *(f"{how}{step}" for how in again for step in (", extrapolated", "", *_BUSY))),
            tuple(
                (name, *(cell for how, found in again.items() for cell in _cells(c[how][name], found[name])))
                for name in RIVALS
            ),
        ),
        *(
            Table(
                f"9c: the same if comparing takes {times:g} times less, {how}, seeds: {len(CHEAPER_SEEDS[how])}",
                ("", "tuples a second", "tuples of a slide", *(name.removeprefix(", ") for name in _BUSY)),
                tuple(
                    (name, _rate(each, how), round(each.slide), each.combiner, each.reducer)
                    for name, each in found.items()
                ),
            )
            for (how, times), found in cheap.items()
        ),
    )
