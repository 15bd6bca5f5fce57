"""What every splitter offers: a worker for each tuple, and a policy for the next micro-batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts, quanta
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.core.prototype import Prototype

MOST_WORKERS = 1 << 16
QUANTA = 32  # quanta that make a worker's fair load when planning
_ONE = np.ones(1, dtype=np.int64)


class Splitter(Prototype, ABC):
    """Decides which worker gets each tuple; a key may be split over several workers.

    Parameters
    ----------
    workers
        Workers that share the load. It may be omitted if the splitter is the strategy of a stream, which knows the
        number.
    """

    name: ClassVar[str]
    in_task: bool = False
    """Whether on Spark each task of a stream has a splitter of its own, instead of going by a policy."""
    batches_in_task: bool = False
    """Whether batches are routed in the task too, where a plan from their counts would do."""
    plans_batches: ClassVar[bool] = False
    """Whether a batch that is aggregated goes by a plan of the whole."""

    def __init__(self, workers: int = 1) -> None:
        if not isinstance(workers, (int, np.integer)) or not 1 <= workers <= MOST_WORKERS:
            raise SkewlessError(f"workers is {workers!r}; give a whole number from 1 to {MOST_WORKERS}")
        self.workers = int(workers)
        self.version = 0

    def route(self, keys: Int64Array) -> Int32Array:
        """A worker for each tuple, learning as it goes; a stream may be cut into calls anywhere."""
        keys = as_keys(keys)
        out = np.empty(len(keys), dtype=np.int32)
        self._assign(keys, _ONE, out)
        return out

    def for_task(self) -> Splitter:
        """One like this for the rows of one task."""
        return self.again(workers=self.workers)

    def route_task(self, parts: Iterable[Int64Array]) -> Iterator[Int32Array]:
        """Workers for the rows of one task, part by part, by a splitter of the task's own."""
        own = self.for_task()
        return map(own.route, parts)

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with counts like `seen`; the splitter learns from one micro-batch to the next.

        The counts become a short stream, in which a tuple stands for a quantum of a key's tuples. This stream is routed
        as tuples are, and the lanes of a key are the workers that its quanta went to. Keys of less than a quantum go to
        their home.
        """
        quantum = max(1, int(seen.total) // (QUANTA * self.workers))
        heavy = seen.heavier_than(quantum, self.workers)
        self._begin_batch(heavy)
        which, weights = quanta(heavy.whole, quantum)
        workers = self._assign_batch(heavy.keys[which], weights)
        return self._policy(np.resize(heavy.keys[which], len(workers)), workers)

    @property
    def hot_keys(self) -> int:
        """The number of keys that are treated differently from the rest right now."""
        return 0

    @abstractmethod
    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        """Route tuples; `weights` has an entry for each tuple, or one for all."""

    def _assign_batch(self, keys: Int64Array, weights: Int64Array) -> Int32Array:
        """Route the stream that stands for a micro-batch, once or several times; return the workers of all passes."""
        out = np.empty(len(keys), dtype=np.int32)
        self._assign(keys, weights, out)
        return out

    def _begin_batch(self, seen: Counts) -> None:
        """Begin a micro-batch: forget the loads of the last one, and add the tail of this one to the loads."""

    def _policy(self, keys: Int64Array, workers: Int32Array) -> Policy:
        self.version += 1
        return Policy.from_assignments(self.workers, keys, workers, version=self.version)


def as_keys(keys: Int64Array) -> Int64Array:
    """Keys as a flat array of longs; anything but whole numbers is refused."""
    keys = np.asarray(keys)
    if keys.ndim != 1 or keys.dtype.kind not in "iu":
        raise SkewlessError(
            f"keys are {keys.dtype} of shape {keys.shape}; give one flat array of whole numbers, "
            "such as skewless.core.hashing.xxhash64(column) makes of any column"
        )
    if keys.dtype == np.uint64:
        return np.ascontiguousarray(keys).view(np.int64)
    return np.ascontiguousarray(keys, dtype=np.int64)


def check_share(name: str, value: float) -> None:
    """Refuse a probability or rate outside 0 to 1."""
    if not 0 <= value <= 1:
        raise SkewlessError(f"{name} is {value}; give a number from 0 to 1")
