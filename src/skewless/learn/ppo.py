"""Proximal policy optimization over many episodes at once, with masked actions.

References
----------
J. Schulman, F. Wolski, P. Dhariwal, A. Radford, O. Klimov: Proximal policy optimization algorithms. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from skewless.learn.environment import Array, Batch, Environment, Observation
from skewless.learn.network import Parameters, forward, init


@dataclass(frozen=True)
class PPO:
    """The settings of the optimization.

    Attributes
    ----------
    rate
        Learning rate of Adam.
    clip
        How far the probability of an action may move in one update, as a ratio.
    trace
        Lambda of the generalized advantage estimate; rewards are not discounted, as episodes end.
    entropy
        Weight of the entropy of the policy, which keeps it exploring.
    passes, parts
        How often the steps of an update are gone through, and in how many parts.
    partial
        Whether actions earn partial rewards; without them only the last one earns.
    """

    rate: float = 1e-3
    clip: float = 0.2
    trace: float = 0.97
    entropy: float = 0.003
    passes: int = 2
    parts: int = 8
    partial: bool = True

    @property
    def optimizer(self) -> Any:
        """Adam with gradients of bounded length."""
        return optax.chain(optax.clip_by_global_norm(0.5), optax.adam(self.rate))


class Learner(NamedTuple):
    """What training changes: the network, the optimizer's moments, and the running average of the costs."""

    parameters: Parameters
    moments: Any
    average: Array


class Outcome(NamedTuple):
    """How episodes ended: cost, BSI in blocks, BCI in a block's share of keys, extra fragments per block."""

    cost: Array
    bsi: Array
    bci: Array
    extra: Array


class _Steps(NamedTuple):
    seen: Observation
    mask: Array
    action: Array
    chance: Array
    value: Array
    reward: Array
    real: Array


def begin(env: Environment, ppo: PPO, seed: int) -> Learner:
    """A learner that knows nothing."""
    parameters = init(env, jax.random.PRNGKey(seed))
    return Learner(parameters, ppo.optimizer.init(parameters), jnp.float32(0))


@partial(jax.jit, static_argnums=(0, 1))
def update(
    env: Environment, ppo: PPO, learner: Learner, batches: Batch, stage: Array, key: Array, pace: Array | float = 1.0
) -> tuple[Learner, Outcome]:
    """One episode of each micro-batch, and the steps of the optimization that these allow, `pace` times as long."""
    number = batches.blocks.shape[0]
    keys = jax.random.split(key, number + 1)
    run = partial(_episode, env, ppo, learner, stage)
    steps, outcome = jax.vmap(run)(batches, keys[1:])
    advantage = jax.vmap(partial(_advantage, ppo))(steps)
    weight = steps.real.astype(jnp.float32)
    mean = (advantage * weight).sum() / weight.sum()
    spread = jnp.sqrt((jnp.square(advantage - mean) * weight).sum() / weight.sum())
    flat = jax.tree.map(
        lambda x: x.reshape(-1, *x.shape[2:]),
        (steps, (advantage - mean) / (spread + 1e-8), advantage + steps.value, weight),
    )
    total = number * env.keys

    def one_part(carry: Any, chosen: Array) -> tuple[Any, None]:
        parameters, moments = carry
        gradient = jax.grad(partial(_loss, env, ppo))(parameters, jax.tree.map(lambda x: x[chosen], flat))
        changes, moments = ppo.optimizer.update(gradient, moments)
        changes = jax.tree.map(lambda change: pace * change, changes)
        return (optax.apply_updates(parameters, changes), moments), None

    def one_pass(carry: Any, key: Array) -> tuple[Any, None]:
        shuffled = jax.random.permutation(key, total)[: total // ppo.parts * ppo.parts]
        return jax.lax.scan(one_part, carry, shuffled.reshape(ppo.parts, -1))[0], None

    passes = jax.random.split(keys[0], ppo.passes)
    (parameters, moments), _ = jax.lax.scan(one_pass, (learner.parameters, learner.moments), passes)
    kept = env.costs.average
    average = kept * learner.average + (1 - kept) * outcome.cost.mean()
    return Learner(parameters, moments, average), outcome


@partial(jax.jit, static_argnums=0)
def play(env: Environment, parameters: Parameters, batches: Batch, stage: Array) -> Outcome:
    """How episodes end if the likeliest action is always taken."""

    def episode(batch: Batch) -> Outcome:
        def step(state: Any, _: None) -> tuple[Any, None]:
            chances, _value = forward(env, parameters, env.observe(batch, state), env.mask(batch, state, stage))
            after, _reward = env.step(batch, state, jnp.argmax(chances), stage)
            ended = env.done(batch, state)
            return jax.tree.map(lambda old, new: jnp.where(ended, old, new), state, after), None

        state, _ = jax.lax.scan(step, env.reset(batch), None, env.keys)
        return _outcome(env, batch, state)

    outcome: Outcome = jax.vmap(episode)(batches)
    return outcome


def _episode(
    env: Environment, ppo: PPO, learner: Learner, stage: Array, batch: Batch, key: Array
) -> tuple[_Steps, Outcome]:
    def step(state: Any, key: Array) -> tuple[Any, _Steps]:
        seen, mask = env.observe(batch, state), env.mask(batch, state, stage)
        chances, value = forward(env, learner.parameters, seen, mask)
        action = jax.random.categorical(key, chances)
        real = ~env.done(batch, state)
        after, partly = env.step(batch, state, action, stage)
        last = real & env.done(batch, after)
        final = jnp.where(last, env.final_reward(batch, after, learner.average), 0.0)
        reward = jnp.where(real & ppo.partial, partly, 0.0) + final
        state = jax.tree.map(lambda old, new: jnp.where(real, new, old), state, after)
        return state, _Steps(seen, mask, action, chances[action], value, reward, real)

    state, steps = jax.lax.scan(step, env.reset(batch), jax.random.split(key, env.keys))
    return steps, _outcome(env, batch, state)


def _outcome(env: Environment, batch: Batch, state: Any) -> Outcome:
    bsi, bci, extra = env.imbalance(batch, state)
    return Outcome(env.cost(batch, state), bsi, bci, extra / batch.blocks)


def _advantage(ppo: PPO, steps: _Steps) -> Array:
    def back(carry: tuple[Array, Array], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        later, next_value = carry
        value, reward, real = step
        advantage = jnp.where(real, reward + next_value - value + ppo.trace * later, 0.0)
        return (advantage, jnp.where(real, value, 0.0)), advantage

    start = (jnp.float32(0), jnp.float32(0))
    return jax.lax.scan(back, start, (steps.value, steps.reward, steps.real), reverse=True)[1]


def _loss(env: Environment, ppo: PPO, parameters: Parameters, part: tuple[_Steps, Array, Array, Array]) -> Array:
    steps, advantage, target, weight = part
    chances, value = jax.vmap(partial(forward, env, parameters))(steps.seen, steps.mask)
    chance = jnp.take_along_axis(chances, steps.action[:, None], axis=1)[:, 0]
    ratio = jnp.exp(chance - steps.chance)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip) * advantage)
    spread = -jnp.where(steps.mask, jnp.exp(chances) * chances, 0).sum(axis=1)
    loss = 0.5 * jnp.square(value - target) - gain - ppo.entropy * spread
    return (loss * weight).sum() / weight.sum()
