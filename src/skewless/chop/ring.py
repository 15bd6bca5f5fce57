"""Assigns panes and windows to a ring of workers, in which each worker receives results only from the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.chop.assignment import Assignment
from skewless.core.arrays import BoolArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows


@dataclass(frozen=True)
class PaneRing:
    """Says which worker processes a pane, which one combines a window, and which results go to the next worker.

    Runs of consecutive windows go to the workers in turn. A worker also gets the panes that its run needs and the run
    before it does not. The results of the other panes of its windows come from the worker of the run before. A run is
    so long that a worker never has to pass on a result that it has received.

    Everything is computed from the numbers of panes and windows: no worker needs to be told where they are.

    Parameters
    ----------
    size, slide
        The size and slide of the windows, in whole units of time or in rows.
    workers
        The number of workers in the ring.
    run
        Consecutive windows that go to one worker; if not given, the shortest run that is possible.

    Examples
    --------
    The paper's Figure 4, where everything is numbered from 1:

    >>> ring = PaneRing(size=6, slide=4, workers=3)
    >>> ring.pane, ring.window_panes, ring.slide_panes, ring.run
    (2, 3, 2, 1)
    >>> ring.panes_of(1)  # window w2
    range(2, 5)
    >>> ring.owner_of_window(np.array([1])), ring.owner_of_pane(np.array([2, 3, 4]))
    (array([1], dtype=int32), array([0, 1, 1], dtype=int32))
    >>> ring.passed_on(0, range(0, 8)), ring.received(1, range(0, 8))  # R3, from node 1 to node 2
    (array([2]), array([2]))

    References
    ----------
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (sections 2.4.2 and 2.4.3).
    """

    size: int
    slide: int
    workers: int
    run: int = 0

    def __post_init__(self) -> None:
        """Check the windows, and find the run if none is given."""
        Windows(self.size, self.slide)
        if self.workers < 1:
            raise SkewlessError(f"workers must be at least 1, not {self.workers}")
        shortest = max(1, -(-self.shared // self.slide_panes))
        if self.run == 0:
            object.__setattr__(self, "run", shortest)
        if self.run < shortest:
            raise SkewlessError(
                f"a run of {self.run} windows is too short: results would have to pass more than one worker; "
                f"give at least {shortest}"
            )

    @property
    def pane(self) -> int:
        """Length of a pane."""
        return Windows(self.size, self.slide).panes.size

    @property
    def window_panes(self) -> int:
        """Panes in a window, the paper's w_w."""
        return self.size // self.pane

    @property
    def slide_panes(self) -> int:
        """Panes from a window to the next, the paper's s_w."""
        return self.slide // self.pane

    @property
    def shared(self) -> int:
        """Panes that two consecutive runs share, whose results a worker gets from the one before it for each run."""
        return self.window_panes - self.slide_panes

    def panes_of(self, window: int) -> range:
        """The panes that make up a window."""
        return range(window * self.slide_panes, window * self.slide_panes + self.window_panes)

    def owner_of_window(self, windows: Int64Array) -> Int32Array:
        """The worker that combines the panes of each window."""
        return self._worker(np.asarray(windows, np.int64) // self.run)

    def owner_of_pane(self, panes: Int64Array) -> Int32Array:
        """The worker that gets the rows of each pane."""
        return self._worker(self._run_of_pane(panes))

    def successor(self, worker: int) -> int:
        """The worker that this one sends to."""
        return (worker + 1) % self.workers

    def is_passed_on(self, panes: Int64Array) -> BoolArray:
        """Whether the successor of each pane's owner needs the pane's result; never true for a single worker."""
        panes = np.asarray(panes, np.int64)
        next_run_starts = (self._run_of_pane(panes) + 1) * self.run * self.slide_panes
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

        >>> ring = PaneRing(size=100, slide=1, workers=16)
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

    def _run_of_pane(self, panes: Int64Array) -> Int64Array:
        runs: Int64Array = (np.asarray(panes, np.int64) - self.shared) // (self.run * self.slide_panes)
        return runs

    def _worker(self, runs: Int64Array) -> Int32Array:
        return (runs % self.workers).astype(np.int32)


@dataclass(frozen=True)
class PaneAssignment(Assignment):
    """Assigns panes as the ring says; the hash of a key says at which worker it starts.

    Parameters
    ----------
    ring
        The ring of workers.
    """

    ring: PaneRing

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker of each pane of a key."""
        workers = self.ring.workers
        worker: Int64Array = (np.asarray(hashes, np.int64) % workers + self.ring.owner_of_pane(windows)) % workers
        return worker

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Each row once, with the worker of its pane."""
        return np.arange(len(times)), self.worker_of(hashes, times // self.ring.pane)

    def batch_of(self, window: int) -> range:
        """This pane alone."""
        return range(window, window + 1)
