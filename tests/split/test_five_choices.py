from __future__ import annotations

import numpy as np

from skewless.core.hashing import xxhash64
from skewless.metrics import ksr, max_over_avg
from skewless.split import FiveChoices, TwoChoices
from skewless.workload import Zipf


def test_five_choices_are_the_least_loaded_of_five_hashes() -> None:
    keys = xxhash64(Zipf(1.2, 100).take(2_000))
    loads = [0] * 16
    expected = []
    for key in keys:
        candidates = [int(xxhash64(np.array([key]), seed=42 + j)[0]) % 16 for j in range(5)]
        worker = min(candidates, key=loads.__getitem__)
        loads[worker] += 1
        expected.append(worker)
    assert FiveChoices(16).route(keys).tolist() == expected


def test_five_choices_hold_out_longer_than_two_and_split_more() -> None:
    keys = xxhash64(Zipf(1.4, 10_000).take(50_000))  # the hottest key has a third of all
    two, five = TwoChoices(16).route(keys), FiveChoices(16).route(keys)
    assert max_over_avg(five, 16) < 0.6 * max_over_avg(two, 16)
    assert ksr(keys, five, 16) > ksr(keys, two, 16)
