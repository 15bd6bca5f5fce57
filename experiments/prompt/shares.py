"""What the time of Spark's micro-batches goes to, as `make bench-batches` has measured it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figure import Scaled
from experiments.prompt.scheduling import data, fast

PARTS = ("scheduling", "communication", "execution")


@dataclass(frozen=True)
class Shares:
    """The fast micro-batches of a query: milliseconds of each part."""

    way: str
    rows: int
    total: float
    scheduling: float
    communication: float
    execution: float

    def share(self, part: str) -> float:
        """Of all three."""
        return float(getattr(self, part)) / sum(float(getattr(self, each)) for each in PARTS)

    @property
    def overhead(self) -> float:
        """The share of scheduling and communication."""
        return self.share("scheduling") + self.share("communication")


def shares() -> dict[tuple[str, int], Shares]:
    """By the way of computing and the rows of a micro-batch: of each, the median of its rounds."""
    rounds: dict[tuple[str, int], list[dict[str, float]]] = {}
    for each in data()["shares"]:
        rounds.setdefault((each["way"], each["rows"]), []).append(fast(each["batches"]))
    return {(way, rows): Shares(way, rows, **median(found)) for (way, rows), found in sorted(rounds.items())}


def median(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The round whose micro-batches took the median time, the faster one of the two in the middle.

    >>> median([{"total": 3.0}, {"total": 1.0}, {"total": 2.0}])
    {'total': 2.0}
    """
    return sorted(rounds, key=lambda each: each["total"])[(len(rounds) - 1) // 2]


def longest(found: list[Shares], least: float) -> float:
    """Seconds of the longest micro-batch of which at least this share is overhead, between those that were measured.

    >>> round(longest([Shares("x", 1, 100.0, 80.0, 0.0, 20.0), Shares("x", 2, 200.0, 40.0, 0.0, 160.0)], 0.5), 3)
    0.15
    """
    by_share = sorted(found, key=lambda each: each.overhead)
    if not by_share[0].overhead <= least <= by_share[-1].overhead:
        return by_share[0].total / 1e3 if least < by_share[0].overhead else 0.0
    seconds = np.interp(least, [each.overhead for each in by_share], [each.total / 1e3 for each in by_share])
    return float(seconds)


def lines() -> tuple[Scaled, ...]:
    """The lines of a setup that both figures share."""
    found = data()
    return (
        Scaled(
            "engine",
            "Spark 2.0, 20 nodes of 16 cores",
            f"Spark {found['spark']}, {found['slots']} local slots, {found['workers']} tasks a stage; nothing "
            "crosses a "
            "network",
        ),
        Scaled(
            "measured by",
            "not said",
            "`make bench-batches`: progress and tasks as Spark's REST interface lists them; while a task is running, "
            "time "
            "is divided as the tasks' metrics are, and all other time is scheduling",
        ),
        Scaled(
            "micro-batches",
            "not said",
            f"the fastest third of those after warming up, back to back; {_rounds(found['shares'])}",
        ),
        Scaled(
            "query", "not said", "count and sum of each key in windows of 5 s; the hottest key has half of the rows"
        ),
    )


def _rounds(found: list[dict[str, Any]]) -> str:
    rounds = min(Counter((each["way"], each["rows"]) for each in found).values())
    return f"the median of {rounds} rounds, in which all ways took turns" if rounds > 1 else "each way was run once"
