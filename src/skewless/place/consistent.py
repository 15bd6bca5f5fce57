"""Consistent hashing: a new worker takes only its own share, but frequent keys stay where the hash puts them."""

from __future__ import annotations

import numpy as np

from skewless.core.counts import Counts
from skewless.core.ring import Ring
from skewless.place.base import SLOTS, Owners, Placer, whole
from skewless.place.placement import Placement

STEP = 32  # workers for each one that is added in one step
LAST = 4  # workers at the end that are added as if nothing followed


class Consistent(Placer):
    """Places slots by a consistent-hash ring of the workers, of which none gets more than its share of slots.

    A few hundred slots are spread badly by a ring alone: of 256 on 16 workers, the fullest has 22 and the emptiest 11.
    So a slot whose worker is full goes on to the next one clockwise that has room. When workers are added or removed, a
    slot stays if its worker does and has no more than its share, so no more slots move than have to.

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
    >>> np.bincount(eleven.tail)
    array([91, 91, 91, 91, 91, 91, 91, 91, 91, 91, 90])

    Reference
    ---------
    Karger et al. Consistent hashing and random trees. STOC 1997.
    Mirrokni, Thorup, Zadimoghaddam. Consistent hashing with bounded loads. SODA 2018.
    """

    name = "consistent"

    def __init__(self, slots: int = SLOTS, replicas: int = 1000) -> None:
        super().__init__(slots)
        self.replicas = whole("replicas", replicas, 1, advice=", such as 1000")

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        # Several new workers come one by one, so that it does not matter whether they are added at once. From 64
        # workers on it is a few at a time, as hundreds of rings would take seconds; then it may be less even.
        while previous is not None and previous.workers < workers - 1:
            number = min(previous.workers + max(1, previous.workers // STEP), workers - 1)
            step = self._open if workers - number >= LAST else self._change
            previous = step(seen, previous, number).placement(number, 0)
        return self._change(seen, previous, workers)

    def _open(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        """The owners, if few workers are added and many more are to come."""
        return self._change(seen, previous, workers)

    def _change(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        """The owners, if few workers are added or any number removed."""
        before = None if previous is None else previous.tail
        return Owners(Ring(workers, self.replicas).spread(np.arange(self.slots), before))
