from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.policy import MOST_LANES, Policy

WORKERS = 7
LANES = st.dictionaries(
    st.integers(-(2**63), 2**63 - 1), st.lists(st.integers(0, WORKERS - 1), min_size=1, max_size=9), max_size=12
)
TAILS = st.sampled_from(["hash", "shuffle"])


def home_of(key: int, workers: int = WORKERS) -> int:
    return int(homes(np.array([key], dtype=np.int64), workers)[0])


def shares(lanes: np.ndarray, workers: int) -> np.ndarray:
    return np.bincount(lanes, minlength=workers) / len(lanes)


def other_than_home(key: int, workers: int = WORKERS) -> int:
    return (home_of(key, workers) + 1) % workers


@given(LANES, st.randoms())
def test_neither_the_order_of_keys_nor_of_lanes_matters(lanes: dict[int, list[int]], shuffler: random.Random) -> None:
    shuffled = [(key, shuffler.sample(each, len(each))) for key, each in lanes.items()]
    shuffler.shuffle(shuffled)
    one, other = Policy.of(WORKERS, lanes), Policy.of(WORKERS, dict(shuffled))
    assert one == other
    assert hash(one) == hash(other)


def test_lanes_are_kept_in_the_smallest_whole_proportion() -> None:
    assert Policy.of(4, {7: [2, 0, 2, 0, 2, 2]}) == Policy.of(4, {7: [0, 2, 2]})
    assert Policy.of(4, {7: [other_than_home(7, 4)] * 5}) == Policy.of(4, {7: [other_than_home(7, 4)]})


@pytest.mark.parametrize(
    "other",
    [
        Policy.of(5, {7: [0, 2]}),
        Policy.of(4, {7: [0, 2]}, version=1),
        Policy.of(4, {7: [0, 2]}, tail="shuffle"),
        Policy.of(4, {8: [0, 2]}),
        Policy.of(4, {7: [0, 3]}),
        Policy.of(4, {7: [0, 2, 2]}),
        Policy.of(4, {7: [0, 2], 8: [0, 2]}),
        Policy.of(4),
        "no policy at all",
    ],
)
def test_policies_that_differ_are_not_equal(other: object) -> None:
    assert Policy.of(4, {7: [0, 2]}) != other


@given(LANES)
def test_a_key_that_is_only_at_home_has_no_lanes(lanes: dict[int, list[int]]) -> None:
    policy = Policy.of(WORKERS, lanes)
    apart = {key for key, each in lanes.items() if set(each) != {home_of(key)}}
    assert set(policy.keys.tolist()) == apart
    assert len(policy) == len(apart)
    for key, each in lanes.items():
        assert set(policy.lanes_of(key).tolist()) == set(each)


def test_where_the_tail_is_shuffled_a_key_may_have_its_home_as_its_only_lane() -> None:
    policy = Policy.of(4, {7: [home_of(7, 4)]}, tail="shuffle")
    assert len(policy) == 1
    assert set(policy.route(np.full(100, 7)).tolist()) == {home_of(7, 4)}


def test_a_key_without_lanes_goes_home() -> None:
    policy = Policy.of(4, {7: [0, 2]})
    keys = np.arange(1_000)
    routed = policy.route(keys)
    assert routed[keys != 7].tolist() == homes(keys[keys != 7], 4).tolist()
    assert policy.lanes_of(8).tolist() == [home_of(8, 4)]


@given(LANES, st.integers(0, 2**40))
@settings(max_examples=50)
def test_a_key_goes_to_its_lanes_and_nowhere_else(lanes: dict[int, list[int]], start: int) -> None:
    policy = Policy.of(WORKERS, lanes)
    for key, each in lanes.items():
        routed = policy.route(np.full(300, key, dtype=np.int64), start)
        # The rarest lane has a ninth of the tuples: the chance that 300 miss it is below 1e-14.
        assert set(routed.tolist()) == set(each)


@pytest.mark.parametrize("weights", [[3, 1], [300, 100], [1, 1, 1], [5, 3, 2]])
def test_lanes_share_the_tuples_in_proportion_to_their_weights(weights: list[int]) -> None:
    workers = np.arange(len(weights), dtype=np.int32)
    policy = Policy.from_assignments(4, np.full(len(weights), 7), workers, np.array(weights))
    counts = np.bincount(policy.route(np.full(40_000, 7)), minlength=len(weights))
    expected = np.array(weights) / sum(weights)
    assert np.abs(counts / 40_000 - expected).max() < 0.0125  # five standard deviations of one half


