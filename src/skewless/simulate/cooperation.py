"""Partitioners that learn together, on a virtual clock: messages are sent when they are due, and merging takes time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, inf

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.simulate.partitioners import Partitioners
from skewless.split import Broadcast, CooperativeDalton, QTableReducer


@dataclass
class _Team:
    """The partitioners of one query, and what they wait for."""

    partitioners: Sequence[CooperativeDalton]
    members: Partitioners
    interval: float  # as the partitioners know it
    due: float  # when the next messages are due
    sent: float = 0.0  # when the last ones were sent
    arrives: float = inf  # when the broadcast comes
    broadcast: Broadcast | None = None


class Cooperation(Partitioners):
    """Partitioners of one query, or of several over one stream, that share a Q-table reducer.

    All partitioners of a query send their messages when the interval has passed, and route on while the reducer merges
    them. The reducer does one thing after the other, so that queries wait for each other.

    Parameters
    ----------
    reducer
        The Q-table reducer.
    teams
        The partitioners of each query. `run` simulates the cluster of the first one.
    work
        Seconds that merging takes: a number, or a function of the time at which it begins.
    tell
        Seconds that a partitioner takes for a message and the broadcast that answers it, in which it routes nothing.

    Attributes
    ----------
    intervals
        The time of each broadcast, its query, and the interval from then on.

    Examples
    --------
    >>> team = [CooperativeDalton(4, slide=None, seed=seed) for seed in range(2)]
    >>> both = Cooperation(QTableReducer(2, workers=4, interval=10.0, hot_at=0.1), team, work=lambda at: 7.0)
    >>> both.advance(45.0)
    >>> both.intervals
    [(17.0, 0, 10.0), (27.0, 0, 10.0), (37.0, 0, 10.0)]

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022, 4.1.
    """

    def __init__(
        self,
        reducer: QTableReducer,
        *teams: Sequence[CooperativeDalton],
        work: float | Callable[[float], float] = 0.0,
        tell: float = 0.0,
    ) -> None:
        if not teams or {len(team) for team in teams} != {reducer.partitioners}:
            raise SkewlessError(
                f"the teams have {[len(team) for team in teams]} partitioners, but the reducer waits for "
                f"{reducer.partitioners} of each"
            )
        for partitioner in (each for team in teams for each in team):
            if partitioner.workers != reducer.workers:
                raise SkewlessError(
                    f"a partitioner routes to {partitioner.workers} workers, but the reducer has {reducer.workers}; "
                    "give both the same number"
                )
            if partitioner.hot.state.hot_at != reducer.hot_at:
                raise SkewlessError(
                    f"hot_at is {partitioner.hot.state.hot_at} for a partitioner and {reducer.hot_at} for the reducer; "
                    "give both the same"
                )
        _check_seconds("tell", tell)
        if not callable(work):
            _check_seconds("work", work)
        super().__init__(*teams[0])
        self.reducer, self._work, self._tell = reducer, work, tell
        self._told = 0  # rounds of the first query in this slide
        self.intervals: list[tuple[float, int, float]] = []
        first = [reducer.interval(query) for query in range(len(teams))]
        self._teams = [_Team(team, Partitioners(*team), at, at) for team, at in zip(teams, first, strict=True)]
        self._synced = False

    @property
    def synced(self) -> bool:
        """Whether a broadcast came within the slide, so that all knew which keys are hot."""
        return self._synced or len(self) == 1

    @property
    def spent(self) -> float:
        """Seconds of this slide that each partitioner took for messages."""
        return self._tell * self._told

    def route(self, keys: Int64Array, times: FloatArray, at: Int64Array) -> Int32Array:
        """A worker for each tuple, for the first query."""
        return self.route_all(keys, times, at)[0]

    def route_batch(self, keys: Int64Array, at: Int64Array) -> Int32Array:
        """Micro-batches are not routed together: the paper has cooperation for tuples as they come."""
        raise SkewlessError("partitioners that learn together route tuples as they come; omit the engine")

    def route_all(self, keys: Int64Array, times: FloatArray, at: Int64Array) -> list[Int32Array]:
        """A worker for each tuple, for each query; messages and broadcasts come in between, at their times."""
        out = [np.empty(len(keys), dtype=np.int32) for _ in self._teams]
        done = 0
        while done < len(keys):
            until = int(np.searchsorted(times, self._next()))
            if until > done:
                own = at[done:until] if len(at) else at
                for team, workers in zip(self._teams, out, strict=True):
                    workers[done:until] = team.members.route(keys[done:until], times[done:until], own)
                done = until
            if done < len(keys):
                self.advance(float(times[done]))
        return out

    def end_slide(self) -> None:
        """End the slide of all partitioners; before the next one ends, a broadcast has to come again."""
        self._synced, self._told = False, 0
        for team in self._teams:
            team.members.end_slide()

    def advance(self, now: float) -> None:
        """Send and receive all that is due until `now`."""
        while self._next() <= now:
            query, team = min(enumerate(self._teams), key=lambda each: min(each[1].arrives, each[1].due))
            if team.arrives <= team.due:
                self._receive(query, team)
            else:
                self._send(query, team)

    def _next(self) -> float:
        return min(min(team.arrives, team.due) for team in self._teams)

    def _send(self, query: int, team: _Team) -> None:
        messages = [partitioner.due() for partitioner in team.partitioners]
        now = team.due
        team.due += team.interval
        if not team.due > now:
            raise SkewlessError(
                f"an interval of {team.interval} s is lost in rounding at {now} s; give the reducer a longer interval "
                "and a longer shortest one"
            )
        if team.broadcast is not None:  # all still wait, and the next messages will say so
            return
        team.sent = now
        for message in messages:
            assert message is not None  # nobody waits
            self.reducer.add(message, query)
        start = max(now, self.reducer.free)
        work = self._work(start) if callable(self._work) else self._work
        _check_seconds(f"work at {start} s", work)
        team.broadcast = self.reducer.reduce(start, work, query)
        team.arrives = start + work

    def _receive(self, query: int, team: _Team) -> None:
        assert team.broadcast is not None  # it arrives
        for partitioner in team.partitioners:
            partitioner.receive(team.broadcast)
        team.interval, now = team.broadcast.interval, team.arrives
        interval = team.interval
        self.intervals.append((now, query, interval))
        # The next messages are due a whole number of intervals after the last ones.
        team.due = team.sent + interval * (floor((now - team.sent) / interval + 1e-9) + 1)
        team.arrives, team.broadcast = inf, None
        if query == 0:
            self._synced = True
            self._told += 1


def _check_seconds(name: str, seconds: float) -> None:
    """Refuse what would turn time back, or never end."""
    if not 0 <= seconds < inf:
        raise SkewlessError(f"{name} is {seconds} seconds; give a finite number, at least 0")
