"""Micro-batches in blocks and buckets: against Algorithm 3 of one block, brute force, and times worked out by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.simulate import Costs, MicroBatches, Recorded, Source
from skewless.simulate.map_reduce import Divided, allocate_all, process
from skewless.split import Counts, allocate, first_fit, partition
from skewless.workload import Zipf

SMALL = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=200)


@given(SMALL)
def test_a_routing_has_the_fragments_that_can_be_counted_one_by_one(routing) -> None:
    keys, block = np.array([k for k, _ in routing]), np.array([b for _, b in routing], np.int32)
    divided = Divided.routed(keys, block, blocks=4, reducers=3)
    pairs = set(routing)
    assert divided.sizes.tolist() == [Counter(b for _, b in routing)[b] for b in range(4)]
    assert divided.keys.tolist() == [sum(b == each for _, b in pairs) for each in range(4)]
    home = {k: int(xxhash64(np.array([k]))[0] % 3) for k, _ in pairs}
    assert divided.partials.tolist() == [sum(home[k] == each for k, _ in pairs) for each in range(3)]


@settings(deadline=None)
@given(st.lists(st.integers(1, 500), min_size=2, max_size=80), st.integers(1, 6), st.integers(1, 9))
def test_buckets_are_those_of_algorithm_3_in_each_block(counts, blocks, buckets) -> None:
    sizes = np.sort(np.array(counts))[::-1].copy()
    plan = partition(np.arange(len(sizes)) * 7919, sizes, blocks)
    out = allocate_all(plan, buckets)
    split = plan.split[plan.which]
    assert (out[split] == homes(plan.keys[plan.which], buckets)[split]).all()
    for block in range(blocks):
        own = plan.block == block
        ones = np.ones(int(own.sum()), np.int64)
        assert (out[own] == allocate(plan.keys[plan.which][own], ones, split[own], buckets, block)).all()
        whole = out[(plan.block == block) & ~split]
        served = np.bincount(whole, minlength=buckets)
        assert served.max() - served.min() <= 1


def test_tasks_with_fewer_keys_than_buckets_do_not_all_choose_the_same_ones() -> None:
    plan = partition(np.arange(400), np.full(400, 10), 40)  # 10 keys in a block, 20 buckets
    served = np.bincount(allocate_all(plan, 20), minlength=20)
    assert served.min() >= 17
    assert served.max() <= 23


def test_all_tuples_and_all_fragments_of_a_plan_are_there() -> None:
    seen = Counts.of(Zipf(1.2, keys=2000).take(50_000))
    for make in (partition, first_fit):
        plan = make(seen.keys, seen.whole, 16)
        for allocated in (True, False):
            divided = Divided.planned(plan, 8, 0.25, allocated=allocated)
            assert divided.sizes.sum() == 50_000
            assert divided.keys.sum() == divided.partials.sum() == len(plan.which)
            assert divided.planning == 0.25


def test_work_is_the_overhead_and_the_longest_tasks_of_both_stages() -> None:
    def halves(keys, times, start, length):
        return Divided(np.array([3, 5]), np.array([2, 1]), np.array([1, 2]), planning=0.125)

    costs = Costs(tuple=0.5, emit=2.0, partial=0.25)
    done = process(Source(Recorded(np.arange(9)), 4.0), halves, MicroBatches(2.0, overhead=1.0), costs, seconds=4)
    assert done.tuples.tolist() == [8, 8]
    # Map tasks take 1.5 + 4 and 2.5 + 2, reduce tasks 0.25 and 0.5; the plan is late by all that it takes.
    assert done.work.tolist() == [0.125 + 1.0 + 5.5 + 0.5] * 2
    assert done.reduce_times.tolist() == [[0.25, 0.5]] * 2
    assert done.demand == 7.125 / 2


def test_half_an_interval_and_no_buckets_are_refused() -> None:
    with pytest.raises(SkewlessError, match=r"2\.5 s are not"):
        process(Source(Recorded(np.arange(9)), 4.0), lambda *_: None, MicroBatches(1.0), Costs(), seconds=2.5)
    with pytest.raises(SkewlessError, match="buckets is 0"):
        allocate_all(partition(np.arange(3), np.array([3, 2, 1]), 2), 0)
