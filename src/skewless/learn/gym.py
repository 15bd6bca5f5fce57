"""The environment as gymnasium has it, for trainers other than the one here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, SupportsFloat

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from skewless.core.errors import SkewlessError
from skewless.learn.batches import invented
from skewless.learn.environment import Batch, Environment
from skewless.split.ways import STAGES


class PartitioningEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium may be missing where types are checked
    """An episode is a micro-batch, a step is a key; `info["action_mask"]` says which actions are allowed.

    An action that is not allowed puts the key whole into its block and earns nothing.

    Parameters
    ----------
    env
        The rules; `Environment()` if not given.
    stage
        0 for halves only, 1 for up to five equal parts, 2 for all ways.
    batches
        Makes the micro-batch of the next episode from a generator; invented ones if not given.

    Examples
    --------
    >>> env = PartitioningEnv(Environment(blocks=4, keys=16), stage=0)
    >>> observation, info = env.reset(seed=1)
    >>> observation["blocks"].shape, int(info["action_mask"].sum())
    ((4, 13), 7)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 gymnasium declares it so

    def __init__(
        self,
        env: Environment | None = None,
        *,
        stage: int = len(STAGES) - 1,
        batches: Callable[[np.random.Generator], Batch] | None = None,
    ) -> None:
        if not 0 <= stage < len(STAGES):
            raise SkewlessError(f"stage is {stage}; give 0 to {len(STAGES) - 1}")
        self.env = env or Environment()
        self.stage, self._batches, self._average = stage, batches or self._invent, 0.0
        self.action_space = gymnasium.spaces.Discrete(self.env.actions)
        boxes = {
            name: gymnasium.spaces.Box(low, high, shape, np.float32)
            for name, (low, high, shape) in self.env.bounds.items()
        }
        self.observation_space = gymnasium.spaces.Dict(boxes)
        self._reset, self._step = jax.jit(partial(_reset, self.env, stage)), jax.jit(partial(_step, self.env, stage))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Start the next micro-batch."""
        super().reset(seed=seed)
        self._batch = self._batches(self.np_random)
        self._state, observation, mask = self._reset(self._batch)
        return _arrays(observation), {"action_mask": np.asarray(mask, np.int8)}

    def step(
        self, action: np.int64
    ) -> tuple[dict[str, NDArray[np.float32]], SupportsFloat, bool, bool, dict[str, Any]]:
        """Place the key whose turn it is."""
        self._state, reward, done, cost, observation, mask = self._step(self._batch, self._state, action, self._average)
        if done:
            weight = self.env.costs.average
            self._average = weight * self._average + (1 - weight) * float(cost)
        info = {"action_mask": np.asarray(mask, np.int8), "cost": float(cost)}
        return _arrays(observation), float(reward), bool(done), False, info

    def _invent(self, rng: np.random.Generator) -> Batch:
        return Batch(*(field[0] for field in invented(self.env, rng, 1)))


def _reset(env: Environment, stage: int, batch: Batch) -> tuple[Any, ...]:
    state = env.reset(batch)
    return state, env.observe(batch, state), env.mask(batch, state, stage)


def _step(env: Environment, stage: int, batch: Batch, state: Any, action: Any, average: float) -> tuple[Any, ...]:
    state, reward = env.step(batch, state, action, stage)
    done = env.done(batch, state)
    reward = reward + jax.numpy.where(done, env.final_reward(batch, state, average), 0.0)
    return state, reward, done, env.cost(batch, state), env.observe(batch, state), env.mask(batch, state, stage)


def _arrays(observation: dict[str, Any]) -> dict[str, NDArray[np.float32]]:
    return {name: np.asarray(value, np.float32) for name, value in observation.items()}
