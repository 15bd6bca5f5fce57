"""W-choices: two workers for a key of the tail, all of them for a hot one."""

from __future__ import annotations

from typing import ClassVar

from skewless.core.counts import Counts
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

    def __init__(
        self, workers: int = 1, *, slide: int = 100_000, hot_at: float = 0.2, statistics: str = "switch"
    ) -> None:
        super().__init__(workers, slide=slide, hot_at=hot_at, statistics=statistics)
        self.choices = workers

    def _choices(self) -> int:
        return self.workers

    def _begin_batch(self, seen: Counts) -> None:
        super()._begin_batch(seen)
        self.choices = self.workers
