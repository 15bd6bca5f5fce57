"""Grows partitioning functions one channel at a time, as the paper's section 5 does, and measures the last step.

Functions are built from what three lossy counters saw of a Zipf stream, and measured by the frequencies of Zipf's law
itself. The runs differ in the stream, and in the items, and so in where hashing puts them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.figure import Measured, Scale, Tell
from experiments.gedik import balance
from experiments.gedik.construct import construct
from experiments.gedik.counting import Counted, counted, exact
from experiments.gedik.function import PartitioningFunction
from skewless import place
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.hashing import xxhash64
from skewless.core.ring import Ring
from skewless.place import Consistent, Placer, Resources, Tolerance
from skewless.place.resources import beta
from skewless.place.threshold import delta
from skewless.workload import Zipf

TRACKING = ("scan", "redist", "readj")
HASHES = ("uniform", "consistent")
NAMES = (*HASHES, *TRACKING)
RUNS: dict[Scale, int] = {"small": 5, "full": 25}
FREQUENT = 10_000  # items that may be tracked
WINDOW = 1_000_000  # rows that the oldest of the three counters has at least
MOVED = ("stay in the map", "come into it", "leave it", "are on the ring")
"""Items by where they are before and after a step."""
NOTHING = exact(np.zeros(0), 0)
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
    window: int | None = WINDOW  # of the counters; None takes the true frequencies
    weight: float = 1.0  # of migration in the utility; the paper has no such parameter

    @property
    def resources(self) -> Resources:
        """The resource functions."""
        return Resources(self.letters)

    @property
    def tolerance(self) -> Tolerance:
        """Alpha, for all resources."""
        return Tolerance.of(self.alpha)

    @property
    def epsilon(self) -> float:
        """The error of a lossy counter: a tenth of delta at the last step."""
        return delta(self.resources, self.tolerance, self.sigma, self.channels, self.domain) / 10

    def seen(self, run: int) -> tuple[Counted, ...]:
        """What is known before each step of growth, from two channels on."""
        steps = self.channels - 1
        if self.window is None:
            return (exact(_frequencies(self.z, self.domain), FREQUENT),) * steps
        return counted(self.z, self.domain, self.window, self.epsilon, steps, run)

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
    """What a function was like after a step; of the last one also how long its ring and its explicit map took."""

    per_resource: tuple[float, float, float]
    migration: float
    tracked: int = 0
    ring_seconds: float = 0.0
    map_seconds: float = 0.0

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
    def tracked(self) -> Measured:
        """The items in the explicit map."""
        return Measured.of([run.tracked for run in self.runs])

    @cached_property
    def ring_ms(self) -> Measured:
        """The milliseconds in which the ring is built."""
        return Measured.of([1000 * run.ring_seconds for run in self.runs])

    @cached_property
    def map_ms(self) -> Measured:
        """The milliseconds in which the explicit map is built, on a ring that is there."""
        return Measured.of([1000 * run.map_seconds for run in self.runs])


def measure(name: str, setting: Setting, runs: int, tell: Tell) -> Sample:
    """Grow functions by this algorithm, and look at the last step of each run."""
    tell(f"{name}, {setting.letters}, N = {setting.channels}, z = {setting.z:g}, sigma = {setting.sigma:g}")
    return Sample(tuple(_grow(name, setting, run) for run in range(runs)))


def measure_all(names: Sequence[str], setting: Setting, runs: int, tell: Tell) -> dict[str, Sample]:
    """The same for several algorithms."""
    return {name: measure(name, setting, runs, tell) for name in names}


def steps(name: str, setting: Setting, runs: int, tell: Tell) -> list[Sample]:
    """The same at every step of growth, from two channels to the last."""
    tell(f"{name}, every step to N = {setting.channels}")
    grown = [_steps(name, setting, run) for run in range(runs)]
    return [Sample(each) for each in zip(*grown, strict=True)]


def alone(name: str, setting: Setting, runs: int, tell: Tell, evenly: bool = False) -> Measured:
    """The relative imbalance of the tracked items alone, after the last step: without the items that hashing places.

    With `evenly`, each channel has as much of these other items: that is as if the ring were perfect. It is meant for
    linear resource functions only.
    """
    tell(f"{name}, {setting.letters}, the tracked items alone")
    found = []
    for run in range(runs):
        function = _functions(name, setting, run)[-1]
        mine = np.isin(_items(setting.domain, run)[:FREQUENT], function.items)
        frequencies = _frequencies(setting.z, setting.domain)[:FREQUENT][mine]
        where = _where(function, setting.domain, run)[:FREQUENT][mine]
        if evenly:
            frequencies = np.append(frequencies, np.full(setting.channels, (1 - frequencies.sum()) / setting.channels))
            where = np.append(where, np.arange(setting.channels, dtype=np.int32))
        found.append(
            balance.relative_imbalance(setting.resources, setting.tolerance, frequencies, where, setting.channels)
        )
    return Measured.of(found)


def moved(name: str, setting: Setting, runs: int, tell: Tell) -> tuple[Measured, ...]:
    """The relative migration of the last step, by what moves, in the order of `MOVED`."""
    tell(f"{name}, N = {setting.channels}, what moves")
    found = []
    for run in range(runs):
        before, after = _functions(name, setting, run)[-2:]
        items, state = _items(setting.domain, run), beta(setting.letters[0], _frequencies(setting.z, setting.domain))
        changed = _where(before, setting.domain, run) != _where(after, setting.domain, run)
        had, has = np.isin(items, before.items), np.isin(items, after.items)
        parts = (had & has, ~had & has, had & ~has, ~had & ~has)
        ideal = balance.ideal_migration(state, setting.channels)
        found.append([float(state[changed & part].sum()) / ideal for part in parts])
    return tuple(Measured.of(list(part)) for part in zip(*found, strict=True))


# One run feeds several figures.
@cache
def _grow(name: str, setting: Setting, run: int) -> Grown:
    before, after = _functions(name, setting, run)[-2:]
    ring_seconds, map_seconds = _timed(setting.placer(name), before, setting, run)
    return replace(
        _measured(setting, run, before, after, setting.channels), ring_seconds=ring_seconds, map_seconds=map_seconds
    )


def _steps(name: str, setting: Setting, run: int) -> tuple[Grown, ...]:
    pairs = pairwise(_functions(name, setting, run, from_the_first=True))
    return tuple(_measured(setting, run, before, after, n) for n, (before, after) in enumerate(pairs, 2))


def _functions(name: str, setting: Setting, run: int, from_the_first: bool = False) -> list[PartitioningFunction]:
    """The functions of one channel, of two, and so on."""
    placer, functions = setting.placer(name), [PartitioningFunction(1)]
    seen = setting.seen(run) if name in TRACKING else (NOTHING,) * (setting.channels - 1)
    # Hashing has no memory: its last step needs none before it.
    start = 2 if name in TRACKING or from_the_first else max(2, setting.channels - 1)
    for n in range(start, setting.channels + 1):
        functions.append(_built(placer, seen[n - 2], functions[-1], n, setting, run))
    return functions


def _built(
    placer: Placer,
    seen: Counted,
    before: PartitioningFunction,
    channels: int,
    setting: Setting,
    run: int,
    ring: Ring | None = None,
) -> PartitioningFunction:
    items = _items(setting.domain, run)[seen.ranks]
    return construct(placer, items, seen.shares, before, channels, setting.domain, seen.error, ring, setting.weight)


def _measured(
    setting: Setting, run: int, before: PartitioningFunction, after: PartitioningFunction, channels: int
) -> Grown:
    frequencies = _frequencies(setting.z, setting.domain)
    was, now = (_where(function, setting.domain, run) for function in (before, after))
    moved = balance.relative_migration(setting.resources, frequencies, was, now, channels)
    return Grown(
        balance.imbalances(setting.resources, setting.tolerance, frequencies, now, channels), moved, len(after)
    )


def _timed(placer: Placer, before: PartitioningFunction, setting: Setting, run: int) -> tuple[float, float]:
    """The seconds in which the ring of the last step is built, and its explicit map; the least of some."""
    if not isinstance(placer, Consistent):
        return 0.0, 0.0
    seen = setting.seen(run)[-1] if placer.name in TRACKING else NOTHING
    best = np.full(2, np.inf)
    for _ in range(REPEATS):
        start = time.thread_time()
        ring = Ring(setting.channels, placer.replicas)
        built = time.thread_time()
        _built(placer, seen, before, setting.channels, setting, run, ring)
        best = np.minimum(best, (built - start, time.thread_time() - built))
        if best.sum() > QUICK:
            break
    return float(best[0]), float(best[1])


def _where(function: PartitioningFunction, domain: int, run: int) -> Int32Array:
    """The channel of every item of the domain; only frequent ones can be tracked."""
    where = _hashed(domain, run, function.channels, function.ring is None).copy()
    frequent = _items(domain, run)[:FREQUENT]
    assert np.isin(function.items, frequent).all()
    where[:FREQUENT] = function(frequent)
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
