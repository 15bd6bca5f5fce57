"""What partitioners that learn together take for a message, and the Q-table reducer for a round of them."""

from __future__ import annotations

import pickle
import time

import numpy as np

from benchmarks.slopes import Slope
from skewless.split import CooperativeDalton, QTableReducer
from skewless.workload import Zipf

KEYS, EXPONENTS = 100_000, (0.0, 1.5)  # of Dalton's figures with two sources
TUPLES = 1_400_000  # of a partitioner in 10 seconds, at the rates of these figures
FEWER = 140_000  # in one second
ROUNDS = 7


def told_and_merged(workers: int, tuples: int = TUPLES, rounds: int = ROUNDS) -> dict[str, Slope]:
    """Seconds for a message and the broadcast that answers it (`tell`), and for merging two messages (`merge`).

    Each message and each broadcast is written as bytes by one side and read by the other. Where the two partitioners
    differ, that with more work counts.
    """
    team = [CooperativeDalton(workers, slide=None, slides=3, seed=seed) for seed in range(2)]
    streams = [Zipf(s, KEYS, seed=seed).blocks(tuples * (rounds + 2), tuples) for seed, s in enumerate(EXPONENTS)]
    reducer = QTableReducer(2, workers, interval=10.0, hot_at=team[0].hot.state.hot_at)
    told, merged = [], []
    for number in range(rounds + 2):
        own, sent = [], []
        for partitioner, keys in zip(team, streams, strict=True):
            partitioner.route(next(keys))
            start = time.thread_time()
            sent.append(pickle.dumps(partitioner.due()))
            own.append(time.thread_time() - start)
        start = time.thread_time()
        for message in sent:
            reducer.add(pickle.loads(message))
        common = pickle.dumps(reducer.reduce(10.0 * number, 0.0))
        merged.append(time.thread_time() - start)
        for which, partitioner in enumerate(team):
            start = time.thread_time()
            partitioner.receive(pickle.loads(common))
            own[which] += time.thread_time() - start
            partitioner.end_slide()
        told.append(max(own))
    # The first rounds compile, and have no keys that are hot.
    return {name: _slope(each[2:]) for name, each in (("tell", told), ("merge", merged))}


def _slope(seconds: list[float]) -> Slope:
    return Slope(float(np.median(seconds)), min(seconds), max(seconds))
