"""What a simulated cluster did, as arrays over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError


@dataclass(frozen=True, eq=False)
class Run:
    """The measurements of a run: an entry for each slide, or for each micro-batch, which are its steps.

    Attributes
    ----------
    step
        Seconds of a step.
    tuples
        Tuples that arrived in the step.
    loads
        Steps x combiners: tuples of the window that ends with the step.
    partials
        Partial results that reducers had to merge at the end of the step.
    gamma
        Those of the busiest reducer: Dalton's aggregation cost (eq. 2).
    forwarded
        Results that combiners emitted themselves.
    results
        All results of the window that ends with the step.
    keys
        The keys of that window; there must be a result for each.
    watched
        Steps x keys: the number of combiners that held each of the keys that were asked for.
    work
        Steps x servers: seconds of work that each server was given in the step. Stages of a micro-batch follow each
        other, so that there is one server for all.
    merging
        The part of it that follows the combining of tuples: partial results that are emitted and merged, and results.
        Of micro-batches, nothing is known of it.
    latency, longest
        Seconds from the arrival of a tuple at a partitioner until it was combined (in micro-batches, until the result
        was there), by the step in which it arrived: on average, and at most.
    delay
        Seconds from the end of the window that ends with the step until all its results were there.
    backlog
        Seconds that the busiest server needs at the end of the step for what it was given before.
    """

    step: float
    tuples: Int64Array
    loads: Int64Array
    partials: Int64Array
    gamma: Int64Array
    forwarded: Int64Array
    results: Int64Array
    keys: Int64Array
    watched: Int64Array
    work: FloatArray
    merging: FloatArray
    latency: FloatArray
    longest: FloatArray
    delay: FloatArray
    backlog: FloatArray

    @property
    def time(self) -> FloatArray:
        """When each step ended."""
        time: FloatArray = self.step * np.arange(1.0, len(self.tuples) + 1)
        return time

    @property
    def imbalance(self) -> FloatArray:
        """Dalton's I (eq. 1): the tuples by which the busiest combiner exceeds the average in each window."""
        excess: FloatArray = self.loads.max(axis=1) - self.loads.mean(axis=1)
        return excess

    @property
    def max_over_avg(self) -> FloatArray:
        """The busiest combiner over the average one in each window; 1 where there was nothing."""
        ratio: FloatArray = self.loads.max(axis=1) / np.maximum(self.loads.mean(axis=1), 1e-300)
        ratio[~self.loads.any(axis=1)] = 1.0
        return ratio

    @property
    def rate(self) -> FloatArray:
        """Tuples a second that arrived in each step."""
        rate: FloatArray = self.tuples / self.step
        return rate

    @property
    def capacity(self) -> FloatArray:
        """Tuples a second that would have kept the busiest server just busy, with the work of each step as it was."""
        busiest = self.work.max(axis=1)
        capacity = np.full(len(busiest), np.inf)
        np.divide(self.tuples, busiest, out=capacity, where=busiest > 0)
        return capacity

    @property
    def throughput(self) -> FloatArray:
        """Tuples a second that got through in each step: what arrived, or what the busiest server could do."""
        throughput: FloatArray = np.minimum(self.rate, self.capacity)
        return throughput

    def demand(self, since: float = 0.0) -> float:
        """Work that the busiest server got from `since` on, over its time; above 1, its queue grows without end.

        Parameters
        ----------
        since
            The seconds at the beginning that do not count.
        """
        counted = self.work[self.time > since + 1e-9]
        if len(counted) == 0:
            raise SkewlessError(f"nothing was measured after {since} s; the run has {self.time[-1]} s")
        return float(counted.mean(axis=0).max() / self.step)
