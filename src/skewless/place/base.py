"""What every placer offers: a placement for the next round, from the counts and the placement before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.prototype import Prototype
from skewless.place.placement import Placement

MOST_WORKERS = 1 << 16
MOST_SLOTS = 1 << 24
SLOTS = 4096  # tail slots by default


class Owners(NamedTuple):
    """What a placer decides: the worker of each tail slot, the keys to track in any order, and the worker of each."""

    tail: Int32Array
    keys: Int64Array = np.zeros(0, np.int64)
    own: Int32Array = np.zeros(0, np.int32)

    def placement(self, workers: int, version: int) -> Placement:
        """The placement of this many workers that has these owners."""
        order = np.argsort(self.keys)
        return Placement(workers, self.tail, self.keys[order], self.own[order], version)


class Placer(Prototype, ABC):
    """Decides which worker owns each slot; a key is on one worker only, because its state cannot be merged.

    Parameters
    ----------
    slots
        The number of tail slots. It has to stay the same as long as there is state.
    """

    name: ClassVar[str]

    def __init__(self, slots: int = SLOTS) -> None:
        self.slots = whole("slots", slots, 1, MOST_SLOTS)

    def place(self, seen: Counts, previous: Placement | None, workers: int) -> Placement:
        """A placement for this many workers, one version after `previous`; `previous` itself if nothing changes.

        Parameters
        ----------
        seen
            The recent counts.
        previous
            The placement in use, from which state would have to move; None if there is none yet.
        workers
            The number of workers from now on: as many as before, more, or fewer.
        """
        workers = whole("workers", workers, 1, MOST_WORKERS)
        if previous is not None and previous.tail_slots != self.slots:
            raise SkewlessError(
                f"the placement has {previous.tail_slots} tail slots and this placer {self.slots}; "
                f"make the placer with slots={previous.tail_slots}"
            )
        if seen.tail is not None and len(seen.tail) != self.slots:
            raise SkewlessError(f"the tail was counted in {len(seen.tail)} slots, but there are {self.slots}")
        version = 0 if previous is None else previous.version + 1
        placed = self._place(seen, previous, workers).placement(workers, version)
        return previous if previous is not None and placed.same_owners(previous) else placed

    def learn(self, seen: Counts) -> None:
        """Take note of a round, such as a micro-batch: the counts of this round alone, each round once."""

    def watched(self, workers: int) -> int:
        """How many of the most frequent keys it has to be told, so that it knows every key worth a slot of its own."""
        return 0

    @abstractmethod
    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        """The owners of the slots for this many workers."""


def in_turn(slots: int, workers: int) -> Int32Array:
    """The worker of each slot if slots are given to the workers in turn.

    >>> in_turn(6, 4)
    array([0, 1, 2, 3, 0, 1], dtype=int32)
    """
    return (np.arange(slots) % workers).astype(np.int32)


def whole(name: str, value: object, least: int, most: int | None = None, advice: str = "") -> int:
    """The parameter of this name, if it is a whole number within these bounds.

    >>> whole("workers", np.int64(4), least=1)
    4
    """
    number = int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise SkewlessError(f"{name} is {value!r}; give a whole number {bounds}{advice}")
    return number
