"""Consistent hashing: a worker more takes only its own share, but frequent keys lie where they fall."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.ring import Ring
from skewless.place.base import NO_KEYS, NO_OWNERS, SLOTS
from skewless.place.function import Constructor, PartitioningFunction
from skewless.place.placement import Placement


class Consistent(Constructor):
    """Slots on a consistent-hash ring of the workers.

    Parameters
    ----------
    slots
        Tail slots.
    replicas
        Points of each worker on the ring.

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

    def construct(
        self,
        items: Int64Array,
        frequencies: FloatArray,
        previous: PartitioningFunction | None,
        channels: int,
        domain: int | None = None,
    ) -> PartitioningFunction:
        """The ring alone, with nothing tracked."""
        return PartitioningFunction(channels, ring=Ring(channels, self.replicas))

    def _place(
        self, seen: Counts, previous: Placement | None, workers: int
    ) -> tuple[Int32Array, Int64Array, Int32Array]:
        return Ring(workers, self.replicas).route(np.arange(self.slots)), NO_KEYS, NO_OWNERS
