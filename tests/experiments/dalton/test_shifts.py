"""Rates by phase."""

from __future__ import annotations

import pytest

from experiments.dalton.rivals import RIVALS
from experiments.dalton.shifts import phases
from experiments.dalton.word_count import Setup
from skewless.workload import uniform_then_zipf


def test_phases_are_those_of_the_stream() -> None:
    rivals = {name: RIVALS[name] for name in ("hash", "dalton")}
    found = phases(
        Setup(16, 1 / 8),
        rivals,
        lambda every: uniform_then_zipf(1.5, every, 10_000),
        rate=10_000.0,
        phase=20.0,
        count=4,
        tell=lambda _: None,
        points=8,
    )
    uniform, skewed = found.mean(slice(0, None, 2)), found.mean(slice(1, None, 2))
    assert skewed["hash"] < 0.25 * uniform["hash"]  # 38 % of the tuples on one of 16
    assert skewed["dalton"] > 3 * skewed["hash"]
    assert found.rates["hash"][0] == pytest.approx(found.rates["hash"][2], rel=0.1)
    assert [len(curve) for curve in found.curves.values()] == [8, 8]
    assert found.table("rates", ("1", "2", "3", "4")).rows[0][0] == "hash"
