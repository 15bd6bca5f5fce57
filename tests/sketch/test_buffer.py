from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.batch import Batch, post_sort
from skewless.sketch.buffer import COUNT, F_STEP, IN_TREE, LEFT, FrequencyBuffer
from skewless.sketch.count_tree import KEY

unhurried = settings(deadline=None)  # the first example may compile the kernels
KEYS = st.lists(st.integers(-2, 12), max_size=250)
BUDGETS = st.integers(1, 12)
ESTIMATES = st.floats(0.5, 2000)


@dataclass
class Key:
    count: int
    in_tree: int
    left: int
    updated_at: int
    f_step: float
    t_step: float


class Standing(NamedTuple):
    """What a buffer knows about the keys of the open batch, in order of arrival."""

    keys: np.ndarray
    counts: np.ndarray
    tree_counts: np.ndarray
    f_steps: np.ndarray
    updates_left: np.ndarray


def standing_of(buffer: FrequencyBuffer) -> Standing:
    known = slice(1, len(buffer) + 1)
    columns = (buffer._records[known, column].copy() for column in (COUNT, IN_TREE, F_STEP, LEFT))
    return Standing(buffer._tree.nodes[known, KEY].copy(), *columns)


def rows_of(batch: Batch, i: int) -> np.ndarray:
    return batch.rows[batch.offsets[i] : batch.offsets[i + 1]]


def algorithm_1(
    keys: list[int], times: list[int], end: int, budget: int, tuples: float, distinct: float
) -> dict[int, Key]:
    """The paper's loop, in plain Python with unrounded steps."""
    table: dict[int, Key] = {}
    for n, (key, now) in enumerate(zip(keys, times, strict=True), start=1):
        if key not in table:
            table[key] = Key(1, 1, budget, now, max(1, tuples) / (max(1, distinct) * budget), (end - now) / budget)
            continue
        k = table[key]
        k.count += 1
        if k.left and k.count - k.in_tree >= k.f_step:
            k.in_tree, k.left, k.updated_at = k.count, k.left - 1, now
            k.f_step = max(1, tuples) / budget * k.count / n
        elif k.left and now - k.updated_at >= k.t_step:
            k.in_tree, k.left, k.updated_at = k.count, k.left - 1, now
            k.t_step = (end - now) / max(k.left, 1)
    return table


def check_exact(batch: Batch, keys: np.ndarray) -> None:
    """Every row is there once, under its own key, and the counts are right."""
    distinct, counts = np.unique(keys, return_counts=True)
    by_key = np.argsort(batch.keys)
    np.testing.assert_array_equal(batch.keys[by_key], distinct)
    np.testing.assert_array_equal(batch.counts[by_key], counts)
    np.testing.assert_array_equal(np.diff(batch.offsets), batch.counts)
    np.testing.assert_array_equal(np.sort(batch.rows), np.arange(len(keys)))
    for i, key in enumerate(batch.keys):
        assert (keys[rows_of(batch, i)] == key).all()
        assert (np.diff(rows_of(batch, i)) > 0).all()


def sticky_zipf(tuples: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).zipf(1.3, tuples) % 1_000


@unhurried
@given(
    st.lists(st.tuples(st.integers(-2, 12), st.integers(0, 30)), max_size=250),
    BUDGETS,
    ESTIMATES,
    ESTIMATES,
    st.integers(0, 5),
    st.lists(st.integers(0, 250), max_size=4),
)
def test_the_buffer_does_what_algorithm_1_does(
    stream: list[tuple[int, int]], budget: int, tuples: float, distinct: float, spare: int, cuts: list[int]
) -> None:
    keys = np.array([key for key, _ in stream], np.int64)
    times = 100 + np.cumsum(np.array([gap for _, gap in stream], np.int64))
    end = int(times[-1]) + 1 + spare if stream else 101
    buffer = FrequencyBuffer(end - 100, budget, expected_tuples=tuples, expected_keys=distinct, start=100)
    at = sorted(min(cut, len(keys)) for cut in cuts)
    for keys_piece, times_piece in zip(np.split(keys, at), np.split(times, at), strict=True):
        buffer.add(keys_piece, times_piece)
    table = algorithm_1(keys.tolist(), times.tolist(), end, budget, tuples, distinct)
    standing = standing_of(buffer)
    assert standing.keys.tolist() == list(table)
    assert standing.tree_counts.tolist() == [k.in_tree for k in table.values()]
    assert standing.updates_left.tolist() == [k.left for k in table.values()]
    batch = buffer.finish()
    assert batch.keys.tolist() == sorted(table, key=lambda key: (-table[key].in_tree, key))
    check_exact(batch, keys)


