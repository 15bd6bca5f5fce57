"""How large a partitioning function is: items in its explicit map, and in the lossy counter that finds them."""

from __future__ import annotations

from functools import cache

import numpy as np

from experiments.gedik.grow import FREQUENT, Setting
from skewless.place.threshold import delta
from skewless.place.tracking import TrackingPlacer
from skewless.sketch import LossyCounts
from skewless.workload import Zipf

STREAM = 1_000_000  # tuples through the lossy counter


def mapped(setting: Setting) -> int:
    """Items in the explicit map, which are the same for every algorithm."""
    placer = setting.placer("scan")
    assert isinstance(placer, TrackingPlacer)
    frequent = Zipf(setting.z, keys=setting.domain).frequencies[:FREQUENT]
    return int(np.count_nonzero(placer.tracked(frequent, setting.channels, setting.domain)))


def counted(setting: Setting) -> int:
    """The most items in a lossy counter of an error of a tenth of delta, as it sees a stream."""
    least = delta(setting.resources, setting.tolerance, setting.sigma, setting.channels, setting.domain)
    return _entries(setting.z, setting.domain, least / 10)


@cache
def _entries(z: float, domain: int, epsilon: float) -> int:
    counter, most = LossyCounts(epsilon), 0
    for block in Zipf(z, keys=domain, seed=1).blocks(STREAM, block=STREAM // 1000):
        counter.add(block)
        most = max(most, counter.entries)
    return most
