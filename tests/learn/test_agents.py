from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.elastic import Observation, Parallelism
from skewless.learn import agents, policies
from skewless.learn.environment import WAYS, Environment
from skewless.learn.topology import (
    Topology,
    draw_batch,
    episode,
    follow_advice,
    heuristic,
    scheduler_reward,
    scheduler_sees,
)
from skewless.simulate.advisor import ADVICE, Advisor
from skewless.split import Counts, PartLy
from skewless.split.ways import PARTS

ENV = Environment(blocks=6, keys=8)
TOPOLOGY = Topology(ENV, partitioners=2, batches=3)
SETTINGS = agents.Settings(episodes=4, updates=2, sample=32, room=24)
KEY = jax.random.PRNGKey(7)
EVERYBODY = jnp.ones(2, bool)
STAY = ADVICE.index(1.0)


@pytest.fixture(scope="module")
def played() -> tuple[agents.Agents, agents.Agents]:
    """Agents before and after a round."""
    before = agents.begin(TOPOLOGY, SETTINGS, seed=1)
    return before, agents.play_round(TOPOLOGY, SETTINGS, before, KEY, EVERYBODY)[0]


def by_heuristic(seen: object, mask: jax.Array, batches: object, states: object, key: object) -> jax.Array:
    return jax.vmap(partial(heuristic, ENV))(batches, states, mask)


def staying(seen: object, key: object) -> int:
    return jnp.int32(STAY)


def test_a_drawn_micro_batch_fills_its_blocks_and_no_others() -> None:
    batch = draw_batch(ENV, jnp.int32(4), KEY)
    assert float(batch.sizes.sum() + batch.tail.sum()) == pytest.approx(4, rel=1e-5)
    assert np.asarray(batch.tail)[4:].tolist() == [0, 0]
    assert (np.diff(np.asarray(batch.sizes)) <= 0).all()


def test_the_heuristic_takes_the_fewest_parts_that_fit() -> None:
    batch = draw_batch(ENV, jnp.int32(6), KEY)._replace(
        sizes=jnp.array([1.6, 0.9, 0.5, 0.0, 0, 0, 0, 0]), tail=jnp.zeros(6), grain=jnp.float32(0.01)
    )
    state = ENV.reset(batch)
    chosen = []
    for _ in range(3):
        action = int(heuristic(ENV, batch, state, ENV.mask(batch, state, 2)))
        chosen.append(int(PARTS[action % WAYS]))
        state, _ = ENV.step(batch, state, action, 2)
    assert chosen == [2, 1, 1]


@pytest.mark.parametrize(
    ("blocks", "advice", "then"), [(4, 2.0, 6), (4, 1.15, 5), (4, 0.5, 2), (4, 1.0, 4), (3, 0.85, 2)]
)
def test_advice_moves_by_at_least_a_block_and_stays_within_the_bounds(blocks: int, advice: float, then: int) -> None:
    assert int(follow_advice(jnp.int32(blocks), ADVICE.index(advice), 6)) == then


def test_the_scheduler_earns_most_between_the_zones_of_algorithm_4() -> None:
    rewards = [float(scheduler_reward(jnp.float32(ratio))) for ratio in (0.5, 0.8, 0.9, 1.2, 1.5)]
    assert rewards[1:3] == [0, 0]
    assert rewards[4] < rewards[3] < 0
    assert rewards[3] == pytest.approx(2 * rewards[0], rel=1e-5)  # too slow is worse than too idle


def test_local_rewards_do_not_see_the_other_stage_and_global_ones_do() -> None:
    def earned(local: bool, slow: float) -> np.ndarray:
        topology = replace(TOPOLOGY, local=local, advised=False, slow=(1.0, slow))
        return np.asarray(episode(topology, by_heuristic, staying, KEY)[0].reward)

    local, sick = earned(True, 1.0), earned(True, 5.0)
    assert (local[..., 0] == sick[..., 0]).all()
    assert (local[:, -1, 1] > sick[:, -1, 1]).all()
    same, other = earned(False, 1.0), earned(False, 5.0)
    assert (same[:, :-1] == 0).all()  # there is nothing partial in what all have made
    assert (same[:, -1, 0] == same[:, -1, 1]).all()
    assert (same[:, -1, 0] > other[:, -1, 0]).all()


