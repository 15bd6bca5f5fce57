from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.partly import agents, figure_4_7, figure_4_8, figure_4_9, figure_4_10, figure_4_13, lessons, shipped
from experiments.partly.curves import EPISODES, FILE, SCHEMES, SEEDS, UPDATES
from experiments.partly.setting import BLOCKS, streams
from experiments.prompt.rivals import LEARNED
from experiments.prompt.setting import Setting
from skewless.simulate.balance import balances
from skewless.split.weights import Weights


def points(*costs: float) -> list[dict[str, float]]:
    return [{"episodes": 10 * (i + 1), "cost": cost} for i, cost in enumerate(costs)]


def test_the_curves_that_are_recorded_are_those_of_the_figure() -> None:
    curves = json.loads(FILE.read_text())
    assert list(curves) == list(SCHEMES)
    for seeds in curves.values():
        assert sorted(seeds) == [str(seed) for seed in SEEDS]
        for curve in seeds.values():
            assert curve[-1]["episodes"] == EPISODES * UPDATES


def test_training_is_over_when_the_cost_stays_below_the_goal() -> None:
    assert figure_4_8.episodes_to(points(5, 1, 3, 1, 1, 1), goal=1.5) == 40
    assert figure_4_8.episodes_to(points(5, 4, 3), goal=1.5) == 30


def test_the_goal_follows_the_median_of_the_ends() -> None:
    curves = {"a": {"1": points(9, 1.0), "2": points(9, 2.0)}, "b": {"1": points(9, 4.0)}}
    assert figure_4_8.good_enough(curves) == pytest.approx(2.5)


def test_streams_have_hundreds_to_thousands_of_keys() -> None:
    for name, batches in streams("small").items():
        keys = [len(np.unique(batch)) for batch in batches]
        assert 200 <= min(keys) <= max(keys) <= 20_000, name


def test_what_is_beyond_prompt_is_the_worst_micro_batch() -> None:
    rng = np.random.default_rng(1)
    found = balances([rng.zipf(1.5, 5_000) % 300 for _ in range(2)], 6)
    worst = max(found["partly"].bsi - 1.1 * found["prompt"].bsi)
    assert figure_4_7._beyond(found) == pytest.approx(100 * worst)


def test_partly_divides_micro_batches_of_the_throughput_as_its_splitter_does() -> None:
    keys = np.random.default_rng(2).zipf(1.4, 20_000) % 500
    divided = figure_4_9.technique("partly", Setting("small", blocks=BLOCKS, reducers=BLOCKS), 2)(
        keys, keys * 1.0, 0.0, 1.0
    )
    assert divided.sizes.sum() == len(keys)
    assert divided.planning == pytest.approx(LEARNED * len(np.unique(keys)))
    assert divided.sizes.max() < 1.1 * divided.sizes.mean()


def test_what_agents_did_is_recorded_for_every_seed() -> None:
    record = json.loads(agents.RECORD.read_text())
    assert sorted(record["together"]) == [str(seed) for seed in agents.SEEDS]
    for name in ("stages", "schemes"):
        assert 2 <= len(record[name]) <= len(agents.SEEDS)
    assert all(set(figure_4_10.ARMS) < set(each) for each in record["stages"].values())
    for seed in agents.SEEDS:
        assert agents.policy(seed, "partitioner").exists()
        assert agents.policy(seed, "scheduler").exists()
    assert all(lessons.policy(seed).exists() for seed in lessons.SEEDS)


def test_disruption_counts_until_the_policy_is_deployed() -> None:
    at = [{"batches": n, "cost": 1.0, "while": cost} for n, cost in ((40, 3.0), (80, 2.0), (120, 9.0))]
    assert figure_4_13._disruption({"converged": 80, "points": at}, 1.0) == 40 * 2 + 40 * 1
    assert figure_4_13._needed({"converged": 0, "points": at}) == 120


def test_the_shipped_policy_is_the_one_that_the_rule_chooses() -> None:
    told = json.loads(shipped.RECORD.read_text())
    best = shipped.choose([shipped.Candidate(**each) for each in told["candidates"]])
    assert best == shipped.Candidate(**told["chosen"])
    made = Weights.load().made
    assert (made["seed"], made["update"]) == (best.seed, best.update)
    few = [shipped.Candidate(1, 1, 0.01, 0.5, 0.9), shipped.Candidate(1, 2, 0.014, 0.5, 0.6)]
    assert shipped.choose([*few, shipped.Candidate(1, 3, 0.02, 0.5, 0.3)]) is few[1]
