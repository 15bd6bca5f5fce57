"""Queues of the servers: every tuple waits for those before it, and each server does one thing after the other.

A server is the time at which it will have done all that it was given. A piece of work that arrives at t begins at t, or
at that time if it is later. A reducer finishes a window before it begins the next.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int32Array, Int64Array
from skewless.core.kernel import lean_kernel
from skewless.simulate.cluster import Costs

# Columns of `waits`.
COUNT, TOTAL, LONGEST = range(3)  # tuples that arrived in a slide, the sum of their latencies, and the longest


class Queues:
    """The queues of partitioners, combiners and reducers, slide by slide.

    Parameters
    ----------
    partitioners, combiners, reducers
        Their numbers.
    costs
        What their work costs.
    slide
        Seconds of a slide.
    slides
        The slides that will be simulated.
    """

    def __init__(
        self, partitioners: int, combiners: int, reducers: int, costs: Costs, *, slide: float, slides: int
    ) -> None:
        self.partitioners = np.zeros(partitioners)
        self.combiners = np.zeros(combiners)
        self.reducers = np.zeros(reducers)
        self.costs, self.slide = costs, slide
        self.waits = np.zeros((slides, 3))
        self.delay = np.zeros(slides)
        """When the last result of each window was there, after the end of the window."""
        self._ends: deque[tuple[int, float, FloatArray, Int64Array, Int64Array]] = deque()
        self._sent: FloatArray = np.zeros(0)
        self._arrived: FloatArray = np.zeros(0)
        self._workers: Int32Array = np.zeros(0, dtype=np.int32)

    def arrive(self, times: FloatArray, partitioner: Int64Array, workers: Int32Array, until: float) -> None:
        """Tuples arrive at partitioners, each at its time, and all that is sent on before `until` is combined."""
        sent = np.empty(len(times))
        _pass(self.partitioners, times, partitioner, self.costs.route, sent)
        if len(self._sent) or len(self.partitioners) > 1:  # else they are in the order of time already
            sent = np.concatenate([self._sent, sent])
            order = np.argsort(sent, kind="stable")
            sent = sent[order]
            times = np.concatenate([self._arrived, times])[order]
            workers = np.concatenate([self._workers, workers])[order]
        now = int(np.searchsorted(sent, until))
        self._sent, self._arrived, self._workers = sent[now:], times[now:], workers[now:]
        self._combine(sent[:now], times[:now], workers[:now], until)

    def end_window(self, number: int, emit: FloatArray, partials: Int64Array, keys: Int64Array) -> None:
        """The window of slide `number` is over for a combiner once all partitioners have sent what belongs to it.

        Parameters
        ----------
        number
            The slide that the window ends with.
        emit
            Seconds that each combiner takes for its partial results, and for the results that it forwards.
        partials
            Combiner x reducer: the partial results that the one sends to the other.
        keys
            The keys that they are of, at each reducer.
        """
        over = max((number + 1) * self.slide, float(self.partitioners.max()))
        self._ends.append((number, over, emit, partials, keys))

    def drain(self) -> None:
        """Do all that is left to do."""
        none = np.zeros(0)
        self.arrive(none, none.astype(np.int64), none.astype(np.int32), np.inf)

    def backlog(self, now: float) -> float:
        """Seconds that the busiest server needs for what it was given before."""
        return max(0.0, *(float(servers.max()) - now for servers in (self.partitioners, self.combiners, self.reducers)))

    def _combine(self, sent: FloatArray, arrived: FloatArray, workers: Int32Array, until: float) -> None:
        done = 0
        # A tuple that is sent just when a window ends was still in it, unless sending takes no time.
        side: Literal["left", "right"] = "right" if self.costs.route > 0 else "left"
        while self._ends and self._ends[0][1] < until:
            number, over, emit, partials, keys = self._ends.popleft()
            before = max(done, int(np.searchsorted(sent, over, side=side)))
            self._add(sent[done:before], arrived[done:before], workers[done:before])
            done = before
            np.maximum(self.combiners, over, out=self.combiners)
            self.combiners += emit
            order, costs = np.argsort(self.combiners, kind="stable"), self.costs
            last = _merge(self.reducers, self.combiners, order, partials, costs.partial, keys, costs.key)
            self.delay[number] = max(float(self.combiners.max()), last) - (number + 1) * self.slide
        self._add(sent[done:], arrived[done:], workers[done:])

    def _add(self, sent: FloatArray, arrived: FloatArray, workers: Int32Array) -> None:
        _add(self.combiners, sent, arrived, workers, self.costs.tuple, self.waits, self.slide)


@lean_kernel
def _pass(servers: FloatArray, times: FloatArray, server: Int64Array, cost: Float, sent: FloatArray) -> None:
    """Each tuple goes through its server; `server` has an entry for each tuple, or none if there is one server."""
    step = np.int64(server.shape[0] > 0)
    for i in range(times.shape[0]):
        s = server[i] if step else 0
        servers[s] = max(servers[s], times[i]) + cost
        sent[i] = servers[s]


@lean_kernel
def _add(
    servers: FloatArray,
    sent: FloatArray,
    arrived: FloatArray,
    server: Int32Array,
    cost: Float,
    waits: FloatArray,
    slide: Float,
) -> None:
    """Each tuple is combined in its turn; its latency counts for the slide in which it arrived."""
    last = waits.shape[0] - 1
    for i in range(sent.shape[0]):
        s = server[i]
        servers[s] = max(servers[s], sent[i]) + cost
        row = min(last, np.int64(arrived[i] / slide))
        latency = servers[s] - arrived[i]
        waits[row, COUNT] += 1
        waits[row, TOTAL] += latency
        waits[row, LONGEST] = max(waits[row, LONGEST], latency)


@lean_kernel
def _merge(
    servers: FloatArray,
    emitted: FloatArray,
    order: Int64Array,
    partials: Int64Array,
    partial: Float,
    keys: Int64Array,
    key: Float,
) -> Float:
    """Reducers merge what comes, in the order in which combiners have emitted it; return when the last is done."""
    last = 0.0
    for r in range(servers.shape[0]):
        for c in order:
            if partials[c, r] > 0:
                servers[r] = max(servers[r], emitted[c]) + partials[c, r] * partial
        if keys[r] > 0:
            servers[r] += keys[r] * key
            last = max(last, servers[r])
    return last
