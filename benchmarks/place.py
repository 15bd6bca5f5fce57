"""Placements of slots: what counting the rows of each tail slot changes for Gedik's algorithms.

Claim tested: counting the rows of tail slots lets the tracked keys make up for the luck of the ring. What is left then
is the hottest key, whose worker has its share of the tail on top of it.

Gedik's own figures, which do without slots, are in `experiments/gedik`. `python -m benchmarks.place` prints the lines.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

import numpy as np

from experiments.gedik import balance
from experiments.gedik.grow import FREQUENT, TRACKING, Setting
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.workload import Zipf

RUNS = 5
SLOTS = 4096
ELSEWHERE = (
    "Gedik's partitioning functions themselves, which do without slots, are measured in",
    "[Figures of the papers](../figures.md#partitioning-functions-gedik-vldb-journal-2014), made by `make figures`.",
)


def table() -> list[str]:
    """The lines of Markdown; each is printed when it is there."""
    lines = []
    for line in (*counted_tail(), "", *ELSEWHERE):
        print(line, flush=True)
        lines.append(line)
    return lines


def counted_tail() -> Iterator[str]:
    """Placements of slots, with the rows of each tail slot counted or not."""
    yield f"A million items of Zipf 1.0 in a `Placement` with {SLOTS} tail slots, grown to N workers: largest load over"
    yield "the smallest (r of communication) and migration m, where the tail slots are not counted (as in the paper),"
    yield f"and where they are. Means of {RUNS} runs."
    yield ""
    yield _row("N", *(f"{name}{how}" for name in TRACKING for how in ("", ", counted")), "consistent")
    yield _rule(2 * len(TRACKING) + 1)
    for workers in (10, 32):
        cells = [_placed(name, workers, how) for name in TRACKING for how in (False, True)]
        yield _row(str(workers), *cells, _placed("consistent", workers, False))


def _placed(name: str, workers: int, counted: bool) -> str:
    ratios, moved = [], []
    for run in range(RUNS):
        setting = Setting()
        frequencies, items = (
            Zipf(setting.z, keys=setting.domain).frequencies,
            xxhash64(np.arange(setting.domain), seed=run + 1),
        )
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


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return "|---" * (columns + 1) + "|"


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, means of {RUNS} runs")
    table()
