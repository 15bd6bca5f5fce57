from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.split.base import MOST_WORKERS
from skewless.split.least import least_add, least_loaded, least_reset, new_least

LOADS = st.lists(st.integers(0, 5), min_size=1, max_size=20)


@given(LOADS, st.lists(st.tuples(st.integers(0, 19), st.integers(0, 9)), max_size=40))
def test_the_least_loaded_is_known_after_every_change(loads: list[int], changes: list[tuple[int, int]]) -> None:
    plain = np.array(loads, dtype=np.int64)
    tree = new_least(plain)
    assert least_loaded(tree) == np.argmin(plain)  # the first of equals, as here
    for worker, weight in changes:
        worker %= len(plain)
        plain[worker] += weight
        least_add(tree, worker, weight)
        assert least_loaded(tree) == np.argmin(plain)


@given(LOADS, st.data())
def test_a_reset_takes_over_all_loads(loads: list[int], data: st.DataObject) -> None:
    tree = new_least(np.array(loads, dtype=np.int64))
    others = data.draw(st.lists(st.integers(0, 10**12), min_size=len(loads), max_size=len(loads)))
    least_reset(tree, np.array(others, dtype=np.int64))
    assert least_loaded(tree) == np.argmin(others)


@pytest.mark.parametrize("workers", [1, 2, 3, MOST_WORKERS])
def test_from_one_worker_to_the_most(workers: int) -> None:
    loads = np.ones(workers, dtype=np.int64)
    loads[-1] = 0
    tree = new_least(loads)
    assert least_loaded(tree) == workers - 1
    least_add(tree, workers - 1, 2)
    assert least_loaded(tree) == 0
