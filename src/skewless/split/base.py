"""What every splitter offers: a worker for each tuple, and a policy for the next micro-batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts, quanta
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_WORKERS = 1 << 16
QUANTA = 32  # quanta that make a worker's fair load when planning
_ONE = np.ones(1, dtype=np.int64)


class Splitter(ABC):
    """Decides which worker gets each tuple, where a key may be split over several workers.

    Parameters
    ----------
    workers
        Workers that share the load. As the strategy of a stream it may be left out: the stream knows.
    """

    name: ClassVar[str]
    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember what was asked for, to make the same for other workers."""
        made = super().__new__(cls)
        made._given = args, options
        return made

    def __init__(self, workers: int = 1) -> None:
        if not isinstance(workers, (int, np.integer)) or not 1 <= workers <= MOST_WORKERS:
            raise SkewlessError(f"workers is {workers!r}; give a whole number from 1 to {MOST_WORKERS}")
        self.workers = int(workers)
        self.version = 0

    @property
    def for_any(self) -> bool:
        """Whether the number of workers was left out."""
        args, options = self._given
        return not args and "workers" not in options

    def for_workers(self, workers: int) -> Self:
        """A splitter like this one, for so many workers, that has learned nothing yet.

        >>> from skewless.split import Dalton
        >>> Dalton(epsilon=0.2).for_workers(8).workers
        8
        """
        _, options = self._given
        return type(self)(**{**options, "workers": workers})

    def route(self, keys: Int64Array) -> Int32Array:
        """A worker for each tuple, learning as it goes; a stream may be cut into calls anywhere."""
        keys = as_keys(keys)
        out = np.empty(len(keys), dtype=np.int32)
        self._assign(keys, _ONE, out)
        return out

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch that looks like `seen`, learning from one to the next.

        The algorithm that routes tuples routes a short stream in which a key of count c comes as quanta of c; its lanes
        are the workers they went to. Keys of less than a quantum go home.
        """
        quantum = max(1, seen.total // (QUANTA * self.workers))
        heavy = seen.heavier_than(quantum, self.workers)
        self._begin_batch(heavy)
        which, weights = quanta(heavy.counts, quantum)
        workers = self._assign_batch(heavy.keys[which], weights)
        return self._policy(np.resize(heavy.keys[which], len(workers)), workers)

    @property
    def hot_keys(self) -> int:
        """Keys that are treated apart from the rest right now."""
        return 0

    @abstractmethod
    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        """Route tuples; `weights` has an entry for each, or one for all."""

    def _assign_batch(self, keys: Int64Array, weights: Int64Array) -> Int32Array:
        """Route the stream that stands for a micro-batch, once or several times; the workers, time after time."""
        out = np.empty(len(keys), dtype=np.int32)
        self._assign(keys, weights, out)
        return out

    @abstractmethod
    def _begin_batch(self, seen: Counts) -> None:
        """A micro-batch begins: forget the loads of the last one, put its tail where it goes."""

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
