"""The streams of PartLy's figures, none of which the shipped policy was trained on, and its 24 blocks."""

from __future__ import annotations

import numpy as np

from experiments.figure import Scale
from skewless.core.arrays import Int64Array
from skewless.workload import TPCH, Cluster, Words, Zipf

BLOCKS = 24
SEED = 9_000  # training draws its micro-batches from other generators, and never from these streams
CHOOSING = 7_000  # seed of the streams by which the shipped policy was chosen among those that were trained
TUPLES: dict[Scale, int] = {"small": 100_000, "full": 500_000}  # of a micro-batch
BATCHES: dict[Scale, int] = {"small": 4, "full": 20}


def streams(scale: Scale, seed: int = SEED) -> dict[str, list[Int64Array]]:
    """Micro-batches of hundreds to thousands of keys by the name of their stream."""
    tuples, batches = TUPLES[scale], BATCHES[scale]
    whole = tuples * batches
    found = {f"words, {n:,}": Words(1.0, n, seed).ranks.take(whole) for n in (500, 5_000)}
    # A micro-batch of jobs as they come has about one key in ten tuples, and so is as long as gives thousands.
    found["cluster, jobs"] = Cluster(seed=seed).take(whole // 5).job
    found |= {f"lineitem, {n:,}": TPCH(scale=n / 200_000, seed=seed).take(whole).part for n in (400, 4_000)}
    found |= {f"Zipf {z:g}, {n:,}": Zipf(z, n, seed).take(whole) for z in (1.5, 2.0) for n in (300, 3_000)}
    return {name: np.array_split(keys, batches) for name, keys in found.items()}
