"""How evenly windows that end together, as in a micro-batch, fall to workers that take turns with batches of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

_OFFSETS = 8  # a micro-batch begins anywhere in a turn of the workers: at so many places it is looked at


def evenness(batch: npt.ArrayLike, windows: float, workers: int, starts: Sequence[float] = ()) -> FloatArray:
    """The mean load of workers over that of the busiest one, for batches of B windows (B may be an array).

    Keys whose turns start at the same worker are on the same workers at all times. So it is enough to know how much of
    the work is of keys that start at each of them.

    Parameters
    ----------
    batch
        The windows in a batch.
    windows
        Windows of a key that end together; infinite where each is given by itself.
    workers
        The workers that take turns.
    starts
        The work of the keys that start at each worker. If not given, there is one key.

    Examples
    --------
    >>> evenness([50, 100, 200, 400], windows=400, workers=4).round(2)
    array([1.  , 1.  , 0.5 , 0.38])
    >>> evenness([100, 400], windows=400, workers=4, starts=[3.0, 1.0, 1.0, 1.0]).round(2)
    array([1.  , 0.62])
    """
    sizes = np.atleast_1d(batch_sizes(batch))[:, None]
    if math.isinf(windows) or workers == 1:
        return np.ones_like(batch_sizes(batch))
    turn, mine = workers * sizes, np.arange(workers) * sizes
    shares = np.fft.rfft(np.asarray(starts, np.float64) / np.sum(starts)) if len(starts) else None

    def before(end: FloatArray) -> FloatArray:
        """The windows of each worker before this one."""
        turns = end // turn
        return turns * sizes + np.clip(end - turns * turn - mine, 0, sizes)

    even: FloatArray = np.zeros(len(sizes))
    for offset in range(_OFFSETS):  # one after the other, as there may be thousands of workers
        begin = turn * (offset / _OFFSETS)
        counts = before(begin + windows) - before(begin)  # B x worker, for keys that start at worker 0
        if shares is not None:  # each of the others is ahead by where it starts
            counts = np.fft.irfft(np.fft.rfft(counts) * shares, workers)
        even += windows / workers / counts.max(axis=1) / _OFFSETS
    return even.reshape(np.shape(batch))


def batch_sizes(batch: npt.ArrayLike) -> FloatArray:
    """The windows in a batch, or in each of several, as numbers to compute with.

    >>> batch_sizes([1, -3])
    Traceback (most recent call last):
    skewless.core.errors.SkewlessError: a batch of -3 windows; give at least 1
    """
    sizes = np.asarray(batch, np.float64)
    wrong = sizes[~(sizes >= 1)]
    if wrong.size:
        raise SkewlessError(f"a batch of {wrong[0]:g} windows; give at least 1")
    return sizes
