"""Rates by phase."""

from __future__ import annotations

import pytest

from experiments.dalton.rivals import RIVALS
from experiments.dalton.shifts import Phases, drawn_skews, phases
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
    assert found.rates[1.0]["hash"][0] == pytest.approx(found.rates[1.0]["hash"][2], rel=0.2)  # a window that fills
    assert [len(curve) for curve in found.curves.values()] == [8, 8]
    assert found.by_costs("gains", slice(1, None, 2)).rows[0][0] == "hash"
    assert found.table("rates", ("1", "2", "3", "4")).rows[0][0] == "hash"


@pytest.mark.parametrize("batches", [False, True])
def test_the_rates_with_other_costs_are_those_of_a_run_with_these_costs(batches: bool) -> None:
    def found(merging: float) -> Phases:
        return phases(
            Setup(16, 1 / 8, batches=batches, merging=merging),
            {"shuffle": RIVALS["shuffle"]},
            lambda every: uniform_then_zipf(1.5, every, 10_000),
            rate=10_000.0,
            phase=20.0,
            count=2,
            tell=lambda _: None,
            points=2,
        )

    once, twice = found(1.0), found(2.0)
    assert once.rates[2.0]["shuffle"] == pytest.approx(twice.rates[1.0]["shuffle"])
    assert once.rates[2.0]["shuffle"] < once.rates[0.5]["shuffle"]


@pytest.mark.parametrize("seed", range(5))
def test_exponents_come_from_all_parts_of_the_range(seed: int) -> None:
    drawn = [drawn_skews(1000, 3000, count=6, seed=seed).phase(number) for number in range(6)]
    assert sorted(int(6 * (stream.s - 0.5)) for stream in drawn) == list(range(6))
    assert len({stream.hottest for stream in drawn}) == 6
    again = drawn_skews(1000, 3000, count=6, seed=seed)
    assert [again.phase(number) for number in range(6)] == drawn
    assert [stream.s for stream in drawn] != sorted(stream.s for stream in drawn)
