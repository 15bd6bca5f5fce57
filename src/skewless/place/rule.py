"""When state moves: how unbalanced workers must be, and what a move must gain."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.placement import Placement
from skewless.place.resources import KINDS, Resources, beta, is_number


@dataclass(frozen=True)
class Rule:
    """When to move state: if a resource is out of balance, and the new placement gains more than the move costs.

    The load of a worker on a resource is the sum of what its keys need of it, by the function of that resource:
    proportional to the rows of a key (L), or to their square (Q). A constant resource (C) balances by itself and is
    left out. The keys of a tail slot that were not told apart are taken to be alike.

    Parameters
    ----------
    alpha
        The load of the busiest worker over the average from which a better placement is looked for: one number, or one
        each for state, computation and communication. Infinity is never.
    horizon
        The number of micro-batches over which the rows brought down to the average must be worth what the move costs.
    cost
        What moving the state of a key costs, in times of the rows that the key has in a micro-batch.
    rest
        The number of micro-batches by a placement before the next one is looked for. With 0 placements may follow each
        other at once, if each pays.
    memory
        The weight of a micro-batch relative to the next one; 0 uses only the newest, so every spike counts.
    resources
        The resource functions of state, computation and communication.
    byte_cost
        What moving a byte of state costs, in rows, in addition to `cost`. The default is 4 ns, where a row of a simple
        processor takes about 4 us. `python -m benchmarks.handover` measures it without Spark: from 1 MB on a byte
        takes 2 to 3 ns of processor time to give and to take, more with waiting for the disk or beside other work. The
        bytes of a move are its share of those that workers have told of, by the resource function of state.

    Examples
    --------
    >>> seen = Counts(np.array([8]), np.array([50]), total=100, tail=np.array([10, 20, 10, 10]))
    >>> before, after = Placement.of(2, [0, 1, 0, 1]), Placement.of(2, [1, 1, 1, 1], {8: 0})
    >>> rule = Rule(alpha=1.2, horizon=10, cost=1.0)
    >>> loads = rule.loads(before, seen, 2)
    >>> loads
    array([[0.7, 0.3]])
    >>> rule.asks(loads)
    True
    >>> loads_after, moved = rule.loads(after, seen, 2), rule.moved(before, after, seen)
    >>> rule.pays(loads, loads_after, moved, rows=100), rule.pays(loads, loads_after, moved, rows=100, moved_bytes=1e6)
    (True, False)
    """

    alpha: float | tuple[float, float, float] = 1.2
    horizon: int = 10
    cost: float = 1.0
    rest: int = 0
    memory: float = 0.25
    resources: Resources | str = "LCL"
    byte_cost: float = 0.001

    def __post_init__(self) -> None:
        """Refuse what could not be gone by."""
        alphas = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,)
        if len(alphas) not in (1, len(KINDS)) or not all(is_number(alpha) and alpha > 0 for alpha in alphas):
            raise SkewlessError(
                f"alpha is {self.alpha!r}; give one number above 0, or one each for {', '.join(KINDS)} in a tuple"
            )
        for name in ("horizon", "cost", "rest", "byte_cost"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < inf):
                raise SkewlessError(
                    f"{name} is {value!r}; give at least 0, and alpha=float('inf') if state is never to move"
                )
        if not (is_number(self.memory) and 0 <= self.memory < 1):
            raise SkewlessError(f"memory is {self.memory!r}; give a number from 0 to below 1, such as 0.25")
        if not isinstance(self.resources, Resources):
            object.__setattr__(self, "resources", Resources(self.resources))
        if not self._counted:
            raise SkewlessError(
                "resources are 'CCC', which balance by themselves, so that no state would ever move; give "
                "alpha=float('inf') for that, or a letter L or Q for what does not"
            )

    def loads(self, placement: Placement, seen: Counts, workers: int) -> FloatArray:
        """The load of each worker: a row for each resource function that is not constant, each as shares of its sum."""
        loads = np.empty((len(self._counted), workers))
        for k, letter in enumerate(self._counted):
            slots, keys = _weights(letter, seen, placement.tail_slots)
            loads[k] = np.bincount(placement.tail, slots, workers)
            loads[k] += np.bincount(placement.worker_of(seen.keys), keys, workers)
            loads[k] /= loads[k].sum() or 1.0
        return loads

    def asks(self, loads: FloatArray, active: int | None = None) -> bool:
        """Whether a resource is so unbalanced that a better placement is to be looked for.

        Parameters
        ----------
        loads
            What `loads` found.
        active
            The number of workers that share the load; all if not given.
        """
        highest = loads.max(axis=1) * (active or loads.shape[1])
        return any(highest[k] > alpha for k, alpha in self._alphas)

    def moved(self, before: Placement, after: Placement, seen: Counts, letter: str = "L") -> float:
        """What moves, as a share: of the rows, or of another resource function."""
        slots, keys = _weights(letter, seen, before.tail_slots)
        changed = before.worker_of(seen.keys) != after.worker_of(seen.keys)
        total = slots.sum() + keys.sum()
        return float((slots[before.tail != after.tail].sum() + keys[changed].sum()) / total) if total else 0.0

    def pays(
        self,
        before: FloatArray,
        after: FloatArray,
        moved: float,
        rows: float,
        moved_bytes: float = 0.0,
        active: int | None = None,
    ) -> bool:
        """Whether a placement is worth its move: over the horizon, it brings more rows down to the average.

        Rows above the average count, and not the busiest worker alone: less of them is a gain though one of two that
        are busiest stays so. Where resources differ, what counts is the average of their gains.

        Parameters
        ----------
        before, after
            The loads by the placement in force and by the new one, as `loads` found them.
        moved
            The share of the rows whose keys move.
        rows, moved_bytes
            The rows of a micro-batch, and the bytes of state that move.
        active
            The number of workers that share the load; all if not given.
        """
        active = active or before.shape[1]
        gains = _above(before, active) - _above(after, active)
        gain = float(np.mean([gains[k] for k, _ in self._alphas]))
        return rows * gain * self.horizon > rows * moved * self.cost + moved_bytes * self.byte_cost

    @property
    def state(self) -> str:
        """The resource function of state, by which the bytes of a move are estimated."""
        assert isinstance(self.resources, Resources)  # or it was made one
        return self.resources.state

    @property
    def _counted(self) -> list[str]:
        assert isinstance(self.resources, Resources)  # or it was made one
        return sorted(set(self.resources.letters) - {"C"})

    @property
    def _alphas(self) -> list[tuple[int, float]]:
        """The number of its function, and the imbalance allowed, of each resource that is not constant."""
        assert isinstance(self.resources, Resources)  # or it was made one
        alphas = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,) * len(KINDS)
        pairs = zip(self.resources.letters, alphas, strict=True)
        return [(self._counted.index(letter), alpha) for letter, alpha in pairs if letter != "C"]


def _weights(letter: str, seen: Counts, slots: int) -> tuple[FloatArray, FloatArray]:
    """What the other keys of each tail slot need of a resource, and what each key told apart does."""
    if not seen.total:
        return np.zeros(slots), np.zeros(len(seen.keys))
    others = max(1.0, (seen.domain - len(seen.keys)) / slots)  # keys of a slot, on average
    told = np.bincount(seen.keys % slots, seen.counts, slots)
    tail = np.maximum(seen.by_slot(slots) - told, 0) / seen.total
    return np.where(tail > 0, others * beta(letter, tail / others), 0.0), beta(letter, seen.shares)


def _above(loads: FloatArray, active: int) -> FloatArray:
    """For each resource, the load that workers have above the average."""
    above: FloatArray = np.maximum(loads - 1 / active, 0).sum(axis=1)
    return above
