from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from skewless import metrics, split
from skewless.cli import app
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.learn.batches import batches_of, invented, resampled
from skewless.learn.command import Task, _command, shortcomings
from skewless.learn.environment import Environment
from skewless.learn.network import forward, init
from skewless.learn.ppo import PPO, _episode, begin, play
from skewless.learn.train import LAST, Point, Schedule, Training
from skewless.simulate.balance import Balance
from skewless.split.weights import Weights

SMALL = Environment(blocks=5, keys=24)
SHORT = Schedule(episodes=16, updates=4)


@pytest.fixture(scope="module")
def learned() -> Training:
    training = Training(SMALL, PPO(rate=3e-3), Schedule(episodes=64, updates=40, patience=6), seed=2)
    training.run()
    return training


def test_training_makes_blocks_more_even_than_chance_does(learned: Training) -> None:
    unseen = invented(SMALL, np.random.default_rng(77), 64)
    ignorant = begin(SMALL, learned.ppo, 5).parameters
    before = play(SMALL, ignorant, unseen, jnp.int32(LAST)).cost.mean()
    after = play(SMALL, learned.learner.parameters, unseen, jnp.int32(learned.stage)).cost.mean()
    assert float(after) < 0.4 * float(before)


def test_the_stages_come_in_turn(learned: Training) -> None:
    stages = [point.stage for point in learned.curve]
    assert stages == sorted(stages)
    assert stages[0] == 0
    assert stages[-1] > 0


def test_a_stage_ends_only_when_the_cost_no_longer_falls() -> None:
    training = Training(SMALL, schedule=replace(SHORT, patience=3, gain=0.1))
    falling = [Point(i, i, 0.0, 0, 10 * 0.8**i, 0, 0, 0) for i in range(6)]
    training.curve = falling
    assert not training._levelled_off()
    training.curve = falling + [replace(falling[-1], update=i) for i in range(6)]
    assert training._levelled_off()


def test_all_ways_are_open_at_once_if_actions_do_not_grow() -> None:
    training = Training(SMALL, schedule=replace(SHORT, updates=1, growing=False))
    training.run()
    assert training.curve[0].stage == LAST


def test_the_same_seed_learns_the_same_and_another_does_not() -> None:
    trainings = [Training(SMALL, schedule=SHORT, seed=seed) for seed in (3, 3, 4)]
    for each in trainings:
        each.run()
    costs = [[point.cost for point in each.curve] for each in trainings]
    assert costs[0] == costs[1]
    assert costs[0] != costs[2]


