"""What routing costs, and how well it balances, by the number of keys that Dalton considers for splitting."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.figure import Tell
from skewless.core.arrays import Int32Array, Int64Array
from skewless.split import Dalton, Splitter
from skewless.workload import Zipf

SLIDE = 100_000
BETWEEN = 0.93  # of the frequency of the last key that is to be hot: its count passes in most slides


@dataclass(frozen=True)
class Routed:
    """By a Dalton that considers so many keys."""

    hot: int
    nanoseconds: float
    imbalance: float
    fragments: float


def route(stream: Zipf, tuples: int, workers: int, hot: Sequence[int], repeats: int, tell: Tell) -> list[Routed]:
    """Route a stream by the paper's Dalton with thresholds that make about so many keys hot."""
    keys = stream.take(tuples)
    found = []
    for number in hot:
        tell(f"routing with {number} hot keys")
        hot_at = float(workers * stream.frequencies[number - 1] * BETWEEN)
        nanoseconds = np.inf
        for _ in range(repeats):
            # With the paper's parameters: no limit on splitting, and one worker drawn for an exploration.
            dalton = Dalton(workers, slide=SLIDE, hot_at=hot_at, max_split=None, choices=1, statistics="exact")
            where, took = timed(dalton, keys)
            nanoseconds = min(nanoseconds, took)
        half = len(keys) // 2  # the policy is learned by then
        loads = np.bincount(where[half:], minlength=workers)
        fragments = _fragments(keys[half:], where[half:].astype(np.int64), workers)
        found.append(Routed(dalton.hot_keys, nanoseconds, float(loads.max() / loads.mean()), fragments))
    return found


def timed(splitter: Splitter, keys: Int64Array) -> tuple[Int32Array, float]:
    """The worker of each tuple, and the nanoseconds of one core that a tuple took."""
    start = time.thread_time()
    where = splitter.route(keys)
    return where, 1e9 * (time.thread_time() - start) / len(keys)


def _fragments(keys: Int64Array, where: Int64Array, workers: int) -> float:
    """Workers that hold a key, on average over the keys."""
    return len(np.unique(keys * workers + where)) / len(np.unique(keys))
