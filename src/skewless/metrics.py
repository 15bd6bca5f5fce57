"""How balanced a routing is, and what the balance costs.

A routing is two arrays of equal length, a key and a worker for each tuple, and `n`, the number of workers (a worker
that got nothing counts too). A *fragment* is a key on a worker: each one is a partial result that has to be merged.

References
----------
Zapridou, Mytilinis, Ailamaki. Dalton: Learned Partitioning for Distributed Data Streams. PVLDB 16(3), 2022.
Abdelhamid, Mahmood, Daghistani, Aref. Prompt: Dynamic Data-Partitioning for Distributed Micro-batch Stream Processing
Systems. SIGMOD 2020.
FLIP-418: Show data skew score on Flink Dashboard. Apache Flink, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.core.kernel import kernel

__all__ = [
    "PromptCosts",
    "aggregation_cost",
    "bci",
    "bsi",
    "cardinalities",
    "data_skew",
    "fragments",
    "fragments_per_key",
    "hot_fragments",
    "imbalance",
    "ksr",
    "loads",
    "makespan",
    "max_over_avg",
    "mpi",
    "prompt_costs",
    "prompt_costs_relative",
    "top_fragments",
]


def loads(workers: Int32Array, n: int) -> Int64Array:
    """Tuples that each of the `n` workers received.

    >>> loads(np.array([0, 0, 2], np.int32), n=4)
    array([2, 0, 1, 0])
    """
    if n < 1:
        raise SkewlessError(f"workers must be at least 1, not {n}")
    if len(workers) == 0:
        raise SkewlessError("no tuples: there is no balance to measure in an empty routing")
    if workers.min() < 0 or workers.max() >= n:
        raise SkewlessError(f"workers run from 0 to {n - 1}, but the routing has {workers.min()} to {workers.max()}")
    return np.bincount(workers, minlength=n)


def max_over_avg(workers: Int32Array, n: int) -> float:
    """Load of the busiest worker over the average: 1 is fair, `n` is one worker doing everything.

    >>> max_over_avg(np.array([0, 0, 0, 1], np.int32), n=2)
    1.5
    """
    load = loads(workers, n)
    return float(load.max() / load.mean())


def imbalance(workers: Int32Array, n: int) -> float:
    """Dalton's I (eq. 1): tuples by which the busiest worker exceeds the average.

    >>> imbalance(np.array([0, 0, 0, 1], np.int32), n=2)
    1.0
    """
    load = loads(workers, n)
    return float(load.max() - load.mean())


def data_skew(loads: Int64Array) -> float:
    """Flink's data-skew score (FLIP-418): mean absolute deviation in percent of the mean, at most 100, 0 when idle.

    It takes loads and not a routing, as Flink reads them from each subtask's counters.

    >>> round(data_skew(np.array([4, 5, 5, 5, 5])), 2)
    6.67
    >>> data_skew(np.array([0, 0]))
    0.0
    """
    if len(loads) == 0:
        raise SkewlessError("no workers: give one load for each of them")
    mean = float(np.mean(loads))
    if mean == 0.0:
        return 0.0
    return min(100.0, 100.0 * float(np.abs(loads - mean).mean()) / mean)


def fragments(keys: Int64Array, workers: Int32Array, n: int) -> int:
    """Number of (key, worker) pairs that occur.

    >>> fragments(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), n=2)
    3
    """
    return len(_distinct(keys, workers, n)[0])


def fragments_per_key(keys: Int64Array, workers: Int32Array, n: int) -> float:
    """The number of workers that hold a key, on average over the keys: 1 if no key is split.

    >>> fragments_per_key(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), n=2)
    1.5
    """
    return float(_by_key(keys, workers, n)[1].mean())


def hot_fragments(keys: Int64Array, workers: Int32Array, n: int, hot_at: float = 1.0) -> float:
    """The number of workers that hold a hot key, on average over the hot keys; NaN if no key is hot.

    A key is hot if it has at least `hot_at` of a worker's fair load, whatever the splitter thinks of it. An average
    over all keys says little of them: a million keys of the tail on one worker each hide one key on all workers.

    >>> hot_fragments(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), n=2)
    2.0
    """
    tuples, held = _by_key(keys, workers, n)
    hot = tuples >= max(1.0, hot_at * len(keys) / n)
    return float(held[hot].mean()) if hot.any() else float("nan")


def top_fragments(keys: Int64Array, workers: Int32Array, n: int) -> int:
    """The number of workers that hold the most frequent key; of several such keys, that of the one on most workers.

    >>> top_fragments(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), n=2)
    2
    """
    tuples, held = _by_key(keys, workers, n)
    return int(held[tuples == tuples.max()].max())


def aggregation_cost(keys: Int64Array, workers: Int32Array, n: int, reducers: int = 1) -> int:
    """Dalton's Gamma (eq. 2): fragments that the busiest of the reducers has to merge.

    A key's reducer is `xxhash64(key)` modulo `reducers`.

    >>> aggregation_cost(np.array([7, 7, 7, 9]), np.array([0, 1, 1, 0], np.int32), n=2)
    3
    """
    if reducers < 1:
        raise SkewlessError(f"reducers must be at least 1, not {reducers}")
    fragment_keys, _, _ = _distinct(keys, workers, n)
    return int(np.bincount(xxhash64(fragment_keys) % reducers).max())


def bsi(blocks: Int32Array, n: int) -> float:
    """Prompt's block size imbalance (eq. 2.2): the largest block less the average one, in tuples.

    The size imbalance of reduce buckets (eq. 2.3) is the same function of the bucket of each tuple.

    >>> bsi(np.array([0, 0, 0, 1], np.int32), n=2)
    1.0
    """
    return imbalance(blocks, n)


def cardinalities(keys: Int64Array, workers: Int32Array, n: int) -> Int64Array:
    """Distinct keys that each of the `n` workers received.

    >>> cardinalities(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 1], np.int32), n=2)
    array([3, 1])
    """
    return np.bincount(_distinct(keys, workers, n)[1], minlength=n)


def bci(keys: Int64Array, blocks: Int32Array, n: int) -> float:
    """Prompt's block cardinality imbalance (eq. 2.4): most distinct keys in a block less the average.

    >>> bci(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 1], np.int32), n=2)
    1.0
    """
    return imbalance(_distinct(keys, blocks, n)[1], n)


def ksr(keys: Int64Array, blocks: Int32Array, n: int) -> float:
    """Prompt's key split ratio (eq. 2.5): fragments over keys, 1 is best.

    >>> ksr(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 1], np.int32), n=2)  # 4 fragments of 3 keys
    1.3333333333333333
    """
    return fragments_per_key(keys, blocks, n)


def mpi(keys: Int64Array, blocks: Int32Array, n: int, p1: float = 1 / 3, p2: float = 1 / 3, p3: float = 1 / 3) -> float:
    """Prompt's micro-batch partitioning imbalance (eq. 2.6): p1 BSI + p2 BCI + p3 KSR, the weights adding up to 1.

    >>> round(mpi(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 1], np.int32), n=2), 4)  # (1 + 1 + 4/3) / 3
    1.1111
    """
    if min(p1, p2, p3) < 0 or abs(p1 + p2 + p3 - 1) > 1e-9:
        raise SkewlessError(f"weights must be at least 0 and add up to 1, not p1={p1}, p2={p2}, p3={p3}")
    return p1 * bsi(blocks, n) + p2 * bci(keys, blocks, n) + p3 * ksr(keys, blocks, n)


@dataclass(frozen=True)
class PromptCosts:
    """Prompt's four costs of a partitioning, or what they are relative to those of another one.

    Attributes
    ----------
    bsi, bci
        Imbalance of the blocks in tuples, and in distinct keys.
    ksr
        Fragments over keys.
    mpi
        All three, equally weighted.
    """

    bsi: float
    bci: float
    ksr: float
    mpi: float

    def relative_to(self, other: PromptCosts) -> PromptCosts:
        """Each cost divided by that of the other partitioning: 0 is perfect, 1 is as bad. Nothing over nothing is 1.

        >>> PromptCosts(1.0, 0.0, 1.5, 2.0).relative_to(PromptCosts(4.0, 0.0, 3.0, 2.0))
        PromptCosts(bsi=0.25, bci=1.0, ksr=0.5, mpi=1.0)
        """
        return PromptCosts(
            _ratio(self.bsi, other.bsi),
            _ratio(self.bci, other.bci),
            _ratio(self.ksr, other.ksr),
            _ratio(self.mpi, other.mpi),
        )


def prompt_costs(keys: Int64Array, blocks: Int32Array, n: int) -> PromptCosts:
    """BSI, BCI, KSR and MPI of a partitioning.

    >>> prompt_costs(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 1], np.int32), n=2).bsi
    1.0
    """
    return PromptCosts(bsi(blocks, n), bci(keys, blocks, n), ksr(keys, blocks, n), mpi(keys, blocks, n))


def prompt_costs_relative(keys: Int64Array, blocks: Int32Array, n: int, to: str) -> PromptCosts:
    """The same costs relative to those of `to`, which is "hash" or "shuffle", for the same keys (Figure 2.6).

    The figure has BSI relative to hashing, which does nothing about sizes, and BCI relative to shuffling, which does
    nothing about keys.

    >>> keys = np.array([1, 1, 1, 1, 2, 3])
    >>> prompt_costs_relative(keys, np.array([0, 0, 0, 1, 1, 1], np.int32), n=2, to="hash").bsi
    0.0
    """
    if to not in ("hash", "shuffle"):
        raise SkewlessError(f"to is {to!r}; choose hash or shuffle")
    if to == "hash":
        other = homes(np.ascontiguousarray(keys, np.int64), n)
    else:
        other = (np.arange(len(keys)) % n).astype(np.int32)
    return prompt_costs(keys, blocks, n).relative_to(prompt_costs(keys, other, n))


def makespan(map_times: FloatArray, reduce_times: FloatArray) -> float:
    """Prompt's processing time of a micro-batch (eq. 2.1): the longest map task and then the longest reduce task.

    >>> makespan(np.array([2.0, 3.0, 2.5]), np.array([1.0, 0.5]))
    4.0
    """
    if not len(map_times) or not len(reduce_times):
        raise SkewlessError(f"{len(map_times)} map and {len(reduce_times)} reduce times; give at least one of each")
    return float(np.max(map_times) + np.max(reduce_times))


def _ratio(cost: float, other: float) -> float:
    if other == 0:
        return 1.0 if cost == 0 else math.inf
    return cost / other


def _by_key(keys: Int64Array, workers: Int32Array, n: int) -> tuple[Int64Array, Int64Array]:
    """The tuples of each key of a routing, and how many workers hold the key."""
    fragment_keys, _, tuples = _distinct(keys, workers, n)
    order = np.argsort(fragment_keys)
    rising = fragment_keys[order]
    edges = np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1]]))
    return np.add.reduceat(tuples[order], edges), np.diff(edges, append=len(order))


def _distinct(keys: Int64Array, workers: Int32Array, n: int) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Check a routing and list its fragments: key, worker, and tuples."""
    if len(keys) != len(workers):
        raise SkewlessError(f"a routing has one worker for each key, not {len(workers)} workers for {len(keys)} keys")
    loads(workers, n)
    # One element type, one layout: the kernel is compiled once.
    return _distinct_pairs(np.ascontiguousarray(keys, np.int64), np.ascontiguousarray(workers, np.int32))


