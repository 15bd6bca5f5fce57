"""Delivers results in order, or nearly in order, although the workers finish them in any order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError


@dataclass(frozen=True)
class Result:
    """A worker's result for a window: the window's number, its rows, and any payload."""

    number: int
    rows: int = 1
    payload: Any = None


@dataclass(frozen=True)
class Waits:
    """What the order has cost so far.

    Parameters
    ----------
    delivered
        Results delivered.
    batches, most_batches
        Micro-batches that they waited, all together and at most.
    seconds, most_seconds
        The same in seconds.
    most_held, most_held_rows
        The most results that were held back after a micro-batch, and the most rows.
    """

    delivered: int = 0
    batches: int = 0
    most_batches: int = 0
    seconds: float = 0.0
    most_seconds: float = 0.0
    most_held: int = 0
    most_held_rows: int = 0

    @property
    def mean_batches(self) -> float:
        """Micro-batches that a result waited, on average."""
        return self.batches / max(1, self.delivered)

    @property
    def mean_seconds(self) -> float:
        """Seconds that a result waited, on average."""
        return self.seconds / max(1, self.delivered)


@dataclass(frozen=True, order=True)
class _Held:
    number: int
    arrival: int  # among equal numbers, the first to arrive goes first
    result: Result = field(compare=False)
    batch: int = field(compare=False)
    seconds: float = field(compare=False)


class Merger:
    """Takes results as they come, and delivers them at most k places out of order.

    A stream of results is k-ordered if any two results that are delivered out of order are at most k places apart: from
    k + 1 places after a result on, no number is lower than its own. With k = 0 the numbers never fall. Results of the
    same number may come in any order.

    A result is delivered early if all results that are still missing before it would fit within k places after it, and
    after every other result that was delivered early. So the bound holds whatever comes later. Numbers without a result
    cost nothing once the watermark has passed them.

    Parameters
    ----------
    k
        Places by which two results may be out of order; 0 means strict order.
    parts
        The most results that a number can have, such as one from each worker; None if this is not known. Then results
        wait for the watermark and come in strict order.
    low
        The lowest number that will come; None if only the first watermark says it.
    most
        The most results that may be held back. A call that would exceed it is refused and changes nothing.

    Examples
    --------
    >>> strict, loose = Merger(low=0), Merger(k=1, low=0)
    >>> for number in (1, 0, 3, 4, 2):
    ...     print([r.number for r in strict.add([Result(number)])], [r.number for r in loose.add([Result(number)])])
    [] [1]
    [0, 1] [0]
    [] [3]
    [] []
    [2, 3, 4] [2, 4]

    References
    ----------
    S. Babu, U. Srivastava, J. Widom: Exploiting k-constraints to reduce memory overhead in continuous queries over
    data streams. TODS 29(3), 2004.
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (section 2.5).
    """

    def __init__(self, k: int = 0, parts: int | None = 1, low: int | None = None, most: int | None = None) -> None:
        if k < 0:
            raise SkewlessError(f"k is {k}; give the places by which results may be out of order, at least 0")
        if parts is None and k > 0:
            raise SkewlessError(
                f"k is {k}, but how many results a number has is not known, so that nothing could be delivered early; "
                "give parts, or k=0"
            )
        if parts is not None and parts < 1:
            raise SkewlessError(f"a number has at least 1 result, not {parts}")
        if most is not None and most < 0:
            raise SkewlessError(f"at most {most} results held; give at least 0, or None for no limit")
        self.k = k
        self.parts = parts
        self.most = most
        self.waits = Waits()
        self._at = _Place(low)
        self._held: list[_Held] = []
        self._batch = 0
        self._arrivals = 0

    @property
    def low(self) -> int | None:
        """The lowest number that may still come; None before the first watermark, if it was not given."""
        return self._at.low

    @property
    def held(self) -> int:
        """Results that wait for others."""
        return len(self._held)

    @property
    def held_rows(self) -> int:
        """The rows of the results that wait for others."""
        return sum(each.result.rows for each in self._held)

    def seen(self) -> Counter[int]:
        """For each number that is not complete, how many results wait or were delivered early."""
        seen = Counter(each.number for each in self._held)
        seen.update(number for number, _ in self._at.ahead)
        return seen

    def add(self, results: Iterable[Result], low: int | None = None, now: float = 0.0) -> list[Result]:
        """Add a micro-batch of results, and return the results that can be delivered now, in order.

        Parameters
        ----------
        results
            The new results, in any order.
        low
            The watermark after these results: all results with lower numbers have come.
        now
            The time in seconds, used only to measure the waits.
        """
        new = [_Held(result.number, self._arrivals + i, result, self._batch, now) for i, result in enumerate(results)]
        self._check(new)
        held = sorted(self._held + new)
        at = self._at.raised(low)
        count = 0
        while count < len(held) and at.may_go(held[count].number, self.k, self.parts):
            at.deliver(held[count].number, self.parts)
            count += 1
        if self.most is not None and len(held) - count > self.most:
            raise SkewlessError(
                f"{len(held) - count} results would wait for others, more than {self.most}; hand in fewer, "
                "or the same again with a higher watermark, or allow for more"
            )
        self._at, self._held = at, held[count:]
        self._arrivals += len(new)
        self._count(held[:count], now)
        self._batch += 1
        return [each.result for each in held[:count]]

    def finish(self, now: float = 0.0) -> list[Result]:
        """End the stream, and return all results that are left, in order."""
        return self.add([], low=self._held[-1].number + 1 if self._held else None, now=now)

    def state(self) -> dict[str, Any]:
        """All that is remembered, in types that JSON can write if it can write the payloads."""
        return {
            "k": self.k,
            "parts": self.parts,
            "most": self.most,
            "low": self._at.low,
            "place": self._at.place,
            "ahead": [list(each) for each in self._at.ahead],
            "held": [
                [each.number, each.arrival, each.result.rows, each.result.payload, each.batch, each.seconds]
                for each in self._held
            ],
            "batch": self._batch,
            "arrivals": self._arrivals,
            "waits": asdict(self.waits),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Merger:
        """A merger that goes on where another one stopped.

        >>> merger = Merger(k=2, low=0)
        >>> _ = merger.add([Result(5, payload="late")])
        >>> Merger.from_state(merger.state()).add([], low=5)
        [Result(number=5, rows=1, payload='late')]
        """
        merger = cls(state["k"], state["parts"], state["low"], state["most"])
        merger._at.place = state["place"]
        merger._at.ahead = [(number, place) for number, place in state["ahead"]]
        merger._held = [
            _Held(number, arrival, Result(number, rows, payload), batch, seconds)
            for number, arrival, rows, payload, batch, seconds in state["held"]
        ]
        merger._batch, merger._arrivals = state["batch"], state["arrivals"]
        merger.waits = Waits(**state["waits"])
        return merger

    def _check(self, new: list[_Held]) -> None:
        low = self._at.low
        for each in new:
            if low is not None and each.number < low:
                raise SkewlessError(
                    f"a result of number {each.number} came after all below {low} were complete; "
                    "raise the watermark only past numbers that have all their results"
                )
        if self.parts is not None and new:
            seen = self.seen()
            seen.update(each.number for each in new)
            number, count = max(((each.number, seen[each.number]) for each in new), key=lambda item: item[1])
            if count > self.parts:
                raise SkewlessError(f"number {number} has {count} results, more than {self.parts}; give higher parts")

    def _count(self, delivered: list[_Held], now: float) -> None:
        batches = [self._batch - each.batch for each in delivered]
        seconds = [now - each.seconds for each in delivered]
        waits = self.waits
        self.waits = replace(
            waits,
            delivered=waits.delivered + len(delivered),
            batches=waits.batches + sum(batches),
            most_batches=max([waits.most_batches, *batches]),
            seconds=waits.seconds + sum(seconds),
            most_seconds=max([waits.most_seconds, *seconds]),
            most_held=max(waits.most_held, self.held),
            most_held_rows=max(waits.most_held_rows, self.held_rows),
        )


@dataclass
class _Place:
    """The position of the output: the lowest number still to come, the next place, and the results delivered early.

    `ahead` has pairs of number and place, in order of numbers. All but those of the lowest number have some result
    missing before them; there are at most k of these.
    """

    low: int | None
    place: int = 0
    ahead: list[tuple[int, int]] = field(default_factory=list)

    def raised(self, low: int | None) -> _Place:
        """The same position with a watermark that is at least `low`."""
        if low is None or (self.low is not None and low <= self.low):
            return _Place(self.low, self.place, list(self.ahead))
        return _Place(low, self.place, [each for each in self.ahead if each[0] >= low])

    def may_go(self, number: int, k: int, parts: int | None) -> bool:
        """Whether `number`, the lowest one that waits, can come next."""
        if self.low is None:
            return False
        if number <= self.low:
            return True
        if parts is None or parts * (number - self.low) - bisect_left(self.ahead, (number, -1)) > k:
            return False
        before = 0  # how many results with lower numbers were delivered already
        for i, (other, place) in enumerate(self.ahead):
            if other > number:
                break
            before = before if i and self.ahead[i - 1][0] == other else i
            missing = parts * (other - self.low) - before
            if missing and missing + self.place - place > k:
                return False
        return True

    def deliver(self, number: int, parts: int | None) -> None:
        """Record that `number` comes next."""
        if parts is not None and self.low is not None and number >= self.low:
            insort(self.ahead, (number, self.place))
            while len(self.ahead) >= parts and self.ahead[parts - 1][0] == self.low:
                del self.ahead[:parts]
                self.low += 1
        self.place += 1


def disorder(numbers: Int64Array) -> int:
    """The lowest k for which a sequence is k-ordered: the largest distance between two numbers that are out of order.

    >>> disorder(np.array([1, 2, 2, 5])), disorder(np.array([3, 1, 2, 5]))
    (0, 2)
    """
    numbers = np.asarray(numbers)
    if len(numbers) == 0:
        return 0
    # The first higher number is where the running maximum first becomes higher.
    first_higher = np.searchsorted(np.maximum.accumulate(numbers), numbers, side="right")
    return int(np.maximum(np.arange(len(numbers)) - first_higher, 0).max())
