"""A consistent-hash ring: adding or removing a channel moves only that channel's share of the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64, xxhash64_long
from skewless.core.kernel import kernel

_KEY_SEED = np.int64(0x5EED)  # differs from Spark's seed, because keys often are Spark's hashes already
_LAST = np.iinfo(np.uint64).max


@dataclass(frozen=True, init=False)
class Ring:
    """Maps keys to channels by consistent hashing, in constant time per key.

    Every channel has `replicas` points on a ring of 2^64 positions, and owns the keys between each of its points and
    the point before. The ring is divided into equal buckets, about two for each point, so that finding the owner of a
    key is one look-up and a short walk.

    Parameters
    ----------
    channels
        The number of channels, which are then numbered from 0, or their numbers. Their order does not matter.
    replicas
        Points per channel. More points balance better and take longer to build; with 1000, a channel's share of the
        ring varies by about 3 percent (one standard deviation), and the fullest of ten channels is about 5 percent
        above the average.

    Example
    -------
    >>> keys = np.arange(100_000)
    >>> before, after = Ring(10).route(keys), Ring(11).route(keys)
    >>> loads = np.bincount(before)
    >>> bool(loads.max() / loads.mean() < 1.1)
    True
    >>> moved = before != after
    >>> np.unique(after[moved])
    array([10], dtype=int32)
    >>> bool(abs(moved.mean() - 1 / 11) < 0.01)
    True

    A few hundred keys are spread much worse than many are. `spread` bounds what a channel gets:

    >>> slots = np.arange(256)
    >>> loads = np.bincount(Ring(16).route(slots))
    >>> int(loads.min()), int(loads.max())
    (11, 22)
    >>> loads = np.bincount(Ring(16).spread(slots))
    >>> int(loads.min()), int(loads.max())
    (16, 16)

    Reference
    ---------
    Karger et al., Consistent hashing and random trees, STOC 1997.
    Mirrokni, Thorup, Zadimoghaddam, Consistent hashing with bounded loads, SODA 2018.
    Gedik, Partitioning functions for stateful data parallelism in stream processing, VLDB Journal 2014 (section 4.1.1).
    """

    channels: tuple[int, ...]
    replicas: int
    _points: npt.NDArray[np.uint64] = field(repr=False, compare=False)
    _owners: Int32Array = field(repr=False, compare=False)
    _buckets: Int32Array = field(repr=False, compare=False)

    def __init__(self, channels: int | Sequence[int], replicas: int = 1000) -> None:
        """Place every channel's replicas."""
        numbers = range(channels) if isinstance(channels, int | np.integer) else channels
        ordered = tuple(sorted(int(number) for number in numbers))
        if not ordered:
            raise SkewlessError(f"a ring over {channels!r} has no channels: pass at least one")
        if len(set(ordered)) < len(ordered):
            raise SkewlessError(f"channels {list(ordered)} repeat: pass each number once")
        if ordered[0] < 0 or ordered[-1] > np.iinfo(np.int32).max:
            raise SkewlessError(f"channels from {ordered[0]} to {ordered[-1]}: number them from 0 to 2^31 - 1")
        if replicas < 1:
            raise SkewlessError(f"{replicas} replicas a channel: pass at least 1")
        points, owners = _place(np.array(ordered, np.int32), replicas)
        parts = {"channels": ordered, "replicas": replicas, "_points": points, "_owners": owners}
        for name, part in (parts | {"_buckets": _index(points)}).items():
            object.__setattr__(self, name, part)

    def route(self, keys: Int64Array) -> Int32Array:
        """The channel of each key."""
        channels: Int32Array = self._owners[self._nearest(keys)]
        return channels

    def spread(self, keys: Int64Array, before: Int32Array | None = None) -> Int32Array:
        """The channel of each key, where no channel gets more than its share: the keys over the channels, rounded up.

        A key whose channel is full goes to the next one clockwise that has room. The number of keys that do not divide
        evenly is the number of channels that get one more than the others, so no two channels differ by more than one.

        Parameters
        ----------
        keys
            The keys.
        before
            The channel that each key was on. A key stays there, if that channel still exists and has no more than its
            share. A channel that has more gives up the keys whose way along the ring to it is the longest. So no more
            keys move than the shares demand: a new channel gets keys, and no other one does.
        """
        nearest = self._nearest(keys)
        channels = np.array(self.channels, np.int32)
        where = np.full(len(nearest), -1, np.int64)
        if before is not None:
            at = np.minimum(np.searchsorted(channels, before), len(channels) - 1)
            where = np.where(channels[at] == before, at, -1)
        owners = np.searchsorted(channels, self._owners[:-1])
        least, more = divmod(len(where), len(channels))
        held = np.bincount(where[where >= 0], minlength=len(channels))
        room = np.full(len(channels), least)
        room[np.argsort(-held, kind="stable")[:more]] += 1  # the fullest keep one more, so that fewer keys move
        for channel in np.flatnonzero(held > room):
            mine = np.flatnonzero(where == channel)
            way = np.empty(len(mine), np.int64)
            _walk(nearest[mine], owners, int(channel), way)
            where[mine[np.lexsort((nearest[mine], -way))[: held[channel] - room[channel]]]] = -1
        homeless = np.flatnonzero(where < 0)
        homeless = homeless[np.argsort(nearest[homeless], kind="stable")]
        room -= np.bincount(where[where >= 0], minlength=len(channels))
        _fill(homeless, nearest, owners, room, where)
        return channels[where]

    def _nearest(self, keys: Int64Array) -> Int32Array:
        """The number of the next point clockwise of each key."""
        keys = np.asarray(keys)
        if keys.ndim != 1 or not np.can_cast(keys.dtype, np.int64):
            raise SkewlessError(f"keys of {keys.dtype} and shape {keys.shape}: pass one dimension of int64")
        nearest = np.empty(len(keys), np.int32)
        _find(np.ascontiguousarray(keys, np.int64), self._points, self._buckets, nearest)
        return nearest


