"""Sources, mappers and reducers, tuple at a time over FIFO channels, and control messages among the rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any, Literal, get_args

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.simulate.dataflow.checks import check_owners, check_seconds, owners_after
from skewless.simulate.dataflow.mapper import Mapper
from skewless.simulate.dataflow.message import Control, Row, State
from skewless.simulate.dataflow.reducer import Reducer
from skewless.simulate.dataflow.result import Flow, Moved, Stream
from skewless.simulate.dataflow.scheduler import Instruction, Scheduler

Protocol = Literal["autoflow", "barrier"]
_SOURCE, _CONTROL, _REDUCER, _DONE, _STATE, _REPORT, _PERIOD = range(7)


@dataclass(frozen=True)
class Network:
    """What rows and messages cost, in seconds.

    Parameters
    ----------
    work
        Of a row in a reducer.
    route
        Of a row in a mapper.
    delay
        Of a message in a channel.
    lags
        More of that for the messages of each source, so that sources are not level; none if it is empty.
    state
        For which the total of a key is on its way when its slot moves.
    """

    work: float
    route: float = 1e-5
    delay: float = 1e-3
    lags: tuple[float, ...] = ()
    state: float = 1e-5

    def __post_init__(self) -> None:
        """Refuse times below 0."""
        for name in ("work", "route", "delay", "state"):
            check_seconds(name, getattr(self, name))
        for source, lag in enumerate(self.lags):
            check_seconds(f"the lag of source {source}", lag)


def flow(
    stream: Stream,
    owners: list[int],
    workers: int,
    network: Network,
    scheduler: Scheduler | None = None,
    period: float = 1.0,
    protocol: Protocol = "autoflow",
    at_once: bool = False,
) -> Flow:
    """Run a stream through as many sources, mappers and reducers as there are workers, until all rows are done.

    Rows go to the sources in turn, and from a source to the mappers in turn. A mapper and a reducer do one thing after
    another. The scheduler sends a control message in every period, which passes all channels behind the rows before it;
    reducers report the rows of each slot when they have it from all mappers. What the scheduler then decides goes with
    the next control message, as the paper has it (III-B). A message names one sender and one receiver, so that each
    further pair of them has a message of its own, sent at the same time.

    Parameters
    ----------
    stream
        The rows.
    owners
        The reducer of each slot at first.
    workers
        The sources, the mappers and the reducers, each.
    network
        What rows and messages cost.
    scheduler
        Decides what moves; nothing does without one.
    period
        Seconds between control messages.
    protocol
        "autoflow" is the paper's: only rows of slots that move are kept. "barrier" is a global barrier: before a move,
        all sources stop, until what they have sent is done and the state has moved.
    at_once
        What is decided does not wait for the next control message, but goes out in messages between periods.
    """
    if protocol not in get_args(Protocol):
        raise SkewlessError(f"protocol is {protocol!r}; give one of {', '.join(map(repr, get_args(Protocol)))}")
    check_seconds("period", period, above=True)
    check_owners(stream, owners, workers)
    if network.lags and len(network.lags) != workers:
        raise SkewlessError(f"{len(network.lags)} lags for {workers} sources; give one for each, or none")
    return _Engine(stream, owners, workers, network, scheduler, period, protocol, at_once).run()


class _Engine:
    def __init__(
        self,
        stream: Stream,
        owners: list[int],
        workers: int,
        network: Network,
        scheduler: Scheduler | None,
        period: float,
        protocol: Protocol,
        at_once: bool,
    ) -> None:
        self.workers, self.network, self.scheduler, self.period = workers, network, scheduler, period
        self.stops, self.at_once = protocol == "barrier", at_once
        self.planned = list(owners)  # once all that was decided has moved
        columns = (stream.slot, stream.key, stream.value, stream.at)
        self.rows = [Row(*row) for row in zip(*(c.tolist() for c in columns), range(len(stream)), strict=True)]
        self.mappers = [Mapper(workers, owners) for _ in range(workers)]
        self.reducers = [
            Reducer(me, workers, [slot for slot, owner in enumerate(owners) if owner == me]) for me in range(workers)
        ]
        self.lags = list(network.lags) or [0.0] * workers
        self.heap: list[tuple[float, int, int, Any, Any, Any]] = []
        self.order = count()
        self.next = list(range(workers))  # of each source, its next row
        self.free = [0.0] * workers  # when each mapper is
        self.queues: list[deque[tuple[int, Row | Control]]] = [deque() for _ in range(workers)]
        self.merged: list[deque[Row]] = [deque() for _ in range(workers)]
        self.busy = [False] * workers
        self.since: dict[int, float] = {}  # of rows that are kept now
        self.done = np.full(len(stream), np.nan)
        self.worker = np.full(len(stream), -1, np.int64)
        self.held = np.zeros(len(stream))
        self.at = stream.at
        self.clock = 0  # the time of the last control message
        self.ends: set[int] = set()  # the times of control messages that end a period
        self.pending: list[Instruction] = []  # what goes with the next control message
        self.reports: dict[int, list[dict[int, int]]] = {}
        self.told: dict[int, tuple[Instruction, float]] = {}
        self.left: dict[int, float] = {}
        self.came: dict[int, list[float]] = {}
        self.stopped = float("inf")  # rows that come after this are held at their sources
        self.resumed = 0.0
        self.reached: set[int] = set()
        self.parked: list[int] = []

    def run(self) -> Flow:
        for source in range(self.workers):
            self._emit(source)
        if self.scheduler is not None and self.rows:
            self._push(self.period, _PERIOD)
        heap = self.heap
        while heap:
            now, _, kind, one, two, three = heappop(heap)
            if kind == _REDUCER:
                self.queues[one].append((two, three))
                if not self.busy[one]:
                    self._serve(one, now)
            elif kind == _DONE:
                self.done[two.number], self.worker[two.number] = now, one
                self._serve(one, now)
            elif kind == _SOURCE:
                self._route(one, two, now)
            else:
                self._control(now, kind, one, two, three)
        return Flow(
            self.at,
            self.done,
            self.worker,
            self.held,
            tuple(
                Moved(*pair, told, self.left[time], max(self.came[time])) for time, (pair, told) in self.told.items()
            ),
            tuple(
                {key: total for totals in reducer.slots.values() for key, total in totals.items()}
                for reducer in self.reducers
            ),
        )

    def _push(self, at: float, kind: int, one: Any = None, two: Any = None, three: Any = None) -> None:
        heappush(self.heap, (at, next(self.order), kind, one, two, three))

    def _emit(self, source: int) -> None:
        """Send the next row of a source to its mapper, or park the source while all of them are stopped."""
        number = self.next[source]
        if number >= len(self.rows):
            return
        row = self.rows[number]
        if row.at > self.stopped:
            self.parked.append(source)
            return
        self._push(self._arrival(source, row), _SOURCE, source, row)

    def _arrival(self, source: int, row: Row) -> float:
        return max(row.at, self.resumed) + self.lags[source] + self.network.delay

    def _route(self, source: int, row: Row, now: float) -> None:
        if self.stops:
            if row.at > self.stopped or self._arrival(source, row) > now:  # the sources were stopped in between
                self._emit(source)
                return
            self.held[row.number] = max(0.0, self.resumed - row.at)
        mapper = row.number // self.workers % self.workers
        self.free[mapper] = done = max(self.free[mapper], now) + self.network.route
        target = self.mappers[mapper].row(source, row)
        if target is None:
            self.since[row.number] = now
        else:
            self._push(done + self.network.delay, _REDUCER, target, mapper, row)
        self.next[source] += self.workers
        self._emit(source)

    def _serve(self, me: int, now: float) -> None:
        """Go on with the next row, after all messages that take no time."""
        reducer, queue, merged = self.reducers[me], self.queues[me], self.merged[me]
        self.busy[me] = True
        while merged or queue:
            if merged:
                self._push(now + self.network.work, _DONE, me, merged.popleft())
                return
            channel, message = queue.popleft()
            if isinstance(message, Row):
                if reducer.row(channel, message):
                    self._push(now + self.network.work, _DONE, me, message)
                    return
                self.since[message.number] = now
                continue
            reached = reducer.control(channel, message)
            if reached is not None:
                self._merge(me, reached.rows, now)
                self._send(reached.states, now)
                self._push(now + self.network.delay, _REPORT, message.time, reached.counts)
        self.busy[me] = False

    def _control(self, now: float, kind: int, one: Any, two: Any, three: Any) -> None:
        if kind == _CONTROL:
            self._spread(one, two, three, now)
        elif kind == _STATE:
            state: State = two
            rows, onward = self.reducers[one].receive(state)
            self.came[state.time].append(now)
            self._merge(one, rows, now)
            self._send(onward, now)
            if not self.busy[one]:
                self._serve(one, now)
            self._resume(now)
        elif kind == _REPORT:
            self._hear(one, two, now)
        elif any(number < len(self.rows) for number in self.next):
            if self.stopped == float("inf"):
                pairs, self.pending = self.pending, []
                self.ends.add(self.clock + 1)
                self._instruct(pairs or [Instruction(-1, -1, ())], now)
            self._push(now + self.period, _PERIOD)

    def _instruct(self, pairs: list[Instruction], now: float) -> None:
        for pair in pairs:
            self._tell(pair, now)
        if self.stops and any(pair.slots for pair in pairs):
            self.stopped = now

    def _tell(self, what: Instruction, now: float) -> None:
        """Send a control message into every source, behind the rows that it has sent."""
        self.clock += 1
        for source in range(self.workers):
            for mapper in range(self.workers):
                at = now + self.lags[source] + self.network.delay
                self._push(at, _CONTROL, source, mapper, Control(self.clock, *what))
        if what.slots:
            self.told[self.clock] = what, now
            self.came[self.clock] = []

    def _spread(self, source: int, mapper: int, control: Control, now: float) -> None:
        kept = self.mappers[mapper].control(source, control)
        if kept is None:
            return
        at = max(self.free[mapper], now) + self.network.delay
        for reducer in range(self.workers):
            self._push(at, _REDUCER, reducer, mapper, control)
        for row in kept:
            self.held[row.number] += now - self.since.pop(row.number)
            self._push(at, _REDUCER, self.mappers[mapper].table[row.slot], mapper, row)

    def _send(self, states: list[State], now: float) -> None:
        for state in states:
            self.left[state.time] = now
            self._push(now + self.network.delay + len(state.totals) * self.network.state, _STATE, state.receiver, state)

    def _merge(self, me: int, rows: list[Row], now: float) -> None:
        for row in rows:
            self.held[row.number] += now - self.since.pop(row.number)
        self.merged[me].extend(rows)

    def _hear(self, time: int, counts: dict[int, int], now: float) -> None:
        heard = self.reports.setdefault(time, [])
        heard.append(counts)
        if len(heard) < self.workers or self.scheduler is None:
            return
        self.reached.add(time)
        if time in self.ends:  # the period goes on over a message that was sent beside it
            total = np.zeros(len(self.planned))
            for each in self.reports:
                for counted in self.reports[each] if each <= time else ():
                    for slot, rows in counted.items():
                        total[slot] += rows
            self.reports = {each: heard for each, heard in self.reports.items() if each > time}
            pairs = self.scheduler.hear(total)
            self.planned = owners_after(pairs, self.planned, self.workers)
            if self.at_once:
                self._instruct(pairs, now)
            else:
                self.pending += pairs
        self._resume(now)

    def _resume(self, now: float) -> None:
        """Let the sources go on once all that was to move is there."""
        if self.stopped == float("inf") or any(
            time not in self.reached or len(self.came[time]) < len(pair.slots) for time, (pair, _) in self.told.items()
        ):
            return
        self.stopped, self.resumed = float("inf"), now + self.network.delay
        parked, self.parked = self.parked, []
        for source in parked:
            self._emit(source)
