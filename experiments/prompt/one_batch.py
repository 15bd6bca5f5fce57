"""One micro-batch by a plan: how its parts are spread over blocks and reduce tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.prompt.rivals import PROMPT, Plan
from experiments.prompt.setting import CORES
from skewless import split
from skewless.core.arrays import Int64Array
from skewless.simulate.map_reduce import Divided

PLANNED: dict[str, tuple[Plan, bool]] = {PROMPT: (split.partition, True), "first fit": (split.first_fit, False)}


@dataclass(frozen=True)
class Parts:
    """A micro-batch by a plan: how many blocks have the most frequent key, and what reduce tasks get."""

    name: str
    tuples: int
    keys: int
    first: int
    average: float
    busiest: int
    most_keys: int


def of_one_batch(name: str, keys: Int64Array) -> Parts:
    """The parts of these keys by the plan of this name."""
    make, allocated = PLANNED[name]
    seen = split.Counts.of(keys)
    plan = make(seen.keys, seen.whole, CORES)
    divided = Divided.planned(plan, CORES, allocated=allocated)
    first = int((plan.which == np.argmax(plan.counts)).sum())
    average, busiest = float(divided.partials.mean()), int(divided.partials.max())
    return Parts(name, len(keys), len(seen.keys), first, average, busiest, int(divided.keys.max()))
