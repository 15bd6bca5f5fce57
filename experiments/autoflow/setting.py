"""The workloads of AutoFlow's evaluation: bids of Nexmark, of which a share is for auctions of some workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.place import Even, Placement
from skewless.simulate.dataflow import Stream
from skewless.workload import Nexmark
from skewless.workload.hot_spot import HotSpot
from skewless.workload.nexmark import PROPORTIONS

WORK = 1e-3
"""Seconds that a row takes a reducer: chosen, not one of `experiments.costs`, as rows wait for that time on Spark."""
LOAD = 0.75
"""The share of their time for which reducers are busy when all have the same load."""
SLOTS = 60
FACTOR = 0.2
START = 30.0
"""Seconds before a hot spot that stays: by then, micro-batches that follow each other have their length."""


@dataclass(frozen=True)
class Case:
    """A workload.

    Parameters
    ----------
    name
        The panels of the figure, without and with moving.
    workers
        Sources, mappers and reducers, each.
    spots
        For how long what share of all rows is for which workers, the rows included that they have anyway.
    seconds
        How long it runs.
    window_length
        Periods after which the scheduler decides.
    most
        Where it runs in micro-batches, of how many seconds the rows are that one takes at most; none is all that came.
    """

    name: str
    workers: int
    spots: tuple[HotSpot, ...]
    seconds: float
    window_length: int
    most: float | None = None

    @property
    def hot(self) -> tuple[int, ...]:
        """All workers that are hot at some time."""
        return tuple(sorted({worker for spot in self.spots for worker in spot.workers}))

    @property
    def start(self) -> float:
        """When the first hot spot begins."""
        return min((spot.start for spot in self.spots), default=0.0)

    @property
    def off(self) -> str:
        """The panels without moving."""
        return self.name.split()[0]

    @property
    def on(self) -> str:
        """The panels with AutoFlow."""
        return self.name.split()[1]


def _fixed(name: str, workers: int, share: float, hot: tuple[int, ...], seconds: float = 120.0) -> Case:
    return Case(f"{name}, from {START:g} s on", workers, (HotSpot(share, hot, START),), seconds, 5, 4.0)


FIXED = (
    _fixed("5ab 5cd 50 % on one of three", 3, 0.5, (1,)),
    _fixed("5ef 5gh 80 % on one of three", 3, 0.8, (1,)),
    _fixed("5ij 5kl 60 % on two of five", 5, 0.6, (1, 3)),
    _fixed("5mn 5o 80 % on two of five", 5, 0.8, (1, 3), 160.0),
)
SPIKES = (
    Case("6a 6b 60 % for 20 s", 3, (HotSpot(0.6, (1,), 10.0, 30.0),), 80.0, 2, 2.5),
    Case("6c 6d 80 % for 10 s", 3, (HotSpot(0.8, (1,), 10.0, 20.0),), 80.0, 1, 2.5),
)
"""By how much the paper's spikes are too large is not said; what is left of them is compared, not how high they are."""
WANDERING = (
    Case(
        "7a 7b 50 % that wander",
        3,
        tuple(HotSpot(0.5, (worker,), 20.0 * i, 20.0 * (i + 1)) for i, worker in enumerate((1, 2, 1, 0))),
        120.0,
        2,
        2.5,
    ),
    Case(
        "7c 7d 80 % in turn",
        3,
        tuple(HotSpot(0.8, (worker,), 20.0 * i, 20.0 * (i + 1)) for i, worker in enumerate((0, 1, 2, 0))),
        120.0,
        2,
        2.5,
    ),
)


def rate(workers: int, work: float = WORK) -> float:
    """Rows a second of all sources."""
    return LOAD * workers / work


def first(workers: int, slots: int = SLOTS) -> Placement:
    """The placement that all start from: slots in turn."""
    return Even(slots).place(Counts.none(), None, workers)


def too_many(case: Case, work: float = WORK) -> int:
    """The rows that come in a hot spot beyond what its workers can add up in that time.

    >>> [too_many(case) for case in SPIKES]
    [7000, 8000]
    """
    return round(
        sum(
            (spot.share * rate(case.workers, work) - len(spot.workers) / work) * (spot.end - spot.start)
            for spot in case.spots
        )
    )


def extra(share: float, hot: int, workers: int) -> float:
    """The share of rows to move to hot workers so that they have this share together with what they have anyway.

    >>> extra(0.5, hot=1, workers=3)
    0.25
    """
    fair = hot / workers
    return (share - fair) / (1 - fair)


def bids(case: Case, work: float = WORK, seed: int = 1) -> tuple[np.ndarray, Int64Array, Int64Array]:
    """When each bid comes, its auction and its price.

    No auction is hot by itself: what is hot are the auctions of a worker, all of them together.
    """
    placement = first(case.workers)

    def owner(auctions: Int64Array) -> Int64Array:
        owners: Int32Array = placement.worker_of(xxhash64(auctions))
        return owners.astype(np.int64)

    spots = tuple(
        HotSpot(extra(spot.share, len(spot.workers), case.workers), spot.workers, spot.start, spot.end)
        for spot in case.spots
    )
    events = rate(case.workers, work) * sum(PROPORTIONS) / PROPORTIONS[2]
    source = Nexmark(rate=events, hot_auctions=1, hot_bidders=1, hot_spots=spots, owner=owner, seed=seed)
    rows = source.take(round(events * case.seconds)).bids
    since = np.asarray(rows["ts"].cast("int64")) - round(source.start.timestamp() * 1e6)
    return since / 1e6, np.asarray(rows["auction"]), np.asarray(rows["price"])


@cache
def stream(case: Case, work: float = WORK, seed: int = 1) -> Stream:
    """The bids as the simulator takes them."""
    at, auction, price = bids(case, work, seed)
    return Stream(at, first(case.workers).slot_of(xxhash64(auction)), auction, price)
