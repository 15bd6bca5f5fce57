from __future__ import annotations

import numpy as np

from experiments.prompt.overhead import _in_order_of_arrival, buffered, ordering, sorted_after
from skewless.workload import Zipf


def test_both_ways_have_the_same_batch_and_take_time_for_all_of_it() -> None:
    keys = Zipf(0.6, keys=2000).take(50_000)
    for found in (buffered(keys, 16, 1), sorted_after(keys, 16, 1)):
        assert (found.tuples, found.keys) == (50_000, len(np.unique(keys)))
        assert min(found.sorting, found.planning) > 0
        assert found.arriving >= 0
        assert found.at_the_end == found.sorting + found.planning
    parts = ordering(keys, 1)
    assert min(parts.walk, parts.clear, parts.sort, parts.listing) > 0


def test_keys_are_numbered_as_they_come() -> None:
    distinct, counts, owners = _in_order_of_arrival(np.array([9, 4, 9, 7, 4, 9]))
    assert distinct.tolist() == [9, 4, 7]
    assert counts.tolist() == [3, 2, 1]
    assert owners.tolist() == [0, 1, 0, 2, 1, 0]
