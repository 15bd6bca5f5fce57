"""Packings of counts into blocks: what Algorithm 2 and its rivals have in common, and where they differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.split import BlockPlan, first_fit, least_fragmentation, partition
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
