"""Runs a cluster over a stream: tuples are routed, combined and reduced, slide by slide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.simulate.arrivals import Feed, Source
from skewless.simulate.cluster import Cluster, MicroBatches
from skewless.simulate.fragments import Fragments, reducers_of
from skewless.simulate.partitioners import Partitioners, Router, dealt
from skewless.simulate.queues import COUNT, LONGEST, TOTAL, Queues
from skewless.simulate.record import Steps
from skewless.simulate.result import Run

NONE = np.zeros(0, dtype=np.int64)


def run(
    cluster: Cluster,
    sources: Source | Sequence[Source],
    partitioners: Partitioners | Router,
    seconds: float,
    watch: Sequence[int] = (),
) -> Run:
    """Simulate a cluster for so many seconds of its own time.

    Routing does not wait for queues, and queues have no limit: where more comes than a server can do, latencies grow.

    Parameters
    ----------
    cluster
        The servers, their windows and their costs.
    sources
        What arrives. Tuple i of source s goes to partitioner (s + i sources) modulo the partitioners, so that with as
        many sources as partitioners each has its own.
    partitioners
        A splitter, if there is one partitioner; else `Partitioners`, or `Cooperation` for those that learn together.
        Give splitters slide=None and the window's number of slides, and their slides are those of the cluster.
    seconds
        How long; a whole number of slides.
    watch
        Keys whose fragments are recorded.

    Examples
    --------
    >>> from skewless import split
    >>> from skewless.core.windows import Windows
    >>> from skewless.simulate import Cluster, Costs, Source
    >>> from skewless.workload import Zipf
    >>> cluster = Cluster(8, windows=Windows.of("10 seconds", "1 second"), costs=Costs(tuple=1e-3, partial=1e-6))
    >>> source = Source(Zipf(1.5), rate=4000.0)
    >>> hashed = run(cluster, source, split.Hash(8), seconds=20)
    >>> learned = run(cluster, source, split.Dalton(8, slide=None), seconds=20)
    >>> round(hashed.demand(since=10), 1), round(learned.demand(since=10), 1)
    (1.7, 0.5)
    """
    feeds = [source.feed() for source in ([sources] if isinstance(sources, Source) else sources)]
    if not feeds:
        raise SkewlessError("there are no sources; give at least one")
    team = partitioners if isinstance(partitioners, Partitioners) else Partitioners(partitioners)
    steps = round(seconds / cluster.slide) if np.isfinite(seconds) else 0
    if steps < 1 or abs(steps * cluster.slide - seconds) > 1e-6:
        raise SkewlessError(f"{seconds} s are not 1, 2, 3, ... slides of {cluster.slide} s; give a multiple of that")
    team.begin(cluster.combiners)
    stream = _Stream(feeds, len(team))
    watched = np.array(watch, dtype=np.int64)
    if cluster.engine is None:
        return _tuple_at_a_time(cluster, stream, team, steps, watched)
    return _micro_batches(cluster, cluster.engine, stream, team, seconds, watched)


class _Stream:
    """All sources together, in the order of time, and the partitioner of each tuple."""

    def __init__(self, feeds: Sequence[Feed], partitioners: int) -> None:
        self.feeds, self.partitioners = feeds, partitioners
        self.given = np.zeros(len(feeds), dtype=np.int64)

    def until(self, end: float) -> tuple[Int64Array, FloatArray, Int64Array]:
        parts = [feed.until(end) for feed in self.feeds]
        lengths = [len(keys) for keys, _times in parts]
        at = dealt(len(parts), self.partitioners, lengths, self.given) if self.partitioners > 1 else [NONE]
        self.given += lengths
        if len(parts) == 1:
            return *parts[0], at[0]
        times = np.concatenate([times for _keys, times in parts])
        order = np.argsort(times, kind="stable")
        keys = np.concatenate([keys for keys, _times in parts])[order]
        return keys, times[order], np.concatenate(at)[order] if self.partitioners > 1 else NONE


def _tuple_at_a_time(cluster: Cluster, stream: _Stream, team: Partitioners, steps: int, watched: Int64Array) -> Run:
    n, m, costs = cluster.combiners, cluster.reducers, cluster.costs
    fragments = Fragments(n, m, cluster.slides)
    queues = Queues(len(team), n, m, costs, slide=cluster.slide, slides=steps)
    record = Steps(steps, n, cluster.slides, len(watched), servers=len(team) + n + m)
    forwarding = _Forwarding(cluster, fragments)
    for step in range(steps):
        end = (step + 1) * cluster.slide
        keys, times, at = stream.until(end)
        workers = _checked(team.route(keys, times, at), n)
        fragments.add(keys, workers)
        queues.arrive(times, at, workers, end)
        team.advance(end)
        partials, merged, forwarded = forwarding.end_slide(team)
        emit = costs.emit * fragments.live.sum(axis=1) + costs.key * forwarded
        reduce = costs.partial * partials.sum(axis=0) + costs.key * merged
        queues.end_window(step, emit, partials, merged)
        loads = np.bincount(workers, minlength=n)
        routed = np.bincount(at, minlength=len(team)) if len(at) else np.full(len(team), len(keys))
        record.work[step] = np.concatenate([costs.route * routed + team.spent, costs.tuple * loads + emit, reduce])
        record.merging[step] = np.concatenate([np.zeros(len(team)), emit, reduce])
        record.end_slide(step, loads, partials.sum(axis=0), fragments.held(watched).sum(axis=1))
        record.results(step, int(fragments.live_keys.sum()), int(merged.sum()), int(forwarded.sum()))
        queues.hold(end, team.spent)
        record.backlog[step] = queues.backlog(end)
        team.end_slide()
        fragments.end_slide()
    queues.drain()
    waits = queues.waits
    record.latency[:] = waits[:, TOTAL] / np.maximum(1, waits[:, COUNT])
    record.longest[:] = waits[:, LONGEST]
    record.delay[:] = queues.delay
    return record.finish(cluster.slide)


class _Forwarding:
    """What combiners send to reducers at the end of a window, and what they emit themselves.

    A key is forwarded if no partitioner held it hot at any time in the window, and if partitioners have told each other
    before the window ended. A key that became hot at one of them after their last message is known here at once, though
    in a real cluster the others would hear of it with the next message: a window then has one result of each key.
    """

    def __init__(self, cluster: Cluster, fragments: Fragments) -> None:
        self.cluster, self.fragments = cluster, fragments
        self._slide = 0
        self._hot: dict[int, int] = {}  # the last slide in which a key was hot
        self._unknown = -cluster.slides  # the last slide in which any key may have been split

    def end_slide(self, team: Partitioners) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Combiner x reducer: partial results sent; keys merged by each reducer; results forwarded by each combiner."""
        live, live_keys = self.fragments.live, self.fragments.live_keys
        self._slide += 1
        nothing = np.zeros(len(live), dtype=np.int64)
        if not self.cluster.forward:
            return live.copy(), live_keys.copy(), nothing
        hot = team.hot()
        gone = self._slide - self.cluster.slides
        if hot is None:
            self._unknown = self._slide
        else:
            self._hot.update(dict.fromkeys(hot.tolist(), self._slide))
        self._hot = {key: slide for key, slide in self._hot.items() if slide > gone}
        if self._unknown > gone or not team.synced:
            return live.copy(), live_keys.copy(), nothing
        keys = np.fromiter(self._hot, dtype=np.int64, count=len(self._hot))
        held, reducer = self.fragments.held(keys), reducers_of(keys, self.cluster.reducers)
        partials = np.zeros_like(live)
        np.add.at(partials.T, reducer, held)
        merged = np.bincount(reducer[held.any(axis=1)], minlength=self.cluster.reducers)
        return partials, merged, live.sum(axis=1) - partials.sum(axis=1)


