"""W-choices: two workers for a key of the tail, all of them for a hot one."""

from __future__ import annotations

from typing import ClassVar

from skewless.core.arrays import FloatArray
from skewless.split.d_choices import DChoices


class WChoices(DChoices):
    """Two choices for the tail; hot keys go to the least loaded of all workers.

    The loads are as balanced as possible, but every hot key is on every worker.

    Parameters
    ----------
    workers, slide, hot_at, statistics
        See `DChoices`.

    Examples
    --------
    >>> import numpy as np
    >>> loads = np.bincount(WChoices(16, slide=1000).route(np.zeros(100_000, dtype=int)), minlength=16)
    >>> int(loads.max() - loads.min()) < 200
    True

    References
    ----------
    M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini: When two choices are not enough: balancing at
    scale in distributed stream processing. ICDE 2016.
    """

    name: ClassVar[str] = "w-choices"

    def _needed(self, shares: FloatArray) -> int:
        return self.workers
