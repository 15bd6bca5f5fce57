"""What the work of a cluster costs in the simulated figures: measured once on Spark, and frozen.

`make bench-costs` measures them, and docs/results/costs.md says how, and why for an aggregate in Python that reads each
tuple. They are in costs.json, in seconds of one core. Where a paper says at which rates its cluster works, all costs of
its figures are longer by one factor, so that the servers here are as fast as that cluster: what a tuple costs beside a
partial result stays as measured, and so does who wins. A tuple that belongs to several windows is read once and added
to each of them, as Spark's own `window()` and Flink do it, and as the rates of Dalton's authors say.

Figures with a factor show it with half and twice the cost of all that follows the combining of tuples.

Two papers do without them, and the setup of their figures says so. In AutoFlow's a row takes a reducer a time that is
chosen, as the same rows wait for that time on Spark, and nothing is merged. In those of sliding windows by Balkesen and
Tatbul a row takes what two points of the paper's own curves imply, as the other points are predicted from these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from skewless.simulate import Costs

MEASURED: dict[str, float] = {
    name: found["seconds"]
    for name, found in json.loads((Path(__file__).parent / "costs.json").read_text())["costs"].items()
}
"""Seconds on Spark.

`parse` reads a tuple, and `add` adds it to a partial result; `emit`, `partial` and `key` are those of `Costs`; `route`
decides where a tuple goes, packs and exchanges it, of which `decide` is the decision; `plan` is for each key of a
micro-batch that Prompt plans, the keys in order already; `pair` compares two texts. `tell` is a partitioner's time for
a message and its answer after `MESSAGE[1]` tuples, `tell of few` the same after `MESSAGE[0]`, and `merge` that of the
Q-table reducer for a round of two. `micro-batch` and `task` are the fixed costs of each, and the same `with state` if
they keep some.
"""

COMBINERS, RATE, WINDOWS = 56, 40_000, 60
"""Dalton's cluster of 64 threads, 8 of them reducers, has its peak at this rate with 60 windows a tuple (5.3)."""

ROUTE = 2**0.5 * (MEASURED["parse"] + 3 * MEASURED["add"]) / COMBINERS
"""Seconds of a partitioner for a tuple: with three windows a tuple, one is a bottleneck and two are not (5.4).

What was measured lies on either side: the decision alone is shorter, and with packing and exchanging it is longer.
"""

SLOWER = COMBINERS / RATE / (MEASURED["parse"] + WINDOWS * MEASURED["add"])
"""Times that the servers of Dalton's cluster take longer than Spark here, if their combiners sustain that rate."""

MULTIPLES = (0.5, 1.0, 2.0)

MESSAGE = 140_000, 1_400_000
"""Tuples of a partitioner from one message to the next, for which a message was measured: 1 and 10 s of the figures."""


def message(tuples: float, slower: float = SLOWER) -> float:
    """Seconds of a partitioner for a message and its answer after so many tuples of its own.

    On the line between the two that were measured, and like the nearer one beyond them.

    >>> message(1_400_000) == message(2_800_000) == SLOWER * MEASURED["tell"]
    True
    >>> message(140_000) < message(770_000) < message(1_400_000)
    True
    """
    few, many = MESSAGE
    share = min(1.0, max(0.0, (tuples - few) / (many - few)))
    return slower * ((1 - share) * MEASURED["tell of few"] + share * MEASURED["tell"])


def said(slower: float = SLOWER) -> str:
    """The costs in words, for the setup of a figure."""
    parse, add, emit, partial, key, route = (
        f"{1e6 * slower * seconds:.3g}"
        for seconds in (*(MEASURED[name] for name in ("parse", "add", "emit", "partial", "key")), ROUTE)
    )
    decide, moved = (f"{1e6 * slower * MEASURED[name]:.3g}" for name in ("decide", "route"))
    return (
        f"measured on Spark, {slower:.3g} times as long: {parse} us to read a tuple, {add} us for each window that has "
        f"it, {emit} us to emit a partial result, {partial} us to merge it, {key} us a key; chosen: {route} us to "
        f"route a tuple (measured: {decide} us to decide, {moved} us to decide, pack and exchange)"
    )


_NUMBER = r"([\d.]+)"
_WRITTEN = {
    # As `said` writes them, and as the figures of Prompt+ do.
    re.compile(
        rf"measured on Spark.*: {_NUMBER} us to read a tuple, {_NUMBER} us for each window that has it, {_NUMBER} us "
        rf"to emit a partial result, {_NUMBER} us to merge it, {_NUMBER} us a key"
    ): ("parse", "add", "emit", "partial", "key"),
    re.compile(rf"{_NUMBER}, {_NUMBER} and {_NUMBER} µs, as in the figures of chapter 2"): ("tuple", "emit", "partial"),
}
_ROUNDED = 0.02


def outdated(text: str, measured: Mapping[str, float] = MEASURED) -> bool:
    """Whether the setup of a figure names costs that are not those which are measured today, however slow its servers.

    >>> outdated(said(slower=7.0)), outdated("measured on Spark, 28.5 times as long: 140 us to read a tuple")
    (False, True)
    """
    today = {**measured, "tuple": measured["parse"] + measured["add"]}
    for pattern, names in _WRITTEN.items():
        if found := pattern.search(text):
            first, *rest = (float(each) / today[name] for each, name in zip(found.groups(), names, strict=True))
            return any(abs(each / first - 1) > _ROUNDED for each in rest)
    return text.startswith("measured on Spark, ")


def work(windows: int, fraction: float = 1.0, merging: float = 1.0, slower: float = SLOWER) -> Costs:
    """The costs where a tuple belongs to so many windows.

    Parameters
    ----------
    windows
        Windows of a tuple; 1 for micro-batches, which are combined as they are.
    fraction
        The part of the keys and of the rate that is simulated: each tuple and key takes that much longer, so that the
        servers are as busy as with all of them.
    merging
        A multiple of the costs of partial results and keys.
    slower
        A multiple of all costs.

    Examples
    --------
    >>> round(56 / work(windows=60).tuple), round(work(windows=60, fraction=0.25).tuple / work(windows=60).tuple)
    (40000, 4)
    >>> round(work(windows=1, merging=2).partial / work(windows=1).partial)
    2
    """
    times = slower / fraction
    return Costs(
        route=times * ROUTE,
        plan=times * MEASURED["plan"],
        tuple=times * (MEASURED["parse"] + windows * MEASURED["add"]),
        emit=merging * times * MEASURED["emit"],
        partial=merging * times * MEASURED["partial"],
        key=merging * times * MEASURED["key"],
    )
