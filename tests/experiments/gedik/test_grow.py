"""What Gedik's figures measure is what the equations give for functions that are grown step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.figure import Measured
from experiments.gedik import balance, counting
from experiments.gedik.construct import construct
from experiments.gedik.function import PartitioningFunction
from experiments.gedik.grow import NAMES, WINDOW, Grown, Sample, Setting, alone, measure, steps
from experiments.gedik.size import counted, mapped, within
from experiments.gedik.sweep import crossing
from skewless.core.hashing import xxhash64
from skewless.place import Resources, Tolerance
from skewless.sketch import LossyCounts
from skewless.workload import Zipf

DOMAIN = 20_000


def silent(doing: str) -> None:
    pass


@pytest.mark.parametrize("name", NAMES)
def test_the_last_step_is_measured_over_the_whole_domain(name: str) -> None:
    setting = Setting(channels=5, letters="LQL", domain=DOMAIN, window=None)
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
        assert found.tracked == len(after)
        assert min(found.ring_seconds, found.map_seconds) >= 0
    assert sample.b == Measured.of([run.imbalance for run in sample.runs])


def test_runs_differ_and_are_the_same_again() -> None:
    first, second = measure("scan", Setting(channels=4, domain=DOMAIN, window=50_000), 2, silent).runs
    assert first.migration != second.migration
    assert measure("scan", Setting(channels=4, domain=DOMAIN, window=50_000), 1, silent).runs == (first,)


def test_uniform_hashing_moves_all_but_one_in_so_many_channels() -> None:
    assert measure("uniform", Setting(z=0.1, domain=DOMAIN, channels=8), 3, silent).m.mean == pytest.approx(7, rel=0.01)


def test_functions_are_built_from_what_three_staggered_counters_saw() -> None:
    window, epsilon = 20_000, 0.001
    found = counting.counted(1.0, 1000, window, epsilon, 4, run=2)
    stream = np.concatenate(list(Zipf(1.0, keys=1000, seed=3).blocks(4 * 15_000, block=15_000)))
    # A counter starts every 10,000 rows, and the oldest that has come to 20,000 answers; at first, the only one.
    for seen, (start, stop) in zip(
        found, [(0, 15_000), (10_000, 30_000), (20_000, 45_000), (40_000, 60_000)], strict=True
    ):
        true = np.bincount(stream[start:stop], minlength=1000) / (stop - start)
        assert (seen.shares <= true[seen.ranks] + 1e-12).all()
        assert (seen.shares >= true[seen.ranks] - epsilon).all()
        assert set(np.flatnonzero(true > epsilon)) <= set(seen.ranks.tolist())


def test_an_item_that_may_pass_the_threshold_is_tracked() -> None:
    items, shares = np.arange(1, 4), np.array([0.3, 0.0017, 0.0015])  # delta is 0.00176 for ten channels
    placer = Setting().placer("scan")
    assert len(construct(placer, items, shares, None, 10, DOMAIN)) == 1
    assert construct(placer, items, shares, None, 10, DOMAIN, error=0.0002).items.tolist() == [1, 2]


@pytest.mark.parametrize("name", ["uniform", "consistent", "readj"])
def test_the_last_of_all_steps_is_the_last_step(name: str) -> None:
    setting = Setting(channels=5, domain=DOMAIN, window=20_000)
    (last,), every = measure(name, setting, 1, silent).runs, steps(name, setting, 1, silent)
    assert len(every) == 4
    assert (every[-1].b.mean, every[-1].m.mean) == (last.imbalance, last.migration)
    two = measure(name, replace(setting, channels=2, window=None), 1, silent)
    assert steps(name, replace(setting, window=None), 1, silent)[0].b == two.b


def test_sizes_are_those_of_the_functions() -> None:
    setting = Setting(channels=6, domain=DOMAIN, window=100_000)
    assert mapped(setting, 2) == measure("readj", setting, 2, silent).tracked
    exactly = replace(setting, window=None)
    assert mapped(exactly, 2).error == 0
    assert mapped(setting, 2).mean == pytest.approx(mapped(exactly, 2).mean, rel=0.2)
    assert counted(setting, 2).mean > mapped(setting, 2).mean > 0


def test_a_counter_fills_within_a_bucket_and_is_emptied_at_its_end() -> None:
    setting = Setting(letters="LQL", domain=DOMAIN)  # buckets of 33,666 rows
    started, halfway, ended = (within(setting, 2, part).mean for part in (0.0, 0.5, 1.0))
    assert started < halfway < ended
    counter = LossyCounts(setting.epsilon)
    after = [0]
    for block in Zipf(1.0, keys=DOMAIN, seed=1).blocks(WINDOW, block=1000):
        counter.add(block)
        after.append(counter.entries)
    last = WINDOW // counter.width - 1
    assert within(setting, 1, 0.0).mean == after[last * counter.width // 1000 + 1]
    assert within(setting, 1, 1.0).mean == after[(last + 1) * counter.width // 1000] <= max(after)


def test_the_tracked_items_alone_are_as_balanced_as_the_explicit_map_makes_them() -> None:
    setting = Setting(channels=4, letters="LLL", domain=DOMAIN, window=None)
    items, frequencies = xxhash64(np.arange(DOMAIN), seed=1), Zipf(1.0, keys=DOMAIN).frequencies
    function = PartitioningFunction(1)
    for n in range(2, 5):
        function = construct(setting.placer("redist"), items[:10_000], frequencies[:10_000], function, n, DOMAIN)
    rank = {item: rank for rank, item in enumerate(items.tolist())}
    loads = [0.0] * 4
    for item, channel in zip(function.items.tolist(), function.explicit.tolist(), strict=True):
        loads[channel] += frequencies[rank[item]]
    assert alone("redist", setting, 1, silent).mean == pytest.approx(max(loads) / min(loads) / 1.2)
    share = (1 - sum(loads)) / 4  # of the other items, on each channel
    level = (max(loads) + share) / (min(loads) + share) / 1.2
    assert alone("redist", setting, 1, silent, evenly=True).mean == pytest.approx(level)


def test_a_crossing_lies_between_two_values() -> None:
    def of(b: float) -> Sample:
        return Sample((Grown((b, b, b), 1.0),))

    assert crossing([0.0, 1.0, 2.0], [of(0.5), of(0.8), of(1.2)]) == pytest.approx(1.5)
    assert crossing([0.0, 1.0], [of(1.5), of(2.0)]) == 0.0
    assert crossing([0.0, 1.0], [of(0.5), of(0.9)]) == float("inf")
