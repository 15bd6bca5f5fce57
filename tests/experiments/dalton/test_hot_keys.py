from __future__ import annotations

import numpy as np
import pytest

from experiments.dalton.hot_keys import _fragments, route, throughput
from experiments.dalton.rivals import RIVALS
from experiments.dalton.word_count import THIRDS, Setup
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


def test_a_partitioner_that_takes_longer_to_route_lowers_the_throughput() -> None:
    setup, stream = Setup(16, 1 / 64, THIRDS), Zipf(1.0, keys=1000)
    once, longer = throughput(setup, stream, (4, 4), (1.0, 16.0), (40.0, 20.0), lambda doing: None)
    partitioner = 1 / (16 * setup.cluster(RIVALS["dalton"]).costs.route * setup.fraction)
    assert longer < 0.5 * once
    assert longer == pytest.approx(partitioner, rel=0.03)
