from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.counts import Counts, quanta
from skewless.core.errors import SkewlessError
from skewless.core.home import homes

COUNTS = st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(1, 500), max_size=20)


def counts_of(counts: dict[int, int], rest: int = 0) -> Counts:
    keys = np.array(list(counts), dtype=np.int64)
    return Counts(keys, np.array(list(counts.values()), dtype=np.int64), sum(counts.values()) + rest)


@given(st.lists(st.integers(-5, 5), max_size=80))
def test_the_counts_of_tuples_counts_them_most_frequent_first(keys: list[int]) -> None:
    seen = Counts.of(np.array(keys, dtype=np.int64))
    assert dict(zip(seen.keys.tolist(), seen.counts.tolist(), strict=True)) == Counter(keys)
    assert seen.total == len(keys)
    falling = list(zip((-seen.counts).tolist(), seen.keys.tolist(), strict=True))
    assert falling == sorted(falling)


@given(COUNTS, st.integers(0, 1_000), st.integers(1, 9))
def test_tuples_of_unknown_keys_are_spread_evenly(counts: dict[int, int], rest: int, workers: int) -> None:
    loads = counts_of(counts, rest).tail_loads(workers)
    assert loads.sum() == rest
    assert loads.max() - loads.min() <= 1


def test_a_tail_has_no_more_keys_than_rows() -> None:
    with pytest.raises(SkewlessError, match="tail_keys has more keys than tail has rows"):
        Counts(np.array([5]), np.array([3]), 10, np.array([6, 1]), tail_keys=np.array([3, 2]))
    with pytest.raises(SkewlessError, match="tail_keys has more keys than tail has rows"):
        Counts(np.array([5]), np.array([3]), 10, tail_keys=np.array([3, 2]))


def test_a_tail_that_was_counted_is_taken_as_it_is() -> None:
    seen = Counts(np.array([5]), np.array([3]), total=10, tail=np.array([6, 1]))
    assert seen.tail_loads(2).tolist() == [6, 1]


def test_a_tail_counted_on_other_workers_is_refused() -> None:
    seen = Counts(np.array([5]), np.array([3]), total=10, tail=np.array([6, 1]))
    with pytest.raises(SkewlessError, match="counted in 2 workers, but there are 3"):
        seen.tail_loads(3)


@given(COUNTS, st.integers(0, 1_000), st.integers(1, 600), st.integers(1, 9))
def test_light_keys_join_the_tail_on_their_homes(counts: dict[int, int], rest: int, least: int, workers: int) -> None:
    seen = counts_of(counts, rest)
    heavy = seen.heavier_than(least, workers)
    told_apart = dict(zip(heavy.keys.tolist(), heavy.counts.tolist(), strict=True))
    assert told_apart == {key: count for key, count in counts.items() if count >= least}
    tail = seen.tail_loads(workers).tolist()
    for key, count in counts.items():
        if count < least:
            tail[homes(np.array([key], dtype=np.int64), workers)[0]] += count
    assert heavy.tail_loads(workers).tolist() == tail
    assert heavy.total == seen.total == heavy.counts.sum() + sum(tail)


def test_light_keys_join_a_tail_that_was_counted() -> None:
    home = int(homes(np.array([8]), 2)[0])
    heavy = Counts(np.array([5, 8]), np.array([30, 2]), total=39, tail=np.array([6, 1])).heavier_than(3, 2)
    expected = [6, 1]
    expected[home] += 2
    assert heavy.keys.tolist() == [5]
    assert heavy.tail_loads(2).tolist() == expected


@pytest.mark.parametrize(
    ("keys", "counts", "total", "message"),
    [
        ([1, 2], [3], 9, "(2,) keys but (1,) counts; give one count for each key"),
        ([[1, 2]], [[3, 4]], 9, "(1, 2) keys but (1, 2) counts; give one count for each key"),
        ([1, 2, 1], [3, 4, 5], 99, "a key is listed twice; add its counts up first"),
        ([1, 2], [3, 0], 9, "a count is 0; list only keys that came at least once"),
        ([1, 2], [-4, 3], 9, "a count is -4; list only keys that came at least once"),
        ([1, 2], [3, 4], 6, "the counts add up to 7, more than the total of 6"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(
    keys: list[int], counts: list[int], total: int, message: str
) -> None:
    with pytest.raises(SkewlessError, match=re.escape(message)):
        Counts(np.array(keys), np.array(counts), total)


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(1, 60))
def test_quanta_add_up_to_the_counts_and_none_is_larger_than_a_quantum(counts: list[int], quantum: int) -> None:
    which, weights = quanta(np.array(counts, dtype=np.int64), quantum)
    comes = np.bincount(which, minlength=len(counts))
    assert np.bincount(which, weights, len(counts)).tolist() == counts
    assert comes.tolist() == [-(-count // quantum) for count in counts]
    assert not len(weights) or (weights.min() >= 1 and weights.max() <= quantum)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.integers(1, 60))
def test_at_any_time_the_same_share_of_every_key_has_come(counts: list[int], quantum: int) -> None:
    which, _ = quanta(np.array(counts, dtype=np.int64), quantum)
    times = np.bincount(which, minlength=len(counts))
    come = np.zeros(len(counts))
    for key in which:
        come[key] += 1
        share = (come[key] - 0.5) / times[key]
        assert np.abs(come - share * times).max() <= 0.5 + 1e-9
