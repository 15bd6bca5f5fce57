"""Uniform hashing, the baseline of the other placers: nearly everything moves when a worker is added or removed."""

from __future__ import annotations

from skewless.core.counts import Counts
from skewless.place.base import Owners, Placer, in_turn
from skewless.place.placement import Placement


class Uniform(Placer):
    """Gives each slot to the worker whose number is the slot's number modulo the workers.

    Parameters
    ----------
    slots
        The number of tail slots.

    Examples
    --------
    >>> Uniform(slots=6).place(Counts.none(), None, workers=4).tail
    array([0, 1, 2, 3, 0, 1], dtype=int32)
    """

    name = "uniform"

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        return Owners(in_turn(self.slots, workers))
