"""What it costs to keep the statistics of a window, by a map, by a sketch, and by switching between them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.figure import Tell
from skewless.sketch import SwitchCounts
from skewless.workload import Workload

MODES = {"map": "exact", "sketch": "countmin", "switch": "switch"}
BLOCK = 1_000_000


@dataclass(frozen=True)
class Cost:
    """Of all tuples of a window together."""

    seconds: float
    bytes: int


def costs(
    stream: Workload, tuples: int, windows: Sequence[int], repeats: int, tell: Tell, switch_at: int | None = None
) -> dict[str, list[Cost]]:
    """Count a stream in statistics windows of several sizes, and return the cost of each by structure.

    The least of several repeats counts, as whatever else the machine does only adds to it.
    """
    options = {} if switch_at is None else {"switch_at": switch_at}
    for mode in MODES.values():
        SwitchCounts(10, mode=mode, **options).add(np.arange(100))  # kernels are compiled before the first is timed
    best = {name: [np.inf] * len(windows) for name in MODES}
    size = {name: [0] * len(windows) for name in MODES}
    for repeat in range(repeats):
        counters = {
            name: [SwitchCounts(window, mode=mode, **options) for window in windows] for name, mode in MODES.items()
        }
        seconds = {name: [0.0] * len(windows) for name in MODES}
        for number, block in enumerate(stream.blocks(tuples, BLOCK)):
            tell(f"statistics of {(number + 1) * BLOCK:,} tuples, repeat {repeat + 1}")
            for name, each in counters.items():
                for i, counter in enumerate(each):
                    start = time.thread_time()
                    counter.add(block)
                    seconds[name][i] += time.thread_time() - start
        for name, each in counters.items():
            best[name] = [min(pair) for pair in zip(best[name], seconds[name], strict=True)]
            size[name] = [_bytes(counter) for counter in each]
    return {name: [Cost(*pair) for pair in zip(best[name], size[name], strict=True)] for name in MODES}


def _bytes(counter: SwitchCounts) -> int:
    """The memory of the structures that are in use."""
    table, cells = counter.table.entries.nbytes, counter.state.cells.nbytes
    return {"exact": table, "countmin": cells, "switch": table + cells}[counter.mode]
