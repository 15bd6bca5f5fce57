from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from experiments.prompt.figure_2_7 import _spikes
from experiments.prompt.rates import ties
from experiments.prompt.rivals import IN_TASKS, PAPERS, PROMPT, WITH_TASKS, Planned, best_candidates, partitioner
from experiments.prompt.setting import OVERHEAD, PERIOD, Setting, skewed, tpch
from experiments.prompt.throughput import highest, sustained, sustained_all, sustained_planning
from skewless import metrics, split
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.simulate import Recorded
from skewless.workload import Zipf

FEW = Setting("small", blocks=8, reducers=8, slower=10)
"""Cores that take 2 ms for a tuple."""


@pytest.mark.parametrize("start", [1.0, 899.0, 5e6])
def test_the_highest_rate_is_found_from_any_start(start) -> None:
    tried = []

    def demand_at(rate):
        tried.append(rate)
        return 0.1 + rate / 1000

    found = highest(demand_at, start)
    assert 900 * 0.98 <= found <= 900
    assert found in tried


def test_a_demand_that_no_rate_satisfies_is_refused() -> None:
    with pytest.raises(SkewlessError, match="no rate was found"):
        highest(lambda rate: 2.0, 100.0)


def test_hash_with_one_key_sustains_what_one_core_does() -> None:
    found = sustained(partial(partitioner, "hash", FEW), False, Recorded(np.array([7])), FEW, 1.0, amplitude=0.0)
    exact = (1.0 - OVERHEAD - FEW.costs.emit - FEW.costs.partial) / FEW.costs.tuple
    assert 0.97 * exact <= found <= exact


def test_under_a_sine_the_busiest_micro_batch_counts() -> None:
    one = Recorded(np.array([7]))
    steady, wave = (sustained(partial(partitioner, "hash", FEW), False, one, FEW, 1.0, a) for a in (0.0, 0.75))
    # The busiest of six seconds has the integral of the sine around its peak.
    peak = 1 + 0.75 * PERIOD / (2 * np.pi) * (np.cos(2 * np.pi / PERIOD) - np.cos(4 * np.pi / PERIOD))
    assert wave == pytest.approx(steady / peak, rel=0.03)


def test_planning_that_is_released_early_costs_no_throughput_and_on_the_path_it_does() -> None:
    keys = Zipf(0.8, keys=200)
    rates = {}
    for early in (True, False):
        for a_key in (0.0, 2e-4):  # 40 ms for all keys, of at most 50
            divides = partial(Planned, split.partition, FEW, True, a_key)
            rates[early, a_key] = sustained(divides, early, keys, FEW, 1.0, 0.0, tolerance=0.005)
    assert rates[True, 2e-4] == pytest.approx(rates[True, 0.0], rel=0.01)
    # 40 ms fewer of the 900 for tuples.
    assert rates[False, 2e-4] < 0.97 * rates[False, 0.0]


def test_prompt_sustains_less_if_planning_is_longer_than_early_release_hides() -> None:
    keys = Zipf(0.8, keys=200)
    none, hidden, shown = (sustained_planning(a_key, keys, FEW, 1.0) for a_key in (0.0, 1e-4, 2e-3))
    assert hidden == pytest.approx(none, rel=0.03)
    assert shown < 0.8 * none  # 400 ms of planning, of which 50 are hidden


def test_a_tie_is_a_rate_as_near_to_the_best_rival_as_rates_are_found() -> None:
    def rates(best: float) -> dict[str, float]:
        return {PROMPT: 100.0} | dict.fromkeys(PAPERS, 10.0) | {"PK2": best}

    streams = {
        "ahead": rates(90),
        "little": rates(100 / 1.025),
        "just": rates(100 / 1.02),
        "behind": rates(102),
        "less": rates(102.5),
        "far": rates(120),
    }
    assert ties(streams) == " on just, behind"
    assert ties({"ahead": rates(90)}) == " nowhere"


def test_prompt_is_ahead_of_hash_and_shuffle_under_skew() -> None:
    found = sustained_all((PROMPT, "hash", "shuffle"), Zipf(1.2, keys=500), FEW, 1.0, lambda doing: None)
    assert found[PROMPT] > 1.5 * found["hash"]
    assert found[PROMPT] > 1.1 * found["shuffle"]


def test_spikes_have_the_mean_that_is_asked_for_and_are_in_one_micro_batch() -> None:
    times = np.arange(0, PERIOD, 0.01) + 0.005
    rates = _spikes(100.0)(times)
    assert rates.mean() == pytest.approx(100)
    assert set(np.floor(times[rates > 1.5 * rates.min()] / 2)) == {1.0}


def test_prompt_in_tasks_has_the_blocks_of_receivers_that_never_talk() -> None:
    keys = skewed(1.2, "small").take(4_000)
    divided = partitioner(IN_TASKS, FEW)(keys, np.linspace(0, 1, len(keys), False), 0.0, 1.0)
    tasks = [split.Prompt(8).receiver().partition(xxhash64(keys[task::8])) for task in range(8)]
    assert divided.sizes.tolist() == np.bincount(np.concatenate(tasks), minlength=8).tolist()


@pytest.mark.parametrize("name", WITH_TASKS)
def test_every_technique_places_all_tuples_and_merges_all_fragments(name) -> None:
    keys = skewed(1.2, "small").take(20_000)
    divided = partitioner(name, FEW, 5)(keys, np.linspace(3, 5, len(keys), False), 3.0, 2.0)
    assert divided.sizes.sum() == len(keys)
    assert divided.keys.sum() == divided.partials.sum() >= len(np.unique(keys))
    assert (divided.planning > 0) == (name in (PROMPT, "first fit", "least fragmentation"))


@pytest.mark.parametrize(("name", "make"), [("hash", "hash"), ("shuffle", "shuffle"), ("PK5", "five-choices")])
def test_sizes_and_keys_are_those_of_the_metrics(name, make) -> None:
    keys = tpch("small").take(10_000)
    divided = partitioner(name, FEW)(keys, np.linspace(0, 1, len(keys), False), 0.0, 1.0)
    routed = split.make(make, 8).route(keys)
    assert divided.sizes.max() - divided.sizes.mean() == metrics.bsi(routed, 8)
    assert divided.keys.max() - divided.keys.mean() == metrics.bci(keys, routed, 8)


def test_cam_has_the_candidates_with_the_shortest_micro_batch() -> None:
    keys = skewed(0.6, "small").take(5_000)
    best = best_candidates(keys, FEW)
    spans = {}
    for candidates in (2, 3, 5, 8):
        divided = partitioner("cAM", FEW, candidates)(keys, np.zeros(len(keys)), 0.0, 1.0)
        spans[candidates] = metrics.makespan(divided.map_times(FEW.costs), divided.reduce_times(FEW.costs))
    assert spans[best] == min(spans.values())
