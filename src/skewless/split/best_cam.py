"""cAM with the number of candidates that suits a batch best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.metrics import mpi
from skewless.split.base import as_keys
from skewless.split.cam import CAM

CANDIDATES = (2, 3, 5, 10)


def best_cam(
    keys: Int64Array, workers: int, cost: Callable[[Int32Array], float] | None = None
) -> tuple[int, Int32Array]:
    """Route a batch by cAM with 2, 3, 5, 10 and all workers as candidates; return the best number, and its routing.

    The experiments of Prompt report cAM like this: at the number of candidates that is best for each workload. `cost`
    says what a routing costs; without it, it is the partitioning imbalance (MPI).

    >>> candidates, routed = best_cam(np.arange(1000) % 100, workers=8)
    >>> candidates, np.bincount(routed)
    (2, array([120, 130, 130, 120, 120, 130, 130, 120]))
    """
    keys = as_keys(keys)
    measure = cost or (lambda routed: mpi(keys, routed, workers))
    numbers = sorted({min(number, workers) for number in CANDIDATES} | {workers})
    slide = max(1, len(keys))
    routings = [CAM(workers, slide=slide, slides=1, candidates=number).route(keys) for number in numbers]
    best = int(np.argmin([measure(routed) for routed in routings])) if len(keys) else 0
    return numbers[best], routings[best]
