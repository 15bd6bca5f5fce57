"""Linear Road: cars on expressways report where they are, with jams and accidents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.stream import check_lengths

INTERVAL = 30  # seconds between two reports of a car
SEGMENTS = 100  # segments of an expressway
SEGMENT = 5280  # feet in a segment, a mile
ENTRANCE, EXIT = 0, 4  # lanes; the road has 1 to 3

_FEET_PER_MPH = SEGMENT / 3600 * INTERVAL  # feet in an interval at a mile an hour
_FASTEST, _CRAWL = 100, 12  # miles an hour
_ROOM = 200  # cars in a segment, on three lanes, that halve its speed
_PAST_ACCIDENT = 15  # miles an hour at which cars pass an accident


@dataclass(frozen=True, eq=False)
class Reports:
    """Position reports in order of time, one array per column.

    Parameters
    ----------
    time
        Seconds since the start.
    vehicle
        The car's number; a car that comes back has another number.
    speed
        Miles an hour, 0 to 100.
    expressway, lane, direction, segment
        Lane 0 is the entrance, 4 the exit, 1 to 3 the road; direction 0 goes up the segments, 1 down.
    position
        Feet from the start of the expressway.
    """

    time: Int64Array
    vehicle: Int64Array
    speed: Int32Array
    expressway: Int32Array
    lane: Int32Array
    direction: Int32Array
    segment: Int32Array
    position: Int32Array

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> Reports:
        return Reports(*(getattr(self, column.name)[rows] for column in fields(self)))

    @property
    def key(self) -> Int64Array:
        """One number for expressway, direction and segment: what segment statistics group by."""
        return (self.expressway.astype(np.int64) * 2 + self.direction) * SEGMENTS + self.segment


@dataclass(frozen=True)
class LinearRoad:
    """A stream of position reports after the Linear Road benchmark.

    Every car reports every 30 seconds, from the entrance to the exit; then another car takes its place. Most trips pass
    the middle of the road, where cars get into each other's way. Now and then a car runs into another: both stand in
    the same place for many reports, the other cars pass slowly, and a jam grows behind them.

    Parameters
    ----------
    expressways
        Roads of 100 segments in each of two directions; the benchmark's L.
    vehicles
        Cars on the road at any time, on all expressways together.
    accident_every
        Seconds between accidents on an expressway, on average.
    accident_lasts
        Seconds that an accident takes to clear, on average.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> reports = LinearRoad(vehicles=3000, seed=1).take(60_000)
    >>> int(reports.time[0]), int(reports.time[-1])
    (0, 599)
    >>> cars = np.bincount(reports.key)
    >>> bool(cars.max() > 2 * cars.mean())  # the middle of the road
    True

    References
    ----------
    A. Arasu, M. Cherniack, E. Galvez, D. Maier, A. Maskey, E. Ryvkina, M. Stonebraker, R. Tibbetts: Linear Road: a
    stream data management benchmark. VLDB 2004.
    """

    expressways: int = 1
    vehicles: int = 10_000
    accident_every: float = 1200.0
    accident_lasts: float = 600.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check that there are roads and cars."""
        if self.expressways < 1 or self.vehicles < 1:
            raise SkewlessError(
                f"{self.vehicles} vehicles on {self.expressways} expressways; there must be at least 1 of each"
            )
        if not self.accident_every > 0 or not self.accident_lasts > 0:
            raise SkewlessError(
                f"an accident every {self.accident_every} seconds that lasts {self.accident_lasts}; "
                "give seconds above 0, and infinity for no accidents"
            )

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[Reports]:
        """The first `n` reports, at most `block` of them at a time."""
        check_lengths(n, block)
        fleet = _Fleet(self)
        ready: list[Reports] = []
        have = 0
        while n > 0:
            wanted = min(block, n)
            while have < wanted:
                ready.append(fleet.report())
                have += len(ready[-1])
            joined = _join(ready)
            yield joined[:wanted]
            ready, have, n = [joined[wanted:]], have - wanted, n - wanted

    def take(self, n: int) -> Reports:
        """The first `n` reports."""
        return next(self.blocks(n, max(n, 1)), None) or _Fleet(self).report()[:0]


