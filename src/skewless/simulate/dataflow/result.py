"""What a simulated dataflow did: when each row was done and where, what was kept, and what moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order in which they come.

    Parameters
    ----------
    at
        When each row comes, in seconds; it never falls.
    slot
        The slot of its key.
    key, value
        What is added to the total of the key.
    """

    at: FloatArray
    slot: Int64Array
    key: Int64Array
    value: Int64Array

    def __post_init__(self) -> None:
        """Refuse columns that do not fit, and rows without a time or before others."""
        if not len(self.at) == len(self.slot) == len(self.key) == len(self.value):
            raise SkewlessError("a stream has a time, a slot, a key and a value for each row; give as many of each")
        if not np.isfinite(self.at).all():
            number = int(np.flatnonzero(~np.isfinite(self.at))[0])
            raise SkewlessError(f"row {number} of a stream comes at {self.at[number]} s; give each row a time")
        if len(self.at) and (np.diff(self.at) < 0).any():
            raise SkewlessError("the rows of a stream are in the order of their times; sort them")

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class Moved:
    """Slots that moved.

    Attributes
    ----------
    sender, receiver, slots
        From where, to where, and which.
    told
        When the scheduler, or the driver, told of it.
    left, came
        When the last state left, and when the last one was there.
    """

    sender: int
    receiver: int
    slots: tuple[int, ...]
    told: float
    left: float
    came: float


@dataclass(frozen=True, eq=False)
class Flow:
    """A run of a dataflow.

    Attributes
    ----------
    at, done, worker
        Of each row, when it came, when it was done, and by which worker.
    held
        Of each row, the seconds for which it was kept because a slot moved.
    moves
        What moved, in order.
    totals
        The total of each key at the end, on each worker.
    """

    at: FloatArray
    done: FloatArray
    worker: Int64Array
    held: FloatArray
    moves: tuple[Moved, ...]
    totals: tuple[dict[int, int], ...]

    @property
    def latency(self) -> FloatArray:
        """Seconds from the source until a row is done."""
        latency: FloatArray = self.done - self.at
        return latency

    @property
    def kept(self) -> int:
        """The rows that were kept because a slot moved."""
        return int((self.held > 0).sum())

    def sampled(self, worker: int, every: int = 100) -> tuple[FloatArray, FloatArray]:
        """When every so many rows of a worker were done, and their latency."""
        order = self._order(worker)[every - 1 :: every]
        return self.done[order], self.latency[order]

    def throughput(self, worker: int, every: int = 1000) -> tuple[FloatArray, FloatArray]:
        """When every so many rows of a worker were done, and its rows a second since the time before."""
        times = np.concatenate([[0.0], self.done[self._order(worker)][every - 1 :: every]])
        return times[1:], every / np.maximum(np.diff(times), 1e-9)

    def loads(self, start: float, end: float, workers: int) -> Int64Array:
        """The rows of each worker among those that came in this time."""
        among = (self.at >= start) & (self.at < end)
        return np.bincount(self.worker[among], minlength=workers)

    def _order(self, worker: int) -> Int64Array:
        mine = np.flatnonzero(self.worker == worker)
        order: Int64Array = mine[np.argsort(self.done[mine], kind="stable")]
        return order