def test_weights_of_the_same_key_and_worker_add_up() -> None:
    keys, workers = np.array([7, 8, 7, 7]), np.array([2, 1, 0, 2], dtype=np.int32)
    policy = Policy.from_assignments(4, keys, workers, np.array([1, 5, 1, 2]))
    assert policy.lanes_of(7).tolist() == [0, 2, 2, 2]


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=12))
def test_too_many_lanes_are_scaled_down_without_losing_one(weights: list[int]) -> None:
    n = len(weights)
    policy = Policy.from_assignments(n, np.full(n, 7), np.arange(n, dtype=np.int32), np.array(weights))
    lanes = policy.lanes_of(7)
    counts = Counter(lanes.tolist())
    assert set(counts) == set(range(n))
    # Every lane is rounded by less than one, and each of the n may have been lifted from below one to one.
    assert len(lanes) <= MOST_LANES + n
    exact = np.array(weights) / sum(weights)
    assert np.abs(shares(lanes, n) - exact).max() <= (n + 1) / MOST_LANES
    if sum(weights) // np.gcd.reduce(weights) <= MOST_LANES:
        assert shares(lanes, n).tolist() == pytest.approx(exact.tolist(), abs=1e-12)


def test_a_scaled_key_does_not_disturb_the_next_one() -> None:
    keys, workers = np.array([7, 7, 8, 8]), np.array([0, 1, 0, 1], dtype=np.int32)
    policy = Policy.from_assignments(2, keys, workers, np.array([10**9, 1, 3, 1]))
    assert policy.lanes_of(8).tolist() == [0, 0, 0, 1]
    assert Counter(policy.lanes_of(7).tolist()) == {0: MOST_LANES - 1, 1: 1}


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_a_shuffled_tail_is_spread_evenly_whatever_the_key(workers: int) -> None:
    policy = Policy.of(workers, {7: [0]}, tail="shuffle")
    counts = np.bincount(policy.route(np.full(40_000, 8)), minlength=workers)
    assert np.abs(counts / 40_000 - 1 / workers).max() < 0.0125
    assert set(policy.route(np.full(100, 7)).tolist()) == {0}


@given(LANES, TAILS, st.lists(st.integers(0, 300), max_size=5), st.integers(0, 2**40))
@settings(max_examples=50)
def test_calls_can_be_cut_anywhere(lanes: dict[int, list[int]], tail: str, cuts: list[int], start: int) -> None:
    policy = Policy.of(WORKERS, lanes, tail=tail)
    keys = np.resize(np.array([*lanes, 1, 2], dtype=np.int64), 300)
    edges = sorted([0, *cuts, 300])
    parts = [policy.route(keys[a:b], start + a) for a, b in pairwise(edges)]
    assert np.concatenate(parts).tolist() == policy.route(keys, start).tolist()


def test_another_start_draws_other_lanes() -> None:
    policy = Policy.of(4, {7: [0, 1, 2, 3]})
    keys = np.full(100, 7)
    assert policy.route(keys, 0).tolist() != policy.route(keys, 100).tolist()


@given(st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=200))
@settings(max_examples=30)
def test_every_key_is_found_among_many(keys: set[int]) -> None:
    policy = Policy.of(WORKERS, {key: [other_than_home(key)] for key in keys})
    array = np.array(sorted(keys), dtype=np.int64)
    assert policy.route(array).tolist() == [other_than_home(key) for key in array.tolist()]


def test_no_tuples_get_no_workers() -> None:
    assert len(Policy.of(4, {7: [0, 2]}).route(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("workers", [0, -3])
def test_a_policy_without_workers_is_refused(workers: int) -> None:
    with pytest.raises(SkewlessError, match=f"workers is {workers}; give at least 1"):
        Policy.of(workers)


@pytest.mark.parametrize(("lanes", "astray"), [([0, 4], 4), ([-1, 2], -1), ([9], 9)])
def test_a_lane_that_leads_nowhere_is_refused(lanes: list[int], astray: int) -> None:
    with pytest.raises(SkewlessError, match=f"leads to worker {astray}; the 4 workers are 0 to 3"):
        Policy.of(4, {7: lanes})


def test_an_unknown_tail_is_refused() -> None:
    with pytest.raises(SkewlessError, match="tail is 'broadcast'; choose one of hash, shuffle"):
        Policy.of(4, tail="broadcast")


@pytest.mark.parametrize(
    ("keys", "offsets"), [([8, 7], [0, 1, 2]), ([7, 7], [0, 1, 2]), ([7, 8], [0, 2, 2]), ([7, 8], [0, 0, 2])]
)
def test_keys_out_of_order_or_without_a_lane_are_refused(keys: list[int], offsets: list[int]) -> None:
    with pytest.raises(SkewlessError, match=re.escape("keys must rise and each have a lane; build the policy with")):
        Policy(4, np.array(keys), np.array(offsets), np.array([0, 1], dtype=np.int32))