class _Fleet:
    """The cars of one run; each call to `report` is half a minute."""

    def __init__(self, road: LinearRoad) -> None:
        self.road = road
        self.interval = 0
        count = road.vehicles
        draw = np.random.default_rng([road.seed, 0])
        # Cars are kept in the order in which they report, so that no interval has to be sorted.
        self.second = np.sort(draw.integers(0, INTERVAL, count))
        self.entered = 0
        self.vehicle: Int64Array = np.zeros(count, np.int64)
        self.expressway = draw.integers(0, road.expressways, count).astype(np.int32)
        self.direction: Int32Array = np.zeros(count, np.int32)
        self.way: FloatArray = np.zeros(count)  # feet along the direction of travel
        self.exit_way: FloatArray = np.zeros(count)
        self.wish: FloatArray = np.zeros(count)  # miles an hour on an empty road
        self.lane: Int32Array = np.zeros(count, np.int32)
        self.stands_until: Int64Array = np.zeros(count, np.int64)  # the interval in which a wreck is cleared
        everyone = np.ones(count, np.bool_)
        self._enter(everyone, draw)
        # The stream starts in the middle of the day: every car is somewhere on its way.
        self.way += draw.random(count) * (self.exit_way - self.way)
        self.lane[:] = self._road_lane(everyone)

    def report(self) -> Reports:
        """Report where every car is, then drive for half a minute."""
        draw = np.random.default_rng([self.road.seed, 1 + self.interval])
        stands = self.stands_until > self.interval
        cell = self._cells()
        speed = self._speeds(cell, stands)
        leaving = ~stands & (self.way + speed * _FEET_PER_MPH >= self.exit_way)
        self.lane[leaving & (self.lane != ENTRANCE)] = EXIT
        position = np.where(self.direction == 0, self.way, SEGMENTS * SEGMENT - 1 - self.way).astype(np.int32)
        reports = Reports(
            self.interval * INTERVAL + self.second,
            self.vehicle.copy(),
            speed.astype(np.int32),
            self.expressway.copy(),
            self.lane.copy(),
            self.direction.copy(),
            (position // SEGMENT).astype(np.int32),
            position,
        )
        self.way += np.where(stands, 0.0, speed * _FEET_PER_MPH)
        moving = ~stands & ~leaving
        self.lane[moving] = self._road_lane(moving)
        self.interval += 1
        self._enter(leaving, draw)
        self._collide(draw)
        return reports

    def _cells(self) -> Int64Array:
        """The segment that each car is in, numbered over all expressways and directions."""
        segment = (self.way // SEGMENT).astype(np.int64)
        return (self.expressway.astype(np.int64) * 2 + self.direction) * SEGMENTS + segment

    def _speeds(self, cell: Int64Array, stands: BoolArray) -> FloatArray:
        """The speed of each car in whole miles an hour: its wish, reduced by the cars around it."""
        cells = self.road.expressways * 2 * SEGMENTS
        crowd = np.bincount(cell, minlength=cells) / _ROOM
        limit = np.full(cells, float(_FASTEST))
        limit[cell[stands]] = _PAST_ACCIDENT
        speed = np.minimum(np.maximum(self.wish / (1 + crowd[cell] ** 2), _CRAWL), limit[cell])
        speed[self.lane == ENTRANCE] /= 2
        return np.floor(np.where(stands, 0.0, speed))

    def _road_lane(self, who: BoolArray) -> Int32Array:
        """The lane of each of these cars; fast cars keep left."""
        lanes: Int32Array = np.clip((self.wish[who] - 25) // 20, 1, 3).astype(np.int32)
        return lanes

    def _enter(self, who: BoolArray, draw: np.random.Generator) -> None:
        """Put new cars at the entrances, in the place of those that left."""
        count = int(np.count_nonzero(who))
        self.vehicle[who] = self.entered + np.arange(count)
        self.entered += count
        # Two places, more often near the middle, in order: the trip goes from one to the other.
        start, stop = np.floor(np.sort(draw.beta(3, 3, (2, count)), axis=0) * SEGMENTS)
        self.direction[who] = draw.integers(0, 2, count)
        self.way[who] = start * SEGMENT
        self.exit_way[who] = (stop + 1) * SEGMENT - 1
        self.wish[who] = np.clip(draw.normal(62, 12, count), 30, _FASTEST)
        self.lane[who] = ENTRANCE
        self.stands_until[who] = 0

    def _collide(self, draw: np.random.Generator) -> None:
        """On some expressways a car runs into the one ahead of it in its segment."""
        happens = draw.random(self.road.expressways) < INTERVAL / self.road.accident_every
        for expressway in np.flatnonzero(happens):
            drives = (self.expressway == expressway) & (self.stands_until <= self.interval)
            drives &= (self.lane != ENTRANCE) & (self.lane != EXIT)
            cars = np.flatnonzero(drives)
            if len(cars) < 2:
                continue
            first = int(draw.choice(cars))
            cell = self._cells()
            near = cars[(cell[cars] == cell[first]) & (self.way[cars] <= self.way[first]) & (cars != first)]
            if len(near) == 0:
                continue
            second = int(near[self.way[near].argmax()])
            self.way[second], self.lane[second] = self.way[first], self.lane[first]
            # Four reports from one place are an accident.
            lasts = max(4, round(draw.exponential(self.road.accident_lasts) / INTERVAL))
            self.stands_until[[first, second]] = self.interval + lasts


def _join(pieces: list[Reports]) -> Reports:
    if len(pieces) == 1:
        return pieces[0]
    return Reports(*(np.concatenate([getattr(piece, column.name) for piece in pieces]) for column in fields(Reports)))
