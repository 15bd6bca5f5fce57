from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.sketch.keys import key_hash
from skewless.sketch.table import (
    COUNT_MASK,
    USED,
    WINDOW,
    WINDOWS,
    grown,
    new_table,
    table_add,
    table_find_all,
    table_full,
    table_items,
    table_next_window,
)

unhurried = settings(deadline=None)  # the first example may compile the kernels
NEXT_WINDOW = "next window"


class Table:
    """The arrays of one table, small enough that keys meet in it and probes go round its end."""

    def __init__(self, window: int = 1, capacity: int = 4) -> None:
        self.table = new_table(capacity)
        self.table.meta[WINDOW] = window

    def add(self, key: int, weight: int = 1) -> int:
        if table_full(self.table):
            self.table = grown(self.table)
        return int(table_add(self.table, key_hash(key), key, weight))

    def next_window(self) -> None:
        table_next_window(self.table)

    def find(self, keys: list[int]) -> list[int]:
        out = np.full(len(keys), -1, np.int64)
        table_find_all(self.table, np.array(keys, np.int64), out)
        return out.tolist()

    def items(self) -> dict[int, int]:
        keys, counts = table_items(self.table)
        assert len(set(keys.tolist())) == len(keys)
        return dict(zip(keys.tolist(), counts.tolist(), strict=True))


@unhurried
@given(
    st.lists(st.one_of(st.tuples(st.integers(-5, 25), st.integers(1, 9)), st.just(NEXT_WINDOW)), max_size=120),
    st.sampled_from([1, 2, WINDOWS - 3, WINDOWS - 2, WINDOWS - 1]),
)
def test_it_counts_as_a_counter_that_is_emptied_with_each_window(
    steps: list[tuple[int, int] | str], first_window: int
) -> None:
    table, truth = Table(first_window), Counter[int]()
    for step in steps:
        if isinstance(step, str):
            table.next_window()
            truth.clear()
        else:
            key, weight = step
            truth[key] += weight
            assert table.add(key, weight) == truth[key]
        assert table.table.meta[USED] == len(truth)
        assert table.items() == truth
    assert table.find(list(range(-5, 26))) == [truth[key] for key in range(-5, 26)]


def test_nothing_old_comes_back_when_the_window_numbers_start_anew() -> None:
    table = Table(capacity=256)
    for key in range(20):
        table.add(key)  # these bear the number 1, which is to come again
    table.next_window()
    table.table.meta[WINDOW] = WINDOWS - 1
    for key in range(10, 30):
        table.add(key)
    assert table.find([10, 29, 0]) == [1, 1, 0]
    table.next_window()
    assert table.table.meta[WINDOW] == 1
    assert table.items() == {}
    assert table.find(list(range(30))) == [0] * 30
    assert table.add(5) == 1


def test_the_highest_window_number_still_fits_with_the_largest_count() -> None:
    table = Table(WINDOWS - 1)
    assert table.add(7, COUNT_MASK - 1) == COUNT_MASK - 1
    assert table.add(7) == COUNT_MASK
    assert table.find([7]) == [COUNT_MASK]


@pytest.mark.parametrize("capacity", [4, 1024])
def test_half_of_it_may_be_used(capacity: int) -> None:
    table = Table(capacity=capacity)
    for key in range(capacity // 2):
        assert not table_full(table.table)
        table.add(key)
    assert table_full(table.table)
    assert len(table.table.entries) == capacity
    table.add(-1)
    assert len(table.table.entries) == 2 * capacity


def test_growing_leaves_old_windows_behind() -> None:
    table = Table(capacity=64)
    for key in range(30):
        table.add(key)
    table.next_window()
    table.add(100, 3)
    table.table = grown(table.table)
    assert np.count_nonzero(table.table.entries[:, 1]) == 1
    assert table.items() == {100: 3}
