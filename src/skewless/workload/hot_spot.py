"""Hot spots: for a stretch of time, a share of the rows has keys of some workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError

_FAR = 4096  # how far apart the keys of a worker may be


@dataclass(frozen=True)
class HotSpot:
    """A stretch of time in which some workers' keys have a share of the rows on top of their own.

    Parameters
    ----------
    share
        The share of all rows that is moved to keys of these workers, from 0 to 1. Of the other rows, these workers
        keep what they have anyway.
    workers
        The workers whose keys are hot.
    start, end
        Seconds since the start of the stream; the end is not in it.

    Examples
    --------
    A hot spot that wanders, 10 seconds on each of three workers:

    >>> [HotSpot(0.5, (worker,), 10.0 * worker, 10.0 * (worker + 1)) for worker in range(3)][2]
    HotSpot(share=0.5, workers=(2,), start=20.0, end=30.0)
    """

    share: float
    workers: tuple[int, ...]
    start: float = 0.0
    end: float = float("inf")

    def __post_init__(self) -> None:
        """Check the share, the workers and the stretch."""
        if not 0 <= self.share <= 1:
            raise SkewlessError(f"share is {self.share}; give 0 to 1")
        if not self.workers:
            raise SkewlessError("workers is empty; name at least one worker whose keys are hot")
        if not self.start < self.end:
            raise SkewlessError(
                f"the hot spot starts at {self.start} and ends at {self.end}; it must start before it ends"
            )


def moved(
    spots: Sequence[HotSpot],
    time: FloatArray,
    keys: Int64Array,
    live: tuple[Int64Array, Int64Array],
    draws: tuple[FloatArray, FloatArray],
    owner: Callable[[Int64Array], Int64Array],
) -> Int64Array:
    """The keys, of which a share is replaced by keys of the workers of a hot spot.

    Parameters
    ----------
    spots
        The hot spots. Where they overlap, the last one counts.
    time
        The seconds of each row.
    keys
        The keys without hot spots.
    live
        For each row, the first and the last key that it may have. If none of them belongs to the workers, the row has
        the next one that does.
    draws
        For each row, a number in [0, 1) that is below the share for rows that are moved, and one that chooses the key.
    owner
        The worker of each key.

    Examples
    --------
    >>> keys, draws = np.arange(8), (np.zeros(8), np.full(8, 0.5))
    >>> moved([HotSpot(1.0, (0,), 0, 4)], keys.astype(float), keys, (keys, keys + 5), draws, lambda keys: keys % 3)
    array([3, 6, 6, 6, 4, 5, 6, 7])
    """
    out = keys.copy()
    for spot in spots:
        chosen = (time >= spot.start) & (time < spot.end) & (draws[0] < spot.share)
        if not chosen.any():
            continue
        low, high = live[0][chosen], live[1][chosen]
        candidates = np.arange(int(low.min()), int(high.max()) + 1 + _FAR)
        theirs = candidates[np.isin(owner(candidates), spot.workers)]
        first, end = np.searchsorted(theirs, low), np.searchsorted(theirs, high, side="right")
        at = first + (draws[1][chosen] * (end - first)).astype(np.int64)
        if at.max() >= len(theirs):
            last = int(high.max())
            raise SkewlessError(f"workers {spot.workers} own no key from {last} to {last + _FAR}; name workers that do")
        out[chosen] = theirs[at]
    return out
