"""Placements of slots: what counting the rows of tail slots changes for Gedik's algorithms, and what planning takes.

Claims tested: counting the rows of tail slots lets the tracked keys make up for the luck of the ring. What is left then
is the hottest key, whose worker has its share of the tail on top of it; where tail slots move too, not even that.
Workers that come many at a time are planned in processor time that a query does not notice.

Gedik's own figures, which do without slots, are in `experiments/gedik`. `python -m benchmarks.place` prints the lines,
and `make bench-place` has them on docs/results/place.md. Only the table of seconds depends on the machine.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

import numpy as np

from experiments.gedik import balance
from experiments.gedik.grow import FREQUENT, TRACKING, Setting
from skewless import place
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.workload import Zipf

RUNS = 5
SLOTS = 4096
KEYS, TOLD = 20_000, 500
"""Keys of the stream to which workers come, and how many of them a placer is told of."""
STEPS = ((8,), (4, 8), (16, 8), (10,), (16, 10), (16, 10, 10))
"""Workers of placements that follow each other."""
GROWTH = ((8, 8, 256), (1, 16, 256), (2, 32, 512), (1, 64, 1024))
"""Workers before and after, and slots."""
TOO_SLOW = {("readj", 64)}  # minutes
ELSEWHERE = (
    "Gedik's partitioning functions themselves, which do without slots, are measured in",
    "[Figures of the papers](../figures/gedik.md), made by `make figures`.",
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


def growth() -> list[str]:
    """The lines of Markdown on workers that come many at a time; each is printed when it is there."""
    lines = []
    for line in (*_busiest(), "", *_planning()):
        print(line, flush=True)
        lines.append(line)
    return lines


def _busiest() -> Iterator[str]:
    """How even placements are, one after the other, with tail slots that stay and with tail slots that move."""
    slots = 256
    yield f"Zipf 1.0, {KEYS:,} keys of which {TOLD} are told apart, {slots} slots: rows of the busiest worker over the"
    yield "mean, where only keys move and where tail slots move too (`tail=True`). A line names the workers of"
    yield "placements that follow each other, and has the numbers of the last one."
    yield ""
    yield _row("workers", *(f"{name}{how}" for name in TRACKING for how in ("", ", tail")))
    yield _rule(2 * len(TRACKING))
    items, shares, seen = _stream(slots)
    for steps in STEPS:
        cells = []
        for placer in (place.make(name, slots=slots, tail=tail) for name in TRACKING for tail in (False, True)):
            placed = None
            for workers in steps:
                placed = placer.place(seen, placed, workers)
            assert placed is not None
            cells.append(f"{np.bincount(placed.worker_of(items), shares).max() * placed.workers:.2f}")
        yield _row(" to ".join(map(str, steps)), *cells)


def _planning() -> Iterator[str]:
    """The processor time of one placement."""
    yield "Seconds of processor time to plan one placement of the same stream with `tail=True`, once the kernels are"
    yield f"compiled, medians of {RUNS} runs, on one core."
    yield ""
    yield _row("workers, slots", *TRACKING)
    yield _rule(len(TRACKING))
    for before, after, slots in GROWTH:
        cells = [
            "not measured" if (name, after) in TOO_SLOW else f"{_seconds(name, before, after, slots):.2g}"
            for name in TRACKING
        ]
        yield _row(f"{before} to {after}, {slots}", *cells)


def _seconds(name: str, before: int, after: int, slots: int) -> float:
    placer, (_items, _shares, seen) = place.make(name, slots=slots, tail=True), _stream(slots)
    first = place.make("consistent", slots=slots).place(seen, None, before)
    placer.place(seen, first, before + 1)  # compiles
    found = []
    for _run in range(RUNS):
        start = time.process_time()
        placer.place(seen, first, after)
        found.append(time.process_time() - start)
    return float(np.median(found))


def _stream(slots: int) -> tuple[Int64Array, FloatArray, Counts]:
    """The keys, the share of each, and what a placer is told of them."""
    items, shares = xxhash64(np.arange(KEYS)), Zipf(1.0, keys=KEYS).frequencies
    tail = np.bincount(items[TOLD:] % slots, 1e6 * shares[TOLD:], slots)
    return items, shares, Counts(items[:TOLD], 1e6 * shares[:TOLD], 1e6, tail, distinct=KEYS)


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
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, {RUNS} runs")
    table()
    growth()