def test_a_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole, first, second = (Training(SMALL, schedule=SHORT, seed=6) for _ in range(3))
    whole.run()
    first._update()
    first._update()
    first.save(tmp_path / "checkpoint.npz")
    second.load(tmp_path / "checkpoint.npz")
    second.run()
    assert [point.cost for point in second.curve] == [point.cost for point in whole.curve]
    for one, other in zip(jax.tree.leaves(whole.learner), jax.tree.leaves(second.learner), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_checkpoint_of_another_training_or_none_is_refused(tmp_path: Path) -> None:
    Training(SMALL, schedule=SHORT, seed=1).save(tmp_path / "one.npz")
    with pytest.raises(SkewlessError, match="is of another training"):
        Training(SMALL, schedule=SHORT, seed=2).load(tmp_path / "one.npz")
    with pytest.raises(SkewlessError, match="updates is 4 there and 9 here; continue it with its own options"):
        Training(SMALL, schedule=replace(SHORT, updates=9), seed=1).load(tmp_path / "one.npz")
    (tmp_path / "no.npz").write_text("no")
    (tmp_path / "empty.npz").write_bytes(b"")
    whole = (tmp_path / "one.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    arrays = dict(np.load(tmp_path / "one.npz"))
    np.savez(tmp_path / "untold.npz", **arrays | {"told": np.array("{}")})
    np.savez(tmp_path / "short.npz", **arrays | {"leaf3": arrays["leaf3"].ravel()[:1]})
    for name in ("no", "empty", "half", "untold", "short"):
        with pytest.raises(SkewlessError, match=f"{name}.npz is no checkpoint of a training"):
            Training(SMALL, schedule=SHORT, seed=1).load(tmp_path / f"{name}.npz")


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    one, same, other = (resampled([Counts.of(np.arange(500) % keys)], 4) for keys in (20, 20, 30))
    Training(SMALL, schedule=SHORT, source=one).save(tmp_path / "one.npz")
    Training(SMALL, schedule=SHORT, source=same).load(tmp_path / "one.npz")
    for source in (other, invented):
        with pytest.raises(SkewlessError, match="is of another training: data is 1 micro-batches"):
            Training(SMALL, schedule=SHORT, source=source).load(tmp_path / "one.npz")


@pytest.mark.parametrize("earns", [True, False])
def test_without_partial_rewards_only_the_end_earns(earns: bool) -> None:
    ppo = PPO(partial=earns)
    learner = begin(SMALL, ppo, 1)._replace(average=jnp.float32(3.0))
    batches = invented(SMALL, np.random.default_rng(1), 8)
    episode = partial(_episode, SMALL, ppo, learner, jnp.int32(LAST))
    steps, outcome = jax.jit(jax.vmap(episode))(batches, jax.random.split(jax.random.PRNGKey(1), 8))
    reward, real = np.asarray(steps.reward), np.asarray(steps.real)
    last = real.sum(axis=1) - 1
    before = real & (np.arange(SMALL.keys) < last[:, None])
    final = -(0.5 * np.asarray(outcome.cost) + 0.5 * 3.0)
    assert (reward[~real] == 0).all()
    if earns:
        assert (reward[before] != 0).mean() > 0.5
    else:
        assert before.sum() > 50
        assert (reward[before] == 0).all()
        np.testing.assert_allclose(reward[np.arange(8), last], final, rtol=1e-4)


def test_partial_rewards_change_what_is_learned() -> None:
    with_them, without = (Training(SMALL, PPO(partial=earns), SHORT, seed=1) for earns in (True, False))
    with_them.run()
    without.run()
    assert with_them.curve[0].cost == without.curve[0].cost  # nothing is learned before the first update
    assert with_them.curve[-1].cost != without.curve[-1].cost


def test_the_scores_do_not_depend_on_the_order_of_the_blocks() -> None:
    parameters = init(SMALL, jax.random.PRNGKey(1))
    rng = np.random.default_rng(1)
    seen = {"blocks": jnp.asarray(rng.normal(size=(5, 13))), "key": jnp.asarray(rng.normal(size=10))}
    order = np.array([3, 1, 4, 0, 2])
    mask = jnp.ones(SMALL.actions, bool)
    scores, value = forward(SMALL, parameters, seen, mask)
    shuffled, same = forward(SMALL, parameters, seen | {"blocks": seen["blocks"][order]}, mask)
    np.testing.assert_allclose(scores.reshape(5, -1)[order], shuffled.reshape(5, -1), rtol=1e-4, atol=1e-5)
    assert float(value) == pytest.approx(float(same), rel=1e-4)


def test_a_masked_action_has_no_chance() -> None:
    parameters = init(SMALL, jax.random.PRNGKey(1))
    seen = {"blocks": jnp.zeros((5, 13)), "key": jnp.zeros(10)}
    mask = jnp.arange(SMALL.actions) < 3
    chances, _ = forward(SMALL, parameters, seen, mask)
    assert float(jnp.exp(chances)[3:].sum()) == 0
    assert float(jnp.exp(chances)[:3].sum()) == pytest.approx(1)


def test_the_observation_of_the_paper_can_be_trained_too() -> None:
    training = Training(replace(SMALL, observation="paper"), schedule=replace(SHORT, updates=2))
    training.run()
    assert np.isfinite(training.curve[-1].cost)
    with pytest.raises(SkewlessError, match="only a network of the observation 'features'"):
        training.weights()


def test_the_splitter_runs_the_network_that_was_trained(learned: Training, tmp_path: Path) -> None:
    learned.weights(command="test").save(tmp_path / "mine.npz")
    rng = np.random.default_rng(4)
    for exponent in (1.2, 1.6, 2.5):
        stream = rng.zipf(exponent, 3_000) % 20
        blocks = split.PartLy(5, weights=tmp_path / "mine.npz").partition(stream)
        outcome = play(SMALL, learned.learner.parameters, batches_of(SMALL, [Counts.of(stream)]), jnp.int32(LAST))
        assert metrics.bsi(blocks, 5) / 600 == pytest.approx(float(outcome.bsi[0]), abs=0.01)
        extra = metrics.fragments(stream, blocks, 5) - len(np.unique(stream))
        assert extra == pytest.approx(5 * float(outcome.extra[0]), abs=1)
    assert Weights.load(tmp_path / "mine.npz").made["command"] == "test"


def test_micro_batches_are_drawn_anew_from_those_seen() -> None:
    seen = [Counts.of(np.random.default_rng(seed).zipf(1.5, 500) % 20) for seed in (1, 2)]
    drawn = resampled(seen, 4)(SMALL, np.random.default_rng(1), 6)
    assert drawn.sizes.shape == (6, 24)
    assert len({tuple(row) for row in np.asarray(drawn.sizes).tolist()}) == 6


def test_the_command_trains_on_a_file_and_compares_on_its_last_rows(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).zipf(1.4, 4_000) % 60
    data = tmp_path / "clicks.csv"
    data.write_text("page\n" + "\n".join(f"p{row}" for row in rows) + "\n")
    asked = ["learn", "--data", str(data), "--key", "page", "--workers", "4", "--updates", "1"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "mine.npz")])
    assert done.exit_code == 0, done.output
    for technique in ("partly", "prompt", "bounded", "cam", "five-choices", "hash", "shuffle"):
        assert technique in done.output
    assert "the last 2 of 10 micro-batches" in " ".join(done.output.split())
    made = split.PartLy(4, weights=tmp_path / "mine.npz").weights.made
    assert made["seed"] == 1
    assert made["command"] == f"skewless learn --data {data} --key page --workers 4 --updates 1 --seed 1"
    # One update leaves the policy as it began, and who would use it is warned.
    assert "warning:" in done.output
    assert "Do not use this policy" in done.output


