"""A policy: lanes for the hot keys, a hash for the rest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import Bool, BoolArray, Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.core.key_index import index_of, place_of
from skewless.core.random_bits import below, draw

MOST_LANES = 1024  # lanes of one key; more are scaled down to this many
TAILS = ("hash", "shuffle")


@dataclass(frozen=True, eq=False)
class Policy:
    """Says which worker gets each tuple; it never changes, and is small enough to send to every machine.

    A hot key has lanes, which are workers; a worker that is listed twice gets twice as many of the key's tuples. The
    tuples of any other key go to its home, or to any worker if `tail` is "shuffle".

    Attributes
    ----------
    workers
        The number of workers.
    keys
        The keys that have lanes, in rising order.
    offsets, lanes
        The lanes of `keys[i]` are `lanes[offsets[i]:offsets[i + 1]]`, in rising order.
    tail
        How the other keys are routed: "hash" or "shuffle".
    version
        A later policy of the same stream has a higher version.

    Examples
    --------
    >>> policy = Policy.of(4, {7: [0, 2]})
    >>> policy.lanes_of(7)
    array([0, 2], dtype=int32)
    >>> np.bincount(policy.route(np.full(1000, 7)), minlength=4)
    array([514,   0, 486,   0])
    """

    workers: int
    keys: Int64Array
    offsets: Int64Array
    lanes: Int32Array
    tail: str = "hash"
    version: int = 0

    def __post_init__(self) -> None:
        """Refuse a policy that cannot route."""
        if self.workers < 1:
            raise SkewlessError(f"workers is {self.workers}; give at least 1")
        if self.tail not in TAILS:
            raise SkewlessError(f"tail is {self.tail!r}; choose one of {', '.join(TAILS)}")
        astray = self.lanes[(self.lanes < 0) | (self.lanes >= self.workers)]
        if len(astray):
            raise SkewlessError(
                f"a lane leads to worker {astray[0]}; the {self.workers} workers are 0 to {self.workers - 1}"
            )
        if np.any(self.keys[1:] <= self.keys[:-1]) or np.any(self.offsets[1:] <= self.offsets[:-1]):
            raise SkewlessError("keys must rise and each have a lane; build the policy with Policy.of")

    @classmethod
    def of(
        cls, workers: int, lanes: Mapping[int, Sequence[int]] | None = None, *, tail: str = "hash", version: int = 0
    ) -> Policy:
        """A policy from a mapping of keys to their lanes."""
        lanes = lanes or {}
        keys = np.repeat(np.fromiter(lanes, np.int64, len(lanes)), [len(each) for each in lanes.values()])
        flat = np.array([lane for each in lanes.values() for lane in each], dtype=np.int32)
        return cls.from_assignments(workers, keys, flat, tail=tail, version=version)

    @classmethod
    def from_assignments(
        cls,
        workers: int,
        keys: Int64Array,
        lanes: Int32Array,
        weights: Int64Array | None = None,
        *,
        tail: str = "hash",
        version: int = 0,
        lanes_each: int = 0,
    ) -> Policy:
        """A policy from what was routed: `weights[i]` tuples (1 if not given) of `keys[i]` went to worker `lanes[i]`.

        A key that went only to its home needs no lanes, and gets none. Weights become lanes in the smallest whole
        proportion, or the nearest one with `MOST_LANES` lanes, or with `lanes_each` for each of the key's workers, if
        these are more: a lane too many or too few is then a small part of what a worker gets.
        """
        order = np.lexsort((lanes, keys))
        keys, lanes = keys[order], lanes[order]
        weights = np.ones(len(keys), dtype=np.int64) if weights is None else weights[order]
        first = np.ones(len(keys), dtype=bool)  # whether it is the first of its (key, lane)
        first[1:] = (keys[1:] != keys[:-1]) | (lanes[1:] != lanes[:-1])
        weights = np.add.reduceat(weights, np.flatnonzero(first))
        keys, lanes = keys[first], lanes[first]

        starts = _starts(keys)
        sizes = np.diff(starts, append=len(keys))
        at_home = (sizes == 1) & (lanes[starts] == homes(keys[starts], workers)) & (tail == "hash")
        kept = np.repeat(~at_home, sizes)
        keys, lanes, weights = keys[kept], lanes[kept], weights[kept]
        starts = _starts(keys)
        repeats = _whole_proportions(weights, starts, len(keys), lanes_each)
        distinct = keys[starts]
        offsets = np.concatenate([[0], np.cumsum(np.add.reduceat(repeats, starts))]).astype(np.int64)
        return cls(workers, distinct, offsets, np.repeat(lanes, repeats).astype(np.int32), tail, version)

    def lanes_of(self, key: int) -> Int32Array:
        """The lanes of a key; if it has none, its home, or every worker if the tail is shuffled."""
        i = int(np.searchsorted(self.keys, key))
        if i < len(self.keys) and self.keys[i] == key:
            return self.lanes[self.offsets[i] : self.offsets[i + 1]]
        if self.tail == "shuffle":
            return np.arange(self.workers, dtype=np.int32)
        return homes(np.array([key], dtype=np.int64), self.workers)

    @property
    def split(self) -> Int64Array:
        """The keys that have lanes to several workers."""
        if not len(self):
            return self.keys
        apart: BoolArray = self.lanes[self.offsets[:-1]] != self.lanes[self.offsets[1:] - 1]
        found: Int64Array = self.keys[apart]
        return found

    def route(self, keys: Int64Array, start: int = 0) -> Int32Array:
        """A worker for each tuple; `start` is the number of tuples routed before, so that calls may be cut anywhere."""
        out = np.empty(len(keys), dtype=np.int32)
        _route(self._index, self.offsets, self.lanes, self.workers, self.tail == "shuffle", keys, start, out)
        return out

    @functools.cached_property
    def _index(self) -> Int64Array:
        return index_of(self.keys)

    def __eq__(self, other: object) -> bool:
        """Whether both route in the same way under the same version."""
        if not isinstance(other, Policy):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        """Equal policies have equal hashes."""
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        arrays = (self.keys.tobytes(), self.offsets.tobytes(), self.lanes.tobytes())
        return (self.workers, self.tail, self.version, *arrays)

    def __len__(self) -> int:
        """The number of keys that have lanes."""
        return len(self.keys)


def _starts(keys: Int64Array) -> Int64Array:
    """Where each run of equal keys starts."""
    new = np.ones(len(keys), dtype=bool)
    new[1:] = keys[1:] != keys[:-1]
    return np.flatnonzero(new)


def _whole_proportions(weights: Int64Array, starts: Int64Array, length: int, lanes_each: int) -> Int64Array:
    """Small whole numbers in the proportion of each key's weights, none of them 0."""
    out = np.ones(length, dtype=np.int64)
    ends = np.append(starts[1:], length)
    several = ends - starts > 1
    for start, end in zip(starts[several], ends[several], strict=True):
        part = weights[start:end]
        part = part // np.gcd.reduce(part)
        most = max(MOST_LANES, lanes_each * len(part))
        if part.sum() > most:
            # After every worker has one lane, the largest remainders get the lanes that are left.
            exact = part * (most / part.sum())
            part = np.maximum(1, np.floor(exact)).astype(np.int64)
            spare = max(0, most - int(part.sum()))
            part[np.argsort(part - exact, kind="stable")[:spare]] += 1
            part //= np.gcd.reduce(part)
        out[start:end] = part
    return out


@lean_kernel
def _route(
    index: Int64Array,
    offsets: Int64Array,
    lanes: Int32Array,
    workers: Int,
    shuffle: Bool,
    keys: Int64Array,
    start: Int,
    out: Int32Array,
) -> None:
    for i in range(keys.shape[0]):
        h = xxhash64_long(keys[i], SEED)
        place = place_of(index, keys[i], h)
        if place >= 0:
            first = offsets[place]
            out[i] = lanes[first + below(draw(SEED, start + i), offsets[place + 1] - first)]
        elif shuffle:
            out[i] = below(draw(SEED, start + i), workers)
        else:
            out[i] = pmod(h, workers)
