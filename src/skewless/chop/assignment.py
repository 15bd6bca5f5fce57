"""Assigns runs of consecutive windows to workers, and each row to every worker that owns a window containing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import BEFORE_ALL, Windows

_AFTER_ALL = -BEFORE_ALL


class Assignment(Protocol):
    """Says which worker owns each window of a key."""

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker that owns each window of a key."""

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each copy of these rows: the row that it copies, and its worker."""

    def batch_of(self, window: int) -> range:
        """The windows that are assigned together with this one; it alone where there are no batches."""
        return range(window, window + 1)


class InTurn(Assignment, Protocol):
    """Assigns windows to workers that take turns, so that it is known when a worker's turn comes."""

    def next_of(self, worker: int, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """For each window, the first one from there on that this worker owns."""


@dataclass(frozen=True)
class BatchAssignment(InTurn):
    """Assigns batches of consecutive windows to the workers in turn; the hash of a key says at which worker it starts.

    A row is copied once to each worker that needs it, even if several of that worker's windows contain it.

    Parameters
    ----------
    windows
        The windows, with their size and slide.
    workers
        The number of workers.
    sizes
        Pairs of a window and a batch size: from this window on, a batch has this many windows. The first pair starts
        before all windows.

    Examples
    --------
    >>> deal = BatchAssignment.of(Windows(3, 1, rows=True), workers=4, batch=2)
    >>> deal.worker_of(np.zeros(6, np.int64), np.arange(6))
    array([0, 0, 1, 1, 2, 2])
    >>> deal.copies(np.zeros(4, np.int64), np.arange(4))  # row 2 is in windows 0, 1 and 2
    (array([0, 1, 2, 2, 3, 3]), array([0, 0, 0, 1, 0, 1]))
    """

    windows: Windows
    workers: int
    sizes: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Check that every window is in one batch."""
        if self.workers < 1:
            raise SkewlessError(f"workers must be at least 1, not {self.workers}")
        starts = [start for start, _batch in self.sizes]
        if not starts or starts[0] != BEFORE_ALL or starts != sorted(set(starts)):
            raise SkewlessError(f"sizes of batches start at windows {starts}; the first is from {BEFORE_ALL} on")
        for _start, batch in self.sizes:
            self.windows.batches(batch)

    @classmethod
    def of(cls, windows: Windows, workers: int, batch: int) -> BatchAssignment:
        """An assignment with batches of one size."""
        return cls(windows, workers, ((BEFORE_ALL, batch),))

    @property
    def batch(self) -> int:
        """The windows in a batch since the last change of size."""
        return self.sizes[-1][1]

    def changed(self, batch: int, window: int) -> BatchAssignment:
        """The same assignment up to a window, with batches of another size from that window on."""
        kept = [size for size in self.sizes if size[0] < window]
        return replace(self, sizes=(*kept, (window, batch)))

    def from_window(self, window: int) -> BatchAssignment:
        """The same assignment for windows from this one on; earlier windows are no longer needed."""
        kept = [size for i, size in enumerate(self.sizes) if i == 0 or self._end(i) > window]
        return replace(self, sizes=tuple(kept))

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker that owns each window of a key."""
        windows = np.asarray(windows, np.int64)
        at = self._size_of(windows)
        origins, batches = self._origins()[at], np.array([batch for _start, batch in self.sizes])[at]
        return worker_in_turn(hashes, origins + (windows - origins) // batches, self.workers)

    def next_of(self, worker: int, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """For each window, the first one from there on that this worker owns; only for batches of one size."""
        ((_start, batch),) = self.sizes
        numbers = windows // batch
        ahead = (worker - worker_in_turn(hashes, numbers, self.workers)) % self.workers
        return np.where(ahead == 0, windows, (numbers + ahead) * batch)

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each copy of these rows: the row that it copies, and its worker. The copies of a row stand together."""
        first, last = self.windows.first(times), self.windows.last(times)
        pieces = [self._piece(i, hashes, first, last) for i in range(len(self.sizes))]
        if len(pieces) == 1:
            return pieces[0]
        rows, workers = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        both = np.unique(rows * self.workers + workers)
        return both // self.workers, both % self.workers

    def batch_of(self, window: int) -> range:
        """The windows of the batch that contains this one."""
        i = int(self._size_of(window))
        origin, batch = int(self._origins()[i]), self.sizes[i][1]
        start = origin + (window - origin) // batch * batch
        return range(start, min(start + batch, self._end(i)))

    def _piece(self, i: int, hashes: Int64Array, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The copies that go to batches of the i-th size."""
        start, batch = self.sizes[i]
        origin = self._origins()[i]
        first, last = np.maximum(first, start), np.minimum(last, self._end(i) - 1)
        low = origin + (first - origin) // batch
        count = np.clip(origin + (last - origin) // batch - low + 1, 0, self.workers)
        count[first > last] = 0
        rows = np.repeat(np.arange(len(first)), count)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        return rows, worker_in_turn(hashes[rows], low[rows] + nth, self.workers)

    def _size_of(self, windows: npt.ArrayLike) -> Int64Array:
        """Which of the sizes each window's batch has."""
        at: Int64Array = np.searchsorted([start for start, _batch in self.sizes], windows, side="right") - 1
        return at

    def _end(self, i: int) -> int:
        """The first window after those of the i-th size."""
        return self.sizes[i + 1][0] if i + 1 < len(self.sizes) else _AFTER_ALL

    def _origins(self) -> Int64Array:
        """The window from which the batches of each size are counted."""
        return np.array([0 if start == BEFORE_ALL else start for start, _batch in self.sizes], np.int64)


@dataclass(frozen=True)
class KeyAssignment(Assignment):
    """Assigns all windows of a key to one worker.

    Parameters
    ----------
    workers
        The number of workers.
    """

    workers: int

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker that owns each window of a key."""
        return hashes % self.workers

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Each row once, with the worker of its key."""
        return np.arange(len(hashes)), hashes % self.workers


def worker_in_turn(hashes: Int64Array, numbers: Int64Array, workers: int) -> Int64Array:
    """The worker of each number of a key: the workers take turns, and the hash of the key says where they start."""
    # Both are first reduced below the number of workers: a hash uses all 64 bits, so their sum could overflow.
    worker: Int64Array = (np.asarray(hashes, np.int64) % workers + numbers % workers) % workers
    return worker


def mine(deal: Assignment, worker: int, hashes: Int64Array, windows: Int64Array) -> BoolArray:
    """Which of these windows a worker owns."""
    own: BoolArray = deal.worker_of(hashes, windows) == worker
    return own
