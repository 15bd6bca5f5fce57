"""Latency and throughput of each reducer over time, of a simulated run or of one on Spark, and what they show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.autoflow.setting import FACTOR, Case, bids
from skewless.core.arrays import FloatArray, Int64Array
from skewless.simulate.dataflow import Flow

FILE = Path(__file__).parents[2] / "docs" / "results" / "autoflow.json"
LATENCY_EVERY, THROUGHPUT_EVERY = 100, 1000
WITHIN = 5
"""Periods within which latency has to stop rising, and over which it is looked at."""
ROUNDED = 1e-6
"""Seconds by which a stamp, found as when a row was done minus its latency, may be off."""

Points = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Trace:
    """A run.

    Attributes
    ----------
    seconds
        For how long rows came.
    latency
        Of each reducer, when every 100th row was done, and its latency.
    throughput
        Of each reducer, when every 1000th row was done, and rows a second since the time before.
    ends, rows
        The ends of periods, and the rows of each reducer in each of them.
    changed
        When rows went by another placement.
    moved
        When the states of that change had left their reducers.
    kept
        Rows that were kept because a slot moved.
    waiting
        When every 100th of the rows came that are not done at the end.
    end
        When the last rows came, if that is after `seconds`, as it is if the last micro-batch ended before.
    """

    seconds: float
    latency: tuple[Points, ...]
    throughput: tuple[Points, ...]
    ends: FloatArray
    rows: FloatArray
    changed: FloatArray
    moved: FloatArray
    kept: int = 0
    waiting: FloatArray = field(default_factory=lambda: np.zeros(0))
    end: float = 0.0

    @property
    def peak(self) -> float:
        """The longest latency of a sampled row, of all reducers."""
        return self.peak_within(0.0, max(self.seconds, self.end))

    def peak_within(self, start: float, end: float) -> float:
        """The same, of rows that were done in this time, and of those that came before its end and still wait then.

        What still waits counts with the seconds until the end of this time. Otherwise a long micro-batch would count
        for nothing as long as it runs. No number if there is no such row.
        """
        found = [end - self.waiting[self.waiting < end]]
        for time, latency in self.latency:
            came = time - latency
            found += [latency[(time >= start) & (time < end)], end - came[(time >= end) & (came < end)]]
        return max((float(each.max()) for each in found if len(each)), default=float("nan"))

    def rate(self, worker: int) -> float:
        """Rows a second of a reducer in the last third, from what is shown of its throughput."""
        time, rates = self.throughput[worker]
        since = np.diff(time, prepend=0.0)
        last = time > self.seconds * 2 / 3
        return float(rates[last] @ since[last] / since[last].sum()) if last.any() else float("nan")

    def over_others(self, workers: Sequence[int]) -> float:
        """The throughput of these reducers over that of the others in the last third, means of both."""
        rates = np.array([self.rate(worker) for worker in range(len(self.throughput))])
        these = np.isin(np.arange(len(rates)), workers)
        return float(rates[these].mean() / rates[~these].mean())

    @property
    def spread(self) -> float:
        """How far the loads of the last third are apart: the difference over the largest."""
        return spread(self.rows[self.ends > self.seconds * 2 / 3])

    def trend(self, workers: Sequence[int]) -> float:
        """The largest slope of these reducers' latency in the last third, seconds a second."""
        since = self.seconds * 2 / 3
        found = [(time[time > since], latency[time > since]) for time, latency in map(self.by_moment, workers)]
        return float(np.max([slope(*each) for each in found]))

    @property
    def period(self) -> float:
        """Seconds of a period."""
        return float(np.median(np.diff(self.ends))) if len(self.ends) > 1 else self.seconds

    def rising(self, worker: int, parts: int, since: float = -np.inf) -> float:
        """The smallest slope of a reducer's latency in equally long parts of the run, seconds a second.

        What is done at one moment counts if all of it was stamped since then: a micro-batch that is committed after a
        hot spot has begun can be full of rows from before. There are fewer parts if a part would have a single moment.
        """
        time, latency = self.by_moment(worker, since)
        most = max(1, min(parts, len(time) // 2))
        inside = zip(np.array_split(time, most), np.array_split(latency, most), strict=True)
        return float(np.min([slope(*each) for each in inside]))

    def by_moment(self, worker: int, since: float = -np.inf) -> Points:
        """The mean latency of the rows that were done at the same time, if all of them were stamped since then."""
        time, latency = self.latency[worker]
        moments, where = np.unique(time, return_inverse=True)
        stamped = np.full(len(moments), np.inf)
        np.minimum.at(stamped, where, time - latency)
        kept = stamped >= since - ROUNDED
        return moments[kept], (np.bincount(where, latency) / np.maximum(np.bincount(where), 1))[kept]

    def settled(self, since: float = 0.0) -> int | None:
        """The first change since then after which loads are within the factor, over some periods; None without one."""
        for number, at in enumerate(self.changed):
            after = self._after(at)
            if at >= since and len(after) and spread(self.rows[after]) <= FACTOR:
                return number
        return None

    def seen(self, since: float = 0.0) -> bool:
        """Whether the run has a period by which a change since then can be judged."""
        return any(at >= since and len(self._after(at)) > 0 for at in self.changed)

    def _after(self, at: float) -> Int64Array:
        """The periods that show what a change brings; the one after it still has rows from before."""
        return np.flatnonzero(self.ends > at + self.period / 2)[1 : 1 + WITHIN]

    def until_no_rise(self, workers: Sequence[int], since: float = 0.0) -> float:
        """Periods from the change, since then, that levels the loads until the latency of no hot reducer rises.

        Infinity if no change levels them.
        """
        number = self.settled(since)
        if number is None:
            return float("inf")
        start = float(self.moved[: number + 1].max())
        return max(self.rises_for(worker, start) for worker in workers)

    def over_before(self, workers: Sequence[int], since: float = 0.0) -> float:
        """The longest latency while the first change since then moves state, over the median just before it.

        From the change until some periods after its state has left, over what these reducers have in the period before.
        Infinity without a change, or if nothing was done in that period.
        """
        changes = np.flatnonzero(self.changed >= since)
        if not len(changes):
            return float("inf")
        told, left = self.changed[changes[0]], self.moved[changes[0]]
        before = np.concatenate(
            [
                late[(time > told - self.period) & (time <= told)]
                for time, late in (self.latency[worker] for worker in workers)
            ]
        )
        during = self.peak_within(told, max(told, left) + WITHIN * self.period)
        return float(during / np.median(before)) if len(before) else float("inf")

    def rises_for(self, worker: int, start: float) -> float:
        """Periods from this time until the latency of a reducer no longer rises over the next ones."""
        time, latency = self.by_moment(worker)
        for periods in range(4 * WITHIN):
            since = start + periods * self.period
            inside = (time >= since) & (time < since + WITHIN * self.period)
            if inside.sum() > 1 and slope(time[inside], latency[inside]) <= 0:
                return periods
        return float("inf")


def slope(time: FloatArray, latency: FloatArray) -> float:
    """The slope of the straight line through these points.

    >>> round(slope(np.array([0.0, 1, 2]), np.array([1.0, 3, 5])), 6)
    2.0
    """
    if len(time) < 2:
        return float("nan")
    return float(np.polyfit(time - time.mean(), latency, 1)[0])


def spread(rows: FloatArray) -> float:
    """How far the loads of workers are apart: the difference between the largest and the smallest, over the largest.

    >>> spread(np.array([[10.0, 8.0], [10.0, 8.0]]))
    0.2
    """
    loads = rows.sum(axis=0)
    return float((loads.max() - loads.min()) / loads.max()) if len(rows) and loads.max() else float("nan")


def simulated(found: Flow, case: Case, period: float) -> Trace:
    """A simulated run; what is done after the last row came counts as waiting."""
    workers = range(case.workers)
    ends = np.arange(period, case.seconds + period / 2, period)
    sampled = [found.sampled(worker, LATENCY_EVERY) for worker in workers]
    late = [(time - latency)[time > case.seconds] for time, latency in sampled]
    rows = np.stack([found.loads(end - period, end, case.workers) for end in ends]).astype(float)
    return Trace(
        case.seconds,
        tuple(_until(points, case.seconds) for points in sampled),
        tuple(_until(found.throughput(worker, THROUGHPUT_EVERY), case.seconds) for worker in workers),
        ends,
        rows,
        np.array([move.told for move in found.moves]),
        np.array([move.left for move in found.moves]),
        found.kept,
        np.concatenate(late),
        case.seconds,
    )


def in_batches(found: Flow, case: Case) -> Trace:
    """A run in simulated micro-batches, each of which is a period."""
    ends, where = np.unique(found.done[found.done <= case.seconds], return_inverse=True)
    rows = np.zeros((len(ends), case.workers))
    np.add.at(rows, (where, found.worker[found.done <= case.seconds]), 1)
    throughput = tuple(_rates(ends, rows[:, worker]) for worker in range(case.workers))  # its rows are done at once
    whole = simulated(found, case, case.seconds)
    return replace(whole, seconds=float(ends[-1]), throughput=throughput, ends=ends, rows=rows)


def _until(points: Points, end: float) -> Points:
    time, value = points
    return time[time <= end], value[time <= end]


@cache
def measured() -> Any:
    """What `make bench-autoflow` has measured; empty before."""
    return json.loads(FILE.read_text()) if FILE.exists() else {"runs": {}}


def on_spark(case: Case, name: str) -> Trace | None:
    """The run on Spark; None if it was not measured.

    A period is a micro-batch. A placement counts from the micro-batch that first went by it, and its state has left
    when the one before was committed.
    """
    batches = measured()["runs"].get(case.name, {}).get(name)
    return None if batches is None else of_batches(batches, case, _sampled(case))


@cache
def _sampled(case: Case) -> FloatArray:
    """When the rows come that are sampled on Spark, as its source is made from the same bids."""
    at: FloatArray = bids(case)[0][::LATENCY_EVERY]
    return at


def of_batches(batches: Sequence[Any], case: Case, sampled: FloatArray) -> Trace:
    """The run of these micro-batches, from a source whose sampled rows come at these times.

    Micro-batches take rows in the order of their times, so that the sampled rows which none has taken are the last.
    """
    ends = np.array([batch["commit"] for batch in batches])
    rows = np.array([batch["rows"] for batch in batches], float)
    changes = [i for i in range(1, len(batches)) if batches[i]["force"] != batches[i - 1]["force"]]
    latency = []
    for worker in range(case.workers):
        pairs = [(batch["commit"], batch["commit"] - at) for batch in batches for at in batch["at"][worker]]
        latency.append((np.array([time for time, _ in pairs]), np.array([late for _, late in pairs])))
    return Trace(
        float(ends[-1]),
        tuple(latency),
        tuple(_rates(ends, rows[:, worker]) for worker in range(case.workers)),
        ends,
        rows,
        np.array([batches[i]["began"] for i in changes]),
        np.array([batches[i - 1]["commit"] for i in changes]),
        waiting=sampled[sum(len(at) for batch in batches for at in batch["at"]) :],
        end=case.seconds,
    )


def _rates(ends: FloatArray, rows: FloatArray) -> Points:
    """Rows a second between commits, over as many micro-batches as have a thousand rows."""
    times, rates, since, many = [], [], 0.0, 0.0
    for end, count in zip(ends.tolist(), rows.tolist(), strict=True):
        many += count
        if many >= THROUGHPUT_EVERY:
            times.append(end)
            rates.append(many / (end - since))
            since, many = end, 0.0
    return np.array(times), np.array(rates)


def fixed_cost() -> float | None:
    """Seconds of a micro-batch on Spark that are not its busiest worker's; None before it was measured."""
    found = measured()
    costs = [
        batch["commit"] - batch["began"] - max(batch["rows"]) * found["work"]
        for by_name in found["runs"].values()
        for batches in by_name.values()
        for batch in batches[2:]
    ]
    return float(np.median(costs)) if costs else None
