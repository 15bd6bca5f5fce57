"""Trains with and without partial rewards and growing actions, and records the curves.

`python -m experiments.partly.curves` trains those that are not in the file yet.
It needs the extra `learn`. The curves are committed, so that Figure 4.8 is made without training.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("curves.json")
SEEDS = (1, 2, 3)
BLOCKS, KEYS = 12, 80
EPISODES, UPDATES, PATIENCE, EVERY = 64, 120, 8, 4
IMPATIENT = 3
SCHEMES = {
    "partial rewards, growing": (True, True, PATIENCE),
    "final reward only, growing": (False, True, PATIENCE),
    "partial rewards, all at once": (True, False, PATIENCE),
    "final reward only, all at once": (False, False, PATIENCE),
    "partial rewards, growing sooner": (True, True, IMPATIENT),
}
"""Whether actions earn partial rewards, whether the ways of dividing grow by stages, and the patience of a stage.

The last one isolates what patience has to do with it: it is the first with less of it.
"""


def record() -> None:
    """Train whatever is not in the file yet; it is written after each training."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    for seed in SEEDS:
        for scheme, (partial, growing, patience) in SCHEMES.items():
            if str(seed) not in found.get(scheme, {}):
                found.setdefault(scheme, {})[str(seed)] = curve(partial, growing, seed, patience=patience)
                FILE.write_text(json.dumps(found, indent=1) + "\n")
                print(scheme, seed, found[scheme][str(seed)][-1], flush=True)


def curve(
    partial: bool, growing: bool, seed: int, updates: int = UPDATES, patience: int = PATIENCE
) -> list[dict[str, float]]:
    """The cost of the policy, always taking the likeliest action, on micro-batches that are the same for all."""
    import jax.numpy as jnp
    import numpy as np

    from skewless.learn.batches import invented
    from skewless.learn.environment import Environment
    from skewless.learn.ppo import PPO, play
    from skewless.learn.train import Point, Schedule, Training

    env = Environment(blocks=BLOCKS, keys=KEYS)
    unseen = invented(env, np.random.default_rng(999), 64)
    schedule = Schedule(episodes=EPISODES, updates=updates, growing=growing, patience=patience)
    training = Training(env, PPO(partial=partial), schedule, seed=seed)
    points: list[dict[str, float]] = []

    def tell(point: Point) -> None:
        if point.update % EVERY == 0:
            outcome = play(env, training.learner.parameters, unseen, jnp.int32(point.stage))
            cost, bsi = round(float(outcome.cost.mean()), 4), round(float(outcome.bsi.mean()), 4)
            points.append({"episodes": point.episodes, "stage": point.stage, "cost": cost, "bsi": bsi})

    training.run(tell)
    return points


if __name__ == "__main__":
    record()
