from __future__ import annotations

import numpy as np
import pytest

from skewless.core.hashing import xxhash64
from skewless.metrics import bci, bsi, ksr, mpi
from skewless.split import CAM, best_cam
from skewless.workload import Zipf


@pytest.mark.parametrize("cost", [None, "bsi", "bci"])
def test_cam_is_taken_with_the_candidates_that_cost_least(cost: str | None) -> None:
    keys, workers = xxhash64(Zipf(1.0, 2_000).take(20_000)), 16
    costs = {
        None: lambda routed: mpi(keys, routed, workers),
        "bsi": lambda routed: bsi(routed, workers),
        "bci": lambda routed: bci(keys, routed, workers),
    }
    candidates, routed = best_cam(keys, workers, None if cost is None else costs[cost])
    tried = {
        number: costs[cost](CAM(workers, slide=20_000, slides=1, candidates=number).route(keys))
        for number in (2, 3, 5, 10, 16)
    }
    assert tried[candidates] == min(tried.values()) == costs[cost](routed)
    assert ksr(keys, routed, workers) == 1


def test_cam_on_few_workers_has_no_more_candidates_than_workers() -> None:
    assert best_cam(np.arange(100), 3)[0] in (2, 3)
    assert best_cam(np.zeros(0, np.int64), 3)[0] == 2
