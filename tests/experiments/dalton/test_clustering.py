"""The pairs of clustering against all pairs, one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from experiments.dalton.clustering import CLUSTERS, NEAR, PAIR, Settled, _repeated, pairs, settled, window_work
from experiments.dalton.rivals import RIVALS
from experiments.dalton.word_count import THIRDS, Setup
from experiments.figure import Measured
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
        held = [min(CLUSTERS, int(((keys == key) & (workers == each)).sum())) for each in range(4)]
        clusters[reducers_of(np.array([key]), 2)] += sum(one * other for one, other in combinations(held, 2))
    expected = [PAIR * each.max() for each in (combiner, members, clusters)]
    assert window_work(keys, workers, 4, 2) == pytest.approx(tuple(expected))


def test_one_key_that_is_hashed_sustains_the_rate_at_which_its_pairs_take_a_slide() -> None:
    setup = Setup(16, 1.0, THIRDS)
    found = pairs(setup, RIVALS["hash"], Recorded(np.array([7])), 20.0, 6)
    rate = found.rate(20.0, 20.0, members=True, start=3, end=6)
    assert PAIR * (60 * rate) ** 2 / 2 == pytest.approx(20.0, rel=0.01)


def test_a_rate_is_found_at_which_it_repeats_itself() -> None:
    def once(rate: float) -> Settled:  # as clusters that are never more than the tuples: it comes down slowly
        found = 40.0 * (rate / 40.0) ** 0.8
        return Settled(Measured(found, 0.0), 1.0, 0.0, found / rate, rate)

    found = _repeated(once, 500.0)
    assert abs(found.repeats - 1) <= NEAR
    assert found.rate.mean == pytest.approx(40.0, rel=0.25)
    above = _repeated(lambda rate: Settled(Measured(2 * rate, 0.0), 1.0, 0.0, 2.0, rate), 500.0)
    assert above.repeats == 2.0  # what never repeats itself says so


def test_a_key_on_one_combiner_keeps_it_busy_and_two_parts_leave_half_the_pairs_to_its_reducer() -> None:
    setup = Setup(64, 1.0, THIRDS)
    whole, halves = (settled(setup, RIVALS[name], 12.0, (1, 2), members=True) for name in ("hash", "two-choices"))
    assert whole.combiner == pytest.approx(1.0, abs=0.15)
    assert whole.reducer == 0.0
    assert halves.reducer == pytest.approx(2 * halves.combiner, rel=0.1)
    assert halves.rate.mean / whole.rate.mean == pytest.approx(2**0.5, rel=0.1)
    cheaper = settled(setup, RIVALS["hash"], 36.0, (1, 2), members=True, cheaper=9.0)
    assert cheaper.rate.mean == pytest.approx(3 * whole.rate.mean, rel=0.1)
    assert cheaper.slide == pytest.approx(3 * whole.slide, rel=0.2)
