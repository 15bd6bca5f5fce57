"""Even: hot keys get slots of their own, and slots move from the busiest worker to the idlest until loads are even."""

from __future__ import annotations

from math import ceil

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.autoflow import rehome
from skewless.place.base import SLOTS, Owners, Placer, in_turn
from skewless.place.placement import Placement
from skewless.place.resources import is_number


class Even(Placer):
    """Balances the loads with few moves: repeats what `AutoFlow` does in a round, and gives hot keys their own slots.

    Gedik's functions move hot keys and leave the rest to a hash; AutoFlow moves slots and cannot separate a hot key
    from its slot. This placer does both: a key with at least `hot` of a worker's fair share gets a slot of its own, and
    keeps it until it falls below half of that. Then, as long as the busiest worker is more than `tolerance` above the
    average, the slot that best balances it with the idlest worker moves there. When workers were added, that goes on as
    long as the idlest worker is more than `tolerance` below the average: one new worker among many would otherwise get
    nothing. If no rows were counted yet, all slots count alike then.

    Parameters
    ----------
    slots
        Slots that the other keys share by their hash.
    hot
        Share of a worker's fair load from which a key has a slot of its own.
    tolerance
        How far above the average the busiest worker may stay, as a share of the average.

    Examples
    --------
    >>> rows = Counts(np.array([5]), np.array([40.0]), total=100, tail=np.array([20.0, 20, 10, 10]))
    >>> first = Even(slots=4).place(Counts.none(), None, workers=2)
    >>> then = Even(slots=4).place(rows, first, workers=2)
    >>> loads = np.bincount(then.owners, [20, 20, 10, 10, 40])
    >>> loads
    array([50., 50.])
    """

    name = "even"

    def __init__(self, slots: int = SLOTS, hot: float = 0.1, tolerance: float = 0.05) -> None:
        super().__init__(slots)
        if not (is_number(hot) and 0 < hot <= 1):
            raise SkewlessError(f"hot is {hot!r}; give a number above 0 and up to 1, such as 0.1")
        if not (is_number(tolerance) and tolerance >= 0):
            raise SkewlessError(f"tolerance is {tolerance!r}; give at least 0, such as 0.05")
        self.hot, self.tolerance = hot, tolerance

    def watched(self, workers: int) -> int:
        """As many keys as can have the share from which a key is hot.

        >>> Even(hot=0.1).watched(16)
        160
        """
        return ceil(workers / self.hot)

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        keys, counts = self._tracked(seen, previous, workers)
        tail_loads = np.maximum(seen.by_slot(self.slots) - np.bincount(keys % self.slots, counts, self.slots), 0)
        loads = np.concatenate([tail_loads, counts])
        if previous is None:
            tail = in_turn(self.slots, workers)
            own = tail[keys % self.slots]
        else:
            tail, own = previous.tail, previous.worker_of(keys)
        grown = previous is not None and workers > previous.workers
        if grown and not loads.any():
            loads = np.ones(len(loads))
        owners = rehome(np.concatenate([tail, own]), loads, workers)
        level(owners, loads, workers, self.tolerance, fill=grown)
        return Owners(owners[: self.slots], keys, owners[self.slots :])

    def _tracked(self, seen: Counts, previous: Placement | None, workers: int) -> tuple[Int64Array, FloatArray]:
        """The keys with slots of their own, and their rows."""
        counts = np.asarray(seen.counts, np.float64)
        least = np.full(len(counts), self.hot * seen.total / workers)
        if previous is not None:
            least[np.isin(seen.keys, previous.keys)] /= 2
        kept = counts >= least
        return seen.keys[kept], counts[kept]


def level(owners: Int32Array, loads: FloatArray, workers: int, tolerance: float, fill: bool = False) -> None:
    """Move slots, one at a time, from the busiest worker to the idlest, while that helps.

    It ends when the busiest worker is within the tolerance, and with `fill` the idlest is too.

    >>> owners = np.array([0, 0, 0, 1], np.int32)
    >>> level(owners, np.array([30.0, 20, 10, 20]), 2, tolerance=0.0)
    >>> owners
    array([0, 1, 0, 1], dtype=int32)
    """
    totals = np.bincount(owners, loads, workers).astype(np.float64)
    most, least = totals.mean() * (1 + tolerance), totals.mean() * (1 - tolerance)
    for _ in range(len(owners)):
        slot = _best(owners, loads, totals, 0.0 if fill and totals.min() < least else most)
        if slot is None:
            break
        idlest = int(totals.argmin())
        totals[owners[slot]] -= loads[slot]
        totals[idlest] += loads[slot]
        owners[slot] = idlest


def _best(owners: Int32Array, loads: FloatArray, totals: FloatArray, most: float) -> int | None:
    """The slot to give to the idlest worker, from the busiest worker that has a slot whose move helps."""
    for worker in np.argsort(-totals, kind="stable").tolist():
        if totals[worker] <= most:
            break
        gap = totals[worker] - totals.min()
        mine = np.flatnonzero((owners == worker) & (loads > 0) & (loads < gap))
        if len(mine):
            # A slot with half the gap's load leaves the smallest gap; among equally good slots, the larger one moves.
            return int(mine[np.lexsort((-loads[mine], np.abs(loads[mine] - gap / 2)))[0]])
    return None