def _place(channels: Int32Array, replicas: int) -> tuple[npt.NDArray[np.uint64], Int32Array]:
    """All points in the order of the ring, and the channel of each; at equal points the lower channel comes first."""
    owners = np.repeat(channels, replicas)
    points = xxhash64(owners, np.tile(np.arange(replicas), len(channels))).view(np.uint64)
    order = np.argsort(points, kind="stable")
    # After the last point the ring starts again: a point at the very end stands for the first one and ends every walk.
    points = np.append(points[order], np.uint64(_LAST))
    owners = np.append(owners[order], owners[order[0]])
    return points, owners


def _index(points: npt.NDArray[np.uint64]) -> Int32Array:
    """For each bucket, the first point in or after it."""
    bits = len(points).bit_length() + 1
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.searchsorted(points, starts).astype(np.int32)


@kernel
def _find(keys: Int64Array, points: npt.NDArray[np.uint64], buckets: Int32Array, nearest: Int32Array) -> None:
    bits = 0
    while (1 << bits) < len(buckets):
        bits += 1
    shift = np.uint64(64 - bits)
    for i in range(len(keys)):
        position = np.uint64(xxhash64_long(keys[i], _KEY_SEED))
        point = buckets[position >> shift]
        while points[point] < position:
            point += 1
        nearest[i] = point


@kernel
def _walk(starts: Int32Array, owners: Int64Array, channel: int, way: Int64Array) -> None:
    """How many points there are from each start to the next one of the channel."""
    for i in range(len(starts)):
        steps = 0
        while owners[(starts[i] + steps) % len(owners)] != channel:
            steps += 1
        way[i] = steps


@kernel
def _fill(homeless: Int64Array, nearest: Int32Array, owners: Int64Array, room: Int64Array, where: Int64Array) -> None:
    """Give each homeless key to the next channel clockwise that has room."""
    for key in homeless:
        point = nearest[key] % len(owners)
        while room[owners[point]] <= 0:
            point = (point + 1) % len(owners)
        where[key] = owners[point]
        room[owners[point]] -= 1
