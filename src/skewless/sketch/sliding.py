"""A sliding window over any sketch, made of a few sketches that start one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.sketch.base import Sketch
from skewless.sketch.keys import as_keys
from skewless.sketch.lossy import LossyCounts


class SlidingCounts(Sketch):
    """Counts the recent keys only: always the last W to (1 + 1/(counters - 1)) W tuples.

    A sketch cannot forget single tuples, but it can be dropped as a whole. A new sketch starts every W/(counters - 1)
    tuples, all sketches count every tuple, and the oldest one answers. When it has counted W + W/(counters - 1) tuples
    it is dropped, and the next one, which then holds W tuples, takes its place. More counters come closer to a true
    sliding window, but cost more time and memory in proportion. Until W tuples have come, the answer covers all of
    them.

    Parameters
    ----------
    window
        W, in tuples.
    counters
        How many sketches are built at once, at least 2; with the paper's 3, the oldest holds W to 1.5 W tuples.
    make
        A function that returns an empty sketch, such as `lambda: LossyCounts(0.01)`.

    Examples
    --------
    >>> import numpy as np
    >>> recent = SlidingCounts(window=1_000)
    >>> recent.add(np.full(5_000, 1))   # key 1 was hot
    >>> recent.add(np.full(1_500, 2))   # and is forgotten
    >>> recent.estimate(np.array([1, 2])).tolist(), recent.total
    ([0, 1000], 1000)

    References
    ----------
    B. Gedik. Partitioning Functions for Stateful Data Parallelism in Stream Processing. The VLDB Journal 23(4), 2014.
    """

    def __init__(self, window: int, counters: int = 3, make: Callable[[], Sketch] = LossyCounts) -> None:
        """See the class."""
        if window < 1:
            raise SkewlessError(f"window is {window}: give the number of recent tuples to count, 1 or more")
        if counters < 2:
            raise SkewlessError(f"counters is {counters}: give 2 or more, one answers while the next is being built")
        self.window = window
        self.counters = counters
        self._make = make
        self._seen = 0
        self._started = 0
        self._building: deque[Sketch] = deque(maxlen=counters)
        self._start_due()

    @property
    def total(self) -> int:
        """Tuples in the sketch that answers now."""
        return self._building[0].total

    def add(self, keys: Int64Array) -> None:
        """Count these tuples, and forget the old ones."""
        keys = as_keys(keys)
        while len(keys):
            piece, keys = keys[: self._next_start() - self._seen], keys[self._next_start() - self._seen :]
            for sketch in self._building:
                sketch.add(piece)
            self._seen += len(piece)
            self._start_due()

    def estimate(self, keys: Int64Array) -> Int64Array:
        """The recent count of each of `keys`."""
        return self._building[0].estimate(keys)

    def heavy(self, share: float) -> tuple[Int64Array, Int64Array]:
        """Keys and counts of the keys with at least `share` of the recent tuples, most frequent first."""
        return self._building[0].heavy(share)

    def _next_start(self) -> int:
        # Rounded down from the exact multiple, so that start j + counters - 1 comes exactly W tuples after start j.
        return self._started * self.window // (self.counters - 1)

    def _start_due(self) -> None:
        while self._next_start() == self._seen:
            self._building.append(self._make())  # the deque drops the oldest
            self._started += 1
