"""AutoFlow: moves the largest slots that fit half the gap from the busiest worker to the idlest (Algorithm 3)."""

from __future__ import annotations

from collections import deque

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.base import SLOTS, Owners, Placer, in_turn, whole
from skewless.place.placement import Placement
from skewless.place.resources import is_number


class AutoFlow(Placer):
    """Reduces the hot spot: a round moves slots from the busiest worker to the idlest one, and between no others.

    If the difference of the two loads is at least `factor` of the busiest worker's load, its slots are tried from the
    largest on, and each one that still fits into half the difference moves. A slot with more rows than that stays, so a
    worker whose load is one key keeps it. Keys get no slots of their own.

    The rows of earlier rounds count for the worker that owns the slot now, so that they do not cause the same move
    again. Slots without rows stay, although the paper's loop would move them too.

    The paper does not add or remove workers. If workers are removed here, their slots go to the least loaded workers,
    largest first. Workers are added one by one: after each, rounds follow each other until they move nothing, so that
    the new worker gets its share; a busy worker whose slots are all too large is passed over. If nothing was counted
    yet, all slots count alike then.

    Parameters
    ----------
    slots
        Slots that keys share by their hash.
    factor
        The smallest difference to act on, as a share of the busiest worker's load.
    window_length
        The number of rounds, as told by `learn`, over which rows are summed: 1 follows every spike; more rounds react
        only if a spike lasts. Without any round, a placement goes by the counts that it is given.

    Examples
    --------
    >>> placer = AutoFlow(slots=6, factor=0.2)
    >>> rows = Counts(np.zeros(0, np.int64), np.zeros(0), total=150, tail=np.array([60, 20, 20, 20, 20, 10]))
    >>> first = placer.place(rows, None, workers=2)
    >>> first.tail  # 100 rows and 50: slots 0, 2 and 4 have 60, 20 and 20, and one of 20 fits into half the gap
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    >>> placer.place(rows, first, workers=2).tail
    array([0, 1, 1, 1, 0, 1], dtype=int32)

    Reference
    ---------
    Lu, Yuan, Zhang, Cao, Li. AutoFlow: hotspot-aware, dynamic load balancing for distributed stream processing. 2021.
    """

    name = "autoflow"

    def __init__(self, slots: int = SLOTS, factor: float = 0.2, window_length: int = 1) -> None:
        super().__init__(slots)
        if not (is_number(factor) and 0 < factor <= 1):
            raise SkewlessError(f"factor is {factor!r}; give a number above 0 and up to 1, such as 0.2")
        self.factor = factor
        self.window_length = whole("window_length", window_length, 1, advice=" round")
        self._rounds: deque[FloatArray] = deque(maxlen=self.window_length)

    def learn(self, seen: Counts) -> None:
        """Take note of a round."""
        self._rounds.append(seen.by_slot(self.slots))

    def _place(self, seen: Counts, previous: Placement | None, workers: int) -> Owners:
        if previous is None:
            return Owners(in_turn(self.slots, workers))
        counts = np.sum(self._rounds, axis=0) if self._rounds else seen.by_slot(self.slots)
        if workers > previous.workers:
            owners, counts = previous.tail, counts if counts.any() else np.ones(self.slots)
            for number in range(previous.workers + 1, workers + 1):
                owners = fill(owners, counts, number, self.factor)
            return Owners(owners)
        owners = rehome(previous.tail, counts, workers)
        idlest = np.bincount(owners, counts, workers).argmin()
        owners[diminish(owners, counts, workers, self.factor)] = idlest
        return Owners(owners)


def diminish(
    owners: Int32Array, counts: FloatArray, workers: int, factor: float, giver: int | None = None
) -> Int64Array:
    """The slots that the busiest worker, or a given one, should give to the idlest, largest first.

    >>> diminish(np.array([0, 0, 0, 1], np.int32), np.array([30.0, 50, 10, 10]), 2, factor=0.5)
    array([0, 2])
    """
    loads = np.bincount(owners, counts, workers)
    giver = int(loads.argmax()) if giver is None else giver
    difference = float(loads[giver] - loads.min())
    given: list[int] = []
    if difference > 0 and difference / loads[giver] >= factor:
        gap = difference / 2
        mine = np.flatnonzero((owners == giver) & (counts > 0))
        for slot in mine[np.argsort(-counts[mine], kind="stable")]:
            if counts[slot] <= gap:
                given.append(int(slot))
                gap -= counts[slot]
    return np.array(given, np.int64)


def fill(owners: Int32Array, counts: FloatArray, workers: int, factor: float) -> Int32Array:
    """The owners, after rounds in which the busiest worker that can gives slots to the idlest, until none can.

    >>> fill(np.array([0, 0, 0, 0, 0, 0], np.int32), np.array([4.0, 4, 3, 3, 2, 2]), 3, factor=0.2)
    array([1, 1, 2, 0, 2, 0], dtype=int32)
    """
    owners = owners.copy()
    given = np.zeros(1, np.int64)
    while len(given):
        loads = np.bincount(owners, counts, workers)
        for worker in np.argsort(-loads, kind="stable").tolist():
            given = diminish(owners, counts, workers, factor, worker)
            if len(given):
                owners[given] = loads.argmin()
                break
    return owners


def rehome(owners: Int32Array, counts: FloatArray, workers: int) -> Int32Array:
    """The owners, after the slots of removed workers went to the least loaded of the others."""
    owners = owners.copy()
    homeless = np.flatnonzero(owners >= workers)
    loads = np.bincount(owners[owners < workers], counts[owners < workers], workers)
    held = np.bincount(owners[owners < workers], minlength=workers)
    for slot in homeless[np.argsort(-counts[homeless], kind="stable")]:
        worker = int(np.lexsort((held, loads))[0])  # among equal loads, the worker with fewer slots
        owners[slot] = worker
        loads[worker] += counts[slot]
        held[worker] += 1
    return owners
