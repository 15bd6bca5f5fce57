"""Direct fill: a policy for counts that are known, whole keys first, by how much room each worker has."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.core.policy import Policy
from skewless.split.least import least_add, least_loaded, new_least

EVEN = 1.015
"""Of the average: how much a worker is filled with. What is above 1 is free for keys that fit, and stay, whole."""
LANES_EACH = 200
"""Of each worker of a split key: a lane too many is another hundredth."""
SMALL = 0.02
"""Of a worker's fair load: keys of less stay at home, and need no entry in the policy."""


def fill(seen: Counts, workers: int, last: Policy, version: int) -> Policy:
    """A policy for rows with these counts.

    Keys come largest first. Each goes as a whole to where the last policy had it, or to its home, if there is room for
    all of it; else to the emptiest worker; and if it does not fit there either, it takes the room of its workers in the
    last policy, and then that of the emptiest, one after the other. The rows of keys that were not told apart fill
    their homes beforehand, and so do small keys, unless that is too much for a home.
    """
    heavy, fair = seen.heavier_than(SMALL * seen.total / workers, workers), seen.total / workers
    if heavy.tail_loads(workers).max() <= max(EVEN * fair, seen.tail_loads(workers).max()):
        seen = heavy
    order = np.lexsort((seen.keys, -seen.counts))
    keys, counts = seen.keys[order], seen.whole[order]
    loads = seen.tail_loads(workers)
    room = np.maximum(0, _level(loads, int(counts.sum()), EVEN) - loads)
    lanes, offsets = _lanes_before(last, keys, homes(keys, workers))
    size = len(keys) + workers
    which, where, rows = np.zeros(size, np.int64), np.zeros(size, np.int32), np.zeros(size, np.int64)
    found = _fill(counts, offsets, lanes, room, new_least(-room), which, where, rows)
    return Policy.from_assignments(
        workers, keys[which[:found]], where[:found], rows[:found], version=version, lanes_each=LANES_EACH
    )


def _level(loads: Int64Array, rows: int, even: float) -> int:
    """How full every worker may be, so that as many rows as there are find room: `even` of the average at least."""
    fair = (int(loads.sum()) + rows) / len(loads)
    rising = np.sort(loads)
    # Where some are above the average already, the others share the rest: the level of water over steps.
    levels = (np.cumsum(rising) + rows) / np.arange(1, len(loads) + 1)
    return int(np.ceil(max(even * fair, levels.min())))


def _lanes_before(last: Policy, keys: Int64Array, at_home: Int32Array) -> tuple[Int32Array, Int64Array]:
    """The workers of each key in the last policy, each once, or its home; and where those of each key start."""
    if not len(last):
        return at_home, np.arange(len(keys) + 1)
    new = np.ones(len(last.lanes), dtype=bool)
    new[1:] = last.lanes[1:] != last.lanes[:-1]
    new[last.offsets[:-1]] = True
    lanes, starts = last.lanes[new], np.concatenate([[0], np.cumsum(new)])[last.offsets]
    at = np.searchsorted(last.keys, keys)
    at[at == len(last)] = 0
    known = last.keys[at] == keys
    sizes = np.where(known, np.diff(starts)[at], 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    source = np.repeat(np.where(known, starts[at], 0) - offsets[:-1], sizes) + np.arange(offsets[-1])
    found = np.where(np.repeat(known, sizes), lanes[source], np.repeat(at_home, sizes))
    return found.astype(np.int32), offsets


@lean_kernel
def _fill(
    counts: Int64Array,
    offsets: Int64Array,
    lanes: Int32Array,
    room: Int64Array,
    fullest: Int64Array,
    which: Int64Array,
    where: Int32Array,
    rows: Int64Array,
) -> Int:
    """List the fragments: of key `which` so many `rows` to the worker `where`; return how many there are.

    `fullest` is a tree over what room lacks to zero: its least is the emptiest worker.
    """
    found = np.int64(0)
    for key in range(counts.shape[0]):
        rest, at = counts[key], offsets[key]
        worker = least_loaded(fullest)
        for lane in range(offsets[key], offsets[key + 1]):
            if room[lanes[lane]] >= rest:
                worker = np.int64(lanes[lane])
                break
        while rest > 0:
            if room[worker] < rest:  # nowhere as a whole
                if at < offsets[key + 1]:
                    worker = np.int64(lanes[at])
                    at += 1
                else:
                    worker = least_loaded(fullest)
            taken = min(rest, room[worker])
            if taken > 0:
                which[found], where[found], rows[found] = key, worker, taken
                found += 1
                room[worker] -= taken
                least_add(fullest, worker, taken)
                rest -= taken
    return found