def test_w_counts_the_work_of_the_busiest_block_and_what_is_queued() -> None:
    topology = replace(TOPOLOGY, partitioners=1, slow=(), jumps=0.0)
    _, advised, ended = episode(topology, by_heuristic, staying, KEY)
    ratios, own = np.asarray(ended.ratio), np.asarray(ended.stage)[:, 0]
    queued = 0.0
    for ratio, stage in zip(ratios, own, strict=True):
        assert ratio == pytest.approx(stage + queued, rel=1e-4)
        queued = max(0.0, ratio - 1)
    assert np.asarray(advised.reward)[:-1].tolist() == pytest.approx(
        [float(scheduler_reward(each)) for each in ratios[1:]]
    )


def test_the_buffer_keeps_the_newest_micro_batches(played: tuple[agents.Agents, agents.Agents]) -> None:
    _, after = played
    assert int(after.buffer.count) == 4 * 3
    again, _ = agents.play_round(TOPOLOGY, SETTINGS, after, jax.random.PRNGKey(8), EVERYBODY)
    third, _ = agents.play_round(TOPOLOGY, SETTINGS, again, jax.random.PRNGKey(9), EVERYBODY)
    old, new = (np.asarray(each.buffer.turns.action) for each in (again, third))
    assert int(third.buffer.count) == 36
    assert (old[12:] == new[12:]).all()  # the second dozen stays, the first is written over
    assert (old[:12] != new[:12]).any()


def test_targets_follow_slowly_and_those_who_go_by_the_heuristic_learn_nothing(
    played: tuple[agents.Agents, agents.Agents],
) -> None:
    before, _ = played
    first = jnp.array([True, False])
    after, _ = agents.play_round(TOPOLOGY, SETTINGS, before, KEY, first)
    learned = agents.learn(TOPOLOGY, replace(SETTINGS, updates=1), after, KEY)
    was, now, follows = (each["out"] for each in (before.networks[0], learned.networks[0], learned.targets[0]))
    assert (was[1] == now[1]).all()
    assert (was[0] != now[0]).any()
    np.testing.assert_allclose(follows, was + SETTINGS.follow * (now - was), atol=1e-7)


def test_a_critic_sees_what_the_others_see_and_do(played: tuple[agents.Agents, agents.Agents]) -> None:
    turn = jax.tree.map(lambda x: x[0, 0], played[1].buffer.turns)
    scheduler = jnp.arange(4.0)
    was = np.asarray(agents._context(TOPOLOGY, turn, jnp.array([0, 1]), scheduler))
    assert was.shape == (2, TOPOLOGY.context)
    # What the second one does differently is seen by the critic of the first, and not by its own.
    does = np.asarray(agents._context(TOPOLOGY, turn, jnp.array([0, 1 + WAYS]), scheduler))
    assert (was[0] != does[0]).any()
    assert (was[1] == does[1]).all()
    other = turn._replace(seen={name: value.at[1].add(1.0) for name, value in turn.seen.items()})
    sees = np.asarray(agents._context(TOPOLOGY, other, jnp.array([0, 1]), scheduler))
    assert (was[0] != sees[0]).sum() >= len(np.asarray(turn.seen["key"])[0])
    assert (was[1] == sees[1]).all()
    assert (was[:, -4:] == np.arange(4.0)).all()


def test_what_is_expected_of_the_next_step_comes_from_the_targets(
    played: tuple[agents.Agents, agents.Agents],
) -> None:
    _, after = played
    networks, buffer = after.networks, after.buffer
    other = networks._replace(partitioner_critic=jax.tree.map(lambda x: x + 0.1, networks.partitioner_critic))

    def loss(targets: agents.Networks, step: int, discount: float = 0.95) -> float:
        settings = replace(SETTINGS, discount=discount)
        args = TOPOLOGY, settings, targets, networks, buffer, jnp.int32(0), jnp.int32(step), KEY
        return float(agents._partitioner_losses(*args))

    assert loss(networks, 0) != loss(other, 0)
    assert loss(networks, 0, discount=0.0) == loss(other, 0, discount=0.0)
    end = ENV.keys - 1
    assert loss(networks, end) == loss(other, end)  # nothing follows the last step


