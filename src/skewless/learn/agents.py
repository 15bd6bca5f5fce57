"""Algorithm 5: agents that learn together from one replay buffer, with critics that see all of them.

Each agent has an actor, which sees what is local to it and is all that runs later, and a critic, which also sees what
the other agents see and do. Critics and actors have targets that follow them slowly. Actions are discrete, so a critic
has a value for every action of its agent, and the actor climbs the mean of these by its own probabilities: the policy
gradient without drawing an action.

References
----------
A. S. Abdelhamid: Efficient distributed processing over micro-batched data streams. Dissertation, Purdue University,
2021. Section 4.8.2 and Algorithm 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from skewless.learn.environment import BLOCK_FEATURES, KEY_FEATURES, WAYS, Array, Observation
from skewless.learn.network import Parameters, init, policy
from skewless.learn.topology import Advised, Ended, Topology, Turns, divide, draw_batch, episode, heuristic, stage_time
from skewless.simulate.advisor import ADVICE, LAYERS, SEEN

Tree: TypeAlias = Any
ACTOR_LAYERS = ("block", "key", "mid", "out")


@dataclass(frozen=True)
class Settings:
    """The settings of Algorithm 5.

    Attributes
    ----------
    rate
        Learning rate of Adam, for actors and critics.
    discount, advice_discount
        What a reward is worth one step earlier, and to the scheduler one micro-batch earlier.
    follow
        How far targets go towards what they follow, in one update.
    entropy
        Weight of an actor's entropy.
    random
        The chance of a random action at the beginning; it falls to a tenth of that.
    settle
        Rounds until it has fallen.
    episodes
        Episodes of a round, played at once.
    updates
        Updates after each round, for each partitioner that feeds the buffer.
    sample
        Steps in an update.
    room
        Micro-batches that the buffer keeps.
    shared
        Whether all partitioners have one policy, as the instances of one operator do.
    """

    rate: float = 2e-3
    discount: float = 0.95
    advice_discount: float = 0.7
    follow: float = 0.02
    entropy: float = 0.01
    random: float = 0.3
    settle: int = 60
    episodes: int = 8
    updates: int = 8
    sample: int = 256
    room: int = 512
    shared: bool = False


class Networks(NamedTuple):
    """The networks of all agents; those of the partitioners are stacked."""

    partitioner: Parameters
    partitioner_critic: Parameters
    scheduler: Parameters
    scheduler_critic: Parameters


class Buffer(NamedTuple):
    """The replay buffer: steps of partitioners and advice of the scheduler, of the newest micro-batches."""

    turns: Turns
    advised: Advised
    told: Array
    count: Array


class Agents(NamedTuple):
    """What training changes."""

    networks: Networks
    targets: Networks
    moments: Any
    buffer: Buffer
    rounds: Array


def begin(topology: Topology, settings: Settings, seed: int) -> Agents:
    """Agents that know nothing."""
    keys = jax.random.split(jax.random.PRNGKey(seed), 4)
    policies = 1 if settings.shared else topology.partitioners

    def actor(key: Array) -> Parameters:
        made = init(topology.env, key)
        return {name: value for name, value in made.items() if name.removesuffix("_bias") in ACTOR_LAYERS}

    def critic(key: Array) -> Parameters:
        shapes = {"block": (BLOCK_FEATURES, 48), "key": (KEY_FEATURES + topology.context, 48)}
        return _layers(shapes | {"mid": (48, 48), "out": (48, WAYS)}, key)

    shapes = {"first": (SEEN, 32), "second": (32, 32), "advice": (32, len(ADVICE))}
    networks = Networks(
        jax.vmap(actor)(jax.random.split(keys[0], policies)),
        jax.vmap(critic)(jax.random.split(keys[1], policies)),
        _layers(shapes, keys[2]),
        _layers(shapes | {"first": (SEEN + 2 * topology.partitioners, 32)}, keys[3]),
    )
    return Agents(networks, networks, _optimizer(settings).init(networks), _empty(topology, settings), jnp.int32(0))


@partial(jax.jit, static_argnums=(0, 1))
def play_round(
    topology: Topology, settings: Settings, agents: Agents, key: Array, learned: Array
) -> tuple[Agents, Ended]:
    """Play episodes by the current policies with exploration, and put them into the buffer (lines 2 to 9).

    `learned` says which partitioners go by their policy; the others by the heuristic.
    """
    left = jnp.maximum(0.1, 1 - agents.rounds / settings.settle)
    random = settings.random * left
    act = partial(_act, topology, settings, agents.networks.partitioner, learned, random)

    def advise(seen: Array, key: Array) -> Array:
        one, two, three = jax.random.split(key, 3)
        drawn = jax.random.categorical(one, _scheduler(agents.networks.scheduler, seen))
        other = jax.random.randint(two, (), 0, len(ADVICE))
        return jnp.where(jax.random.bernoulli(three, random), other, drawn)

    keys = jax.random.split(key, settings.episodes)
    turns, advised, ended = jax.vmap(lambda each: episode(topology, act, advise, each))(keys)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (turns, advised))
    buffer, new = agents.buffer, flat[0].action.shape[0]
    at = (buffer.count + jnp.arange(new)) % settings.room
    turns, advised = jax.tree.map(lambda old, x: old.at[at].set(x), (buffer.turns, buffer.advised), flat)
    told = buffer.told.at[at].set(learned)
    buffer = Buffer(turns, advised, told, buffer.count + new)
    return agents._replace(buffer=buffer, rounds=agents.rounds + 1), ended


def learn(topology: Topology, settings: Settings, agents: Agents, key: Array) -> Agents:
    """Some updates of all critics, actors and targets from the buffer (lines 10 to 14)."""
    # What was earned is in the buffer, so that one compiled function does for all rewards.
    learned: Agents = _learn(replace(topology, local=True, slow=()), settings, agents, key)
    return learned


@partial(jax.jit, static_argnums=(0, 1))
def _learn(topology: Topology, settings: Settings, agents: Agents, key: Array) -> Agents:

    def update(agents: Agents, key: Array) -> tuple[Agents, None]:
        gradient = jax.grad(partial(_loss, topology, settings, agents.targets, agents.buffer))(agents.networks, key)
        changes, moments = _optimizer(settings).update(gradient, agents.moments)
        networks = optax.apply_updates(agents.networks, changes)
        targets = jax.tree.map(lambda t, n: t + settings.follow * (n - t), agents.targets, networks)
        return agents._replace(networks=networks, targets=targets, moments=moments), None

    learned: Agents = jax.lax.scan(update, agents, jax.random.split(key, settings.updates))[0]
    return learned


@partial(jax.jit, static_argnums=(0, 1, 4))
def tested(topology: Topology, settings: Settings, agents: Agents, key: Array, number: int) -> Ended:
    """How episodes end if all agents take their likeliest action, by what they see alone."""
    everybody = jnp.ones(topology.partitioners, bool)
    act = partial(_act, topology, settings, agents.networks.partitioner, everybody, 0.0, greedy=True)

    def advise(seen: Array, key: Array) -> Array:
        return jnp.argmax(_scheduler(agents.networks.scheduler, seen))

    ended: Ended = jax.vmap(lambda each: episode(topology, act, advise, each)[2])(jax.random.split(key, number))
    return ended


@partial(jax.jit, static_argnums=(0, 2))
def heuristic_cost(topology: Topology, key: Array, number: int = 32) -> Array:
    """The mean cost of micro-batches that the heuristic divides."""
    env = topology.env

    def one(key: Array) -> Array:
        keys = jax.random.split(key, 3)
        batch = jax.tree.map(lambda x: x[None], draw_batch(env, jnp.int32(env.blocks), keys[0]))
        alone = Topology(env, partitioners=1)
        _, states = divide(alone, batch, _by_heuristic(topology), keys[1])
        state, same = jax.tree.map(lambda x: x[0], (states, batch))
        return stage_time(env, same, state, jnp.float32(1), jnp.float32(1), keys[2])[1]

    return jax.vmap(one)(jax.random.split(key, number)).mean()


@partial(jax.jit, static_argnums=(0, 1, 4))
def choices(topology: Topology, settings: Settings, agents: Agents, key: Array, number: int = 64) -> Array:
    """The logarithms of the probabilities of each partitioner's actions in states that are the same for all agents.

    The states are those that the heuristic passes through, so that they do not depend on the agents.
    """
    keys = jax.random.split(key, number)

    def one(key: Array) -> Array:
        drawn = jax.random.split(key, topology.partitioners + 1)
        batches = jax.vmap(lambda each: draw_batch(topology.env, jnp.int32(topology.env.blocks), each))(drawn[1:])
        turns, _ = divide(topology, batches, _by_heuristic(topology), drawn[0])
        policies = partial(_policies, topology, settings, agents.networks.partitioner)
        return jax.vmap(policies)(turns.seen, turns.mask)

    found: Array = jax.vmap(one)(keys)
    return found


def _loss(
    topology: Topology, settings: Settings, targets: Networks, buffer: Buffer, networks: Networks, key: Array
) -> Array:
    """The losses of all critics and actors; each depends on its own network only."""
    one, two, three = jax.random.split(key, 3)
    full = jnp.minimum(buffer.count, settings.room)
    at = jax.random.randint(one, (settings.sample,), 0, full)
    step = jax.random.randint(two, (settings.sample,), 0, topology.env.keys)
    pick = partial(_partitioner_losses, topology, settings, targets, networks, buffer)
    partitioners = jax.vmap(pick)(at, step, jax.random.split(three, settings.sample)).mean()
    advised: Advised = jax.tree.map(lambda x: x[at], buffer.advised)
    scheduler = jax.vmap(partial(_scheduler_losses, settings, targets, networks))(advised).mean()
    return partitioners + (scheduler if topology.advised else 0.0)


def _partitioner_losses(
    topology: Topology,
    settings: Settings,
    targets: Networks,
    networks: Networks,
    buffer: Buffer,
    at: Array,
    step: Array,
    key: Array,
) -> Array:
    """Of one step of all partitioners, as the buffer has it."""
    end = topology.env.keys - 1
    now = jax.tree.map(lambda x: x[at, step], buffer.turns)
    then = jax.tree.map(lambda x: x[at, jnp.minimum(step + 1, end)], buffer.turns)
    scheduler = buffer.advised.seen[at]
    more = _context(topology, now, now.action, scheduler)
    # What the others would do next, by their target policies.
    next_policies = _policies(topology, settings, targets.partitioner, then.seen, then.mask)
    next_actions = jax.random.categorical(key, next_policies)
    later = _context(topology, then, next_actions, scheduler)
    which = _which(topology, settings)
    values = jax.vmap(_values)(_of(networks.partitioner_critic, which), now.seen, more)
    next_values = jax.vmap(_values)(_of(targets.partitioner_critic, which), then.seen, later)
    expected = jnp.where(then.mask, jnp.exp(next_policies) * next_values, 0).sum(axis=1)
    on = (step < end) & then.real
    goal = now.reward + settings.discount * jnp.where(on, expected, 0.0)
    taken = jnp.take_along_axis(values, now.action[:, None], axis=1)[:, 0]
    critic = optax.losses.huber_loss(taken, jax.lax.stop_gradient(goal))

    logs = _policies(topology, settings, networks.partitioner, now.seen, now.mask)
    chances = jnp.exp(logs)
    judged = jax.lax.stop_gradient(values)
    judged = judged - jnp.where(now.mask, jax.lax.stop_gradient(chances) * judged, 0).sum(axis=1, keepdims=True)
    gain = jnp.where(now.mask, chances * judged, 0).sum(axis=1)
    spread = -jnp.where(now.mask, chances * logs, 0).sum(axis=1)
    actor = -gain - settings.entropy * spread
    return jnp.where(now.real & buffer.told[at], critic + actor, 0.0).sum()


def _scheduler_losses(settings: Settings, targets: Networks, networks: Networks, turn: Advised) -> Array:
    full = jnp.concatenate([turn.seen, turn.more])
    after = jnp.concatenate([turn.after, turn.after_more])
    values = _mlp(networks.scheduler_critic, full)
    later = jnp.exp(_scheduler(targets.scheduler, turn.after)) * _mlp(targets.scheduler_critic, after)
    goal = turn.reward + settings.advice_discount * later.sum()
    critic = optax.losses.huber_loss(values[turn.action], jax.lax.stop_gradient(goal))
    logs = _scheduler(networks.scheduler, turn.seen)
    judged = jax.lax.stop_gradient(values - (jnp.exp(logs) * values).sum())
    actor = -(jnp.exp(logs) * judged).sum() + settings.entropy * (jnp.exp(logs) * logs).sum()
    # The last micro-batch of an episode has none after it to learn from.
    return jnp.where(turn.last, 0.0, critic + actor)


def _act(
    topology: Topology,
    settings: Settings,
    parameters: Parameters,
    learned: Array,
    random: Array | float,
    seen: Observation,
    mask: Array,
    batches: Any,
    states: Any,
    key: Array,
    *,
    greedy: bool = False,
) -> Array:
    """An action for each partitioner: by its policy, now and then at random, or by the heuristic."""
    logs = _policies(topology, settings, parameters, seen, mask)
    one, two, three = jax.random.split(key, 3)
    drawn = jnp.argmax(logs, axis=1) if greedy else jax.random.categorical(one, logs)
    other = jax.random.categorical(two, jnp.where(mask, 0.0, -jnp.inf))
    tried = jnp.where(jax.random.bernoulli(three, random, drawn.shape), other, drawn)
    usual = jax.vmap(partial(heuristic, topology.env))(batches, states, mask)
    return jnp.where(learned, tried, usual)


def _by_heuristic(topology: Topology) -> Any:
    def act(seen: Observation, mask: Array, batches: Any, states: Any, key: Array) -> Array:
        return jax.vmap(partial(heuristic, topology.env))(batches, states, mask)

    return act


def _which(topology: Topology, settings: Settings) -> Array:
    """The policy of each partitioner."""
    return jnp.zeros(topology.partitioners, int) if settings.shared else jnp.arange(topology.partitioners)


def _of(parameters: Parameters, which: Array) -> Parameters:
    return {name: value[which] for name, value in parameters.items()}


def _policies(topology: Topology, settings: Settings, parameters: Parameters, seen: Observation, mask: Array) -> Array:
    """The logarithms of the probabilities of each partitioner's actions."""

    def one(mine: Parameters, seen: Observation, mask: Array) -> Array:
        return policy(topology.env, mine, seen, mask)

    return jax.vmap(one)(_of(parameters, _which(topology, settings)), seen, mask)


