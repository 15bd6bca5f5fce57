"""Consistent hashing: a new worker takes only its own share, but frequent keys stay where the hash puts them."""

from __future__ import annotations

import numpy as np

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.ring import Ring
from skewless.place.base import SLOTS, Owners, Placer
from skewless.place.placement import Placement


class Consistent(Placer):
    """Places slots by a consistent-hash ring of the workers.

    Parameters
    ----------
    slots
        The number of tail slots.
    replicas
        The number of points that each worker has on the ring.

    Examples
    --------
    >>> seen, placer = Counts(np.array([7]), np.array([50]), total=100), Consistent(slots=1000)
    >>> ten = placer.place(seen, None, workers=10)
    >>> eleven = placer.place(seen, ten, workers=11)
    >>> np.unique(eleven.tail[ten.tail != eleven.tail])
    array([10], dtype=int32)

    Reference
    ---------
    Karger et al. Consistent hashing and random trees. STOC 1997.
    """

    name = "consistent"

    def __init__(self, slots: int = SLOTS, replicas: int = 1000) -> None:
        super().__init__(slots)
        if replicas < 1:
            raise SkewlessError(f"replicas is {replicas}; give at least 1")
        self.replicas = replicas

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        return Owners(Ring(workers, self.replicas).route(np.arange(self.slots)))
