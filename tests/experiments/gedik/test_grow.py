"""What Gedik's figures measure is what the equations give for functions that are grown step by step."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figure import Measured
from experiments.gedik import balance
from experiments.gedik.construct import construct
from experiments.gedik.function import PartitioningFunction
from experiments.gedik.grow import NAMES, Grown, Sample, Setting, measure
from experiments.gedik.size import counted, mapped
from experiments.gedik.sweep import crossing
from skewless.core.hashing import xxhash64
from skewless.place import Resources, Tolerance
from skewless.workload import Zipf

DOMAIN = 20_000


def silent(doing: str) -> None:
    pass


@pytest.mark.parametrize("name", NAMES)
def test_the_last_step_is_measured_over_the_whole_domain(name: str) -> None:
    setting = Setting(channels=5, letters="LQL", domain=DOMAIN)
    sample = measure(name, setting, 2, silent)
    for run, found in enumerate(sample.runs):
        items, frequencies = xxhash64(np.arange(DOMAIN), seed=run + 1), Zipf(1.0, keys=DOMAIN).frequencies
        before = after = PartitioningFunction(1)
        for n in range(2, 6):
            before, after = (
                after,
                construct(setting.placer(name), items[:10_000], frequencies[:10_000], after, n, DOMAIN),
            )
        where = after(items)
        resources, alpha = Resources("LQL"), Tolerance.of(1.2)
        assert found.imbalance == pytest.approx(
            balance.relative_imbalance(resources, alpha, frequencies, where, 5), rel=1e-12
        )
        moved = balance.relative_migration(resources, frequencies, before(items), where, 5)
        assert found.migration == pytest.approx(moved, rel=1e-12)
        assert found.seconds >= 0
    assert sample.b == Measured.of([run.imbalance for run in sample.runs])


def test_runs_differ_and_are_the_same_again() -> None:
    first, second = measure("scan", Setting(channels=4, domain=DOMAIN), 2, silent).runs
    assert first.migration != second.migration
    assert measure("scan", Setting(channels=4, domain=DOMAIN), 1, silent).runs == (first,)


def test_uniform_hashing_moves_all_but_one_in_so_many_channels() -> None:
    assert measure("uniform", Setting(z=0.1, domain=DOMAIN, channels=8), 3, silent).m.mean == pytest.approx(7, rel=0.01)


def test_sizes_are_those_of_the_functions() -> None:
    setting = Setting(channels=6, domain=DOMAIN)
    items, frequencies = xxhash64(np.arange(DOMAIN), seed=1), Zipf(1.0, keys=DOMAIN).frequencies
    built = construct(setting.placer("readj"), items[:10_000], frequencies[:10_000], None, 6, DOMAIN)
    assert mapped(setting) == len(built) > 0
    assert counted(setting) > mapped(setting)


def test_a_crossing_lies_between_two_values() -> None:
    def of(b: float) -> Sample:
        return Sample((Grown((b, b, b), 1.0, 0.0),))

    assert crossing([0.0, 1.0, 2.0], [of(0.5), of(0.8), of(1.2)]) == pytest.approx(1.5)
    assert crossing([0.0, 1.0], [of(1.5), of(2.0)]) == 0.0
    assert crossing([0.0, 1.0], [of(0.5), of(0.9)]) == float("inf")
