"""Training: stages that open more ways of dividing a key when learning levels off, curves and checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from skewless.core.errors import SkewlessError
from skewless.learn.batches import invented
from skewless.learn.environment import Batch, Environment
from skewless.learn.ppo import PPO, Learner, begin, update
from skewless.split.ways import STAGES
from skewless.split.weights import UNREADABLE, Weights, read_arrays

Source: TypeAlias = Callable[[Environment, np.random.Generator, int], Batch]
"""Makes so many micro-batches to learn from."""

CHECKPOINT = "skewless-learn-1"
LAST = len(STAGES) - 1


@dataclass(frozen=True)
class Point:
    """A point of a learning curve: the means over the episodes of an update.

    Attributes
    ----------
    update, episodes, seconds
        How far the training is.
    stage
        The stage of the actions.
    cost, bsi, bci, extra
        Cost by Prompt's model, BSI in blocks, BCI in a block's share of the keys, extra fragments for each block.
    """

    update: int
    episodes: int
    seconds: float
    stage: int
    cost: float
    bsi: float
    bci: float
    extra: float


@dataclass(frozen=True)
class Schedule:
    """How long to train, and when to open the next ways.

    Attributes
    ----------
    episodes
        Micro-batches of an update.
    updates
        Most updates.
    growing
        Whether the actions grow by stages; without it all are open from the beginning.
    patience
        Updates whose mean cost is compared with that of as many before them.
    gain
        Learning has levelled off where the cost falls by less than this part of it.
    """

    episodes: int = 128
    updates: int = 300
    growing: bool = True
    patience: int = 6
    gain: float = 0.03


class Training:
    """A training that can be stopped after any update, saved, and continued with the same result.

    Parameters
    ----------
    env, ppo, schedule
        The rules, the optimization, and how long.
    source
        Makes the micro-batches; `batches.invented` if not given. Its `identity`, or else its name, is part of a
        checkpoint, so that a training on other data is refused.
    seed
        Everything that is drawn at random follows from it.

    Examples
    --------
    >>> training = Training(Environment(blocks=4, keys=16), schedule=Schedule(episodes=8, updates=2), seed=1)
    >>> training.run()
    >>> [point.episodes for point in training.curve], training.finished
    ([8, 16], True)
    """

    def __init__(
        self,
        env: Environment | None = None,
        ppo: PPO | None = None,
        schedule: Schedule | None = None,
        *,
        source: Source = invented,
        seed: int = 0,
    ) -> None:
        self.env, self.ppo, self.schedule = env or Environment(), ppo or PPO(), schedule or Schedule()
        self.source, self.seed = source, seed
        self.learner: Learner = begin(self.env, self.ppo, seed)
        self.curve: list[Point] = []
        self.stage = 0 if self.schedule.growing else LAST
        self._since = 0  # updates before this stage
        self._seconds = 0.0

    @property
    def finished(self) -> bool:
        """Whether all updates are made."""
        return len(self.curve) >= self.schedule.updates

    def run(self, tell: Callable[[Point], None] = lambda _: None, seconds: float = float("inf")) -> None:
        """Go on until all updates are made, or the time is over; `tell` hears of every update."""
        start = perf_counter()
        while not self.finished and perf_counter() - start < seconds:
            self._update()
            tell(self.curve[-1])

    def weights(self, **made: Any) -> Weights:
        """The policy as `split.PartLy` runs it, with how it was made."""
        if self.env.observation != "features":
            raise SkewlessError("only a network of the observation 'features' fits any number of keys and blocks")
        end = self.curve[-10:]
        mean = {
            name: round(float(np.mean([getattr(p, name) for p in end])), 4) for name in ("cost", "bsi", "bci", "extra")
        }
        opened = {str(point.stage): point.update for point in reversed(self.curve)}
        summary = {"updates": len(self.curve), "first update of each stage": opened, "means of the last 10": mean}
        told = {"seed": self.seed, "schedule": asdict(self.schedule), "ppo": asdict(self.ppo), "curve": summary}
        return Weights.of(self.learner.parameters, made | told)

    def save(self, path: str | Path) -> None:
        """Write a checkpoint: numbers and text only."""
        told = {"curve": [asdict(p) for p in self.curve], "stage": self.stage, "since": self._since}
        told |= {"seconds": self._seconds, "identity": self._identity}
        leaves: dict[str, Any] = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.learner))}
        with Path(path).open("wb") as file:
            np.savez(file, format=np.array(CHECKPOINT), told=np.array(json.dumps(told)), **leaves)

    def load(self, path: str | Path) -> None:
        """Continue from a checkpoint of a training with the same rules, data and seed."""
        leaves, shape = jax.tree.flatten(self.learner)
        try:
            with Path(path).open("rb") as file:
                arrays = read_arrays(file)
            found = str(arrays["format"]) if "format" in arrays else "not said"
            if found != CHECKPOINT:
                raise ValueError(f"its format is {found[:40]}, not {CHECKPOINT}")
            told = json.loads(str(arrays["told"]))
            identity, curve = dict(told["identity"]), [Point(**point) for point in told["curve"]]
            stage, since, seconds = int(told["stage"]), int(told["since"]), float(told["seconds"])
            stored = [arrays[f"leaf{i}"] for i in range(len(leaves))] if identity == self._identity else []
        except UNREADABLE as error:
            raise _no_checkpoint(path, str(error) or type(error).__name__) from None
        if identity != self._identity:
            raise SkewlessError(
                f"{path} is of another training: {_differences(identity, self._identity)}; continue it with its own "
                "options, or name another file for this one"
            )
        wrong = [i for i, (mine, other) in enumerate(zip(leaves, stored, strict=True)) if mine.shape != other.shape]
        if wrong:
            raise _no_checkpoint(path, f"leaf{wrong[0]} has shape {stored[wrong[0]].shape}")
        self.learner = jax.tree.unflatten(shape, [jnp.asarray(each) for each in stored])
        self.curve, self.stage, self._since, self._seconds = curve, stage, since, seconds

    @property
    def _identity(self) -> dict[str, Any]:
        data = getattr(self.source, "identity", None) or getattr(self.source, "__name__", type(self.source).__name__)
        told: dict[str, Any] = {"seed": self.seed, "data": data}
        for each in (self.env, self.ppo, self.schedule):
            told |= asdict(each)
        identity: dict[str, Any] = json.loads(json.dumps(told))
        return identity

    def _update(self) -> None:
        start, number = perf_counter(), len(self.curve)
        # Drawn from the seed and the number of the update alone, so that a continued training draws the same.
        rng = np.random.default_rng([self.seed, number])
        batches = self.source(self.env, rng, self.schedule.episodes)
        key = jax.random.fold_in(jax.random.PRNGKey(self.seed), number)
        pace = jnp.float32(1 - 0.9 * number / self.schedule.updates)  # shorter steps towards the end
        self.learner, outcome = update(self.env, self.ppo, self.learner, batches, jnp.int32(self.stage), key, pace)
        means = {name: float(getattr(outcome, name).mean()) for name in ("cost", "bsi", "bci", "extra")}
        self._seconds += perf_counter() - start
        episodes = (number + 1) * self.schedule.episodes
        self.curve.append(Point(number + 1, episodes, self._seconds, self.stage, **means))
        if self.stage < LAST and self._levelled_off():
            self.stage, self._since = self.stage + 1, len(self.curve)

    def _levelled_off(self) -> bool:
        costs, patience = [point.cost for point in self.curve[self._since :]], self.schedule.patience
        if len(costs) < 2 * patience:
            return False
        before, now = np.mean(costs[-2 * patience : -patience]), np.mean(costs[-patience:])
        return bool(before - now < self.schedule.gain * before)


def _no_checkpoint(path: str | Path, why: str) -> SkewlessError:
    return SkewlessError(f"{path} is no checkpoint of a training ({why}); start without it")


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    differing = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    return ", ".join(f"{name} is {there.get(name)} there and {here.get(name)} here" for name in differing)
