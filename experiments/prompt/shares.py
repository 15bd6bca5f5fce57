"""What the time of Spark's micro-batches goes to, as `make bench-batches` has measured it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figure import Scaled
from experiments.prompt.scheduling import data, fast

PARTS = ("scheduling", "communication", "execution")
Quantity = Callable[["Shares"], float]


@dataclass(frozen=True)
class Shares:
    """The fast micro-batches of a query in one round: milliseconds of each part."""

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


@dataclass(frozen=True)
class Rounds:
    """The rounds of a query, each of which all ways took turns in. What is read off them is the median of them."""

    each: tuple[Shares, ...]

    @property
    def way(self) -> str:
        """Of computing."""
        return self.each[0].way

    @property
    def rows(self) -> int:
        """Of a micro-batch."""
        return self.each[0].rows

    def all(self, of: Quantity) -> list[float]:
        """A quantity in each round."""
        return [of(one) for one in self.each]

    def median(self, of: Quantity) -> float:
        """The median of a quantity, whatever others are in that round.

        >>> Rounds((Shares("x", 1, 3.0, 1.0, 0, 0), Shares("x", 1, 2.0, 5.0, 0, 0))).median(lambda one: one.total)
        2.5
        """
        return float(np.median(self.all(of)))

    def ms(self, part: str) -> float:
        """Milliseconds of a part, or the total."""
        return self.median(lambda one: float(getattr(one, part)))

    def share(self, part: str) -> float:
        """Of a part in all three."""
        return self.median(lambda one: one.share(part))

    @property
    def total(self) -> float:
        """Milliseconds in all."""
        return self.ms("total")

    @property
    def execution(self) -> float:
        """Milliseconds of execution."""
        return self.ms("execution")

    @property
    def overhead(self) -> float:
        """The share of scheduling and communication."""
        return self.median(lambda one: one.overhead)


@dataclass(frozen=True)
class Paired:
    """What a quantity is over that of another query, round by round: both are of the same minutes of one machine.

    >>> slow = Rounds((Shares("x", 1, 3.0, 0, 0, 0), Shares("x", 1, 8.0, 0, 0, 0)))
    >>> fast = Rounds((Shares("x", 2, 2.0, 0, 0, 0), Shares("x", 2, 4.0, 0, 0, 0)))
    >>> found = Paired.of(slow, fast, lambda one: one.total)
    >>> found.median, found.said
    (1.75, 'Round by round it is 1.50, 2.00.')
    """

    ratios: tuple[float, ...]

    @classmethod
    def of(cls, ours: Rounds, theirs: Rounds, quantity: Quantity) -> Paired:
        """Ours over theirs."""
        pairs = zip(ours.all(quantity), theirs.all(quantity), strict=True)
        return cls(tuple(mine / other for mine, other in pairs))

    @property
    def median(self) -> float:
        """Of all rounds."""
        return float(np.median(self.ratios))

    @property
    def said(self) -> str:
        """All of them, as a sentence: how far rounds differ by themselves."""
        return f"Round by round it is {', '.join(f'{ratio:.2f}' for ratio in self.ratios)}."

    @property
    def told(self) -> str:
        """The same, with what the rounds tell: which of the two is less, or nothing if they lie on both sides of 1.

        >>> print(Paired((1.09, 0.90, 1.16)).told)
        Round by round it is 1.09, 0.90, 1.16: the 3 rounds lie on both sides of 1, and do not tell the two apart.
        >>> print(Paired((1.05, 1.02)).told)
        Round by round it is 1.05, 1.02: above 1 in all 2 rounds.
        """
        many = len(self.ratios)
        side = "above" if min(self.ratios) > 1 else "below" if max(self.ratios) < 1 else None
        if side is None:
            told = f"the {many} rounds lie on both sides of 1, and do not tell the two apart."
        else:
            told = f"{side} 1 in all {many} rounds." if many > 1 else f"{side} 1 in the one round that there is."
        return f"{self.said.removesuffix('.')}: {told}"


def longer(ours: Rounds, theirs: Rounds) -> str:
    """How much longer ours takes on average of the rounds, and in which parts: averages add up, and medians do not.

    >>> slow, quick = Shares("x", 1, 300.0, 100.0, 5.0, 195.0), Shares("y", 1, 200.0, 120.0, 5.0, 75.0)
    >>> longer(Rounds((slow,)), Rounds((quick,)))
    '100 ms longer on average of the rounds: -20 ms of scheduling, 0 ms of communication and 120 ms of execution'
    """
    pairs = list(zip(ours.each, theirs.each, strict=True))
    more = {
        part: float(np.mean([getattr(mine, part) - getattr(other, part) for mine, other in pairs]))
        for part in ("total", *PARTS)
    }
    scheduling, communication, execution = (f"{more[part]:,.0f} ms of {part}" for part in PARTS)
    return (
        f"{more['total']:,.0f} ms longer on average of the rounds: {scheduling}, {communication} and {execution}"
    ).replace("-0 ms", "0 ms")


def rounds() -> dict[tuple[str, int], Rounds]:
    """By the way of computing and the rows of a micro-batch: its rounds, in the order of their numbers."""
    found: dict[tuple[str, int], list[Shares]] = {}
    for each in sorted(data()["shares"], key=lambda each: (each["way"], each["rows"], each.get("round", 0))):
        found.setdefault((each["way"], each["rows"]), []).append(
            Shares(each["way"], each["rows"], **fast(each["batches"]))
        )
    return {key: Rounds(tuple(those)) for key, those in found.items()}


def longest(found: Sequence[Rounds], least: float) -> float:
    """Seconds of the longest micro-batch of which at least this share is overhead, between those that were measured.

    >>> long, short = Shares("x", 2, 200.0, 40.0, 0.0, 160.0), Shares("x", 1, 100.0, 80.0, 0.0, 20.0)
    >>> round(longest([Rounds((long,)), Rounds((short,))], 0.5), 3)
    0.15
    """
    by_time = sorted(found, key=lambda each: each.total)
    enough = [number for number, each in enumerate(by_time) if each.overhead >= least]
    if not enough:
        return 0.0
    last, *after = by_time[enough[-1] :]
    if not after:
        return last.total / 1e3
    (shorter, more), (longer, fewer) = ((each.total / 1e3, each.overhead) for each in (last, after[0]))
    return shorter + (longer - shorter) * (more - least) / (more - fewer)


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
    return (
        f"medians of {rounds} rounds, in which all ways took turns; ratios are medians of those of each round"
        if rounds > 1
        else "each way was run once"
    )
