"""Compiling is not routing: have a strategy's kernels ready before the clock starts."""

from __future__ import annotations

import numpy as np

from skewless import split

SLIDE = 1000
_MANY = np.arange(2 * SLIDE, dtype=np.int64)  # more keys than the tables start with
_HOT = np.repeat(_MANY[:100], SLIDE // 100)  # in one slide, more hot keys than there are rows for at first


def warm_up(name: str, workers: int) -> None:
    """Let instances that are thrown away pass the ends of slides and outgrow their tables.

    >>> warm_up("dalton", 8)
    """
    split.make(name, workers, slide=SLIDE, slides=2).route(np.concatenate([_MANY, _HOT, _MANY]))
