"""Count-min: counts in fixed memory, never too low, rarely much too high."""

from __future__ import annotations

import math

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch.base import Counting, with_share
from skewless.sketch.keys import key_hash
from skewless.sketch.open_addressing import HELD, KEY, find, full, is_full, move, put

MANY = int(np.iinfo(np.int64).max)  # stands for more keys than the counters can tell


class CountMin(Counting):
    """Estimates counts from `depth` rows of `width` counters; each key adds to one counter per row.

    The estimate is the smallest of a key's counters. Only counters that stand below the new estimate are raised
    (conservative update), which keeps the bound and lowers the usual error.

    Error: an estimate is never below the true count c, and above c + epsilon N with probability at most delta.
    Memory: ceil(e / epsilon) counters, rounded up to a power of two, times ceil(ln(1 / delta)).

    Parameters
    ----------
    epsilon, delta
        The bounds on the error, as above.
    candidates
        How many keys are remembered by name, for `heavy`: a key with at least 1 / candidates of the tuples is always
        among them. Up to four times as many are kept, and more if the error makes more than `candidates` keys look
        heavy.

    Examples
    --------
    >>> counts = CountMin(epsilon=0.01, delta=0.01)
    >>> counts.add(np.repeat([4, 5], [30, 2]))
    >>> counts.estimate(np.array([4, 5, 6]))
    array([30,  2,  0])

    References
    ----------
    G. Cormode, S. Muthukrishnan: An improved data stream summary: the count-min sketch and its applications. 2005.
    """

    def __init__(self, epsilon: float = 0.001, delta: float = 0.01, candidates: int = 1024) -> None:
        """See the class."""
        super().__init__()
        if candidates < 1:
            raise SkewlessError(f"candidates is {candidates}; give at least 1")
        self.epsilon, self.delta, self.candidates = epsilon, delta, candidates
        self._cells = new_cells(epsilon, delta)
        self._names = np.zeros((4 << (candidates - 1).bit_length(), 2), dtype=np.int64)
        self._named = 0

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys whose estimate is at least `share` of the tuples, and the estimates, highest first.

        For a share of 1 / candidates or more, every such key is included; for less, some may be missing.
        """
        keys = self._names[self._names[:, HELD] != 0, KEY]
        return with_share(keys, self.estimate(keys), share, self._total)

    def reset(self) -> None:
        """Forget all counts."""
        self._cells[:] = 0
        self._total = 0
        self._names[:] = 0
        self._named = 0

    def _make_room(self) -> None:
        """If there is no room for another name, forget the light keys, and make more room if many stay."""
        if not full(self._names, self._named):
            return
        kept, counts = self.heavy(1 / self.candidates)
        rows = len(self._names) if 4 * len(kept) <= len(self._names) else 2 * len(self._names)
        self._names = np.zeros((rows, 2), dtype=np.int64)
        self._named = len(kept)
        move(np.column_stack((kept, counts)), self._names)

    def _count(self, keys: Int64Array) -> int:
        counted, self._named = _add(self._cells, self._names, self._named, keys, self._total, self.candidates)
        return counted

    def _find(self, keys: Int64Array, out: Int64Array) -> None:
        cells_find_all(self._cells, keys, out)


def new_cells(epsilon: float, delta: float) -> Int64Array:
    """Enough counters for the bound (epsilon, delta), all zero."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise SkewlessError(f"{name} is {value}; give a number between 0 and 1, such as 0.01")
    width = 1 << math.ceil(math.log2(math.e / epsilon))
    depth = max(1, math.ceil(math.log(1 / delta)))
    return np.zeros((depth, width), dtype=np.int64)


@inner
def cells_find(cells: Int64Array, h: Int) -> Int:
    """The estimate for the key whose hash is `h`."""
    mask = cells.shape[1] - 1
    step = (h >> 32) | 1  # two halves of one good hash give as many rows as wanted
    least = cells[0, h & mask]
    for row in range(1, cells.shape[0]):
        h += step
        least = min(least, cells[row, h & mask])
    return least


@inner
def cells_add(cells: Int64Array, h: Int, weight: Int) -> Int:
    """Add `weight` to the key whose hash is `h` and return its new estimate."""
    mask = cells.shape[1] - 1
    step = (h >> 32) | 1
    raised = cells_find(cells, h) + weight
    for row in range(cells.shape[0]):
        cells[row, h & mask] = max(cells[row, h & mask], raised)
        h += step
    return raised


@lean_kernel
def cells_clear(cells: Int64Array) -> None:
    """Set all counters to zero."""
    for row in range(cells.shape[0]):
        for i in range(cells.shape[1]):
            cells[row, i] = 0


@lean_kernel
def cells_distinct(cells: Int64Array) -> int:
    """About how many keys were counted, by linear counting on the zeros of one row; MANY if no zero is left."""
    width = cells.shape[1]
    zeros = 0
    for i in range(width):
        zeros += cells[0, i] == 0
    if zeros == 0:
        return MANY
    return int(width * np.log(width / zeros))


@lean_kernel
def cells_find_all(cells: Int64Array, keys: Int64Array, out: Int64Array) -> None:
    """The estimate for each of `keys`."""
    for i in range(len(keys)):
        out[i] = cells_find(cells, key_hash(keys[i]))


@lean_kernel
def _add(
    cells: Int64Array, names: Int64Array, named: int, keys: Int64Array, seen: int, candidates: int
) -> tuple[int, int]:
    """Count while there is room for another name, and return how many tuples were counted and how many names there are.

    A key is named when it has 1 / candidates of all tuples so far. A key that has this share at the end also had it at
    its last tuple, when its count was the same and the total was no higher.
    """
    for i in range(len(keys)):
        if is_full(names, named):
            return i, named
        seen += 1
        if cells_add(cells, key_hash(keys[i]), 1) * candidates >= seen:
            row = find(names, keys[i])
            if names[row, HELD] == 0:
                put(names, keys[i], 1, row)
                named += 1
    return len(keys), named