def _values(critic: Parameters, seen: Observation, more: Array) -> Array:
    """What a critic expects of every action of its agent."""
    key = jnp.concatenate([seen["key"], more]) @ critic["key"] + critic["key_bias"]
    first = jax.nn.relu(seen["blocks"] @ critic["block"] + critic["block_bias"] + key)
    second = jax.nn.relu(first @ critic["mid"] + critic["mid_bias"])
    return (second @ critic["out"] + critic["out_bias"]).reshape(-1)


def _context(topology: Topology, turn: Turns, action: Array, scheduler: Array) -> Array:
    """What each partitioner's critic sees of the other agents: what they see, and what they do."""
    blocks = topology.env.blocks
    rank, way = action // WAYS / blocks, jax.nn.one_hot(action % WAYS, WAYS)
    each = jnp.concatenate([turn.seen["key"], turn.seen["blocks"].mean(axis=1), rank[:, None], way], axis=1)
    number = topology.partitioners
    others = [jnp.concatenate([*(each[j] for j in range(number) if j != i), scheduler]) for i in range(number)]
    return jnp.stack(others)


def _scheduler(parameters: Parameters, seen: Array) -> Array:
    return jax.nn.log_softmax(_mlp(parameters, seen))


def _mlp(parameters: Parameters, values: Array) -> Array:
    for name in LAYERS[:-1]:
        values = jax.nn.relu(values @ parameters[name] + parameters[f"{name}_bias"])
    return values @ parameters[LAYERS[-1]] + parameters[f"{LAYERS[-1]}_bias"]


def _layers(shapes: dict[str, tuple[int, int]], key: Array) -> Parameters:
    parameters = {}
    for (name, shape), one in zip(shapes.items(), jax.random.split(key, len(shapes)), strict=True):
        scale = 0.1 if name in ("out", "advice") else np.sqrt(2.0)
        parameters[name] = jax.random.normal(one, shape) * scale / np.sqrt(shape[0])
        parameters[f"{name}_bias"] = jnp.zeros(shape[1])
    return parameters


def _optimizer(settings: Settings) -> Any:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(settings.rate))


def _empty(topology: Topology, settings: Settings) -> Buffer:
    everybody = jnp.ones(topology.partitioners, bool)
    nothing = jax.eval_shape(
        lambda key: episode(topology, _by_heuristic(topology), lambda seen, key: jnp.int32(3), key),
        jax.random.PRNGKey(0),
    )
    room = lambda x: jnp.zeros((settings.room, *x.shape[1:]), x.dtype)  # noqa: E731
    turns, advised = jax.tree.map(room, nothing[:2])
    return Buffer(turns, advised, jnp.zeros((settings.room, *everybody.shape), bool), jnp.int32(0))
