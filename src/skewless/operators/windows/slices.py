"""The rows of every window at once, as slices of rows that are sorted: no row is copied into its windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.windows import BEFORE_ALL, Windows


@dataclass(frozen=True, eq=False)
class Slices:
    """Windows that hold rows: of which group, which window, and from which row to before which."""

    groups: Int64Array
    windows: Int64Array
    starts: Int64Array
    stops: Int64Array

    @property
    def rows(self) -> int:
        """How many rows are in any of them.

        >>> Slices(np.zeros(3, np.int64), np.arange(3), np.array([0, 2, 7]), np.array([4, 6, 9])).rows
        8
        """
        if not len(self.starts):
            return 0
        many = int(self.stops.max()) + 1
        deep = np.cumsum(np.bincount(self.starts, minlength=many) - np.bincount(self.stops, minlength=many))
        return int(np.count_nonzero(deep))

    def where(self, wanted: BoolArray) -> Slices:
        """Some of them."""
        return Slices(self.groups[wanted], self.windows[wanted], self.starts[wanted], self.stops[wanted])

    def in_order(self) -> Slices:
        """Sorted by window, and by group within it."""
        order = np.lexsort((self.groups, self.windows))
        return Slices(self.groups[order], self.windows[order], self.starts[order], self.stops[order])


def slices(
    groups: Int64Array, times: Int64Array, windows: Windows, low: int = BEFORE_ALL, high: int = -BEFORE_ALL
) -> Slices:
    """Each window that holds rows of a group, from window `low` to before `high`.

    Parameters
    ----------
    groups, times
        The group and the time of each row; the rows are sorted by both.
    windows
        Size and slide.
    low, high
        Windows that are wanted. A long time without rows costs nothing, whatever they are.

    Examples
    --------
    >>> found = slices(np.array([0, 0, 0, 1]), np.array([1, 5, 12, 5]), Windows(10, 5))
    >>> for each in zip(found.groups, found.windows, found.starts, found.stops):
    ...     print(*each)
    0 -1 0 1
    0 0 0 2
    0 1 1 3
    0 2 2 3
    1 0 3 4
    1 1 3 4
    """
    pane = windows.panes.size
    panes = times // pane
    begins = np.flatnonzero((np.diff(groups, prepend=-1) != 0) | (np.diff(panes, prepend=0) != 0))
    at, group = panes[begins], groups[begins]
    first, last = windows.first(at * pane), windows.last(at * pane)
    # Windows that the pane before of the same group is in were listed there.
    before = np.where(np.diff(group, prepend=-1) == 0, np.roll(last, 1), BEFORE_ALL)
    first = np.maximum(np.maximum(first, before + 1), low)
    count = np.maximum(np.minimum(last, high - 1) - first + 1, 0)
    which = np.repeat(np.arange(len(begins)), count)
    window = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    # A place among the panes there are, so that group and pane fit in one number.
    there = np.unique(at)
    width = len(there) + 1
    keys = group * width + np.searchsorted(there, at)
    edges = np.append(begins, len(times))
    bounds = [
        edges[np.searchsorted(keys, group[which] * width + np.searchsorted(there, edge // pane))]
        for edge in (window * windows.slide, window * windows.slide + windows.size)
    ]
    return Slices(group[which], window, *bounds)
