"""What routing costs, how well it balances and what is sustained, by the keys that Dalton considers for splitting."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.dalton.rivals import Rival
from experiments.dalton.word_count import PEAK, Setup, sustained
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
        hot_at = _hot_at(stream, workers, number)
        nanoseconds = np.inf
        for _ in range(repeats):
            dalton = Dalton.as_printed(workers, slide=SLIDE, hot_at=hot_at, statistics="exact")
            where, took = timed(dalton, keys)
            nanoseconds = min(nanoseconds, took)
        half = len(keys) // 2  # the policy is learned by then
        loads = np.bincount(where[half:], minlength=workers)
        fragments = _fragments(keys[half:], where[half:].astype(np.int64), workers)
        found.append(Routed(dalton.hot_keys, nanoseconds, float(loads.max() / loads.mean()), fragments))
    return found


def throughput(
    setup: Setup,
    stream: Zipf,
    hot: Sequence[int],
    slower: Sequence[float],
    times: tuple[float, float],
    tell: Tell,
    starts: Sequence[float] = (),
) -> list[float]:
    """The rates of a word count by the paper's Dalton with thresholds that make about so many keys hot.

    Parameters
    ----------
    setup, stream
        The cluster, and its stream.
    hot, slower
        Numbers of hot keys, and for each how many times as long as usual a tuple takes to be routed.
    times
        The seconds of a run, and those that do not count.
    tell
        Says what is being done.
    starts
        For each number of hot keys, the rate that is tried first.
    """
    found: list[float] = []
    for at, (number, routing) in enumerate(zip(hot, slower, strict=True)):
        tell(f"throughput with {number} hot keys")
        workers = setup.threads - setup.threads // 8
        options = {"hot_at": _hot_at(stream, workers, number), "statistics": "exact"}

        def make(n: int, slides: int, options: dict[str, Any] = options) -> Splitter:
            return Dalton.as_printed(n, slide=None, slides=slides, **options)

        start = starts[at] if starts else found[-1] if found else PEAK
        rival = Rival(make, forwards=True)
        found.append(sustained(replace(setup, routing=routing), rival, stream, *times, start))
    return found


def _hot_at(stream: Zipf, workers: int, hot: int) -> float:
    return float(workers * stream.frequencies[hot - 1] * BETWEEN)


def timed(splitter: Splitter, keys: Int64Array) -> tuple[Int32Array, float]:
    """The worker of each tuple, and the nanoseconds of one core that a tuple took."""
    start = time.thread_time()
    where = splitter.route(keys)
    return where, 1e9 * (time.thread_time() - start) / len(keys)


def _fragments(keys: Int64Array, where: Int64Array, workers: int) -> float:
    """Workers that hold a key, on average over the keys."""
    return len(np.unique(keys * workers + where)) / len(np.unique(keys))
