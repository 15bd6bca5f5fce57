from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.hashing import SEED, xxhash64
from skewless.split import WChoices


def shifting(seed: int) -> list[int]:
    """A skewed stream long enough for slides to leave, whose hot keys change half way."""
    return [int(key) % 40 + 3 * (i > 80) for i, key in enumerate(np.random.default_rng(seed).zipf(1.4, 160))]


def reference(keys: list[int], workers: int, slide: int, hot_at: float) -> list[int]:
    threshold = max(2, math.ceil(hot_at * slide / workers))
    loads, out = [0] * workers, []
    counts: list[Counter[int]] = [Counter(), Counter()]  # of the window before and the current one
    for i, key in enumerate(keys):
        if i and i % slide == 0:
            counts = [counts[1], Counter()]
        counts[1][key] += 1
        if max(each[key] for each in counts) >= threshold:
            among = list(range(workers))
        else:
            among = [int(xxhash64(np.array([key]), seed=SEED + j)[0]) % workers for j in range(2)]
        worker = min(among, key=lambda w: loads[w])
        loads[worker] += 1
        out.append(worker)
    return out


@given(
    st.one_of(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 10**6).map(shifting)),
    st.integers(1, 12),
    st.integers(1, 50),
    st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=80)
def test_hot_keys_go_to_the_least_loaded_of_all(keys: list[int], workers: int, slide: int, hot_at: float) -> None:
    splitter = WChoices(workers, slide=slide, hot_at=hot_at, statistics="exact")
    assert splitter.route(np.array(keys, dtype=np.int64)).tolist() == reference(keys, workers, slide, hot_at)


def test_one_hot_key_is_dealt_evenly() -> None:
    loads = np.bincount(WChoices(6, slide=60, hot_at=0.2, statistics="exact").route(np.full(6_000, 9)), minlength=6)
    assert loads.max() - loads.min() <= 1


def test_a_plan_gives_a_hot_key_all_workers_alike() -> None:
    policy = WChoices(8).plan(Counts(np.array([7]), np.array([8_000]), total=8_000))
    lanes = np.bincount(policy.lanes_of(7), minlength=8)
    assert lanes.max() - lanes.min() <= 1


def test_all_workers_stay_open_to_hot_keys_after_each_window_and_plan() -> None:
    splitter = WChoices(8, slide=10)
    splitter.route(np.arange(35))
    assert splitter.choices == 8
    splitter.plan(Counts(np.array([7]), np.array([20]), total=8_000))
    assert splitter.choices == 8
