"""The pairs of clustering against all pairs, one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from experiments.dalton.clustering import CLUSTERS, PAIR, pairs, window_work
from experiments.dalton.rivals import RIVALS
from experiments.dalton.word_count import THIRDS, Setup
from skewless.simulate import Recorded
from skewless.simulate.fragments import reducers_of


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_those_of_plain_counting(seed: int) -> None:
    draw = np.random.default_rng(seed)
    keys, workers = draw.integers(0, 6, 60), draw.integers(0, 4, 60)
    combiner, members, clusters = np.zeros(4), np.zeros(2), np.zeros(2)
    for i, j in combinations(range(60), 2):
        if keys[i] == keys[j] and workers[i] == workers[j]:
            combiner[workers[i]] += 1
        elif keys[i] == keys[j]:
            members[reducers_of(keys[i : i + 1], 2)] += 1
    for key in np.unique(keys):
        held = len(set(workers[keys == key]))
        clusters[reducers_of(np.array([key]), 2)] += CLUSTERS**2 * held * (held - 1) / 2
    expected = [PAIR * each.max() for each in (combiner, members, clusters)]
    assert window_work(keys, workers, 4, 2) == pytest.approx(tuple(expected))


def test_one_key_that_is_hashed_sustains_the_rate_at_which_its_pairs_take_a_slide() -> None:
    setup = Setup(16, 1.0, THIRDS)
    found = pairs(setup, RIVALS["hash"], Recorded(np.array([7])), 20.0, 6)
    rate = found.rate(20.0, 20.0, members=True, start=3, end=6)
    assert PAIR * (60 * rate) ** 2 / 2 == pytest.approx(20.0, rel=0.01)
