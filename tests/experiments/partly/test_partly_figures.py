from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.figure import Measured
from experiments.partly import (
    agents,
    blocks_by_skew,
    figure_4_7,
    figure_4_8,
    figure_4_9,
    figure_4_10,
    figure_4_13,
    lessons,
    shipped,
)
from experiments.partly.curves import EPISODES, FILE, SCHEMES, SEEDS, UPDATES
from experiments.partly.setting import BLOCKS, SEED, streams
from experiments.prompt.rivals import LEARNED
from experiments.prompt.setting import Setting
from skewless import split
from skewless.simulate.balance import Balance, balances
from skewless.split.weights import Weights
from skewless.workload import Zipf

ONE = Measured(1.0, 0.1)


def points(*costs: float) -> list[dict[str, float]]:
    return [{"episodes": 10 * (i + 1), "cost": cost} for i, cost in enumerate(costs)]


def test_the_curves_that_are_recorded_are_those_of_the_figure() -> None:
    curves = json.loads(FILE.read_text())
    assert sorted(curves) == sorted(SCHEMES)
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


def test_what_is_saved_compares_each_micro_batch_with_prompt_on_the_same() -> None:
    spreads = {"prompt": np.array([0.2, 0.4]), "partly": np.array([0.1, 0.6])}
    np.testing.assert_allclose(figure_4_9.saved(spreads, "partly"), [0.5, -0.5])


def test_variances_are_those_of_several_micro_batches() -> None:
    found = figure_4_9._variances(1.0, Setting("small", blocks=BLOCKS, reducers=BLOCKS), 2_000)
    assert {len(each) for each in found.values()} == {figure_4_9.MANY}
    assert all(len(np.unique(each)) > 1 for each in found.values())


def test_techniques_that_are_more_even_than_partly_are_named_with_both_values() -> None:
    def like(bsi: float, ksr: float = 1.5, splits: float = 2.0) -> Balance:
        return Balance(*(np.array([value]) for value in (bsi, 1.0, ksr, splits)))

    found = {"partly": like(0.0018, ksr=1.2, splits=4.0), "five-choices": like(0.0003), "hash": like(2.0)}
    found |= {name: like(1.0) for name in ("prompt", "bounded", "cam", "shuffle")}
    assert figure_4_7._more_even(found, ["five-choices", "hash"]) == "five-choices 0.03 % (PartLy 0.18 %)"
    assert figure_4_7._lead(found) == pytest.approx(0.15)
    assert figure_4_7._over(found, "splits", "prompt") == 2.0
    assert figure_4_7._extra(found, "partly") == pytest.approx(0.2)


def test_a_table_names_what_each_technique_has_the_least_of() -> None:
    def like(bsi: float, bci: float, ksr: float, splits: float) -> Balance:
        return Balance(*(np.array([value]) for value in (bsi, bci, ksr, splits)))

    found = {
        "partly": like(0.02, 1.0, 1.2, 4.0),
        "prompt": like(0.01, 2.0, 1.3, 3.0),
        "hash": like(2.0, 5.0, 1.0, 0.0),
        "shuffle": like(0.01, 9.0, 9.0, 9.0),
    }
    table = figure_4_7._table("words", found)
    won = {row[0]: row[table.columns.index(figure_4_7.LOWEST)] for row in table.rows}
    assert won == {"partly": "BCI, fragments", "prompt": "BSI, splits", "hash": "", "shuffle": "BSI"}


def test_the_largest_block_is_told_by_its_largest_fragments() -> None:
    batches = [np.random.default_rng(seed).zipf(1.5, 5_000) % 300 for seed in (1, 2)]
    found = {"partly": Balance(np.array([0.1, 0.2]), *(np.zeros(2) for _ in range(3)))}
    block = split.PartLy(BLOCKS).partition(batches[1])
    inside, tuples = np.unique(batches[1][block == np.bincount(block).argmax()], return_counts=True)
    told = figure_4_7._largest(batches, found)
    assert told.startswith(f"where the largest block has {len(inside)} keys: {tuples.max() * BLOCKS / 5_000:.3f} of a")


def test_what_was_added_to_explain_a_curve_does_not_move_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    curves = json.loads(FILE.read_text())
    monkeypatch.setattr(figure_4_8, "planning", lambda keys, tell: dict.fromkeys(("partly", "prompt", "cam"), ONE))
    outcome = figure_4_8.run("small", print)
    goal = figure_4_8.good_enough({scheme: seeds for scheme, seeds in curves.items() if scheme != figure_4_8.SOONER})
    assert f"To a cost of {goal:.2f} partial rewards take" in outcome.found


