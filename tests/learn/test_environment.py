from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import metrics
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.learn.batches import batch_of, batches_of, invented
from skewless.learn.environment import Environment, State, run_time_reward
from skewless.learn.gym import PartitioningEnv
from skewless.split.ways import MOST_PARTS, PARTS, SHARES, STAGES, pieces

WAYS = len(SHARES)
SMALL = Environment(blocks=6, keys=40)
step = jax.jit(Environment.step, static_argnums=0)
mask = jax.jit(Environment.mask, static_argnums=0)
observe = jax.jit(Environment.observe, static_argnums=0)


def play(env: Environment, seen: Counts, blocks: int, rng: np.random.Generator, stage: int) -> tuple[State, list]:
    """An episode of random allowed actions, and the blocks, shares and pieces of each."""
    batch = batch_of(env, seen, blocks)
    state, done = env.reset(batch), []
    while not env.done(batch, state):
        action = int(rng.choice(np.flatnonzero(mask(env, batch, state, stage))))
        first, way = divmod(action, WAYS)
        touched = np.asarray(state.block)[first : first + PARTS[way]]
        done.append((int(state.at), touched, SHARES[way][: PARTS[way]]))
        state, _ = step(env, batch, state, action, stage)
    return state, done


@given(
    counts=st.lists(st.integers(1, 400), min_size=1, max_size=30),
    blocks=st.integers(1, 6),
    stage=st.integers(0, 2),
    observation=st.sampled_from(["features", "paper"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=25)
def test_an_episode_ends_with_every_key_placed_and_costs_what_the_metrics_say(
    counts: list[int], blocks: int, stage: int, observation: str, seed: int
) -> None:
    env = Environment(blocks=6, keys=40, observation=observation)
    sizes = np.sort(np.array(counts))[::-1].astype(np.int64)
    seen = Counts(np.arange(len(sizes)), sizes, int(sizes.sum()))
    state, done = play(env, seen, blocks, np.random.default_rng(seed), stage)

    # The same assignment with plain arrays, in tuples that may be fractions.
    which, size = pieces(sizes, blocks)
    loads, held = np.zeros(blocks), set()
    for at, touched, shares in done:
        loads[touched] += size[at] * shares
        held |= {(int(which[at]), int(block)) for block in touched}
    assert [at for at, _, _ in done] == list(range(len(which)))
    order = np.asarray(state.block)
    unit = blocks / sizes.sum()
    np.testing.assert_allclose(np.asarray(state.load)[order < blocks], loads[order[order < blocks]] * unit, rtol=1e-4)
    assert float(state.extra) == len(held) - len(sizes)
    keys, at_block = (np.array(column) for column in zip(*held, strict=True))
    bsi, bci, _ = env.imbalance(batch_of(env, seen, blocks), state)
    assert float(bsi) == pytest.approx(loads.max() * unit - 1, abs=1e-3)
    expected = metrics.bci(keys, at_block.astype(np.int32), blocks)
    assert float(bci) * max(1, len(sizes) / blocks) == pytest.approx(expected, abs=1e-3)


def test_only_the_ways_of_the_stage_are_open_and_only_where_there_are_blocks() -> None:
    seen = Counts(np.arange(4), np.array([80, 40, 30, 10]), 160)
    batch = batch_of(SMALL, seen, blocks=4)
    for stage, ways in enumerate(STAGES):
        allowed = np.asarray(SMALL.mask(batch, SMALL.reset(batch), stage)).reshape(6, WAYS)
        expected = [[way < ways and first + PARTS[way] <= 4 for way in range(WAYS)] for first in range(6)]
        assert allowed.tolist() == expected


def test_a_key_is_not_divided_below_a_tuple() -> None:
    batch = batch_of(SMALL, Counts(np.arange(3), np.array([4, 1, 1]), 6), blocks=6)
    state = SMALL.reset(batch)
    allowed = np.asarray(SMALL.mask(batch, state, 2)).reshape(6, WAYS)[0]
    assert [SHARES[way].tolist() for way in np.flatnonzero(allowed)] == [
        [1, 0, 0, 0, 0],
        [1 / 2, 1 / 2, 0, 0, 0],
        [1 / 3, 1 / 3, 1 / 3, 0, 0],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0],
        [3 / 4, 1 / 4, 0, 0, 0],
        [1 / 2, 1 / 4, 1 / 4, 0, 0],
    ]
    state, _ = SMALL.step(batch, state, 0, 2)
    assert np.flatnonzero(SMALL.mask(batch, state, 2)).tolist() == [block * WAYS for block in range(6)]


def test_a_partial_reward_is_positive_within_both_limits_and_negative_beyond() -> None:
    batch = batch_of(SMALL, Counts(np.arange(6), np.full(6, 100), 600), blocks=6)
    state = SMALL.reset(batch)
    state, fits = SMALL.step(batch, state, 0, 0)
    assert float(fits) > 0
    fullest = 5 * WAYS
    _, crowded = SMALL.step(batch, state, fullest, 0)
    assert float(crowded) < 0


def test_a_masked_action_earns_nothing_and_places_the_key_whole() -> None:
    batch = batch_of(SMALL, Counts(np.arange(6), np.full(6, 100), 600), blocks=6)
    five = int(np.flatnonzero(PARTS == MOST_PARTS)[0])
    state, reward = SMALL.step(batch, SMALL.reset(batch), five, stage=0)
    assert float(reward) == 0
    assert sorted(np.asarray(state.load).tolist()) == [0, 0, 0, 0, 0, 1]


def test_the_final_reward_is_a_running_average_of_the_costs() -> None:
    batch = batch_of(SMALL, Counts(np.arange(2), np.array([5, 1]), 6), blocks=2)
    state = SMALL.reset(batch)
    for _ in range(2):
        state, _ = SMALL.step(batch, state, 0, 0)
    cost = float(SMALL.cost(batch, state))
    assert cost > 0
    assert float(SMALL.final_reward(batch, state, average=3.0)) == pytest.approx(-(0.5 * cost + 0.5 * 3.0))


def test_the_observation_of_features_does_not_depend_on_padding() -> None:
    seen = Counts.of(np.random.default_rng(1).zipf(1.3, 2_000) % 25)
    small, large = Environment(blocks=5, keys=40), Environment(blocks=9, keys=64)
    views = []
    for env in (small, large):
        batch = batch_of(env, seen, blocks=5)
        state = env.reset(batch)
        for _ in range(7):
            state, _ = step(env, batch, state, 1, 0)
        views.append(observe(env, batch, state))
    np.testing.assert_allclose(views[0]["key"], views[1]["key"], rtol=1e-5)
    np.testing.assert_allclose(views[0]["blocks"], views[1]["blocks"][:5], rtol=1e-4, atol=1e-5)


def test_the_observation_of_the_paper_has_the_counts_and_the_share_of_each_key_in_each_block() -> None:
    env = Environment(blocks=3, keys=4, observation="paper")
    batch = batch_of(env, Counts(np.arange(3), np.array([4, 1, 1]), 6))
    state, _ = env.step(batch, env.reset(batch), 1, 0)  # halves, from the first block
    state, _ = env.step(batch, state, 2 * WAYS, 0)
    view = env.observe(batch, state)
    assert view["counts"].tolist() == [2.0, 0.5, 0.5, 0.0]
    assert view["matrix"].tolist() == [[0.5, 0.5, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_keys_beyond_those_that_fit_are_in_the_blocks_already() -> None:
    keys = np.random.default_rng(2).zipf(1.2, 5_000)
    batch = batch_of(SMALL, Counts.of(keys))
    assert float(batch.sizes.sum() + batch.tail.sum()) == pytest.approx(6)
    assert float(batch.fresh.sum() + batch.tail_keys.sum()) == len(np.unique(keys))


def test_keys_of_more_than_five_blocks_are_cut_and_others_are_not() -> None:
    counts = np.array([9_000, 2_000, 500, 300, 100, 50, 30, 20])
    which, size = pieces(counts, blocks=8)
    assert size.sum() == counts.sum()
    assert size[which == 0].max() <= counts.sum() / 8
    assert size[which == 0].max() - size[which == 0].min() <= 1
    assert size[which > 0].tolist() == counts[1:].tolist()


@pytest.mark.parametrize("observation", ["features", "paper"])
def test_gymnasium_finds_nothing_wrong(observation: str) -> None:
    check_env(PartitioningEnv(Environment(blocks=5, keys=24, observation=observation)), skip_render_check=True)


def test_an_episode_of_gymnasium_ends_with_the_final_reward() -> None:
    rules = Environment(blocks=4, keys=24)
    env: gymnasium.Env = PartitioningEnv(rules, stage=0)
    average = 0.0
    for episode in range(3):
        _, info = env.reset(seed=5 if episode == 0 else None)
        batch, done = env.unwrapped._batch, False
        state = rules.reset(batch)
        while not done:
            action = np.int64(np.flatnonzero(info["action_mask"])[-1])
            _, reward, done, _, info = env.step(action)
            state, partly = step(rules, batch, state, action, 0)
            final = -(0.5 * info["cost"] + 0.5 * average) if done else 0.0
            assert float(reward) == pytest.approx(float(partly) + final, abs=1e-5)
        assert info["cost"] > 0.1  # or the end would say nothing
        average = 0.5 * average + 0.5 * info["cost"]


def test_thousands_of_episodes_are_stepped_at_once() -> None:
    batch = invented(SMALL, np.random.default_rng(0), 2_000)
    states = jax.vmap(SMALL.reset)(batch)
    after, _ = jax.jit(jax.vmap(lambda one, state: SMALL.step(one, state, 0, 0)))(batch, states)
    assert after.load.shape == (2_000, 6)
    assert np.asarray(after.at).tolist() == [1] * 2_000
    assert float(jnp.abs(batch.sizes.sum(1) + batch.tail.sum(1) - batch.blocks).max()) < 1e-3


def test_micro_batches_of_a_stream_are_stacked() -> None:
    seen = [Counts.of(np.random.default_rng(seed).zipf(1.5, 500) % 50) for seed in (1, 2, 3)]
    assert batches_of(SMALL, seen, blocks=4).sizes.shape == (3, 40)


def test_the_run_time_reward_falls_with_the_larger_variance_and_stays_in_the_range_of_the_costs() -> None:
    even, uneven, odd = np.array([2.0, 2.0]), np.array([1.0, 3.0]), np.array([0.0, 9.0])
    ranges = {"variances": (0.0, 2.0), "costs": (0.5, 1.5)}
    assert run_time_reward(even, even, **ranges) == -0.5
    assert run_time_reward(uneven, even, **ranges) == run_time_reward(even, uneven, **ranges) == -1.0
    assert run_time_reward(odd, even, **ranges) == -1.5


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Environment(blocks=0), "0 blocks and 256 keys; give at least 1 of each"),
        (lambda: Environment(blocks=30, keys=20), "30 blocks and 20 keys; .* so give at least 30 keys"),
        (lambda: Environment(observation="all"), "observation is 'all'; choose one of features, paper"),
        (lambda: PartitioningEnv(stage=3), "stage is 3; give 0 to 2"),
        (lambda: batch_of(SMALL, Counts.of(np.arange(9)), blocks=7), "7 blocks do not fit an environment of 6"),
    ],
)
def test_what_cannot_be_is_refused(made: object, said: str) -> None:
    with pytest.raises(SkewlessError, match=said):
        made()
