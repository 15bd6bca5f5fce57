"""The paper's ring in full: which worker combines a window, and which results are passed on to the next worker."""

from __future__ import annotations

import numpy as np

from skewless.chop.ring import PaneRing
from skewless.core.arrays import BoolArray, Int64Array


class Ring(PaneRing):
    """The ring that assigns panes on Spark, with the messages that the paper counts.

    Examples
    --------
    The paper's Figure 4, where everything is numbered from 1:

    >>> ring = Ring(size=6, slide=4, workers=3)
    >>> ring.panes_of(1)  # window w2
    range(2, 5)
    >>> ring.owner_of_window(np.array([1])), ring.owner_of_pane(np.array([2, 3, 4]))
    (array([1]), array([0, 1, 1]))
    >>> ring.passed_on(0, range(0, 8)), ring.received(1, range(0, 8))  # R3, from node 1 to node 2
    (array([2]), array([2]))

    References
    ----------
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (sections 2.4.2 and 2.4.3).
    """

    def panes_of(self, window: int) -> range:
        """The panes that make up a window."""
        return self.windows.panes_of(window)

    def owner_of_window(self, windows: Int64Array) -> Int64Array:
        """The worker that combines the panes of each window."""
        owners: Int64Array = np.asarray(windows, np.int64) // self.run % self.workers
        return owners

    def successor(self, worker: int) -> int:
        """The worker that this one sends to."""
        return (worker + 1) % self.workers

    def is_passed_on(self, panes: Int64Array) -> BoolArray:
        """Whether the successor of each pane's owner needs the pane's result; never true for a single worker."""
        panes = np.asarray(panes, np.int64)
        next_run_starts = (self.run_of_pane(panes) + 1) * self.run * self.slide_panes
        passed: BoolArray = (panes >= next_run_starts) & (self.workers > 1)
        return passed

    def passed_on(self, worker: int, panes: range) -> Int64Array:
        """Those of these panes whose results this worker has to pass on to its successor."""
        numbers = np.arange(panes.start, panes.stop)
        passed: Int64Array = numbers[(self.owner_of_pane(numbers) == worker) & self.is_passed_on(numbers)]
        return passed

    def received(self, worker: int, panes: range) -> Int64Array:
        """Those of these panes whose results this worker gets from its predecessor."""
        return self.passed_on((worker - 1) % self.workers, panes)

    def needed_until(self, pane: int) -> int:
        """The last window that needs the result of a pane; after it the result can be forgotten."""
        return pane // self.slide_panes

    def messages(self, windows: range) -> int:
        """The number of results that are passed on so that these windows can be combined."""
        return int(np.count_nonzero(self.is_passed_on(self._panes(windows))))

    def messages_without_ring(self, windows: range) -> int:
        """The same number if panes and windows are assigned one by one, and a result goes to every owner that needs it.

        A worker that needs a result for several windows gets it once; the worker that computed it needs no message.

        >>> ring = Ring(size=100, slide=1, workers=16)
        >>> ring.messages(range(10_000)), ring.messages_without_ring(range(10_000))
        (10099, 151248)
        """
        panes = self._panes(windows)
        first = np.maximum(-(-(panes - self.window_panes + 1) // self.slide_panes), windows.start)
        last = np.minimum(panes // self.slide_panes, windows.stop - 1)
        # Consecutive windows have different owners until every worker has one.
        needing = np.minimum(last - first + 1, self.workers)
        own = panes % self.workers
        has_own = first + (own - first) % self.workers <= last
        return int((needing - has_own).sum())

    def _panes(self, windows: range) -> Int64Array:
        if len(windows) == 0:
            return np.empty(0, np.int64)
        return np.arange(self.panes_of(windows.start).start, self.panes_of(windows.stop - 1).stop)
