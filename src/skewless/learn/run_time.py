"""Learning from the times of tasks: plans of the same micro-batch are compared by how unequal its tasks would be.

For each micro-batch the policy draws several plans. A judge says how long each map and each reduce task of a plan
takes, and the reward is minus the larger of the two variances, in the range of the cost model (section 4.6). An action
is as good as the plans that it is part of are better than the others of the same micro-batch, so that no critic is
needed: those of a shipped policy are not shipped. As long as the policy is not near the cost model, minus its cost is
the reward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from skewless.core.arrays import FloatArray
from skewless.core.counts import Counts
from skewless.core.home import homes
from skewless.learn.batches import batches_of, told_pieces
from skewless.learn.environment import Array, Batch, Environment, Observation, run_time_reward
from skewless.learn.network import Parameters, policy
from skewless.split.blocks import BlockPlan
from skewless.split.ways import MOST_PARTS, PARTS, SHARES
from skewless.split.weights import LAYERS, Weights

LAST = 2  # all ways of dividing are open
Judge: TypeAlias = Callable[[BlockPlan], tuple[FloatArray, FloatArray]]
"""The seconds of each map and of each reduce task of a plan; an empty array for tasks that are not known."""


class _Played(NamedTuple):
    seen: Observation
    mask: Array
    action: Array
    chance: Array
    real: Array
    lanes: Array
    cost: Array
    bsi: Array


@dataclass(frozen=True)
class Lesson:
    """What became of a lesson: means over its plans.

    Attributes
    ----------
    near
        Whether the policy was near the cost model, so that the times were its reward.
    variance
        The larger variance of the times of a plan's tasks.
    cost, bsi
        Of the plans, by the cost model.
    """

    near: bool
    variance: float
    cost: float
    bsi: float


class RunTime:
    """Goes on learning a trained policy from the times of tasks.

    Parameters
    ----------
    weights
        The policy to go on from.
    blocks
        Blocks of the micro-batches.
    keys
        The most pieces that a plan of a lesson places one by one, at least four a block; the other keys stay at home.
        That is far below the `hot` keys of `split.PartLy`, as an episode has a step for each piece. So lessons
        compare plans of the most frequent keys, and the policy places those after them by what it learned there.
    plans
        Plans of each micro-batch that are compared.
    rate, clip, passes
        Learning rate, how far a probability may move in one lesson, and how often its steps are gone through.
    near
        The mean BSI, as a part of a block, up to which a policy is near the cost model.
    seed
        Everything that is drawn at random follows from it.
    """

    def __init__(
        self,
        weights: Weights,
        blocks: int,
        *,
        keys: int = 128,
        plans: int = 8,
        rate: float = 3e-4,
        clip: float = 0.2,
        passes: int = 2,
        near: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.env = Environment(blocks=blocks, keys=max(keys, 4 * blocks))
        self.plans, self.near, self.clip, self.passes = plans, near, clip, passes
        self.parameters = _layers(weights)
        self._optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate))
        self._moments = self._optimizer.init(self.parameters)
        self._key = jax.random.PRNGKey(seed)
        self.lessons: list[Lesson] = []
        self._variances, self._costs = (np.inf, -np.inf), (np.inf, -np.inf)

    def lesson(self, seen: Sequence[Counts], judge: Judge) -> Lesson:
        """Draw plans of these micro-batches, have them judged, and learn from the differences."""
        self._key, one = jax.random.split(self._key)
        batches = batches_of(self.env, seen)
        many = jax.tree.map(lambda x: jnp.repeat(x, self.plans, axis=0), batches)
        played = _play(self.env, self.parameters, many, jax.random.split(one, len(seen) * self.plans))
        cost, bsi = np.asarray(played.cost), np.asarray(played.bsi)
        times = self._judged(seen, played, judge, self.plans)
        variance = np.array([max((float(np.var(each)) for each in pair if len(each)), default=0.0) for pair in times])
        self._variances = _wider(self._variances, variance)
        self._costs = _wider(self._costs, cost)
        near = bool(bsi.mean() <= self.near)
        none = np.zeros(1)
        rewards = [
            run_time_reward(
                mapped if len(mapped) else none, reduced if len(reduced) else none, self._variances, self._costs
            )
            for mapped, reduced in times
        ]
        reward = (np.array(rewards) if near else -cost).reshape(len(seen), self.plans)
        spread = reward.std(axis=1, keepdims=True)
        advantage = np.where(spread > 0, (reward - reward.mean(axis=1, keepdims=True)) / (spread + 1e-9), 0.0)
        step, good = partial(_improve, self.env, self._optimizer, self.clip), jnp.asarray(advantage.ravel())
        for _ in range(self.passes):
            self.parameters, self._moments = step(self.parameters, self._moments, played, good)
        self.lessons.append(Lesson(near, float(variance.mean()), float(cost.mean()), float(bsi.mean())))
        return self.lessons[-1]

    def measured(self, weights: Weights, seen: Sequence[Counts], judge: Judge) -> Lesson:
        """What the plans of a policy are worth that always takes the likeliest action, as it does in use."""
        played = _play(self.env, _layers(weights), batches_of(self.env, seen), None)
        times = self._judged(seen, played, judge, 1)
        variance = [max((float(np.var(each)) for each in pair if len(each)), default=0.0) for pair in times]
        bsi = float(np.mean(played.bsi))
        return Lesson(bsi <= self.near, float(np.mean(variance)), float(np.mean(played.cost)), bsi)

    def weights(self, **made: Any) -> Weights:
        """The policy as `split.PartLy` runs it."""
        return Weights.of(self.parameters, made | {"lessons": len(self.lessons)})

    def _judged(
        self, seen: Sequence[Counts], played: _Played, judge: Judge, plans: int
    ) -> list[tuple[FloatArray, FloatArray]]:
        lanes, actions, real = np.asarray(played.lanes), np.asarray(played.action), np.asarray(played.real)
        ways = actions % len(SHARES)
        return [
            judge(plan_of(self.env, seen[i // plans], lanes[i][real[i]], ways[i][real[i]])) for i in range(len(lanes))
        ]


def plan_of(env: Environment, seen: Counts, lanes: Any, ways: Any) -> BlockPlan:
    """The plan of a micro-batch that was played: for each piece its way, and the blocks from the first on."""
    told = told_pieces(env, seen, env.blocks)
    ends = np.floor(told.size[:, None] * np.cumsum(SHARES, axis=1)[ways] + 0.5).astype(np.int64)
    ends[np.arange(MOST_PARTS) >= PARTS[ways][:, None] - 1] = 0
    rows = np.arange(len(ways))
    ends[rows, PARTS[ways] - 1] = told.size
    ends = np.maximum.accumulate(ends, axis=1)
    parts = np.diff(ends, axis=1, prepend=0)
    piece, part = np.nonzero(parts)
    pairs, where = np.unique(
        np.stack([told.which[piece], lanes[piece, part].astype(np.int64)]), axis=1, return_inverse=True
    )
    size = np.bincount(where.ravel(), parts[piece, part]).astype(np.int64)
    at_home = np.arange(told.told, len(told.keys))
    return BlockPlan(
        env.blocks,
        told.keys,
        told.counts,
        np.concatenate([pairs[0], at_home]),
        np.concatenate([pairs[1].astype(np.int32), homes(told.keys[at_home], env.blocks)]),
        np.concatenate([size, told.counts[at_home]]),
    )


@partial(jax.jit, static_argnums=0)
def _play(env: Environment, parameters: Parameters, batches: Batch, keys: Array | None) -> _Played:
    """Episodes in which actions are drawn, or the likeliest taken if there are no keys to draw with."""

    def one(batch: Batch, key: Array | None) -> _Played:
        def step(state: Any, key: Array | None) -> tuple[Any, _Played]:
            seen, mask = env.observe(batch, state), env.mask(batch, state, LAST)
            chances = policy(env, parameters, seen, mask)
            action = jnp.argmax(chances) if key is None else jax.random.categorical(key, chances)
            real = ~env.done(batch, state)
            after, _ = env.step(batch, state, action, LAST)
            lanes = state.block[jnp.minimum(action // len(SHARES) + jnp.arange(MOST_PARTS), env.blocks - 1)]
            state = jax.tree.map(lambda old, new: jnp.where(real, new, old), state, after)
            return state, _Played(seen, mask, action, chances[action], real, lanes, jnp.zeros(0), jnp.zeros(0))

        keys = None if key is None else jax.random.split(key, env.keys)
        state, steps = jax.lax.scan(step, env.reset(batch), keys, env.keys)
        ended: _Played = steps._replace(cost=env.cost(batch, state), bsi=env.imbalance(batch, state)[0])
        return ended

    played: _Played = jax.vmap(one)(batches, keys)
    return played


@partial(jax.jit, static_argnums=(0, 1, 2))
def _improve(
    env: Environment, optimizer: Any, clip: float, parameters: Parameters, moments: Any, played: _Played, good: Array
) -> tuple[Parameters, Any]:
    def loss(parameters: Parameters) -> Array:
        chances = jax.vmap(jax.vmap(partial(policy, env, parameters)))(played.seen, played.mask)
        chance = jnp.take_along_axis(chances, played.action[..., None], axis=2)[..., 0]
        ratio = jnp.exp(chance - played.chance)
        gain = jnp.minimum(ratio * good[:, None], jnp.clip(ratio, 1 - clip, 1 + clip) * good[:, None])
        return -jnp.where(played.real, gain, 0).sum() / played.real.sum()

    changes, moments = optimizer.update(jax.grad(loss)(parameters), moments)
    return optax.apply_updates(parameters, changes), moments


def _layers(weights: Weights) -> Parameters:
    return {name: jnp.asarray(weights[name]) for layer in LAYERS for name in (layer, f"{layer}_bias")}


def _wider(bounds: tuple[float, float], values: FloatArray) -> tuple[float, float]:
    return min(bounds[0], float(values.min())), max(bounds[1], float(values.max()))
