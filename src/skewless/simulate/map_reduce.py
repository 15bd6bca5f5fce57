"""Micro-batches of Prompt: divided as a whole into blocks for map tasks, and what these emit into reduce buckets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skewless import metrics
from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.simulate.arrivals import Source
from skewless.simulate.cluster import Costs, MicroBatches
from skewless.simulate.early_release import EarlyRelease
from skewless.simulate.fragments import Fragments
from skewless.split.blocks import BlockPlan, first_bucket


@dataclass(frozen=True, eq=False)
class Divided:
    """A micro-batch in blocks and buckets.

    Attributes
    ----------
    sizes, keys
        Tuples, and distinct keys, of each block. A map task emits a partial result for each key of its block.
    partials
        Partial results that each reduce task merges.
    planning
        Seconds from when the micro-batch is complete until its blocks are known.

    Examples
    --------
    >>> divided = Divided.routed(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), blocks=2, reducers=1)
    >>> divided.sizes, divided.keys, divided.partials
    (array([2, 2]), array([2, 1]), array([3]))
    >>> divided.reduce_times(Costs(partial=0.5))
    array([1.5])
    """

    sizes: Int64Array
    keys: Int64Array
    partials: Int64Array
    planning: float = 0.0

    @classmethod
    def routed(cls, keys: Int64Array, block: Int32Array, blocks: int, reducers: int) -> Divided:
        """Of a block for each tuple; a key's partial results go to the bucket of its hash."""
        fragments = Fragments(blocks, reducers, 1)
        fragments.add(keys, block)
        live = fragments.live
        return cls(np.bincount(block, minlength=blocks), live.sum(axis=1), live.sum(axis=0))

    @classmethod
    def planned(cls, plan: BlockPlan, reducers: int, planning: float = 0.0, *, allocated: bool = True) -> Divided:
        """Of a block plan; buckets are allocated by Algorithm 3, or by the hash of the key."""
        buckets = allocate_all(plan, reducers) if allocated else homes(plan.keys[plan.which], reducers)
        return cls(plan.sizes, plan.cardinalities, np.bincount(buckets, minlength=reducers), planning)

    def map_times(self, costs: Costs) -> FloatArray:
        """Seconds of each map task."""
        times: FloatArray = costs.tuple * self.sizes.astype(np.float64) + costs.emit * self.keys
        return times

    def reduce_times(self, costs: Costs) -> FloatArray:
        """Seconds of each reduce task."""
        times: FloatArray = costs.partial * self.partials.astype(np.float64)
        return times


def allocate_all(plan: BlockPlan, buckets: int) -> Int32Array:
    """A reduce bucket for each fragment of a plan, by Algorithm 3 in each block on its own.

    Map tasks combine, so that each key of a block is one partial result and all clusters are equally large. A split key
    goes to the bucket of its hash. The others go, one in each round, to the bucket with the most room.

    >>> from skewless.split import partition
    >>> plan = partition(np.arange(6), np.array([2, 2, 2, 2, 2, 2]), 2)
    >>> allocate_all(plan, 4)
    array([0, 2, 3, 1, 2, 0], dtype=int32)
    """
    if buckets < 1:
        raise SkewlessError(f"buckets is {buckets}; give at least 1")
    out = homes(plan.keys[plan.which], buckets)
    order = np.argsort(plan.block, kind="stable")
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(plan.cardinalities)])
    _allocate(edges, order, plan.split[plan.which], np.zeros(buckets), np.zeros(buckets, np.bool_), out)
    return out


class Partitioner(Protocol):
    """Divides micro-batches, one after the other."""

    def __call__(self, keys: Int64Array, times: FloatArray, start: float, length: float) -> Divided:
        """Divide the tuples that arrived from `start` on, for `length` seconds."""


@dataclass(frozen=True, eq=False)
class Processed:
    """What became of the micro-batches of a stream: an entry for each.

    Attributes
    ----------
    interval
        Seconds between heartbeats.
    tuples
        Tuples of each micro-batch.
    cuts
        When it was cut.
    late
        Seconds from the heartbeat until it was planned; 0 if it was planned before.
    work
        Seconds from the heartbeat until it was processed, if nothing was before it in the queue: `late`, the overhead,
        and the longest map and the longest reduce task (eq. 2.1).
    reduce_times
        Micro-batches x reduce tasks: seconds of each.
    planning
        Seconds that planning took.
    """

    interval: float
    tuples: Int64Array
    cuts: FloatArray
    late: FloatArray
    work: FloatArray
    reduce_times: FloatArray
    planning: FloatArray

    @property
    def demand(self) -> float:
        """The longest work of a micro-batch over the interval; up to 1, no micro-batch waits for another."""
        return float(self.work.max() / self.interval)


