"""Grows partitioning functions one channel at a time, as the paper's section 5 does, and measures the last step.

Frequencies are those of Zipf's law itself. The runs differ in the items that have them, and so in where hashing puts
them. The paper's construction time is that of the ring and the explicit map together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from experiments.figure import Measured, Scale, Tell
from experiments.gedik import balance
from experiments.gedik.construct import construct
from experiments.gedik.function import PartitioningFunction
from skewless import place
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.hashing import xxhash64
from skewless.place import Placer, Resources, Tolerance
from skewless.workload import Zipf

TRACKING = ("scan", "redist", "readj")
HASHES = ("uniform", "consistent")
NAMES = (*HASHES, *TRACKING)
RUNS: dict[Scale, int] = {"small": 5, "full": 25}
FREQUENT = 10_000  # items that a sketch would remember
QUICK = 0.05  # seconds; what is built faster is timed again, as a single time is noisy
REPEATS = 5


@dataclass(frozen=True)
class Setting:
    """The parameters of Table 1, at their defaults."""

    channels: int = 10
    alpha: float = 1.2
    letters: str = "LCL"
    domain: int = 1_000_000
    z: float = 1.0
    sigma: float = 0.1
    utility: str = "APM"
    most_moves: int = 5  # of one item in a construction by readj, the paper's c
    rows: int | None = None  # drawn before each step to count the items in; None takes the true frequencies

    @property
    def resources(self) -> Resources:
        """The resource functions."""
        return Resources(self.letters)

    @property
    def tolerance(self) -> Tolerance:
        """Alpha, for all resources."""
        return Tolerance.of(self.alpha)

    def placer(self, name: str) -> Placer:
        """The algorithm of that name."""
        options: dict[str, Any] = {
            "resources": self.letters,
            "alpha": self.alpha,
            "sigma": self.sigma,
            "utility": self.utility,
        }
        limit = {"most_moves": self.most_moves} if name == "readj" else {}
        return place.make(name, **(options | limit if name in TRACKING else {}))


@dataclass(frozen=True)
class Grown:
    """What a function was like after its last step."""

    per_resource: tuple[float, float, float]
    migration: float
    seconds: float

    @property
    def imbalance(self) -> float:
        """Equation 11."""
        return float(np.prod(self.per_resource) ** (1 / 3))


@dataclass(frozen=True)
class Sample:
    """The same over several runs."""

    runs: tuple[Grown, ...]

    @cached_property
    def b(self) -> Measured:
        """The relative imbalance."""
        return Measured.of([run.imbalance for run in self.runs])

    @cached_property
    def m(self) -> Measured:
        """The relative migration cost."""
        return Measured.of([run.migration for run in self.runs])

    @cached_property
    def resources(self) -> tuple[Measured, ...]:
        """The relative imbalance of state, computation and communication."""
        return tuple(Measured.of(each) for each in zip(*(run.per_resource for run in self.runs), strict=True))

    @cached_property
    def seconds(self) -> float:
        """The median of the runs, which differ in how many adjustments they need."""
        return float(np.median([run.seconds for run in self.runs]))


def measure(name: str, setting: Setting, runs: int, tell: Tell) -> Sample:
    """Grow functions by this algorithm, and look at the last step of each run."""
    tell(f"{name}, {setting.letters}, N = {setting.channels}, z = {setting.z:g}, sigma = {setting.sigma:g}")
    return Sample(tuple(_grow(name, setting, run) for run in range(runs)))


def measure_all(names: Sequence[str], setting: Setting, runs: int, tell: Tell) -> dict[str, Sample]:
    """The same for several algorithms."""
    return {name: measure(name, setting, runs, tell) for name in names}


# One run feeds several figures.
@cache
def _grow(name: str, setting: Setting, run: int) -> Grown:
    items, frequencies = _items(setting.domain, run)[:FREQUENT], _frequencies(setting.z, setting.domain)
    placer = setting.placer(name)
    before = after = PartitioningFunction(1)
    draws = np.random.default_rng(run)
    seen, shares = items, frequencies[:FREQUENT]
    # Hashing has no memory: its last step needs none before it.
    start = 2 if name in TRACKING else max(2, setting.channels - 1)
    for n in range(start, setting.channels + 1):
        if setting.rows is not None:
            counts = draws.binomial(setting.rows, frequencies[:FREQUENT])
            seen, shares = items[counts > 0], counts[counts > 0] / setting.rows
        before, after = after, construct(placer, seen, shares, after, n, setting.domain)
    was, now = (_where(function, setting.domain, run) for function in (before, after))
    moved = balance.relative_migration(setting.resources, frequencies, was, now, setting.channels)
    each = balance.imbalances(setting.resources, setting.tolerance, frequencies, now, setting.channels)
    return Grown(each, moved, _timed(placer, seen, shares, before, setting))


def _timed(
    placer: Placer, items: Int64Array, shares: FloatArray, before: PartitioningFunction, setting: Setting
) -> float:
    best = np.inf
    for _ in range(REPEATS):
        start = time.thread_time()
        construct(placer, items, shares, before, setting.channels, setting.domain)
        best = min(best, time.thread_time() - start)
        if best > QUICK:
            break
    return float(best)


def _where(function: PartitioningFunction, domain: int, run: int) -> Int32Array:
    """The channel of every item of the domain; only frequent ones can be tracked."""
    where = _hashed(domain, run, function.channels, function.ring is None).copy()
    where[:FREQUENT] = function(_items(domain, run)[:FREQUENT])
    return where


# A few of these stay, as settings that differ in skew or resources share them.
@lru_cache(maxsize=24)
def _hashed(domain: int, run: int, channels: int, uniform: bool) -> Int32Array:
    placer = place.make("uniform" if uniform else "consistent")
    items = _items(domain, run)
    return construct(placer, items[:0], np.zeros(0), None, channels, domain)(items)


@lru_cache(maxsize=6)
def _items(domain: int, run: int) -> Int64Array:
    """The items from the most frequent on: other ones in each run."""
    return xxhash64(np.arange(domain), seed=run + 1)


@lru_cache(maxsize=4)
def _frequencies(z: float, domain: int) -> FloatArray:
    return Zipf(z, keys=domain).frequencies