def test_the_times_stay_with_their_keys_when_the_buffer_grows() -> None:
    rng = np.random.default_rng(9)
    keys, times = rng.zipf(1.2, 3_000) % 700, np.cumsum(rng.integers(0, 50, 3_000))
    end = int(times[-1]) + 1
    buffer = FrequencyBuffer(end, expected_tuples=3_000, expected_keys=20)
    buffer.add(keys, times)
    table = algorithm_1(keys.tolist(), times.tolist(), end, 10, 3_000, 20)
    standing = standing_of(buffer)
    assert standing.keys.tolist() == list(table)
    assert standing.tree_counts.tolist() == [k.in_tree for k in table.values()]
    assert standing.updates_left.tolist() == [k.left for k in table.values()]


@unhurried
@given(KEYS, BUDGETS, ESTIMATES, ESTIMATES)
def test_a_key_with_budget_left_lags_by_less_than_its_step(
    stream: list[int], budget: int, tuples: float, distinct: float
) -> None:
    buffer = FrequencyBuffer(1_000, budget, expected_tuples=tuples, expected_keys=distinct)
    for key in stream:
        buffer.add(np.array([key]))
        standing = standing_of(buffer)
        lags = standing.counts - standing.tree_counts
        able = standing.updates_left > 0
        assert (lags >= 0).all()
        assert (lags[able] < standing.f_steps[able]).all()
        assert (standing.f_steps <= ceil(max(1, tuples) / budget)).all()
        assert ((standing.updates_left >= 0) & (standing.updates_left <= budget)).all()


@unhurried
@given(KEYS, BUDGETS, ESTIMATES, ESTIMATES)
def test_two_keys_in_the_wrong_order_differ_by_no_more_than_the_lag_of_the_later(
    stream: list[int], budget: int, tuples: float, distinct: float
) -> None:
    buffer = FrequencyBuffer(1_000, budget, expected_tuples=tuples, expected_keys=distinct)
    buffer.add(np.array(stream, np.int64))
    standing = standing_of(buffer)
    lag = dict(zip(standing.keys.tolist(), (standing.counts - standing.tree_counts).tolist(), strict=True))
    batch = buffer.finish()
    for later in range(len(batch.keys)):
        for earlier in range(later):
            assert batch.counts[later] - batch.counts[earlier] <= lag[int(batch.keys[later])]


@unhurried
@given(KEYS)
def test_with_a_budget_for_every_tuple_the_order_is_the_exact_one(stream: list[int]) -> None:
    keys = np.array(stream, np.int64)
    buffer = FrequencyBuffer(1_000, budget=1_000, expected_tuples=250)
    buffer.add(keys)
    batch, exact = buffer.finish(), post_sort(keys)
    np.testing.assert_array_equal(batch.keys, exact.keys)
    np.testing.assert_array_equal(batch.rows, exact.rows)


@unhurried
@given(KEYS)
def test_post_sort_is_exact_and_sorted(stream: list[int]) -> None:
    keys = np.array(stream, np.int64)
    batch = post_sort(keys)
    check_exact(batch, keys)
    ranking = list(zip((-batch.counts).tolist(), batch.keys.tolist(), strict=True))
    assert ranking == sorted(ranking)


