from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.metrics import bci, bsi, ksr, mpi
from skewless.sketch import FrequencyBuffer
from skewless.split import Hash, Prompt, Shuffle
from skewless.split.blocks import partition

BUFFERS = pytest.mark.parametrize("buffer", ["sort", "tree"])


def zipf(skew: float, n: int, seed: int = 1) -> np.ndarray:
    """A bounded Zipf stream, which may be less skewed than numpy's."""
    shares = np.arange(1.0, 1_001) ** -skew
    return np.random.default_rng(seed).choice(1_000, n, p=shares / shares.sum())


@pytest.mark.parametrize("skew", [0.1, 0.6, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("blocks", [4, 16])
def test_blocks_are_as_even_as_shuffled_ones_and_split_far_fewer_keys(skew: float, blocks: int) -> None:
    keys = zipf(skew, 20_000)
    planned, hashed, shuffled = (
        Prompt(blocks).partition(keys),
        Hash(blocks).route(keys),
        Shuffle(blocks).route(keys),
    )
    assert bsi(planned, blocks) <= bsi(hashed, blocks)
    assert bsi(planned, blocks) <= 20_000 // len(set(keys.tolist())) + 1
    assert 1 <= ksr(keys, planned, blocks) <= 1 + 1.5 * blocks / len(set(keys.tolist())) < ksr(keys, shuffled, blocks)
    assert bci(keys, planned, blocks) <= min(3, bci(keys, hashed, blocks))
    assert mpi(keys, planned, blocks) < mpi(keys, hashed, blocks)


@given(st.lists(st.integers(-9, 9).map(lambda k: k**3 // 50), max_size=200), st.integers(1, 8))
@settings(max_examples=60)
def test_a_batch_is_partitioned_exactly_as_planned(keys: list[int], blocks: int) -> None:
    stream = np.array(keys, dtype=np.int64)
    seen = Counts.of(stream)
    plan = partition(seen.keys, seen.counts, blocks)
    routed = Prompt(blocks).partition(stream)
    assert np.bincount(routed, minlength=blocks).tolist() == plan.sizes.tolist()
    for which, block, size in zip(plan.which, plan.block, plan.size, strict=True):
        assert np.count_nonzero((stream == plan.keys[which]) & (routed == block)) == size


def test_a_batch_is_planned_in_the_order_of_the_tree_if_that_is_asked_for() -> None:
    keys = zipf(0.6, 20_000)
    buffer = FrequencyBuffer(len(keys))
    buffer.add(keys)
    batch, seen = buffer.finish(), Counts.of(keys)
    assert batch.keys.tolist() != seen.keys.tolist()
    expected = partition(batch.keys, batch.counts, 8).route(keys)
    assert Prompt(8, buffer="tree", slide=500).partition(keys).tolist() == expected.tolist()
    assert Prompt(8).partition(keys).tolist() != expected.tolist()
    assert Prompt(8, buffer="tree").partition(keys[:0]).tolist() == []


def test_the_tree_is_refused_where_there_are_only_counts() -> None:
    with pytest.raises(SkewlessError, match="buffer is 'tree', which keeps the order of keys while their tuples come"):
        Prompt(8, buffer="tree").plan(Counts.of(zipf(1.0, 100)))


@pytest.mark.parametrize("skew", [0.0, 0.6, 1.0])
def test_blocks_are_even_in_keys_though_most_keys_are_only_counted_at_their_homes(skew: float) -> None:
    shares = np.arange(1.0, 20_001) ** -skew
    keys = np.random.default_rng(3).choice(20_000, 200_000, p=shares / shares.sum())
    seen = Counts.of(keys)
    told, others = seen.keys[:5_000], homes(seen.keys[5_000:], 24)
    tail = np.bincount(others, seen.counts[5_000:], 24).astype(np.int64)
    known = Counts(told, seen.counts[:5_000], len(keys), tail, len(seen.keys), np.bincount(others, minlength=24))
    blocks = Prompt(24).plan(known).route(keys)
    assert bci(keys, blocks, 24) <= 0.5 * bci(keys, homes(keys, 24), 24)
    assert bsi(blocks, 24) <= 0.02 * len(keys) / 24


def test_keys_that_are_no_whole_numbers_are_refused_for_a_batch_too() -> None:
    with pytest.raises(SkewlessError, match=r"keys are float64 of shape \(1,\); give one flat array of whole numbers"):
        Prompt(4).partition(np.array([0.5]))


@given(st.integers(1, 4), st.integers(0, 100), st.integers(1, 6))
@settings(max_examples=25)
def test_a_batch_follows_the_plan_of_the_batch_before(batches: int, over: int, workers: int) -> None:
    keys = zipf(1.2, 200 * batches + over)
    routed = Prompt(workers, slide=200).route(keys)
    assert routed[:200].tolist() == homes(keys[:200], workers).tolist()
    for start in range(200, len(keys), 200):
        policy = Prompt(workers).plan(Counts.of(keys[start - 200 : start]))
        expected = policy.route(keys[start : start + 200], start)
        assert routed[start : start + 200].tolist() == expected.tolist()


@BUFFERS
def test_a_key_new_since_the_last_batch_goes_home(buffer: str) -> None:
    splitter = Prompt(8, slide=500, buffer=buffer)
    splitter.route(zipf(1.2, 500))
    new = np.arange(5_000, 5_400)
    assert splitter.route(new).tolist() == homes(new, 8).tolist()


@BUFFERS
def test_a_batch_like_the_one_before_is_balanced(buffer: str) -> None:
    splitter = Prompt(8, slide=5_000, buffer=buffer)
    batch = zipf(1.5, 5_000)
    first, second = splitter.route(batch), splitter.route(batch)
    assert bsi(first, 8) > 1_000  # hashed: the most frequent key alone is more than two fair shares
    assert bsi(second, 8) < 0.1 * 5_000 / 8
    assert splitter.hot_keys > 0


@BUFFERS
def test_only_the_last_batch_counts(buffer: str) -> None:
    splitter = Prompt(8, slide=100, buffer=buffer)
    splitter.route(np.zeros(100, dtype=np.int64))
    assert splitter.hot_keys == 0
    splitter.route(np.arange(100))
    assert splitter.hot_keys == 1
    splitter.route(np.arange(1))
    assert splitter.hot_keys == 0


@pytest.mark.parametrize("skew", [0.6, 1.0, 1.5])
@pytest.mark.parametrize("blocks", [4, 16])
def test_nearly_sorted_keys_give_the_same_sizes_within_the_cut_off(skew: float, blocks: int) -> None:
    keys = zipf(skew, 10_000)
    buffer = FrequencyBuffer(10_000)
    buffer.add(keys)
    batch, seen = buffer.finish(), Counts.of(keys)
    tree, sort = partition(batch.keys, batch.counts, blocks), partition(seen.keys, seen.counts, blocks)
    cut = 10_000 // len(seen.keys)
    assert np.abs(np.sort(tree.sizes) - np.sort(sort.sizes)).max() <= cut


def test_a_plan_accepts_a_histogram_in_any_order() -> None:
    keys, counts = np.array([5, 6, 7, 8]), np.array([10, 400, 30, 200])
    order = np.array([2, 0, 3, 1])
    assert Prompt(4).plan(Counts(keys, counts, 640)) == Prompt(4).plan(Counts(keys[order], counts[order], 640))


def test_the_lanes_of_a_plan_are_in_proportion_to_the_fragments() -> None:
    seen = Counts.of(zipf(1.5, 5_000))
    policy = Prompt(6).plan(seen)
    plan = partition(seen.keys, seen.counts, 6)
    for k in np.flatnonzero(plan.split):
        lanes = policy.lanes_of(int(seen.keys[k]))
        shares = np.zeros(6)
        shares[plan.block[plan.which == k]] = plan.size[plan.which == k] / seen.counts[k]
        assert np.abs(np.bincount(lanes, minlength=6) / len(lanes) - shares).max() < 7 / 1_024


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(SkewlessError, match="slide is 0 tuples; give at least 1"):
        Prompt(4, slide=0)
    with pytest.raises(SkewlessError, match=r"slide is 1\.5 tuples; give at least 1, a whole number"):
        Prompt(4, slide=1.5)


def test_an_unknown_buffer_is_refused() -> None:
    with pytest.raises(SkewlessError, match="buffer is 'heap'; choose one of sort, tree"):
        Prompt(4, buffer="heap")


def test_a_plan_evens_out_a_tail_that_is_not_even_to_within_the_cut_off() -> None:
    tail = np.array([2600, 1000, 1200, 1200])
    counts = np.array([5000] + [20] * 50)  # the cut-off is 6000 / 51
    seen = Counts(np.arange(51), counts, total=12_000, tail=tail)
    policy = Prompt(4).plan(seen)
    loads = tail.astype(float)
    for key, count in zip(seen.keys, seen.counts, strict=True):
        lanes = policy.lanes_of(int(key))
        loads += np.bincount(lanes, minlength=4) * count / len(lanes)
    assert loads.max() - loads.mean() <= 6000 / 51 + 1


def test_keys_that_have_faded_to_less_than_a_row_are_in_no_plan() -> None:
    seen = Counts(np.array([7, 8]), np.array([6.0, 0.4]), 6.4)
    policy = Prompt(2).plan(seen)
    assert policy.split.tolist() == [7]
    assert policy == Prompt(2).plan(Counts(np.array([7]), np.array([6.0]), 6.0))
