"""Assigns panes to a ring of workers, in which each worker receives results only from the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.chop.assignment import InTurn, worker_in_turn
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows


@dataclass(frozen=True)
class PaneRing:
    """Says which worker processes a pane, and how many consecutive windows a worker combines.

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
    The paper's Figure 4, where everything is numbered from 1: pane 3 is processed by node 1, panes 4 and 5 by node 2.

    >>> ring = PaneRing(size=6, slide=4, workers=3)
    >>> ring.pane, ring.window_panes, ring.slide_panes, ring.run
    (2, 3, 2, 1)
    >>> ring.owner_of_pane(np.array([2, 3, 4]))
    array([0, 1, 1])

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
    def windows(self) -> Windows:
        """The windows that the panes make up."""
        return Windows(self.size, self.slide)

    @property
    def pane(self) -> int:
        """Length of a pane."""
        return self.windows.pane

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

    def run_of_pane(self, panes: Int64Array) -> Int64Array:
        """The run of windows whose worker gets the rows of each pane: the first run that needs the pane."""
        runs: Int64Array = (np.asarray(panes, np.int64) - self.shared) // (self.run * self.slide_panes)
        return runs

    def owner_of_pane(self, panes: Int64Array) -> Int64Array:
        """The worker that gets the rows of each pane."""
        return self.run_of_pane(panes) % self.workers


@dataclass(frozen=True)
class PaneAssignment(InTurn):
    """Assigns panes as the ring says; the hash of a key says at which worker it starts.

    Parameters
    ----------
    ring
        The ring of workers.
    """

    ring: PaneRing

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker of each pane of a key."""
        return worker_in_turn(hashes, self.ring.run_of_pane(windows), self.ring.workers)

    def next_of(self, worker: int, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """For each pane, the first one from there on that this worker owns."""
        ring, runs = self.ring, self.ring.run_of_pane(windows)
        ahead = (worker - worker_in_turn(hashes, runs, ring.workers)) % ring.workers
        return np.where(ahead == 0, windows, (runs + ahead) * ring.run * ring.slide_panes + ring.shared)

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Each row once, with the worker of its pane."""
        return np.arange(len(times)), self.worker_of(hashes, times // self.ring.pane)
