from __future__ import annotations

import numpy as np
import pytest

from skewless.elastic import Observation, Parallelism
from skewless.simulate.advisor import ADVICE, LAYERS, SEEN, Advisor, AdvisorWeights

LEAST, MOST = Parallelism(2, 3), Parallelism(12, 3)


def by_w(limit: float = 0.9) -> AdvisorWeights:
    """A network that advises twice the blocks above the limit, and half of them below."""
    layers = {"first": np.zeros((SEEN, 2)), "second": np.eye(2), "advice": np.zeros((2, len(ADVICE)))}
    layers["first"][0] = [1, -1]
    layers["advice"][0, -1] = layers["advice"][1, 0] = 1
    found = {name: layer.astype(np.float32) for name, layer in layers.items()}
    biases = {f"{name}_bias": np.zeros(found[name].shape[1], np.float32) for name in LAYERS}
    biases["first_bias"] = np.array([-limit, limit], np.float32)
    return AdvisorWeights(found | biases)


def seen(ratio: float, ran: Parallelism | None = None) -> Observation:
    return Observation(interval=1.0, processing=ratio, rows=100, keys=9, ran=ran)


def test_advice_is_followed_within_the_bounds() -> None:
    advisor = Advisor(by_w(), LEAST, MOST)
    blocks = [advisor.observe(seen(ratio)).map for ratio in (1.5, 1.5, 1.5, 0.2, 0.2, 0.2)]
    assert blocks == [4, 8, 12, 6, 3, 2]
    assert advisor.parallelism.reduce == 3


def test_a_micro_batch_of_other_numbers_is_passed_over() -> None:
    advisor = Advisor(by_w(), LEAST, MOST, Parallelism(4, 3))
    assert advisor.observe(seen(1.5, ran=Parallelism(2, 3))).map == 4
    assert advisor.observe(seen(1.5, ran=Parallelism(4, 3))).map == 8


@pytest.mark.parametrize(("factor", "then"), [(0.85, 3), (1.15, 5), (1.0, 4)])
def test_there_is_at_least_one_block_more_or_fewer(factor: float, then: int) -> None:
    weights = by_w()
    bias = np.zeros(len(ADVICE), np.float32)
    bias[ADVICE.index(factor)] = 99
    advisor = Advisor(AdvisorWeights({**weights.layers, "advice_bias": bias}), LEAST, MOST, Parallelism(4, 3))
    assert advisor.observe(seen(0.85)).map == then
