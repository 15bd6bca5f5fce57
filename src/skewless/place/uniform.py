"""Uniform hashing, the baseline of the other placers: nearly everything moves when a worker is added or removed."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.place.base import NO_KEYS, NO_OWNERS
from skewless.place.function import Constructor, PartitioningFunction
from skewless.place.placement import Placement


class Uniform(Constructor):
    """Gives each slot to the worker whose number is the slot's number modulo the workers.

    Parameters
    ----------
    slots
        The number of tail slots.

    Examples
    --------
    >>> seen = Counts(np.array([7]), np.array([50]), total=100)
    >>> Uniform(slots=6).place(seen, None, workers=4).tail
    array([0, 1, 2, 3, 0, 1], dtype=int32)
    """

    name = "uniform"

    def construct(
        self,
        items: Int64Array,
        frequencies: FloatArray,
        previous: PartitioningFunction | None,
        channels: int,
        domain: int | None = None,
    ) -> PartitioningFunction:
        """A function that takes the hash of the item modulo the channels."""
        return PartitioningFunction(channels)

    def _place(
        self, seen: Counts, previous: Placement | None, workers: int
    ) -> tuple[Int32Array, Int64Array, Int32Array]:
        return (np.arange(self.slots) % workers).astype(np.int32), NO_KEYS, NO_OWNERS