def test_many_keys_outgrow_every_array_and_stay_exact() -> None:
    keys = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 5_000)[
        np.random.default_rng(4).integers(0, 5_000, 20_000)
    ]
    buffer = FrequencyBuffer(20_000)
    for piece in np.array_split(keys, 7):
        buffer.add(piece)
    check_exact(buffer.finish(), keys)
    check_exact(post_sort(keys), keys)


def test_a_skewed_batch_comes_out_nearly_sorted() -> None:
    keys = sticky_zipf(50_000)
    buffer = FrequencyBuffer(50_000)
    buffer.add(keys)
    batch, exact = buffer.finish(), post_sort(keys)
    assert batch.keys[:3].tolist() == exact.keys[:3].tolist()
    # Each rank holds a key whose count is close to what that rank should hold.
    assert np.abs(batch.counts - exact.counts).sum() < 0.05 * len(keys)


def test_the_estimates_follow_past_batches() -> None:
    buffer = FrequencyBuffer(100, expected_tuples=7, expected_keys=3)
    buffer.add(np.arange(10).repeat(4))
    buffer.finish()
    assert (buffer.expected_tuples, buffer.expected_keys) == (40, 10)
    buffer.add(np.arange(20))
    buffer.finish()
    assert (buffer.expected_tuples, buffer.expected_keys) == (30, 15)
    for _ in range(5):
        buffer.finish()
    assert (buffer.expected_tuples, buffer.expected_keys) == (1, 1)


def test_a_new_batch_knows_nothing_of_the_last() -> None:
    buffer = FrequencyBuffer(100)
    buffer.add(np.array([1, 1, 2]))
    buffer.finish()
    assert len(buffer) == 0
    assert (buffer.start, buffer.end) == (100, 200)
    buffer.add(np.array([2, 3, 2]))
    batch = buffer.finish()
    assert batch.keys.tolist() == [2, 3]
    assert batch.counts.tolist() == [2, 1]
    assert rows_of(batch, 0).tolist() == [0, 2]


def test_an_empty_batch_is_a_batch() -> None:
    for batch in (FrequencyBuffer(10).finish(), post_sort(np.array([], np.int64))):
        assert len(batch.keys) == len(batch.counts) == len(batch.rows) == 0
        assert batch.offsets.tolist() == [0]


@pytest.mark.parametrize("time", [9, 20])
def test_a_time_outside_the_batch_is_refused_and_nothing_is_taken(time: int) -> None:
    buffer = FrequencyBuffer(10, start=10)
    with pytest.raises(SkewlessError, match=rf"time {time} is outside the open batch \[10, 20\).*finish"):
        buffer.add(np.array([1, 2]), np.array([10, time]))
    assert len(buffer) == 0
    buffer.add(np.array([1, 2]), np.array([10, 19]))
    assert len(buffer) == 2


def test_without_times_a_batch_takes_as_many_tuples_as_its_interval() -> None:
    buffer = FrequencyBuffer(3)
    buffer.add(np.array([1, 2, 3]))
    with pytest.raises(SkewlessError, match="time 3 is outside"):
        buffer.add(np.array([4]))


def test_every_key_needs_its_time() -> None:
    with pytest.raises(SkewlessError, match="1 times for 2 keys"):
        FrequencyBuffer(3).add(np.array([1, 2]), np.array([0]))


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_allows_an_update(budget: int) -> None:
    with pytest.raises(SkewlessError, match=f"budget is {budget}.*1 or more"):
        FrequencyBuffer(10, budget)


def test_an_interval_has_a_length() -> None:
    with pytest.raises(SkewlessError, match=r"interval is 0.*1 or more"):
        FrequencyBuffer(0)


def test_a_cleared_batch_leaves_nothing_to_the_next() -> None:
    buffer = FrequencyBuffer(100)
    buffer.add(np.array([5, 9, 5, 7]))
    assert len(buffer.walk()) == 3
    buffer.clear()
    buffer.add(np.array([9, 4]))
    batch = buffer.finish()
    assert (batch.keys.tolist(), batch.counts.tolist(), batch.rows.tolist()) == ([4, 9], [1, 1], [1, 0])