@pytest.mark.parametrize("discount", [0.0, 0.7])
def test_advice_earns_what_follows_it_at_a_discount(
    played: tuple[agents.Agents, agents.Agents], discount: float
) -> None:
    _, after = played
    blank = {name: jnp.zeros_like(value) for name, value in after.networks.scheduler_critic.items()}
    networks = after.networks._replace(scheduler_critic=blank)
    expecting = after.networks._replace(scheduler_critic=blank | {"advice_bias": jnp.full(len(ADVICE), 0.5)})
    turn = jax.tree.map(lambda x: x[0], after.buffer.advised)._replace(reward=jnp.float32(-0.25), last=jnp.bool_(False))
    settings = replace(SETTINGS, advice_discount=discount, entropy=0.0)
    loss = float(agents._scheduler_losses(settings, expecting, networks, turn))
    assert loss == pytest.approx((-0.25 + discount * 0.5) ** 2 / 2, abs=1e-7)
    assert float(agents._scheduler_losses(settings, expecting, networks, turn._replace(last=jnp.bool_(True)))) == 0


def test_at_run_time_agents_go_by_what_is_local(played: tuple[agents.Agents, agents.Agents]) -> None:
    """With another critic, or another second partitioner, the first one does the same."""
    _, after = played
    other = agents.begin(TOPOLOGY, SETTINGS, seed=2).networks
    mixed = {name: value.at[1].set(other.partitioner[name][1]) for name, value in after.networks.partitioner.items()}
    networks = after.networks._replace(partitioner=mixed, partitioner_critic=other.partitioner_critic)
    one = agents.choices(TOPOLOGY, SETTINGS, after, KEY, 4)
    two = agents.choices(TOPOLOGY, SETTINGS, after._replace(networks=networks), KEY, 4)
    assert (one[:, :, 0] == two[:, :, 0]).all()
    assert (one[:, :, 1] != two[:, :, 1]).any()


def test_agents_learn_to_divide_and_to_advise() -> None:
    topology, settings = (
        Topology(ENV, batches=4),
        agents.Settings(episodes=8, updates=6, sample=64, room=128, settle=20),
    )
    ours, test = agents.begin(topology, settings, seed=1), jax.random.PRNGKey(99)
    first = agents.tested(topology, settings, ours, test, 16)
    for number in range(40):
        key = jax.random.fold_in(KEY, number)
        ours, _ = agents.play_round(topology, settings, ours, key, jnp.ones(1, bool))
        ours = agents.learn(topology, settings, ours, key)
    last = agents.tested(topology, settings, ours, test, 16)
    assert float(last.cost.mean()) < 0.5 * float(first.cost.mean())
    assert float(scheduler_reward(last.ratio).mean()) > float(scheduler_reward(first.ratio).mean())


def test_policies_run_without_the_school(played: tuple[agents.Agents, agents.Agents], tmp_path: object) -> None:
    _, after = played
    policies.partitioner_weights(after, 1, {"command": "test"}).save(tmp_path / "mine.npz")
    keys = np.random.default_rng(1).zipf(1.4, 5_000) % 50
    blocks = PartLy(6, weights=tmp_path / "mine.npz").partition(keys)
    assert len(Counts.of(blocks.astype(np.int64)).keys) == 6

    weights = policies.advisor_weights(after)
    advisor = Advisor(weights, Parallelism(2, 1), Parallelism(6, 1), Parallelism(4, 1))
    now = advisor.observe(Observation(interval=1.0, processing=1.4, rows=700, keys=9))
    seen = scheduler_sees(jnp.float32(1.4), jnp.int32(4), jnp.float32(1))
    best = int(jnp.argmax(agents._scheduler(after.networks.scheduler, seen)))
    assert now.map == int(follow_advice(jnp.int32(4), best, 6))


def test_a_topology_that_cannot_be_is_refused() -> None:
    with pytest.raises(SkewlessError, match="give at least 1"):
        Topology(ENV, partitioners=0)
    with pytest.raises(SkewlessError, match="give one number for each"):
        Topology(ENV, partitioners=2, slow=(1.0,))
    with pytest.raises(SkewlessError, match="'features'"):
        Topology(Environment(blocks=2, keys=2, observation="paper"))
