from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.hashing import xxhash64
from skewless.core.home import fill_homes, homes

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(LONGS, max_size=50), st.integers(1, 70))
def test_the_home_is_what_spark_computes(keys: list[int], workers: int) -> None:
    array = np.array(keys, dtype=np.int64)
    expected = [int(h) % workers for h in xxhash64(array)]  # Python's % is Spark's pmod
    assert homes(array, workers).tolist() == expected


def test_the_homes_that_spark_answers_in_sql() -> None:
    # SELECT pmod(xxhash64(id), 4) of the bigints 1 and -7: the hashes are -7001672635703045582 and -1663473129717591079
    assert homes(np.array([1, -7]), 4).tolist() == [-7001672635703045582 % 4, -1663473129717591079 % 4] == [2, 1]


@pytest.mark.parametrize("workers", [2, 10, 64])
def test_homes_of_many_keys_are_even(workers: int) -> None:
    loads = np.bincount(homes(np.arange(100_000), workers), minlength=workers)
    assert loads.max() / loads.mean() < 1.1
    assert loads.min() / loads.mean() > 0.9


def test_one_worker_is_home_to_all() -> None:
    assert homes(np.array([-5, 0, 5]), 1).tolist() == [0, 0, 0]


def test_fill_homes_writes_only_where_it_has_keys() -> None:
    out = np.full(4, -9, dtype=np.int32)
    fill_homes(np.array([1, 2]), 4, out)
    assert out.tolist() == [*homes(np.array([1, 2]), 4).tolist(), -9, -9]
