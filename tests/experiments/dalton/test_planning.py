"""How a micro-batch is cut by those who see it before they route it."""

from __future__ import annotations

import numpy as np

from experiments.dalton.planning import LAST, SEEN, cut, cut_table, told_cut
from experiments.dalton.word_count import Setup
from skewless.workload import Zipf


def test_a_micro_batch_is_cut_as_its_routing_says() -> None:
    setup, keys = Setup(16, 1 / 32, batches=True), Zipf(1.5, 3000)
    found = cut(setup, keys, 80_000.0)
    batches = keys.take(SEEN * 2500).reshape(SEEN, 2500)[-LAST:]
    distinct = np.mean([len(np.unique(batch)) for batch in batches])
    for evenness, partials in found.values():
        assert evenness >= 1
        assert distinct < partials < 14 * distinct  # hot keys are split, and most keys are not
    assert found["prompt"][0] < 1.05  # it plans what it has counted
    assert [row[0] for row in cut_table("here", found).rows] == ["prompt", "dalton", "dalton as printed"]
    assert f"{found['dalton'][0]:.3f} times" in told_cut(found)
