"""A topology as agents meet it: a scheduler advises the number of blocks, and partitioners divide the micro-batches.

An episode is a stretch of micro-batches. In each of them every partitioner places its keys, one a step and all at the
same time, and then the scheduler says how many blocks the next one has. All of it is a pure function of arrays, so that
many episodes are played at once and compiled.

The stages of a topology are not connected: each partitioner draws micro-batches of its own, of which only the number of
blocks and the work are the same for all, and W is the mean of the times of all stages. What a stage makes of its blocks
does not change what the next one has to divide.

References
----------
A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
2021. Section 4.8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from skewless.core.errors import SkewlessError
from skewless.learn.environment import BLOCK_FEATURES, KEY_FEATURES, WAYS, Array, Batch, Environment, Observation, State
from skewless.simulate.advisor import ADVICE, SEEN

FEWEST = 2  # blocks
WORK_OF_KEYS = 0.1  # part of a block's work that goes with its keys
_LEAST = 0.25  # log2 of the work of a micro-batch


@dataclass(frozen=True)
class Topology:
    """The rules of an episode of several agents.

    Parameters
    ----------
    env
        The rules for the keys of each partitioner. Its blocks are the most that the scheduler can advise.
    partitioners
        The agents that divide: the stages of a topology, or the instances of one operator.
    batches
        Micro-batches of an episode.
    local
        Whether a partitioner earns what its own stage makes of its blocks, with partial rewards; else all of them earn
        the mean of what all stages make of theirs, when the micro-batch is done.
    advised
        Whether the scheduler advises; else the number of blocks stays that of `env`.
    slow
        For each partitioner, times that one of its blocks, another in every micro-batch, takes longer: 1 if its stage
        is sound.
    jumps
        The chance that the load of a micro-batch is another one than that of the one before, by a factor of up to 2.8.
    """

    env: Environment = field(default_factory=lambda: Environment(blocks=12, keys=24))
    partitioners: int = 1
    batches: int = 4
    local: bool = True
    advised: bool = True
    slow: tuple[float, ...] = field(default=())
    jumps: float = 0.1

    def __post_init__(self) -> None:
        """Refuse a topology without agents, or with factors that do not fit them."""
        if self.partitioners < 1 or self.batches < 1:
            raise SkewlessError(f"{self.partitioners} partitioners and {self.batches} micro-batches; give at least 1")
        if self.env.observation != "features":
            raise SkewlessError("partitioner agents need the observation 'features', as the number of blocks changes")
        if self.slow and len(self.slow) != self.partitioners:
            raise SkewlessError(f"slow is {self.slow} for {self.partitioners} partitioners; give one number for each")

    @property
    def slowness(self) -> Array:
        """`slow` with its default."""
        return jnp.asarray(self.slow or (1.0,) * self.partitioners)

    @property
    def context(self) -> int:
        """How many numbers a partitioner's critic sees of the other agents."""
        return SEEN + (self.partitioners - 1) * (KEY_FEATURES + BLOCK_FEATURES + WAYS + 1)


class Load(NamedTuple):
    """What is to be done: the work of a micro-batch in blocks of an interval, the blocks, and the work in the queue."""

    work: Array
    blocks: Array
    queued: Array


class Turns(NamedTuple):
    """The steps of a micro-batch, of all partitioners: what they saw, could do, did and earned.

    Arrays have a row for each step and in it one for each partitioner; `real` says whether there was a key to place.
    """

    seen: Observation
    mask: Array
    action: Array
    reward: Array
    real: Array


class Advised(NamedTuple):
    """The scheduler's turn after a micro-batch: what it saw, what its critic sees too, and what it advised and earned.

    `reward`, `after` and `after_more` are of the micro-batch that its advice was for.
    """

    seen: Array
    more: Array
    action: Array
    reward: Array
    after: Array
    after_more: Array
    last: Array


class Ended(NamedTuple):
    """How micro-batches ended: for each partitioner cost, BSI and time of its stage; and W, and the blocks."""

    cost: Array
    bsi: Array
    stage: Array
    ratio: Array
    blocks: Array


