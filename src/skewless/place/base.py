"""What every placer offers: a placement for the next round, from what was counted and the placement before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skewless.arrays import FloatArray, Int32Array, Int64Array
from skewless.errors import SkewlessError
from skewless.place.placement import Placement

MOST_WORKERS = 1 << 16
MOST_SLOTS = 1 << 24
SLOTS = 4096  # tail slots, unless told otherwise


@dataclass(frozen=True, eq=False)
class Frequencies:
    """How often the keys came: those told apart, and the rest.

    Attributes
    ----------
    hashes, counts
        The keys told apart, by hash, and how often each came.
    total
        All rows, those of other keys included.
    tail
        The rows of the other keys in each tail slot, if that was counted.
    distinct
        How many different keys there are, if known. Only quadratic resources ask for it; unknown, every row of the rest
        is taken for a key of its own.

    Examples
    --------
    >>> seen = Frequencies.of(np.array([5, 5, 5, 8]), slots=4)
    >>> seen.hashes, seen.shares, seen.by_slot(4)
    (array([5, 8]), array([0.75, 0.25]), array([1., 3., 0., 0.]))
    """

    hashes: Int64Array
    counts: FloatArray | Int64Array
    total: float
    tail: FloatArray | Int64Array | None = None
    distinct: int | None = None

    def __post_init__(self) -> None:
        """Refuse counts that contradict each other."""
        if self.hashes.shape != self.counts.shape or self.hashes.ndim != 1:
            raise SkewlessError(f"{self.hashes.shape} hashes but {self.counts.shape} counts; give one count for each")
        if len(np.unique(self.hashes)) != len(self.hashes):
            raise SkewlessError("a hash is listed twice; add its counts up first")
        if len(self.counts) and not self.counts.min() > 0:
            raise SkewlessError(f"a count is {self.counts.min()}; list only keys that came")
        listed = float(self.counts.sum())
        if listed > self.total * (1 + 1e-9):  # sums of shares round
            raise SkewlessError(f"the counts add up to {listed:g}, more than the total of {self.total:g}")
        if self.tail is not None and (self.tail.ndim != 1 or (len(self.tail) and self.tail.min() < 0)):
            raise SkewlessError("tail has the rows of the other keys in each slot: a flat array of at least 0 each")

    @classmethod
    def of(cls, hashes: Int64Array, slots: int, told: int | None = None) -> Frequencies:
        """The exact counts of these rows: of the `told` most frequent keys (all, if not given), and per tail slot."""
        distinct, counts = np.unique(hashes, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        listed, others = order[:told], order[len(order[:told]) :]
        tail = np.bincount(distinct[others] % slots, counts[others], slots)
        return cls(distinct[listed], counts[listed], len(hashes), tail, len(distinct))

    @property
    def shares(self) -> FloatArray:
        """The part of all rows that each key told apart has."""
        shares: FloatArray = self.counts / self.total if self.total else np.zeros(0)
        return shares

    @property
    def domain(self) -> int:
        """How many different keys there are, as far as is known."""
        if self.distinct is not None:
            return max(self.distinct, len(self.hashes), 1)
        return max(1, len(self.hashes) + int(self.total - self.counts.sum()))

    def by_slot(self, slots: int) -> FloatArray:
        """All rows in each tail slot, as if no key had a slot of its own; an uncounted rest is taken to be even."""
        if self.tail is None:
            tail = np.full(slots, max(0.0, self.total - float(self.counts.sum())) / slots)
        elif len(self.tail) != slots:
            raise SkewlessError(f"the tail was counted in {len(self.tail)} slots, but there are {slots}")
        else:
            tail = np.asarray(self.tail, np.float64)
        both: FloatArray = tail + np.bincount(self.hashes % slots, self.counts, slots)
        return both


class Placer(ABC):
    """Decides which worker owns each slot, where a key may be on one worker only, because its state does not merge.

    Parameters
    ----------
    slots
        Tail slots. It stays the same for as long as there is state.
    """

    name: ClassVar[str]

    def __init__(self, slots: int = SLOTS) -> None:
        if not isinstance(slots, (int, np.integer)) or not 1 <= slots <= MOST_SLOTS:
            raise SkewlessError(f"slots is {slots!r}; give a whole number from 1 to {MOST_SLOTS}")
        self.slots = int(slots)

    def place(self, frequencies: Frequencies, previous: Placement | None, workers: int) -> Placement:
        """A placement for so many workers, a version later than `previous`; `previous` itself if nothing changes.

        Parameters
        ----------
        frequencies
            What was counted lately.
        previous
            The placement in use, from which state would have to move; None if there is none yet.
        workers
            Workers there are to be: as many as now, more, or fewer.
        """
        if not isinstance(workers, (int, np.integer)) or not 1 <= workers <= MOST_WORKERS:
            raise SkewlessError(f"workers is {workers!r}; give a whole number from 1 to {MOST_WORKERS}")
        if previous is not None and previous.tail_slots != self.slots:
            raise SkewlessError(
                f"the placement has {previous.tail_slots} tail slots and this placer {self.slots}; "
                f"make the placer with slots={previous.tail_slots}"
            )
        if frequencies.tail is not None and len(frequencies.tail) != self.slots:
            raise SkewlessError(f"the tail was counted in {len(frequencies.tail)} slots, but there are {self.slots}")
        tail, keys, own = self._place(frequencies, previous, int(workers))
        order = np.argsort(keys)
        placed = Placement(int(workers), tail, keys[order], own[order], 0 if previous is None else previous.version + 1)
        return previous if previous is not None and placed.same_owners(previous) else placed

    @abstractmethod
    def _place(
        self, frequencies: Frequencies, previous: Placement | None, workers: int
    ) -> tuple[Int32Array, Int64Array, Int32Array]:
        """The worker of each tail slot, the keys to track, and the worker of each."""


NO_KEYS: Int64Array = np.zeros(0, np.int64)
NO_OWNERS: Int32Array = np.zeros(0, np.int32)