def _micro_batches(
    cluster: Cluster, engine: MicroBatches, stream: _Stream, team: Partitioners, seconds: float, watched: Int64Array
) -> Run:
    """Collect, partition, combine and reduce, one after the other; the next micro-batch waits for this one."""
    n, m, costs = cluster.combiners, cluster.reducers, cluster.costs
    per_slide, steps = round(cluster.slide / engine.interval), round(seconds / engine.interval)
    fragments = Fragments(n, m, 1)
    window = Fragments(1, m, cluster.slides * per_slide)
    record = Steps(steps, n, cluster.slides * per_slide, len(watched), servers=1)
    free = 0.0
    for step in range(steps):
        end = (step + 1) * engine.interval
        keys, times, at = stream.until(end)
        workers = _checked(team.route_batch(keys, at), n)
        fragments.add(keys, workers)
        window.add(keys, np.zeros(len(keys), dtype=np.int32))
        loads, partials = np.bincount(workers, minlength=n), fragments.live.sum(axis=0)
        routed = np.bincount(at, minlength=len(team)) if len(at) else np.array([len(keys)])
        ended = window.live_keys if (step + 1) % per_slide == 0 else np.zeros(m, dtype=np.int64)
        record.work[step, 0] = engine.overhead + (
            costs.route * routed.max()
            + (costs.plan * fragments.live_keys.sum() if team.plans else 0.0)
            + (costs.tuple * loads + costs.emit * fragments.live.sum(axis=1)).max()
            + (costs.partial * partials + costs.key * ended).max()
        )
        free = max(free, end) + record.work[step, 0]
        record.end_slide(step, loads, partials, fragments.held(watched).sum(axis=1))
        record.results(step, int(ended.sum()), int(ended.sum()), 0)
        record.backlog[step] = record.delay[step] = free - end
        record.latency[step] = free - times.mean() if len(times) else 0.0
        record.longest[step] = free - times[0] if len(times) else 0.0
        team.end_batch()
        fragments.end_slide()
        window.end_slide()
    return record.finish(engine.interval)


def _checked(workers: Int32Array, combiners: int) -> Int32Array:
    if len(workers) and not 0 <= workers.min() <= workers.max() < combiners:
        raise SkewlessError(
            f"workers run from 0 to {combiners - 1}, but tuples were sent to {workers.min()} to {workers.max()}; give "
            "splitters as many workers as there are combiners"
        )
    return workers
