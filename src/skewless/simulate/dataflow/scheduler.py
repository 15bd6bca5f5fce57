"""The scheduler of AutoFlow: sums up what reducers report, and asks a placer at the end of every window."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import FloatArray
from skewless.core.counts import Counts
from skewless.place import Placement, Placer


class Instruction(NamedTuple):
    """Slots that are to move from one reducer to another: what a control message can say."""

    sender: int
    receiver: int
    slots: tuple[int, ...]


class Scheduler(Protocol):
    """Decides what moves."""

    def hear(self, counts: FloatArray, busy: bool = False) -> list[Instruction]:
        """Take the rows of each slot in a period: what is to move now; nothing if what moves keeps it busy."""


class HotSpots:
    """Lets a placer decide at the end of every window of so many periods.

    A control message has one sender and one receiver, so that a placement becomes as many instructions as it has pairs
    of them. Keys are not told apart, only slots.

    Parameters
    ----------
    placer
        Proposes placements; it is asked for a first one, without rows.
    workers
        The reducers.
    window_length
        The periods of a window: over so many, rows are summed up.

    Examples
    --------
    >>> from skewless.place import AutoFlow
    >>> scheduler = HotSpots(AutoFlow(slots=4), workers=2, window_length=2)
    >>> scheduler.placement.tail
    array([0, 1, 0, 1], dtype=int32)
    >>> scheduler.hear(np.array([50.0, 10, 30, 10])), scheduler.hear(np.array([50.0, 10, 30, 10]))
    ([], [Instruction(sender=0, receiver=1, slots=(2,))])
    """

    def __init__(self, placer: Placer, workers: int, window_length: int = 1) -> None:
        check_whole("window_length", window_length)
        self.placer, self.window_length = placer, window_length
        self.placement: Placement = placer.place(Counts.none(), None, workers)
        self._window: deque[FloatArray] = deque(maxlen=window_length)
        self._heard = 0

    def hear(self, counts: FloatArray, busy: bool = False) -> list[Instruction]:
        """Take the rows of each slot in a period: what is to move, if a window ends with it and nothing moves yet."""
        self.placer.learn(_counts(counts))
        self._window.append(counts)
        self._heard += 1
        if busy or self._heard < self.window_length:
            return []
        self._heard = 0
        seen = _counts(np.sum(self._window, axis=0))
        before = self.placement
        self.placement = self.placer.place(seen, before, before.workers)
        return instructions(before.tail.tolist(), self.placement.tail.tolist())


def instructions(before: Sequence[int], after: Sequence[int]) -> list[Instruction]:
    """One instruction for each pair of sender and receiver.

    >>> instructions([0, 0, 0, 1], [2, 0, 2, 2])
    [Instruction(sender=0, receiver=2, slots=(0, 2)), Instruction(sender=1, receiver=2, slots=(3,))]
    """
    pairs: dict[tuple[int, int], list[int]] = {}
    for slot, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            pairs.setdefault((old, new), []).append(slot)
    return [Instruction(*pair, tuple(slots)) for pair, slots in sorted(pairs.items())]


def _counts(by_slot: FloatArray) -> Counts:
    return Counts(np.zeros(0, np.int64), np.zeros(0), float(by_slot.sum()), by_slot)
