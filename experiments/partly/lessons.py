"""Lets the shipped policy learn from the times of simulated tasks: `python -m experiments.partly.lessons`.

It needs the extra `learn`. The policies are committed, so that Figure 4.9 is made without training. Those that are
there already are not trained again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figure import Scale
from experiments.partly.setting import BLOCKS, CHOOSING
from experiments.prompt.setting import Setting
from skewless.core.arrays import FloatArray
from skewless.simulate.map_reduce import Divided
from skewless.split import BlockPlan, Counts
from skewless.split.weights import Weights
from skewless.workload import Zipf

SEEDS = (1, 2, 3)
LESSONS, BATCHES, PLANS = 40, 4, 8
EXPONENTS = (0.5, 1.0, 1.5, 2.0)
KEYS, TUPLES = 2_000, 100_000
NOISE = 0.02  # the spread of a task's time around what its work takes
RATE = 2e-4
SCALE: Scale = "small"


def policy(seed: int) -> Path:
    """The file of the policy that has learned with this seed."""
    return Path(__file__).with_name(f"lessons-{seed}.npz")


def learned(seed: int) -> Weights:
    """The shipped policy after lessons on streams of the same kind as the figure's, with other seeds."""
    from skewless.learn.run_time import RunTime

    school = RunTime(Weights.load(), BLOCKS, plans=PLANS, rate=RATE, seed=seed)
    costs, rng = Setting(SCALE, blocks=BLOCKS, reducers=BLOCKS).costs, np.random.default_rng(seed)
    streams = [Zipf(z, KEYS, CHOOSING + seed).blocks(TUPLES * LESSONS, TUPLES) for z in EXPONENTS]

    def judge(plan: BlockPlan) -> tuple[FloatArray, FloatArray]:
        divided = Divided.planned(plan, BLOCKS)
        mapped, reduced = divided.map_times(costs), divided.reduce_times(costs)
        return mapped * rng.lognormal(0, NOISE, len(mapped)), reduced * rng.lognormal(0, NOISE, len(reduced))

    for _ in range(LESSONS):
        school.lesson([Counts.of(next(stream)) for stream in streams], judge)
    told: list[Any] = [[round(x, 6) for x in (each.variance, each.cost, each.bsi)] for each in school.lessons]
    near = sum(each.near for each in school.lessons)
    return school.weights(command="python -m experiments.partly.lessons", seed=seed, near=near, lessons_told=told)


def record() -> None:
    """Train whatever is not there yet."""
    for seed in SEEDS:
        if not policy(seed).exists():
            weights = learned(seed)
            weights.save(policy(seed))
            print(seed, json.dumps(weights.made["lessons_told"][:: LESSONS // 4]), flush=True)


if __name__ == "__main__":
    record()
