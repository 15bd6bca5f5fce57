"""Compiles a splitter's kernels before the clock starts, so that compiling does not count as routing."""

from __future__ import annotations

import numpy as np

from skewless import split

SLIDE = 1000
_MANY = np.arange(2 * SLIDE, dtype=np.int64)  # more keys than the tables start with
_HOT = np.repeat(_MANY[:100], SLIDE // 100)  # in one slide, more hot keys than there are rows for at first


def warm_up(name: str, workers: int) -> None:
    """Route a stream with a splitter that is thrown away, so that it passes the ends of slides and outgrows its tables.

    >>> warm_up("dalton", 8)
    """
    split.make(name, workers, slide=SLIDE, slides=2).route(np.concatenate([_MANY, _HOT, _MANY]))