def draw_load(topology: Topology, key: Array) -> Load:
    """The load before the first micro-batch, with a number of blocks that need not suit it."""
    one, two = jax.random.split(key)
    most = topology.env.blocks
    work = jnp.exp2(jax.random.uniform(one, minval=_LEAST, maxval=jnp.log2(0.8 * most)))
    blocks = jax.random.randint(two, (), FEWEST, most + 1) if topology.advised else most
    return Load(work, jnp.int32(blocks), jnp.float32(0))


def draw_batch(env: Environment, blocks: Array, key: Array) -> Batch:
    """A micro-batch of Zipf's law with a tail that is in the blocks already; no key is larger than five blocks."""
    keys = jax.random.split(key, 5)
    skew = jax.random.uniform(keys[0], minval=0.2, maxval=1.2)
    ideal = jnp.exp(-skew * jnp.log(jnp.arange(1, env.keys + 1.0)))
    noisy = ideal * jnp.exp(0.1 * jax.random.normal(keys[1], (env.keys,)))
    tail = jax.random.uniform(keys[2], maxval=0.5)
    hot = -jnp.sort(-noisy / noisy.sum())
    sizes = jnp.minimum((1 - tail) * hot * blocks, 5.0)
    there = jnp.arange(env.blocks) < blocks
    rest = jnp.exp(0.1 * jax.random.normal(keys[3], (env.blocks,))) * there
    rest = rest / rest.sum() * (blocks - sizes.sum())
    others = 4 * env.keys * tail / blocks * there
    tuples = jnp.exp2(jax.random.uniform(keys[4], minval=9.0, maxval=13.0))
    return Batch(sizes, jnp.ones(env.keys, bool), blocks, rest, others, 1 / tuples)


def stage_time(env: Environment, batch: Batch, state: State, work: Array, slow: Array, key: Array) -> tuple[Array, Any]:
    """The time of a stage in intervals, and the cost of its blocks as its tasks had them.

    A task takes time for its tuples and for its keys. One of them, drawn at random, is slower by a factor.
    """
    there = state.block < batch.blocks
    factor = jnp.where(state.block == jax.random.randint(key, (), 0, batch.blocks), slow, 1.0)
    mean = jnp.where(there, state.card, 0).sum() / batch.blocks
    load = (1 - WORK_OF_KEYS) * state.load + WORK_OF_KEYS * state.card / mean
    longest = jnp.where(there, factor * load, 0).max()
    _, bci, extra = env.imbalance(batch, state)
    size = jnp.where(there, factor * state.load, 0).max() - 1
    cost = env.costs.size * size + env.costs.keys * bci + env.costs.split * extra / batch.blocks
    return work / batch.blocks * longest, cost


def scheduler_sees(ratio: Array, blocks: Array, change: Array) -> Array:
    """What the scheduler sees of a micro-batch: W, the number of blocks, and how the rows changed."""
    return jnp.stack(
        [
            jnp.clip(ratio, 0, 3),
            jnp.clip(jnp.log2(jnp.maximum(ratio, 1e-3) / 0.85), -3, 3),
            jnp.log2(blocks.astype(jnp.float32)) / 5,
            jnp.clip(jnp.log2(change), -3, 3),
        ]
    )


def follow_advice(blocks: Array, action: Array, most: int) -> Array:
    """The number of blocks after an advice: times a factor, at least one more or fewer unless it is to stay."""
    factor = jnp.asarray(ADVICE)[action]
    moved = jnp.round(blocks * factor).astype(jnp.int32)
    up, down = jnp.maximum(moved, blocks + 1), jnp.minimum(moved, blocks - 1)
    then = jnp.where(factor > 1, up, jnp.where(factor < 1, down, blocks))
    return jnp.clip(then, FEWEST, most)


def scheduler_reward(ratio: Array) -> Array:
    """Nothing while W is between 0.8 and 0.9, as Algorithm 4 has it; more is twice as bad as less."""
    return -(jnp.clip(ratio - 0.9, 0, 2) + jnp.maximum(0.8 - ratio, 0) / 2)


def heuristic(env: Environment, batch: Batch, state: State, mask: Array) -> Array:
    """What partitioners do that have learned nothing: the fewest parts that fit, beginning with the emptiest block.

    If nothing fits, the way that goes least beyond.
    """
    ahead = env.observe(batch, state)["blocks"][0, :WAYS]
    allowed = mask.reshape(env.blocks, WAYS)[0]
    order = jnp.where(allowed & (ahead >= 0), 10.0 - jnp.arange(WAYS), jnp.where(allowed, ahead, -jnp.inf))
    return jnp.argmax(order)