@kernel
def _mix(key: np.int64, worker: np.int32) -> np.uint64:
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(worker)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(32))


@kernel
def _distinct_pairs(keys: Int64Array, workers: Int32Array) -> tuple[Int64Array, Int32Array, Int64Array]:
    """Each (key, worker) once, and how often it occurs.

    Tuples are divided into 256 bins by hash, so that the table of a bin fits the cache.
    """
    edges: Int64Array = np.zeros(257, np.int64)
    for i in range(len(keys)):
        edges[np.int64(_mix(keys[i], workers[i]) >> np.uint64(56)) + 1] += 1
    largest = edges.max()
    edges = edges.cumsum()
    bin_keys, bin_workers, fill = np.empty_like(keys), np.empty_like(workers), edges.copy()
    tuples = np.zeros(len(keys), np.int64)
    for i in range(len(keys)):
        chosen = np.int64(_mix(keys[i], workers[i]) >> np.uint64(56))
        bin_keys[fill[chosen]] = keys[i]
        bin_workers[fill[chosen]] = workers[i]
        fill[chosen] += 1
    # At least twice as many entries as tuples, rounded up to a power of two, is less than four times as many.
    table = np.empty(4 * largest, np.int64)
    # The pairs found are kept at the front of the bins, where every tuple has been looked at already.
    found = 0
    for current in range(256):
        start, stop = edges[current], edges[current + 1]
        slots = 1
        while slots < 2 * (stop - start):
            slots *= 2
        table[:slots] = -1
        for i in range(start, stop):
            key, worker = bin_keys[i], bin_workers[i]
            slot = np.int64(_mix(key, worker) & np.uint64(slots - 1))
            while table[slot] >= 0 and (bin_keys[table[slot]] != key or bin_workers[table[slot]] != worker):
                slot = (slot + 1) & (slots - 1)
            if table[slot] < 0:
                table[slot] = found
                bin_keys[found] = key
                bin_workers[found] = worker
                found += 1
            tuples[table[slot]] += 1
    return bin_keys[:found], bin_workers[:found], tuples[:found]
