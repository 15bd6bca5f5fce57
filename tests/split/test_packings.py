"""The rivals of Prompt's partitioning: other packings of counts, five choices, cAM at its best, and time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.metrics import bci, bsi, ksr, max_over_avg, mpi
from skewless.split import (
    CAM,
    BlockPlan,
    FiveChoices,
    TwoChoices,
    best_cam,
    first_fit,
    least_fragmentation,
    partition,
    time_blocks,
)
from skewless.workload import Zipf

Packing = Callable[[np.ndarray, np.ndarray, int], BlockPlan]
COUNTS = st.lists(st.one_of(st.integers(1, 9), st.integers(1, 300)), max_size=30)
BLOCKS = st.integers(1, 9)
PACKINGS = pytest.mark.parametrize("packing", [first_fit, least_fragmentation, partition])
FULL = pytest.mark.parametrize("packing", [first_fit, least_fragmentation])


def planned(packing: Packing, counts: list[int], blocks: int) -> BlockPlan:
    return packing(100 + np.arange(len(counts)), np.array(counts, dtype=np.int64), blocks)


@PACKINGS
@given(COUNTS, BLOCKS)
def test_every_tuple_is_in_one_block(packing: Packing, counts: list[int], blocks: int) -> None:
    plan = planned(packing, counts, blocks)
    placed = dict(zip(plan.keys.tolist(), np.bincount(plan.which, plan.size, len(counts)).tolist(), strict=True))
    assert placed == {100 + k: count for k, count in enumerate(counts)}
    assert not len(plan.size) or plan.size.min() >= 1
    assert len(set(zip(plan.which.tolist(), plan.block.tolist(), strict=True))) == len(plan.which)
    assert plan.sizes.sum() == sum(counts)
    assert len(plan.sizes) == blocks
    assert plan.which.tolist() == sorted(plan.which.tolist())


@FULL
@given(COUNTS, BLOCKS)
def test_no_block_is_above_its_size(packing: Packing, counts: list[int], blocks: int) -> None:
    assert planned(packing, counts, blocks).sizes.max() <= -(-sum(counts) // blocks)


@FULL
@given(COUNTS, BLOCKS)
def test_each_extra_fragment_fills_a_block(packing: Packing, counts: list[int], blocks: int) -> None:
    plan = planned(packing, counts, blocks)
    assert len(plan.which) - len(plan.keys) <= blocks - 1


@given(COUNTS, BLOCKS)
def test_best_fit_splits_a_key_only_where_no_block_has_room_for_it(counts: list[int], blocks: int) -> None:
    room = [-(-sum(counts) // blocks)] * blocks
    expected = []
    for k, count in enumerate(sorted(counts, reverse=True)):
        while count:
            fitting = [b for b in range(blocks) if room[b] >= count]
            b = min(fitting, key=room.__getitem__) if fitting else room.index(max(room))
            taken = min(count, room[b])
            expected.append((k, b, taken))
            room[b] -= taken
            count -= taken
    plan = planned(least_fragmentation, counts, blocks)
    assert list(zip(plan.which.tolist(), plan.block.tolist(), plan.size.tolist(), strict=True)) == expected


def test_first_fit_splits_the_keys_of_figure_2_3_and_best_fit_fewer() -> None:
    # The thesis has 385 tuples of eight keys on four blocks: first fit splits the first, second and fourth key.
    counts = [140, 90, 60, 35, 25, 15, 12, 8]
    first, best = planned(first_fit, counts, 4), planned(least_fragmentation, counts, 4)
    assert np.flatnonzero(first.split).tolist() == [0, 1, 3]
    assert best.split.sum() < first.split.sum()
    assert first.cardinalities.max() >= 1.5 * first.cardinalities.mean()


@pytest.mark.parametrize("skew", [0.6, 1.0, 1.5])
@FULL
def test_packings_that_only_fill_blocks_leave_their_keys_uneven(packing: Packing, skew: float) -> None:
    seen = Counts.of(Zipf(skew, keys=10_000, seed=2).take(200_000))
    rival, prompt = packing(seen.keys, seen.whole, 24), partition(seen.keys, seen.whole, 24)
    assert rival.sizes.max() - rival.sizes.mean() < 1
    assert len(rival.which) <= len(rival.keys) + 23
    assert rival.cardinalities.max() - rival.cardinalities.mean() > 50
    assert prompt.cardinalities.max() - prompt.cardinalities.mean() < 3


@PACKINGS
def test_no_blocks_are_refused(packing: Packing) -> None:
    with pytest.raises(SkewlessError, match="blocks is 0; give at least 1"):
        planned(packing, [1], 0)


def test_five_choices_are_the_least_loaded_of_five_hashes() -> None:
    keys = xxhash64(Zipf(1.2, 100).take(2_000))
    loads = [0] * 16
    expected = []
    for key in keys:
        candidates = [int(xxhash64(np.array([key]), seed=42 + j)[0]) % 16 for j in range(5)]
        worker = min(candidates, key=loads.__getitem__)
        loads[worker] += 1
        expected.append(worker)
    assert FiveChoices(16).route(keys).tolist() == expected


def test_five_choices_hold_out_longer_than_two_and_split_more() -> None:
    keys = xxhash64(Zipf(1.4, 10_000).take(50_000))  # the hottest key has a third of all
    two, five = TwoChoices(16).route(keys), FiveChoices(16).route(keys)
    assert max_over_avg(five, 16) < 0.6 * max_over_avg(two, 16)
    assert ksr(keys, five, 16) > ksr(keys, two, 16)


@pytest.mark.parametrize("cost", [None, "bsi", "bci"])
def test_cam_is_taken_with_the_candidates_that_cost_least(cost: str | None) -> None:
    keys, workers = xxhash64(Zipf(1.0, 2_000).take(20_000)), 16
    costs = {
        None: lambda routed: mpi(keys, routed, workers),
        "bsi": lambda routed: bsi(routed, workers),
        "bci": lambda routed: bci(keys, routed, workers),
    }
    candidates, routed = best_cam(keys, workers, None if cost is None else costs[cost])
    tried = {
        number: costs[cost](CAM(workers, slide=20_000, slides=1, candidates=number).route(keys))
        for number in (2, 3, 5, 10, 16)
    }
    assert tried[candidates] == min(tried.values()) == costs[cost](routed)
    assert ksr(keys, routed, workers) == 1


def test_cam_on_few_workers_has_no_more_candidates_than_workers() -> None:
    assert best_cam(np.arange(100), 3)[0] in (2, 3)
    assert best_cam(np.zeros(0, np.int64), 3)[0] == 2


@given(st.lists(st.floats(5, 6.99), max_size=50), BLOCKS)
def test_a_block_is_a_part_of_the_interval(times: list[float], blocks: int) -> None:
    routed = time_blocks(np.array(times), 5, 2, blocks)
    for time, block in zip(times, routed.tolist(), strict=True):
        assert 5 + 2 * block / blocks - 1e-9 <= time < 5 + 2 * (block + 1) / blocks + 1e-9
        assert 0 <= block < blocks


@pytest.mark.parametrize(
    ("times", "interval", "blocks", "message"),
    [
        ([4.9], 2, 4, r"time 4.9 is outside \[5, 7\)"),
        ([7.0], 2, 4, r"time 7.0 is outside \[5, 7\)"),
        ([5.0], 0, 4, "interval is 0; give more than 0"),
        ([5.0], 2, 0, "blocks is 0; give at least 1"),
    ],
)
def test_times_outside_the_interval_are_refused(times: list[float], interval: float, blocks: int, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        time_blocks(np.array(times), 5, interval, blocks)
