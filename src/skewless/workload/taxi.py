"""Taxi trips after the DEBS 2015 challenge: who drove how far and for how much, told at the end of each trip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows
from skewless.workload.stream import check_lengths

FARE_WINDOWS = Windows(7200, 300)
"""Of query 1, the fare of each taxi: 2 hours by 5 minutes, in seconds."""

DISTANCE_WINDOWS = Windows(2700, 60)
"""Of query 2, the distance of each taxi: 45 minutes by 1 minute, in seconds."""

_EVENNESS = 12  # shape of the gamma distribution of how busy taxis are: all of them nearly equally so
_MEDIAN, _SPREAD = 1.6, 0.81  # miles, and the standard deviation of their logarithm
_BASE, _MILE, _NOISE = 4.0, 2.6, 2.0  # dollars of a trip, of a mile, and what else differs


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips in the order of their ends, one array per column.

    Parameters
    ----------
    time
        Seconds since the start at which the trip ended.
    taxi
        The number of the taxi: the key of both queries.
    distance, fare
        Miles, and dollars.
    """

    time: FloatArray
    taxi: Int64Array
    distance: FloatArray
    fare: FloatArray

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Taxi:
    """A stream of taxi trips.

    There are many taxis, nearly equally busy, so no key is hot; what makes it hard is that nearly every row of a
    micro-batch has a key of its own. Distances are log-normal and fares follow them, as in the real trips.

    Parameters
    ----------
    taxis
        Number of taxis; New York had 13,237 licences at the time.
    trips_per_second
        How many trips end in a second, on average.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> trips = Taxi(seed=1).take(10_000)
    >>> len(np.unique(trips.taxi))
    6869
    >>> round(float(np.median(trips.distance)), 1), round(float(trips.fare.mean()), 1)
    (1.6, 9.8)

    References
    ----------
    Z. Jerzak, H. Ziekow: The DEBS 2015 grand challenge. DEBS 2015.
    """

    taxis: int = 13_237
    trips_per_second: float = 4.6
    seed: int = 1

    def __post_init__(self) -> None:
        """Check that there are taxis and trips."""
        if self.taxis < 1:
            raise SkewlessError(f"taxis is {self.taxis}; give at least 1")
        if not self.trips_per_second > 0:
            raise SkewlessError(f"trips_per_second is {self.trips_per_second}; give more than 0")

    @cached_property
    def shares(self) -> FloatArray:
        """The share of the trips that each taxi has."""
        busy = np.random.default_rng([self.seed, 0]).gamma(_EVENNESS, size=self.taxis)
        shares: FloatArray = busy / busy.sum()
        return shares

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[Trips]:
        """The first `n` trips, at most `block` of them at a time."""
        check_lengths(n, block)
        # A generator for each column: the stream is the same however it is cut into blocks.
        gaps, taxis, miles, dollars = (np.random.default_rng([self.seed, column]) for column in (1, 2, 3, 4))
        upper = self.shares.cumsum()
        now = 0.0
        for start in range(0, n, block):
            size = min(block, n - start)
            steps = gaps.standard_exponential(size) / self.trips_per_second
            steps[0] += now
            time = steps.cumsum()
            now = float(time[-1])
            taxi = np.minimum(np.searchsorted(upper, taxis.random(size), side="right"), self.taxis - 1)
            distance = np.round(_MEDIAN * np.exp(_SPREAD * miles.standard_normal(size)), 2)
            fare = _BASE + _MILE * distance + _NOISE * dollars.standard_normal(size)
            yield Trips(time, taxi, distance, np.maximum(2.5, np.round(2 * fare) / 2))

    def take(self, n: int) -> Trips:
        """The first `n` trips."""
        none = Trips(np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        return next(self.blocks(n, max(n, 1)), none)
