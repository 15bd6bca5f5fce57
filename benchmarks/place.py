"""Gedik's partitioning functions: balance, migration, size and construction time, as in his Figures 3 to 14.

Claims tested: readj has the lowest imbalance up to 20 channels, redist and scan are close, and consistent hashing has
the highest; a channel more costs the three 1 to 2 times the ideal migration, and uniform hashing many times; the map
grows in proportion to the channels; scan builds in under 100 ms at 32 channels, readj in under 1 s.

A function is grown one channel at a time from one, and the last step is measured. Frequencies are those of Zipf's law
itself; the runs differ in the items that have them, and so in where hashing puts them. Time is that of the ring and
the explicit map together.

What came out otherwise than in the paper: scan's migration does not grow with the channels, where the paper has more
than 3 times the ideal at 32, and neither drawn frequencies nor leaving ties to the lowest channel change that. With the
true frequencies readj keeps the lowest imbalance beyond 20 channels too, at 2 to 3 times the ideal migration; with ones
drawn from 100,000 rows, redist and scan have caught up at 32, as they do in the paper. Counting the rows of tail slots
lets the tracked keys make up for the luck of the ring. What is left then is the hottest key, whose worker has its share
of the tail on top of it.

`python -m benchmarks.place` prints the lines.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from experiments.gedik import balance
from experiments.gedik.construct import construct
from experiments.gedik.function import PartitioningFunction
from skewless import place
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.place import Placer, Resources, Tolerance
from skewless.place.threshold import delta
from skewless.sketch import LossyCounts
from skewless.workload import Zipf

TRACKING = ("scan", "redist", "readj")
NAMES = ("uniform", "consistent", *TRACKING)
LETTERS = ("CCL", "LCL", "LLL", "LQL")
RUNS = 5
FREQUENT = 10_000  # items that a sketch would remember
STREAM = 1_000_000  # tuples through the lossy counter
SLOTS = 4096


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
    rows: int | None = None  # drawn before each step to count the items in; None takes the true frequencies

    @property
    def resources(self) -> Resources:
        """The resource functions."""
        return Resources(self.letters)

    def placer(self, name: str) -> Placer:
        """The algorithm of that name."""
        options = {"resources": self.letters, "alpha": self.alpha, "sigma": self.sigma, "utility": self.utility}
        return place.make(name, **(options if name in TRACKING else {}))


@dataclass(frozen=True)
class Outcome:
    """What a function was like, on average over the runs."""

    imbalance: float
    per_resource: tuple[float, ...]
    migration: float
    size: float
    seconds: float


def table() -> list[str]:
    """All figures, as lines of Markdown; each is printed when it is there."""
    lines = []
    for part in (resource_functions, skew, sigma, channels, drawn, utilities, domains, counted_tail):
        for line in part():
            print(line, flush=True)
            lines.append(line)
    return lines


def resource_functions() -> Iterator[str]:
    """Figure 3."""
    yield from _heading("Resource functions (Figure 3)", "Imbalance b (and b of state, computation, communication)")
    yield _row("resources", *NAMES)
    yield _rule(len(NAMES))
    for letters in LETTERS:
        outcomes = [measure(name, Setting(letters=letters)) for name in NAMES]
        cells = [f"{each.imbalance:.2f} ({', '.join(f'{b:.2f}' for b in each.per_resource)})" for each in outcomes]
        yield _row(f"{letters}, b", *cells)
        yield _row(f"{letters}, m", *(f"{each.migration:.2f}" for each in outcomes))


def skew() -> Iterator[str]:
    """Figures 4, 10 and 14."""
    ranges = {"LCL": (0.1, 0.4, 0.6, 0.8, 0.9, 1.0), "LLL": (0.4, 0.8, 1.0), "LQL": (0.25, 0.35, 0.5)}
    settings = {
        f"{letters}, z = {z:g}": Setting(letters=letters, z=z) for letters, range_ in ranges.items() for z in range_
    }
    yield from _sweep("Skew (Figures 4, 10, 14)", settings)


def sigma() -> Iterator[str]:
    """Figures 5, 9 and 12."""
    settings = {
        f"{letters}, sigma = {sigma:g}": Setting(letters=letters, sigma=sigma)
        for letters in ("LCL", "LQL")
        for sigma in (0.008, 0.03, 0.1, 0.25, 0.5, 1.0)
    }
    yield from _sweep("Frequency threshold scaler (Figures 5, 9, 12)", settings)


def channels() -> Iterator[str]:
    """Figures 6, 11 and 13."""
    settings = {f"N = {n}": Setting(channels=n) for n in (2, 4, 8, 12, 16, 20, 24, 28, 32)}
    yield from _sweep("Channels (Figures 6, 11, 13)", settings)


def drawn() -> Iterator[str]:
    """Figure 6 again, with frequencies that are counted anew in so many rows before each step."""
    settings = {
        f"{rows:,} rows, N = {n}": Setting(channels=n, rows=rows) for rows in (10**5, 10**6) for n in (10, 20, 32)
    }
    yield from _sweep("Drawn frequencies", settings, sizes=False)


def utilities() -> Iterator[str]:
    """Figure 7."""
    yield from _heading("Utility functions (Figure 7)", "Imbalance b / migration m")
    names = ("A", "APM", "APLM", "ATM", "ATLM")
    yield _row("algorithm, resources", *names)
    yield _rule(len(names))
    for name in ("readj", "redist"):
        for letters in LETTERS[1:]:
            outcomes = [measure(name, Setting(letters=letters, utility=utility)) for utility in names]
            yield _row(f"{name}, {letters}", *(_both(each) for each in outcomes))


def domains() -> Iterator[str]:
    """Figure 8."""
    settings = {f"{size:,} items": Setting(domain=size) for size in (10**4, 10**5, 10**6, 10**7)}
    yield from _sweep("Domain size (Figure 8)", settings, sizes=False)


def counted_tail() -> Iterator[str]:
    """Placements of slots, with the rows of each tail slot counted or not."""
    yield from _heading(
        f"Placements of {SLOTS} tail slots",
        "The same items in a `Placement`, grown to N workers: largest load over the smallest (r of communication) and "
        "migration m, where the tail slots are not counted (as in the paper), and where they are.",
    )
    yield _row("N", *(f"{name}{how}" for name in TRACKING for how in ("", ", counted")), "consistent")
    yield _rule(2 * len(TRACKING) + 1)
    for workers in (10, 32):
        cells = [_placed(name, workers, how) for name in TRACKING for how in (False, True)]
        yield _row(str(workers), *cells, _placed("consistent", workers, False))


def measure(name: str, setting: Setting) -> Outcome:
    """Grow functions by this algorithm and look at the last step, over all runs."""
    outcomes = [_grow(name, setting, run) for run in range(RUNS)]
    return Outcome(
        float(np.mean([each.imbalance for each in outcomes])),
        tuple(np.mean([each.per_resource for each in outcomes], axis=0)),
        float(np.mean([each.migration for each in outcomes])),
        float(np.mean([each.size for each in outcomes])),
        float(np.median([each.seconds for each in outcomes])),
    )


def _grow(name: str, setting: Setting, run: int) -> Outcome:
    frequencies, items = Zipf(setting.z, keys=setting.domain).frequencies, _items(setting.domain, run)
    placer, frequent = setting.placer(name), slice(FREQUENT)
    before = after = PartitioningFunction(1)
    seconds = 0.0
    draws = np.random.default_rng(run)
    seen, shares = items[frequent], frequencies[frequent]
    for n in range(2, setting.channels + 1):
        if setting.rows is not None:
            counts = draws.binomial(setting.rows, frequencies[frequent])
            seen, shares = items[frequent][counts > 0], counts[counts > 0] / setting.rows
        start = time.perf_counter()
        function = construct(placer, seen, shares, after, n, setting.domain)
        seconds = time.perf_counter() - start
        before, after = after, function
    there = after(items)
    resources, alpha = setting.resources, Tolerance.of(setting.alpha)
    moved = balance.relative_migration(resources, frequencies, before(items), there, setting.channels)
    each = balance.imbalances(resources, alpha, frequencies, there, setting.channels)
    return Outcome(float(np.prod(each) ** (1 / 3)), each, moved, len(after), seconds)


def _placed(name: str, workers: int, counted: bool) -> str:
    ratios, moved = [], []
    for run in range(RUNS):
        setting = Setting()
        frequencies, items = Zipf(setting.z, keys=setting.domain).frequencies, _items(setting.domain, run)
        placer = setting.placer(name)
        tail = np.bincount(items[FREQUENT:] % SLOTS, frequencies[FREQUENT:], SLOTS)
        seen = Counts(items[:FREQUENT], frequencies[:FREQUENT], 1.0, tail if counted else None, distinct=setting.domain)
        placed = placer.place(seen, None, 1)
        before = placed
        for n in range(2, workers + 1):
            before, placed = placed, placer.place(seen, placed, n)
        there = placed.worker_of(items)
        ratios.append(balance.ratio(balance.loads("L", frequencies, there, workers)))
        moved.append(
            balance.relative_migration(setting.resources, frequencies, before.worker_of(items), there, workers)
        )
    return f"{np.mean(ratios):.2f} / {np.mean(moved):.2f}"


def _sweep(title: str, settings: dict[str, Setting], sizes: bool = True) -> Iterator[str]:
    """A table of balance and migration, and one of sizes and times."""
    yield from _heading(title, "Imbalance b / migration m")
    yield _row("", *NAMES)
    yield _rule(len(NAMES))
    rows = []
    for label, setting in settings.items():
        outcomes = {name: measure(name, setting) for name in NAMES}
        yield _row(label, *(_both(outcomes[name]) for name in NAMES))
        times = [f"{1000 * outcomes[name].seconds:.1f}" for name in ("consistent", *TRACKING)]
        if sizes:
            rows.append(_row(label, f"{outcomes['scan'].size:.0f}", str(_counted(setting)), *times))
    if rows:
        yield ""
        yield "Items in the explicit map and in the lossy counter, and milliseconds to construct"
        yield ""
        yield _row("", "map", "counter", "consistent", *TRACKING)
        yield _rule(6)
        yield from rows


def _counted(setting: Setting) -> int:
    """The most items in a lossy counter of an error of a tenth of delta, as it sees a stream."""
    least = delta(setting.resources, Tolerance.of(setting.alpha), setting.sigma, setting.channels, setting.domain)
    return _entries(setting.z, setting.domain, least / 10)


@cache
def _entries(z: float, domain: int, epsilon: float) -> int:
    counter, most = LossyCounts(epsilon), 0
    for block in Zipf(z, keys=domain, seed=1).blocks(STREAM, block=STREAM // 1000):
        counter.add(block)
        most = max(most, counter.entries)
    return most


@lru_cache(maxsize=RUNS)
def _items(domain: int, run: int) -> Int64Array:
    """The items from the most frequent on: other ones in each run."""
    return xxhash64(np.arange(domain), seed=run + 1)


def _heading(title: str, text: str) -> Iterator[str]:
    yield from ("", f"## {title}", "", text, "")


def _both(outcome: Outcome) -> str:
    return f"{outcome.imbalance:.2f} / {outcome.migration:.2f}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return "|---" * (columns + 1) + "|"


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, means of {RUNS} runs")
    table()
