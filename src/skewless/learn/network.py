"""The networks: one shared by all blocks, and a plain one for the paper's observation."""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from skewless.learn.environment import BLOCK_FEATURES, KEY_FEATURES, WAYS, Array, Environment, Observation

Parameters: TypeAlias = dict[str, Array]
HIDDEN = 32
_NEVER = -1e9


def init(env: Environment, key: Array, hidden: int = HIDDEN) -> Parameters:
    """Random weights of the network that fits the observation.

    With "features", each block's features and the key's go through two hidden layers with the same weights for all
    blocks, and each block gets a score for each way. The scores do not change with the order of the blocks or with
    their number. The critic, which only training needs, sees the mean of the second hidden layer over the blocks.
    """
    if env.observation == "paper":
        wide = env.keys * (1 + env.blocks)
        shapes = {"in": (wide, 4 * hidden), "mid": (4 * hidden, 4 * hidden), "out": (4 * hidden, env.actions)}
        critic = 4 * hidden
    else:
        shapes = {"block": (BLOCK_FEATURES, hidden), "key": (KEY_FEATURES, hidden)}
        shapes |= {"mid": (hidden, hidden), "out": (hidden, WAYS)}
        critic = 2 * hidden
    shapes |= {"judge": (critic, hidden), "value": (hidden, 1)}
    parameters = {}
    for (name, shape), one in zip(shapes.items(), jax.random.split(key, len(shapes)), strict=True):
        scale = {"out": 0.01, "value": 0.1}.get(name, np.sqrt(2.0))
        parameters[name] = jax.random.normal(one, shape) * scale / np.sqrt(shape[0])
        parameters[f"{name}_bias"] = jnp.zeros(shape[1])
    return parameters


def forward(env: Environment, p: Parameters, seen: Observation, mask: Array) -> tuple[Array, Array]:
    """The logarithms of the probabilities of the actions, and what the critic expects."""
    scores, judged = _scores(env, p, seen)
    value = jax.nn.relu(judged @ p["judge"] + p["judge_bias"]) @ p["value"] + p["value_bias"]
    return jax.nn.log_softmax(jnp.where(mask, scores, _NEVER)), value[0]


def policy(env: Environment, p: Parameters, seen: Observation, mask: Array) -> Array:
    """The logarithms of the probabilities of the actions, of a network that need have no critic."""
    return jax.nn.log_softmax(jnp.where(mask, _scores(env, p, seen)[0], _NEVER))


def _scores(env: Environment, p: Parameters, seen: Observation) -> tuple[Array, Array]:
    """A score for each action, and what the critic judges by."""
    if env.observation == "paper":
        flat = jnp.concatenate([seen["counts"], seen["matrix"].reshape(-1)])
        hidden = jax.nn.relu(jax.nn.relu(flat @ p["in"] + p["in_bias"]) @ p["mid"] + p["mid_bias"])
        scores, judged = hidden @ p["out"] + p["out_bias"], hidden
    else:
        # The key's part is the same for all blocks, so it is computed once.
        key = seen["key"] @ p["key"] + p["key_bias"]
        first = jax.nn.relu(seen["blocks"] @ p["block"] + p["block_bias"] + key)
        second = jax.nn.relu(first @ p["mid"] + p["mid_bias"])
        scores = (second @ p["out"] + p["out_bias"]).reshape(-1)
        judged = jnp.concatenate([second.mean(axis=0), jax.nn.relu(key)])
    return scores, judged
