"""What planning a micro-batch costs: while its tuples arrive, and when it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.sketch import FrequencyBuffer, post_sort
from skewless.sketch.batch import Batch, gather
from skewless.split import partition


@dataclass(frozen=True)
class Overhead:
    """Seconds of one core for a micro-batch.

    Attributes
    ----------
    tuples, keys
        Of the micro-batch.
    arriving
        Until its last tuple is taken.
    sorting
        From then on, until its keys are in order and each has its rows.
    planning
        Algorithm 2.
    """

    tuples: int
    keys: int
    arriving: float
    sorting: float
    planning: float

    @property
    def at_the_end(self) -> float:
        """When the micro-batch is complete: what early release has to hide."""
        return self.sorting + self.planning


def buffered(keys: Int64Array, blocks: int, repeats: int) -> Overhead:
    """By the frequency-aware buffer, which keeps keys in order while they arrive; the least of several repeats."""
    buffer = FrequencyBuffer(len(keys))

    def arrive() -> None:
        buffer.add(keys)

    return _least(arrive, buffer.finish, keys, blocks, repeats)


def sorted_after(keys: Int64Array, blocks: int, repeats: int) -> Overhead:
    """By a table of counts while tuples arrive, which is sorted at the end; the least of several repeats."""
    distinct, counts, owners = _in_order_of_arrival(keys)

    def arrive() -> None:
        post_sort(keys)

    def finish() -> Batch:
        return gather(np.lexsort((distinct, -counts)), distinct, counts, owners)

    # What is timed as arriving has the sorting in it.
    found = _least(arrive, finish, keys, blocks, repeats)
    return replace(found, arriving=max(0.0, found.arriving - found.sorting))


@dataclass(frozen=True)
class Ordering:
    """Seconds of parts of the sorting at the end of a micro-batch.

    Attributes
    ----------
    walk
        The frequency-aware buffer puts the keys in order by a walk through its tree of counts.
    clear
        It clears its tables for the next micro-batch.
    sort
        A sort puts the keys in order instead.
    listing
        The rows of each key are listed as behind that sort, but after the tuples have arrived in the buffer, whose
        records and tree are then what the caches of the processor have.
    """

    walk: float
    clear: float
    sort: float
    listing: float


def ordering(keys: Int64Array, repeats: int) -> Ordering:
    """The parts of sorting in which the two ways differ, each alone; the least of several repeats."""
    distinct, counts, owners = _in_order_of_arrival(keys)
    buffer, times = FrequencyBuffer(len(keys)), []
    for _ in range(repeats + 1):
        buffer.add(keys)
        start = time.thread_time()
        buffer.walk()
        walked = time.thread_time()
        order = np.lexsort((distinct, -counts))
        ordered = time.thread_time()
        buffer.clear()
        cleared = time.thread_time()
        buffer.add(keys)
        buffer.clear()
        arrived = time.thread_time()
        gather(order, distinct, counts, owners)
        times.append((walked - start, cleared - ordered, ordered - walked, time.thread_time() - arrived))
    return Ordering(*np.array(times[1:]).min(axis=0).tolist())


def _in_order_of_arrival(keys: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The keys as a table of counts has them, their counts, and the number of each tuple's key."""
    distinct, first, owners, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    return distinct[order], counts[order], np.argsort(order)[owners]


def _least(
    arrive: Callable[[], None], finish: Callable[[], Batch], keys: Int64Array, blocks: int, repeats: int
) -> Overhead:
    runs, batch = [], finish()  # what is compiled at the first call is not counted
    for _ in range(repeats + 1):
        start = time.thread_time()
        arrive()
        arrived = time.thread_time()
        batch = finish()
        ordered = time.thread_time()
        partition(batch.keys, batch.counts, blocks)
        runs.append((arrived - start, ordered - arrived, time.thread_time() - ordered))
    return Overhead(len(keys), len(batch.keys), *np.array(runs[1:]).min(axis=0).tolist())