def test_what_patience_does_not_explain_is_said_to_be_none_only_within_two_errors() -> None:
    growing, sooner, at_once = figure_4_8.GROWING, figure_4_8.SOONER, figure_4_8.AT_ONCE
    apart = {growing: [900.0, 900.0, 900.0], sooner: [500.0, 510.0, 520.0], at_once: [300.0, 300.0, 300.0]}
    assert figure_4_8._rest(apart) == (
        "Less patience saves 390 of the 600 episodes that growing takes longer. "
        "What is left, paired by seed, is 210 ± 6."
    )
    near = apart | {sooner: [200.0, 410.0, 320.0]}
    assert figure_4_8._rest(near).endswith("is 10 ± 61, which cannot be told from none.")


def test_stages_that_change_with_nothing_wrong_are_not_said_to_stay() -> None:
    record = json.loads(agents.RECORD.read_text())["stages"]
    worst = max(each["local, sick"]["changed"][0] for each in record.values())
    first = figure_4_10.run("small", print).checks[0]
    assert first.value == worst
    assert first.essential
    assert first.holds == (worst <= 0.3)


def test_what_agents_did_is_recorded_for_every_seed() -> None:
    record = json.loads(agents.RECORD.read_text())
    assert sorted(record["together"]) == [str(seed) for seed in agents.SEEDS]
    for seed in agents.SEEDS:
        assert len(record["together"][str(seed)]) == agents.TOGETHER // (4 * agents.EVERY)
    for name in ("stages", "schemes"):
        assert sorted(record[name]) == [str(seed) for seed in agents.SEEDS], name
    for each in record["stages"].values():
        assert set(each) == {"rounds", "trained", *figure_4_10.ARMS}
        assert each["rounds"] == agents.ROUNDS
    for each in record["schemes"].values():
        assert set(each) == {"heuristic", *agents.SCHEMES}
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
    by_seed = {seed: [each for each in told["candidates"] if each["seed"] == seed] for seed in shipped.SEEDS}
    assert [sum(map(shipped.meets, found)) for found in by_seed.values()] == [0, 4]  # as the README says
    few = [shipped.Candidate(1, 1, 0.01, 0.5, 0.9), shipped.Candidate(1, 2, 0.014, 0.5, 0.6)]
    assert shipped.choose([*few, shipped.Candidate(1, 3, 0.02, 0.5, 0.3)]) is few[1]


@pytest.mark.parametrize(("fragments", "written"), [(0.5, True), (0.6, False), (0.7, False)])
def test_only_a_policy_that_is_better_than_the_shipped_one_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fragments: float, written: bool
) -> None:
    now, best = shipped.Candidate(2, 150, 0.01, 0.5, 0.6), shipped.Candidate(1, 300, 0.01, 0.5, fragments)
    for name in ("SHIPPED", "RECORD"):
        monkeypatch.setattr(shipped, name, tmp_path / name)
    monkeypatch.setattr(shipped, "candidates_of", lambda seeds, folder: [best])
    monkeypatch.setattr(shipped, "shipped", lambda: now)
    shipped.SHIPPED.write_text("old")
    for seed in shipped.SEEDS:
        (tmp_path / f"policy-{seed}-300.npz").write_text("new")
    shipped.main(tmp_path, [])
    assert shipped.SHIPPED.read_text() == ("new" if written else "old")
    assert shipped.RECORD.exists() == written


def test_a_number_of_blocks_is_usable_if_every_micro_batch_and_the_keys_keep_to_the_limit() -> None:
    def cell(bsi: float, crowd: float) -> blocks_by_skew.Cell:
        return blocks_by_skew.Cell(4, 1.4, np.array([0.0, bsi]), np.array([0.0, 0.01]), crowd)

    cells = [cell(0.03, 1.0), cell(0.032, 0.5), cell(0.0, 1.1)]
    assert [each.usable for each in cells] == [True, False, False]
    told = blocks_by_skew.check(cells)
    assert (told.value, told.low, told.holds) == (1.0, 3.0, False)
    assert "4 blocks, Zipf 1.4: BSI 3.2 % of a block, BCI 0.5 of hash's" in told.why


def test_numbers_of_blocks_are_rows_and_skews_are_columns() -> None:
    found = blocks_by_skew.cells(lambda doing: None, numbers=(3, 8), tuples=5_000)
    told = blocks_by_skew.table(found)
    assert [row[0] for row in told.rows] == [3, 8]
    assert told.rows[1][1 + 4 * 2] == Measured.of(100 * found[-1].bsi)
    keys = np.array_split(Zipf(2.0, blocks_by_skew.KEYS, SEED).take(15_000), 3)
    largest = [np.bincount(split.PartLy(8).partition(each)).max() * 8 / len(each) - 1 for each in keys]
    np.testing.assert_allclose(found[-1].bsi, largest)