def test_the_command_keeps_one_of_two_micro_batches_to_compare_on(tmp_path: Path) -> None:
    data = tmp_path / "clicks.csv"
    data.write_text("page\n" + "\n".join(f"p{i % 7}" for i in range(200)) + "\n")
    asked = ["learn", "--data", str(data), "--key", "page", "--workers", "2", "--updates", "1", "--batch", "100"]
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "mine.npz")])
    assert done.exit_code == 0, done.output
    assert "the last 1 of 2 micro-batches" in " ".join(done.output.split())


def test_shortcomings_are_said_where_the_policy_is_worse_than_prompt_or_hash() -> None:
    def like(bsi: float, bci: float) -> Balance:
        return Balance(*(np.array([value]) for value in (bsi, bci, 1.0, 0.0)))

    rivals = {"prompt": like(0.01, 3.0), "hash": like(2.0, 10.0)}
    assert shortcomings("clicks", rivals | {"partly": like(0.03, 10.0)}) == []
    assert shortcomings("clicks", rivals | {"partly": like(0.05, 30.0)}) == [
        "clicks: its largest block is 3.9% of a block beyond 1.1 times Prompt's",
        "clicks: its keys are 3.0 times as uneven as those of hash (BCI)",
    ]


def test_the_command_that_made_a_policy_has_all_of_its_options() -> None:
    task = Task("my clicks.csv", ("a", "b"), 4, 500, 3, 1.5, 2, Path("mine.npz"), None)
    said = "skewless learn --data 'my clicks.csv' --batch 500 --minutes 1.5 --key a --key b --workers 4 --updates 3"
    assert _command(task) == f"{said} --seed 2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--updates", "0"], "leave no time to train"),
        (["--workers", "0"], "--workers is 0"),
        (["--key", "page"], "--key and --batch are for --data"),
        (["--out", "nowhere/mine.npz"], "there is no folder"),
        (["--out", "."], "--out is ., which is a folder"),
        (["--checkpoint", "."], "--checkpoint is ., which is a folder"),
        (["--checkpoint", "nowhere/one.npz"], "which cannot be written"),
        (["--checkpoint", "one.npz", "--out", "./one.npz"], "--checkpoint and --out are both one.npz"),
        (["--seed", "-1"], "--seed is -1; give 0 to"),
        (["--data", "clicks.csv", "--batch", "0"], "--batch is 0; give at least 1 row"),
        (["--data", "clicks.csv", "--batch", "-5"], "--batch is -5; give at least 1 row"),
    ],
)
def test_options_that_cannot_be_are_refused(options: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["learn", *options])
    assert done.exit_code == 2
    assert said in done.output + (done.stderr if done.stderr_bytes else "")