def process(
    source: Source,
    partitioner: Partitioner,
    engine: MicroBatches,
    costs: Costs,
    seconds: float,
    release: EarlyRelease | None = None,
) -> Processed:
    """Collect and process micro-batches for so many seconds, a whole number of intervals.

    Without `release` a micro-batch is cut at its heartbeat, and planning delays it.

    Examples
    --------
    Shuffling divides a second of two keys among two map tasks, which emit two partial results each.

    >>> from skewless.simulate import Recorded
    >>> def shuffle(keys, times, start, length):
    ...     return Divided.routed(keys, np.arange(len(keys), dtype=np.int32) // 2 % 2, blocks=2, reducers=1)
    >>> source = Source(Recorded(np.array([1, 2])), rate=100.0)
    >>> process(source, shuffle, MicroBatches(1.0), Costs(tuple=0.01, partial=0.05), seconds=2).work
    array([0.7, 0.7])
    """
    intake, rows, reduced = Intake(source, engine.interval, release), [], []
    for _ in range(intervals(seconds, engine.interval)):
        batch = intake.take(partitioner)
        reduced.append(batch.divided.reduce_times(costs))
        work = batch.late + engine.overhead + metrics.makespan(batch.divided.map_times(costs), reduced[-1])
        rows.append((len(batch.keys), batch.cut, batch.late, work, batch.divided.planning))
    tuples, cuts, lates, works, planning = np.array(rows).T
    return Processed(engine.interval, tuples.astype(np.int64), cuts, lates, works, np.array(reduced), planning)


@dataclass(frozen=True, eq=False)
class Batch:
    """A micro-batch that is cut: its keys, and its blocks and buckets.

    Attributes
    ----------
    cut
        When it was cut.
    late
        Seconds from the heartbeat until it was planned; 0 if it was planned before.
    """

    keys: Int64Array
    cut: float
    late: float
    divided: Divided


class Intake:
    """Takes the micro-batches of a source, one after the other.

    Parameters
    ----------
    source
        What arrives.
    interval
        Seconds between heartbeats.
    release
        When micro-batches are cut; at their heartbeat if not given.
    """

    def __init__(self, source: Source, interval: float, release: EarlyRelease | None = None) -> None:
        self.interval, self.release = interval, release
        self._feed, self._number, self._start = source.feed(), 0, 0.0

    def take(self, partitioner: Partitioner) -> Batch:
        """The next micro-batch, divided by this."""
        self._number += 1
        end = self._number * self.interval
        cut = end if self.release is None else self.release.cut(end)
        keys, times = self._feed.until(cut)
        divided = partitioner(keys, times, self._start, cut - self._start)
        if self.release is not None:
            self.release.took(divided.planning)
        self._start = cut
        return Batch(keys, cut, max(0.0, cut + divided.planning - end), divided)


def intervals(seconds: float, interval: float) -> int:
    """The number of intervals in so many seconds, which has to be whole.

    >>> intervals(6.0, 1.5)
    4
    """
    steps = round(seconds / interval)
    if steps < 1 or abs(steps * interval - seconds) > 1e-6:
        raise SkewlessError(f"{seconds} s are not 1, 2, 3, ... intervals of {interval} s; give a multiple")
    return steps


@lean_kernel
def _allocate(
    edges: Int64Array, order: Int64Array, split: BoolArray, room: FloatArray, served: BoolArray, out: Int32Array
) -> None:
    """Replace the hashed buckets of whole keys, block by block; `order` has the fragments of each block together."""
    blocks, buckets = edges.shape[0] - 1, room.shape[0]
    for block in range(blocks):
        first = first_bucket(block, buckets)
        fair = (edges[block + 1] - edges[block]) / buckets
        for bucket in range(buckets):
            room[bucket] = fair
            served[bucket] = False
        for at in range(edges[block], edges[block + 1]):
            if split[order[at]]:
                room[out[order[at]]] -= 1
        left = buckets
        for at in range(edges[block], edges[block + 1]):
            if split[order[at]]:
                continue
            best = -1
            for step in range(buckets):
                bucket = (first + step) % buckets
                if not served[bucket] and (best < 0 or room[bucket] > room[best]):
                    best = bucket
            out[order[at]] = best
            room[best] -= 1
            served[best] = True
            left -= 1
            if left == 0:
                left = buckets
                for bucket in range(buckets):
                    served[bucket] = False
