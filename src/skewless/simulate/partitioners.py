"""The partitioners of a simulated cluster: one splitter each, that knows only its own tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.split import CAM, Dalton, Hash, Splitter
from skewless.split.hot_splitter import HeldSplitter


class Router(Protocol):
    """What a partitioner needs: any splitter of `skewless.split` has it, and so may a placer or a block plan.

    If it also has `end_slide` and its `slide` is None, that is called at the end of each slide. If it has `partition`
    or `route_batch`, whole micro-batches are given to that one instead.
    """

    def route(self, keys: Int64Array) -> Int32Array:
        """A worker for each tuple."""


class Partitioners:
    """Several partitioners that do not talk to each other.

    Parameters
    ----------
    routers
        The router of each partitioner.

    Examples
    --------
    >>> from skewless.split import Dalton
    >>> team = Partitioners.like(Dalton(4, slide=None), 2)
    >>> keys, times, at = np.array([5, 5, 6, 6]), np.arange(4.0), np.array([0, 1, 0, 1])
    >>> team.route(keys, times, at)
    array([1, 1, 2, 2], dtype=int32)
    """

    def __init__(self, *routers: Router) -> None:
        if not routers:
            raise SkewlessError("there are no partitioners; give at least one splitter")
        if len({id(router) for router in routers}) < len(routers):
            raise SkewlessError(
                "a splitter was given for two partitioners; give each one of its own, as `like` makes them"
            )
        self.routers = routers
        self._begun = False
        for router in routers:
            if isinstance(router, type) or not callable(getattr(router, "route", None)):
                raise SkewlessError(
                    f"a partitioner is {router!r}, which routes nothing; give a splitter, such as "
                    'skewless.split.make("dalton", workers=8, slide=None), or Partitioners of several'
                )
            if isinstance(router, HeldSplitter):
                router.take_hot()  # from now on it remembers them

    @classmethod
    def like(cls, splitter: Splitter, partitioners: int) -> Partitioners:
        """So many that are made like this one; those that explore draw different numbers."""
        if isinstance(splitter, Dalton):
            first = int(splitter.bandit.random[0])
            return cls(*(splitter.again(seed=first + number) for number in range(partitioners)))
        return cls(*(splitter.again() for _ in range(partitioners)))

    def __len__(self) -> int:
        """The number of partitioners."""
        return len(self.routers)

    def begin(self, combiners: int) -> None:
        """Get ready for a run on so many combiners; what has run stands at the end of that run, and is refused."""
        if self._begun:
            raise SkewlessError("these partitioners have run already; make new ones for each run")
        for router in self.routers:
            workers = getattr(router, "workers", combiners)
            if workers != combiners:
                raise SkewlessError(
                    f"{type(router).__name__} routes to {workers} workers, but there are {combiners} combiners; give "
                    "both the same number"
                )
        self._begun = True

    @property
    def synced(self) -> bool:
        """Whether all knew within the slide which keys are hot at the others."""
        return len(self) == 1 or all(isinstance(router, Hash) for router in self.routers)

    @property
    def plans(self) -> bool:
        """Whether they plan a whole micro-batch before they route its tuples."""
        return any(hasattr(router, "partition") for router in self.routers)

    @property
    def spent(self) -> float:
        """Seconds of this slide that each partitioner took for anything but routing."""
        return 0.0

    def route(self, keys: Int64Array, times: FloatArray, at: Int64Array) -> Int32Array:
        """A worker for each tuple of a slide, or of a part of it.

        Parameters
        ----------
        keys, times
            The tuples, in the order in which they arrive.
        at
            The partitioner of each; nothing if there is only one.
        """
        return self._each(keys, at, lambda router, own: router.route(own))

    def route_batch(self, keys: Int64Array, at: Int64Array) -> Int32Array:
        """A worker for each tuple of a whole micro-batch, which partitioners see before they route it."""
        return self._each(keys, at, _route_batch)

    def advance(self, now: float) -> None:
        """Time has come to `now`; partitioners that do not talk have nothing to do."""

    def end_slide(self) -> None:
        """End the slide of the routers whose slides are of time."""
        for router in self.routers:
            if getattr(router, "slide", 0) is None and hasattr(router, "end_slide"):
                router.end_slide()

    def end_batch(self) -> None:
        """End the slide of the routers that a micro-batch has not ended: those that do not see it beforehand."""
        for router in self.routers:
            if getattr(router, "slide", 0) is None and not hasattr(router, "route_batch"):
                router.end_slide()  # type: ignore[attr-defined]  # only some routers have slides

    def hot(self) -> Int64Array | None:
        """The keys that were hot at a partitioner since the last call; None if any key may have been split.

        All other keys have only been on one worker.
        """
        parts = []
        for router in self.routers:
            if isinstance(router, HeldSplitter):
                parts.append(router.take_hot())
            elif not isinstance(router, Hash) and not (isinstance(router, CAM) and router.slide is None):
                return None
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)

    def _each(self, keys: Int64Array, at: Int64Array, routed: _Routing) -> Int32Array:
        if len(self.routers) == 1:
            return routed(self.routers[0], keys)
        out = np.empty(len(keys), dtype=np.int32)
        for number, router in enumerate(self.routers):
            own = at == number
            out[own] = routed(router, keys[own])
        return out


class _Routing(Protocol):
    def __call__(self, router: Router, keys: Int64Array) -> Int32Array: ...


def _route_batch(router: Router, keys: Int64Array) -> Int32Array:
    for name in ("partition", "route_batch"):
        if hasattr(router, name):
            workers: Int32Array = getattr(router, name)(keys)
            return workers
    return router.route(keys)


def dealt(sources: int, partitioners: int, lengths: Sequence[int], given: Int64Array) -> list[Int64Array]:
    """The partitioner of each tuple, for each source: tuple i of source s goes to (s + i sources) mod partitioners.

    So with as many sources as partitioners each has its own, fewer deal their tuples out, and more share partitioners.

    >>> dealt(1, 2, [3], np.array([0]))
    [array([0, 1, 0])]
    >>> dealt(2, 2, [2, 2], np.array([0, 0]))
    [array([0, 0]), array([1, 1])]
    """
    return [
        (source + sources * np.arange(given[source], given[source] + length)) % partitioners
        for source, length in enumerate(lengths)
    ]
