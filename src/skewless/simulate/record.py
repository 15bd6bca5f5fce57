"""Collects the measurements of a run, step by step."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.simulate.result import Run


class Steps:
    """The arrays of a `Run` while it is filled.

    Parameters
    ----------
    steps, combiners, watched, servers
        Their numbers.
    slides
        Steps in a window.
    """

    def __init__(self, steps: int, combiners: int, slides: int, watched: int, servers: int) -> None:
        self.slides = slides
        self._loads = np.zeros((steps, combiners), dtype=np.int64)
        self._whole = np.zeros((5, steps), dtype=np.int64)
        self.partials, self.gamma, self.forwarded, self.made, self.keys = self._whole
        self.watched = np.zeros((steps, watched), dtype=np.int64)
        self.work, self.merging = np.zeros((2, steps, servers))
        self.latency, self.longest, self.delay, self.backlog = np.zeros((4, steps))

    def end_slide(self, step: int, loads: Int64Array, partials: Int64Array, watched: Int64Array) -> None:
        """Record the tuples that each combiner got, what each reducer merges, and the fragments of the watched keys."""
        self._loads[step] = loads
        self.partials[step], self.gamma[step] = partials.sum(), partials.max()
        self.watched[step] = watched

    def results(self, step: int, keys: int, merged: int, forwarded: int) -> None:
        """Record the results of a window; it is an error if they are not one for each key."""
        if merged + forwarded != keys:
            raise SkewlessError(
                f"a window of {keys} keys has {merged + forwarded} results, as keys that were not hot have been split; "
                "without forward=True, all are merged"
            )
        self.keys[step], self.made[step], self.forwarded[step] = keys, merged + forwarded, forwarded

    def finish(self, step: float) -> Run:
        """The run, with steps of so many seconds."""
        summed = np.cumsum(self._loads, axis=0)
        windows = summed.copy()
        windows[self.slides :] -= summed[: -self.slides]
        return Run(
            step=step,
            tuples=self._loads.sum(axis=1),
            loads=windows,
            partials=self.partials,
            gamma=self.gamma,
            forwarded=self.forwarded,
            results=self.made,
            keys=self.keys,
            watched=self.watched,
            work=self.work,
            merging=self.merging,
            latency=self.latency,
            longest=self.longest,
            delay=self.delay,
            backlog=self.backlog,
        )
