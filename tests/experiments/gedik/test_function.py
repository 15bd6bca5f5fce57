"""The experiments of the paper, small: functions grown from one channel over a Zipf domain."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from experiments.gedik import balance
from experiments.gedik.construct import construct
from experiments.gedik.function import PartitioningFunction
from skewless import place
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.hashing import xxhash64
from skewless.core.home import homes
from skewless.core.ring import Ring
from skewless.place import Resources, Tolerance
from skewless.workload import Zipf

DOMAIN = 100_000
TRACKING = ("scan", "redist", "readj")
EVERY = pytest.mark.parametrize("name", ["uniform", "consistent", *TRACKING])
ALPHA = Tolerance.of(1.2)


def domain(run: int) -> tuple[Int64Array, FloatArray]:
    return xxhash64(np.arange(DOMAIN), seed=run), Zipf(1.0, keys=DOMAIN).frequencies


@cache
def grown(name: str, run: int, channels: int) -> PartitioningFunction:
    """A function grown to so many channels, one at a time."""
    if channels == 1:
        return PartitioningFunction(1)
    return construct(place.make(name), *domain(run), grown(name, run, channels - 1), channels)


def mean_imbalance(name: str) -> float:
    return float(
        np.mean(
            [
                balance.relative_imbalance(Resources("LCL"), ALPHA, f, grown(name, run, 10)(items), 10)
                for run in range(3)
                for items, f in [domain(run)]
            ]
        )
    )


def mean_migration(name: str) -> float:
    return float(
        np.mean(
            [
                balance.relative_migration(
                    Resources("LCL"), f, grown(name, run, n - 1)(items), grown(name, run, n)(items), n
                )
                for run in range(3)
                for items, f in [domain(run)]
                for n in (8, 9, 10)
            ]
        )
    )


@pytest.mark.parametrize("name", TRACKING)
def test_tracking_balances_better_than_hashing(name: str) -> None:
    assert mean_imbalance(name) < 0.9 * mean_imbalance("consistent")
    assert mean_imbalance(name) < 0.9 * mean_imbalance("uniform")


@pytest.mark.parametrize("name", ["consistent", *TRACKING])
def test_a_channel_more_moves_about_its_own_share(name: str) -> None:
    assert 0.5 < mean_migration(name) < 2


def test_a_channel_more_moves_nearly_all_under_uniform_hashing() -> None:
    assert mean_migration("uniform") > 7


@pytest.mark.parametrize("name", TRACKING)
def test_the_map_is_small(name: str) -> None:
    assert 30 < len(grown(name, 0, 10)) < 100


@EVERY
def test_channels_may_go(name: str) -> None:
    items, f = domain(1)
    ten = grown(name, 1, 10)
    seven = construct(place.make(name), items, f, ten, 7)
    before, after = ten(items), seven(items)
    assert np.array_equal(np.unique(after), np.arange(7))
    if name != "uniform":
        stays = (before == after)[before < 7]
        assert stays @ f[before < 7] > 0.8 * f[before < 7].sum()


def test_untracked_items_go_by_the_ring_and_tracked_ones_by_the_map() -> None:
    items, f = domain(0)
    function = grown("readj", 0, 10)
    tracked = np.isin(items, function.items)
    assert f[tracked].min() > f[~tracked].max()
    assert np.array_equal(function(items)[~tracked], Ring(10).route(items[~tracked]))
    explicit = dict(zip(function.items.tolist(), function.explicit.tolist(), strict=True))
    assert function(items[tracked]).tolist() == [explicit[item] for item in items[tracked].tolist()]


def test_uniform_hashing_is_that_of_the_homes() -> None:
    items, _ = domain(0)
    assert np.array_equal(grown("uniform", 0, 3)(items), homes(items, 3))


def test_frequent_items_alone_construct_the_same_function() -> None:
    items, f = domain(2)
    whole = grown("redist", 2, 6)
    again = construct(place.make("redist"), items[:1000], f[:1000], grown("redist", 2, 5), 6, DOMAIN)
    assert np.array_equal(whole.items, again.items)
    assert np.array_equal(whole.explicit, again.explicit)


@pytest.mark.parametrize("name", ["autoflow", "even"])
def test_placers_that_move_slots_construct_no_function(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} moves slots, so it constructs no function"):
        construct(place.make(name), *domain(0), None, 2)
