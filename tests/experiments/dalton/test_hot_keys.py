from __future__ import annotations

import numpy as np

from experiments.dalton.hot_keys import _fragments, route
from skewless.workload import Zipf


def test_as_many_keys_are_hot_as_are_asked_for_and_more_balance_better() -> None:
    one, few, many = route(Zipf(1.0, keys=5000), 600_000, 16, (1, 4, 32), 1, lambda doing: None)
    assert (one.hot, few.hot) == (1, 4)
    assert 24 <= many.hot <= 44
    assert one.imbalance > few.imbalance > 1
    assert one.fragments < many.fragments


def test_fragments_are_the_workers_of_a_key() -> None:
    keys, where = np.array([5, 5, 5, 8]), np.array([0, 1, 1, 3])
    assert _fragments(keys, where, workers=4) == 1.5
