from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.metrics import bci, bsi, ksr
from skewless.split import Prompt, Shuffle
from skewless.split.at_home import leave_home
from skewless.split.receiver import Receiver
from skewless.workload import Zipf, new_hot_keys

ROWS, KEYS, BLOCKS, BATCHES = 200_000, 10_000, 24, 5
SKEWS = pytest.mark.parametrize("skew", [0.6, 1.0, 1.5])
STREAMS = st.lists(st.integers(-9, 9).map(lambda k: k**3 // 50), max_size=300)


def received(keys: np.ndarray, tasks: int, blocks: int = BLOCKS) -> np.ndarray:
    """The blocks of a micro-batch whose rows came to this many tasks, which never talk."""
    prototype = Receiver(blocks)
    return np.concatenate([prototype.for_task().partition(part) for part in np.array_split(keys, tasks)])


def outside(keys: np.ndarray, blocks: np.ndarray) -> set[str]:
    """The costs of a micro-batch that are above their bounds."""
    costs = {
        "BSI": bsi(blocks, BLOCKS) <= 0.02 * len(keys) / BLOCKS,
        "KSR": ksr(keys, blocks, BLOCKS) <= 1.05,
        "BCI": bci(keys, blocks, BLOCKS) <= bci(keys, homes(keys, BLOCKS), BLOCKS),
    }
    return {name for name, holds in costs.items() if not holds}


def micro_batches(skew: float) -> Iterator[np.ndarray]:
    """Hashes of keys, other hot ones in each."""
    return map(xxhash64, new_hot_keys(skew, every=ROWS, keys=KEYS, seed=1).blocks(BATCHES * ROWS, ROWS))


@SKEWS
@pytest.mark.parametrize("tasks", [1, 2, 8])
def test_blocks_of_tasks_that_never_talk_are_even_and_whole_while_hot_keys_change(skew: float, tasks: int) -> None:
    assert [outside(keys, received(keys, tasks)) for keys in micro_batches(skew)] == [set()] * BATCHES


@SKEWS
def test_dealt_rows_would_be_as_even_and_nothing_else(skew: float) -> None:
    dealt = [outside(keys, Shuffle(BLOCKS).route(keys)) for keys in micro_batches(skew)]
    assert all("KSR" in each and "BSI" not in each for each in dealt)
    assert any("BCI" in each for each in dealt)  # in the others chance has dealt the keys out evenly


@SKEWS
def test_hashed_rows_are_whole_and_not_even(skew: float) -> None:
    assert [outside(keys, homes(keys, BLOCKS)) for keys in micro_batches(skew)] == [{"BSI"}] * BATCHES


@pytest.mark.parametrize(("skew", "most"), [(0.6, 40), (1.0, 40), (1.5, 40)])
def test_one_task_alone_has_about_as_many_extra_fragments_as_blocks(skew: float, most: int) -> None:
    keys = xxhash64(Zipf(skew, KEYS).take(ROWS))
    distinct = len(np.unique(keys))
    assert ksr(keys, received(keys, 1), BLOCKS) <= 1 + most / distinct


@given(STREAMS, st.integers(1, 9), st.floats(0, 0.5))
@settings(max_examples=60)
def test_no_block_is_above_its_share_and_slack(keys: list[int], workers: int, slack: float) -> None:
    stream = np.array(keys, dtype=np.int64)
    blocks = Receiver(workers, slack=slack).partition(stream)
    assert len(blocks) == len(stream)
    sizes = np.bincount(blocks, minlength=workers)
    assert len(sizes) == workers
    assert sizes.max() <= max(-(-len(keys) // workers), (1 + slack) * len(keys) / workers)


@given(st.lists(STREAMS, min_size=1, max_size=6), st.integers(1, 9))
@settings(max_examples=40)
def test_tasks_of_any_length_are_even_together_up_to_a_row_each(tasks: list[list[int]], workers: int) -> None:
    blocks = [Receiver(workers, slack=0.1).partition(np.array(keys, dtype=np.int64)) for keys in tasks]
    sizes = np.bincount(np.concatenate(blocks), minlength=workers)
    assert sizes.max() <= 1.1 * sizes.mean() + len(tasks)


def test_tasks_that_have_different_keys_split_no_more_than_each_alone() -> None:
    keys = xxhash64(Zipf(1.0, KEYS).take(ROWS))
    tasks = [keys[homes(keys, 8) == task] for task in range(8)]
    blocks = np.concatenate([Receiver(25).partition(task) for task in tasks])
    assert bsi(blocks, 25) <= 0.02 * ROWS / 25
    assert ksr(np.concatenate(tasks), blocks, 25) <= 1.05


@given(STREAMS.filter(len), st.integers(1, 9))
@settings(max_examples=60)
def test_a_key_leaves_home_only_as_listed(keys: list[int], workers: int) -> None:
    stream = np.array(keys, dtype=np.int64)
    moves = leave_home(stream.copy(), workers, 0.01)
    blocks = Receiver(workers).partition(stream)
    listed = np.isin(stream, moves.keys)
    assert blocks[~listed].tolist() == homes(stream[~listed], workers).tolist()
    for i, key in enumerate(moves.keys):
        parts = slice(moves.offsets[i], moves.offsets[i + 1])
        expected = np.repeat(moves.block[parts], moves.size[parts])
        assert blocks[stream == key].tolist() == expected.tolist()
        assert len(set(moves.block[parts].tolist())) == moves.offsets[i + 1] - moves.offsets[i]


@given(STREAMS, st.lists(st.integers(0, 300), max_size=4), st.integers(1, 9))
@settings(max_examples=40)
def test_the_answer_is_the_same_however_the_input_is_cut(keys: list[int], cuts: list[int], workers: int) -> None:
    stream = np.array(keys, dtype=np.int64)
    whole, cut = Receiver(workers), Receiver(workers)
    chunks = np.split(stream, sorted(cuts))
    for chunk in chunks:
        cut.take(chunk)
    blocks = cut.finish()
    assert [len(each) for each in blocks] == [len(each) for each in chunks]
    assert np.concatenate(blocks).tolist() == whole.partition(stream).tolist()


def test_the_plan_depends_on_the_counts_and_not_on_the_order_of_rows() -> None:
    keys = xxhash64(Zipf(1.2, 500).take(5_000))
    shuffled = np.random.default_rng(2).permutation(keys)
    moves, again = leave_home(keys.copy(), 8, 0.01), leave_home(shuffled.copy(), 8, 0.01)
    assert all(a.tolist() == b.tolist() for a, b in zip(moves, again, strict=True))


@SKEWS
def test_the_largest_key_of_a_block_that_is_too_full_leaves_first(skew: float) -> None:
    keys = xxhash64(Zipf(skew, KEYS).take(ROWS))
    distinct, counts = np.unique(keys, return_counts=True)
    moves, home = leave_home(keys.copy(), BLOCKS, 0.01), homes(distinct, BLOCKS)
    loads = np.bincount(home, counts, BLOCKS)
    too_full = np.flatnonzero(loads > 1.05 * ROWS / BLOCKS)
    assert len(too_full) > 2
    for block in too_full:
        here = home == block
        assert distinct[here][counts[here].argmax()] in moves.keys


def test_a_key_that_would_leave_only_a_few_rows_behind_leaves_none() -> None:
    names, home = np.arange(200), homes(np.arange(200), 2)
    here, there = names[home == 0][:11], names[home == 1][:11]
    # Of 1,000 rows a block may have 550. Block 0 has 610, and of its largest key 40 rows might stay, less than 50.
    rows = np.concatenate((np.repeat(here, [100] + [51] * 10), np.repeat(there, [40] + [35] * 10)))
    moves = leave_home(rows.copy(), 2, 0.1)
    assert (moves.keys.tolist(), moves.block.tolist(), moves.size.tolist()) == ([here[0]], [1], [100])
    # Of 20 rows more it may have 561, and 51 rows stay, which are worth a fragment.
    moves = leave_home(np.append(rows, [there[0]] * 20), 2, 0.1)
    assert (moves.keys.tolist(), moves.block.tolist(), moves.size.tolist()) == ([here[0]], [0, 1], [51, 49])


# With frequent keys at their first weight BCI would be 1.01 and 1.17 of hashing's.
@pytest.mark.parametrize(("skew", "seed"), [(1.5, 2), (2.0, 3)])
def test_frequent_keys_count_for_more_where_blocks_would_be_less_even_than_by_hash(skew: float, seed: int) -> None:
    keys = xxhash64(Zipf(skew, 1_000, seed=seed).take(20_000)) ^ (seed * 7919)
    assert bci(keys, received(keys, 1), BLOCKS) < bci(keys, homes(keys, BLOCKS), BLOCKS)


def test_an_input_leaves_nothing_for_the_next_one() -> None:
    receiver = Receiver(6)
    first, second = xxhash64(Zipf(1.5, 100).take(2_000)), xxhash64(Zipf(1.5, 100, hottest=50).take(2_000))
    receiver.partition(first)
    assert receiver.partition(second).tolist() == Receiver(6).partition(second).tolist()
    assert receiver.finish() == []


def test_one_key_alone_fills_all_blocks_evenly() -> None:
    sizes = np.bincount(Receiver(4, slack=0.0).partition(np.full(1_000, 7)), minlength=4)
    assert sizes.tolist() == [250] * 4


def test_a_key_larger_than_a_block_is_cut_over_the_same_blocks_by_every_task() -> None:
    keys = xxhash64(Zipf(2.0, KEYS).take(ROWS))
    hottest = np.bincount(np.unique(keys, return_inverse=True)[1]).argmax()
    key = np.unique(keys)[hottest]
    needed = int(np.ceil((keys == key).mean() * BLOCKS))
    held = {int(block) for block in received(keys, 8)[keys == key]}
    assert len(held) <= needed + 4


def test_it_needs_memory_for_the_rows_of_the_task_only() -> None:
    keys = xxhash64(np.arange(200_000))
    receiver = Receiver(24)
    receiver.partition(keys[:1_000])
    tracemalloc.start()
    receiver.take(keys.copy())
    receiver.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 42 * len(keys)


@pytest.mark.parametrize(("workers", "share"), [(8, 1), (8, 4), (24, 1)])
def test_keys_that_all_have_to_leave_need_a_bounded_memory_too(workers: int, share: int) -> None:
    keys = xxhash64(np.arange(50_000 * workers // share))
    keys = keys[homes(keys, workers) < share]
    receiver = Receiver(workers)
    receiver.partition(keys[:1_000])
    tracemalloc.start()
    receiver.take(keys.copy())
    blocks = receiver.finish()[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.bincount(blocks, minlength=workers).max() <= 1.01 * len(keys) / workers + 1
    assert peak <= 120 * len(keys)


def test_it_travels_to_its_task_as_numbers() -> None:
    assert len(pickle.dumps(Receiver(24, slack=0.02))) < 500
    assert Receiver(24, slack=0.02).for_task().slack == 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers is 0; give a whole number from 1"),
        ({"workers": 2.5}, "workers is 2.5; give a whole number from 1"),
        ({"workers": 2, "slack": -0.1}, "slack is -0.1; give a number from 0"),
        ({"workers": 2, "slack": float("inf")}, "slack is inf; give a number from 0"),
        ({"workers": 2, "slack": "a"}, "slack is 'a'; give a number from 0"),
        (
            {"workers": 2, "buffer": "tree"},
            "buffer is 'tree'; a task sorts its rows when its input ends, so omit buffer",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        Receiver(**options)


def test_prompt_makes_receivers_like_itself() -> None:
    assert Prompt(6).receiver().for_task().workers == 6
    with pytest.raises(SkewlessError, match="buffer is 'tree'"):
        Prompt(6, buffer="tree").receiver()
