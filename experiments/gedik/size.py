"""How large a partitioning function is: items in its explicit map, and in the lossy counter that finds them."""

from __future__ import annotations

from functools import cache
from math import ceil

import numpy as np

from experiments.figure import Measured
from experiments.gedik.grow import WINDOW, Setting
from skewless.place.tracking import TrackingPlacer
from skewless.sketch import LossyCounts
from skewless.workload import Zipf

BLOCK = 1000  # rows between two looks at the counter


def mapped(setting: Setting, runs: int) -> Measured:
    """Items in the explicit map after the last step, which are the same for every algorithm."""
    placer = setting.placer("scan")
    assert isinstance(placer, TrackingPlacer)
    found = [setting.seen(run)[-1] for run in range(runs)]
    tracked = [placer.tracked(seen.shares + seen.error, setting.channels, setting.domain) for seen in found]
    return Measured.of([float(np.count_nonzero(each)) for each in tracked])


def counted(setting: Setting, runs: int) -> Measured:
    """The most items in a lossy counter of an error of a tenth of delta, as it sees a stream."""
    return Measured.of([max(_entries(setting.z, setting.domain, setting.epsilon, run)) for run in range(runs)])


def within(setting: Setting, runs: int, part: float) -> Measured:
    """The items in such a counter at this part of its last whole bucket: from 0, just after an eviction, to 1."""
    width = ceil(1 / setting.epsilon)
    last = WINDOW // width - 1
    blocks = ceil((last + part) * width / BLOCK) if part < 1 else (last + 1) * width // BLOCK
    return Measured.of([_entries(setting.z, setting.domain, setting.epsilon, run)[blocks - 1] for run in range(runs)])


@cache
def _entries(z: float, domain: int, epsilon: float, run: int) -> tuple[int, ...]:
    counter, found = LossyCounts(epsilon), []
    for block in Zipf(z, keys=domain, seed=run + 1).blocks(WINDOW, block=BLOCK):
        counter.add(block)
        found.append(counter.entries)
    return tuple(found)
