from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.hashing import SEED, xxhash64
from skewless.core.home import homes
from skewless.split import TwoChoices
from skewless.split.two_choices import candidate, less_loaded


def candidates_of(key: int, workers: int, d: int = 2) -> list[int]:
    return [int(xxhash64(np.array([key]), seed=SEED + j)[0]) % workers for j in range(d)]


def reference(keys: list[int], workers: int) -> list[int]:
    loads, out = [0] * workers, []
    for key in keys:
        first, second = candidates_of(key, workers)
        worker = second if loads[second] < loads[first] else first
        loads[worker] += 1
        out.append(worker)
    return out


@given(st.lists(st.integers(-20, 20), max_size=200), st.integers(1, 9))
@settings(max_examples=50)
def test_a_tuple_goes_to_the_less_loaded_of_two_workers(keys: list[int], workers: int) -> None:
    splitter = TwoChoices(workers)
    routed = splitter.route(np.array(keys, dtype=np.int64))
    assert routed.tolist() == reference(keys, workers)
    assert splitter.loads.tolist() == np.bincount(routed, minlength=workers).tolist()


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 6), st.integers(1, 70))
def test_a_candidate_is_a_hash_of_its_own(key: int, j: int, workers: int) -> None:
    assert candidate(key, j, workers) == candidates_of(key, workers, j + 1)[j]


def test_the_first_candidate_is_home() -> None:
    assert [candidate(key, 0, 9) for key in range(100)] == homes(np.arange(100), 9).tolist()


def test_of_equal_loads_the_first_wins() -> None:
    loads = np.array([3, 3, 2])
    assert less_loaded(loads, 1, 0) == 1
    assert less_loaded(loads, 0, 2) == 2
    assert less_loaded(loads, 2, 0) == 2


def test_loads_are_those_since_the_start() -> None:
    keys = np.full(1_001, next(key for key in range(100) if len(set(candidates_of(key, 8))) == 2))
    splitter = TwoChoices(8)
    for part in np.split(keys, [400, 900]):
        splitter.route(part)
    assert sorted(splitter.loads.tolist())[-2:] == [500, 501]


def test_a_plan_gives_a_hot_key_its_two_workers() -> None:
    key = next(key for key in range(100) if len(set(candidates_of(key, 8))) == 2)
    policy = TwoChoices(8).plan(Counts(np.array([key]), np.array([900]), total=1_000))
    assert set(policy.lanes_of(key).tolist()) == set(candidates_of(key, 8))


def test_a_plan_starts_from_the_tail() -> None:
    key = next(key for key in range(100) if len(set(candidates_of(key, 8))) == 2)
    home, other = candidates_of(key, 8)
    tail = np.zeros(8, dtype=np.int64)
    tail[home] = 500
    policy = TwoChoices(8).plan(Counts(np.array([key]), np.array([400]), total=900, tail=tail))
    assert policy.lanes_of(key).tolist() == [other]