def divide(topology: Topology, batches: Batch, act: Any, key: Array, stage: int = 2) -> tuple[Turns, State]:
    """All partitioners place the keys of their micro-batches, step by step.

    `act(seen, mask, batch, state, key)` has the action of each partitioner; arrays have one row for each of them.
    """
    env = topology.env

    def step(states: State, key: Array) -> tuple[State, Turns]:
        seen = jax.vmap(env.observe)(batches, states)
        mask = jax.vmap(lambda batch, state: env.mask(batch, state, stage))(batches, states)
        action = act(seen, mask, batches, states, key)
        real = ~jax.vmap(env.done)(batches, states)
        after, earned = jax.vmap(lambda b, s, a: env.step(b, s, a, stage))(batches, states, action)
        keep = lambda old, new: jnp.where(real.reshape(-1, *[1] * (new.ndim - 1)), new, old)  # noqa: E731
        after = jax.tree.map(keep, states, after)
        reward = jnp.where(real & topology.local, earned, 0.0)
        return after, Turns(seen, mask, action, reward, real)

    states = jax.vmap(env.reset)(batches)
    states, turns = jax.lax.scan(step, states, jax.random.split(key, env.keys))
    return turns, states


def episode(topology: Topology, act: Any, advise: Any, key: Array) -> tuple[Turns, Advised, Ended]:
    """A stretch of micro-batches; arrays have one row for each.

    `advise(seen, key)` is the number of an advice, for what `scheduler_sees`.
    """
    env = topology.env
    first, key = jax.random.split(key)

    def micro_batch(load: Load, key: Array) -> tuple[Load, Any]:
        keys = jax.random.split(key, 7)
        drawn = jax.random.split(keys[0], topology.partitioners)
        batches = jax.vmap(lambda each: draw_batch(env, load.blocks, each))(drawn)
        turns, states = divide(topology, batches, act, keys[1])
        noise = jax.random.split(keys[2], topology.partitioners)
        judge = partial(stage_time, env)
        stage, cost = jax.vmap(judge, in_axes=(0, 0, None, 0, 0))(batches, states, load.work, topology.slowness, noise)
        earned = -cost if topology.local else jnp.full_like(cost, -cost.mean())
        turns = turns._replace(reward=turns.reward.at[-1].add(earned))
        ratio = stage.mean() + load.queued
        bsi = jax.vmap(env.imbalance)(batches, states)[0]
        ended = Ended(cost, bsi, stage, ratio, load.blocks)

        # The load of the next one, which nobody knows yet, and the advice for it.
        jump = jax.random.bernoulli(keys[3], topology.jumps)
        steps = 0.05 * jax.random.normal(keys[4])
        other = load.work * jnp.exp2(jax.random.uniform(keys[5], minval=-1.5, maxval=1.5))
        work = jnp.clip(jnp.where(jump, other, load.work * jnp.exp(steps)), 1.0, 0.85 * env.blocks)
        return Load(work, load.blocks, jnp.maximum(ratio - 1, 0)), (turns, ended, load.work, keys[6])

    def with_advice(carry: tuple[Load, Array], key: Array) -> tuple[tuple[Load, Array], Any]:
        load, before = carry
        after, (turns, ended, work, own) = micro_batch(load, key)
        seen = scheduler_sees(ended.ratio, ended.blocks, work / before)
        more = jnp.concatenate([ended.bsi, ended.cost])
        action = advise(seen, own)
        blocks = follow_advice(load.blocks, action, env.blocks) if topology.advised else load.blocks
        return (after._replace(blocks=blocks), work), (turns, ended, seen, more, action)

    load = draw_load(topology, first)
    _, (turns, ended, seen, more, action) = jax.lax.scan(
        with_advice, (load, load.work), jax.random.split(key, topology.batches)
    )

    def later(x: Array) -> Array:
        return jnp.concatenate([x[1:], x[-1:]])

    last = jnp.arange(topology.batches) == topology.batches - 1
    advised = Advised(seen, more, action, later(scheduler_reward(ended.ratio)), later(seen), later(more), last)
    return turns, advised, ended
