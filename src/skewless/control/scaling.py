"""Elasticity in a loop: how long micro-batches take becomes the number of workers that are active.

Measure: Spark tells when a micro-batch began, how long it took and how many rows it had, and with which number of
workers it ran was observed in it. Analyse and plan: a `Scaler`. Activate: for routed rows, a file that every
micro-batch reads; for state, a placement. Either comes into force some micro-batches late, and those until then are
passed over by the scaler.

No public API tells the trigger of a query. With the interval that was given, Spark begins at most one micro-batch
between one multiple of the interval and the next. Two that begin there are taken as another trigger, such as
availableNow: how long a micro-batch takes then says nothing about the load, and the number stays. A wall clock that is
set back looks the same, so that the number follows the load again once `SINGLE` micro-batches in a row began in an
interval of their own. The number stays only if two micro-batches fit into an interval; otherwise another trigger cannot
be told from one that falls behind, and the number climbs. A micro-batch that waited for a multiple of the interval
tells the two apart, and `describe` says as long as there was none.

If micro-batches begin an interval or more after the one before had ended, the trigger may be longer than the interval,
so that W is too high; or there were no rows to begin with. That cannot be told apart, and `describe` says it.

The first micro-batch of a run says nothing about the load: in it the JVM, Python and compilation begin, which may take
many times as long as the rows. It is not counted towards a decision.
"""

from __future__ import annotations

from skewless.control.loop import Observed, log
from skewless.control.workers_file import WorkersFile
from skewless.core.interval import microseconds
from skewless.elastic import Observation, Parallelism, Range
from skewless.elastic.parallelism import Side

SAID = 5
"""Micro-batches in a row that begin late, from which on that is said."""


SINGLE = 10
"""Micro-batches in a row, each alone in its interval, after which the trigger is taken to be the interval again. With
another trigger and W of at most 0.9, two begin in one interval sooner than that."""

ON_TIME = 0.05
"""The part of an interval within which a micro-batch begins if it waited for a multiple of it."""


class Scaling:
    """Follows the load of one stream with the number of its active workers.

    Parameters
    ----------
    asked
        The range that was asked for.
    side
        What the workers are to the paper: "map" tasks, which rows are routed to, or "reduce" tasks, which own keys.
    file
        Where the number goes, if micro-batches read it from a file of its own.

    Examples
    --------
    >>> scaling = Scaling(Range(2, 16, "1 second", d=1), "map")
    >>> scaling.follow(Observed("query", "run", 6, rows=9000, began=0, seconds=31.5, busy=31.4), ran=2)  # not counted
    2
    >>> scaling.follow(Observed("query", "run", 7, rows=9000, began=32_000_000, seconds=4.5, busy=4.4), ran=2)
    11
    >>> print(scaling.last)
    2 workers became 11 after micro-batch 7 (W = 4.50), because micro-batches took too much of their interval
    """

    def __init__(self, asked: Range, side: Side, file: WorkersFile | None = None) -> None:
        self.asked, self.side, self._file = asked, side, file
        self.workers = asked.least
        """The number of workers that was decided last."""
        self.ratio: float | None = None
        """Processing time over interval of the last micro-batch, the paper's W."""
        self.last: str | None = None
        """The last decision, in words."""
        self.untimed = False
        """Whether this run seems to have another trigger than one of the interval."""
        self.waited = False
        """Whether a micro-batch of this run has waited for a multiple of the interval, as with a trigger of it."""
        self.idle = 0
        """Micro-batches in a row that began an interval or more after the one before had ended."""
        self._ended: int | None = None
        self._slot: int | None = None  # the multiple of the interval that the last micro-batch began after
        self._single = 0  # micro-batches in a row that were alone in their interval
        self._first = True  # whether the next micro-batch to be heard of is the first of its run
        self._hinted = False  # whether the number is that of a query that starts, and may be another stream's
        self.go_on(asked.least)

    def started(self, query: str) -> None:
        """A query starts, perhaps this one: then its first micro-batch runs with the number that it had last.

        If it is another stream's, that number does no harm, and is taken back when this one's query starts.
        """
        known = None if self._file is None else self._file.remembered(query, repr(self.asked))
        if known is not None or self._hinted:
            self._hinted = known is not None
            self.go_on(self.asked.least if known is None else known)

    def begin(self, query: str) -> None:
        """A run has begun: from the number that its query had last, if the folder knows it."""
        self.untimed, self.waited, self._slot, self._single, self.idle, self._ended = False, False, None, 0, 0, None
        self._first = True
        if self._file is not None:
            known = self._file.remembered(query, repr(self.asked))
            usual = self.asked.least if self._hinted else self.workers
            self._hinted = False
            self.go_on(usual if known is None else known, query)

    def go_on(self, workers: int, query: str | None = None) -> None:
        """Decide from this number on, whatever was decided before."""
        self.workers = self.asked.nearest(workers)
        self._scaler = self.asked.scaler(self.side, self.workers)
        if self._file is not None:
            self._file.put(self.workers, query, repr(self.asked))

    def follow(self, seen: Observed, ran: int) -> int:
        """The number of active workers from now on; the first micro-batch of a run leaves it as it is.

        Parameters
        ----------
        seen
            A micro-batch that is done.
        ran
            The number of workers that it ran with.
        """
        if seen.seconds is None or seen.began is None:
            return self.workers
        observation = self._observation(seen, seen.seconds, ran)
        self.ratio = observation.ratio
        self._wait(seen.began, seen.seconds)
        first, self._first = self._first, False
        if not self._timed(seen.began) or first:
            return self.workers
        before, last = self.workers, self._scaler.last
        self.workers = self._scaler.observe(observation).of(self.side)
        decision = self._scaler.last
        if decision is not None and decision is not last:
            were = f"{before} {'worker' if before == 1 else 'workers'}"
            after = f"{self.workers} after micro-batch {seen.batch} (W = {self.ratio:.2f})"
            self.last = f"{were} became {after}, because {decision.reason}"
            if self._file is not None:
                self._file.put(self.workers, seen.query, repr(self.asked))
        return self.workers

    def describe(self, workers: int | None) -> list[str]:
        """In words, that so many workers are active, and why."""
        ratio = "" if self.ratio is None else f"; W was {self.ratio:.2f} in the last micro-batch"
        lines = [f"{workers} of {self.asked} are active{ratio}"]
        if self.last is not None:
            lines.append(self.last)
        if self.untimed:
            lines.append(
                f"two micro-batches began within one interval of {self.asked.interval}, so the query's trigger is "
                "another one, such as availableNow: the number of workers stays"
            )
        elif self.ratio is not None and not self.waited:
            lines.append(
                f"no micro-batch has waited for a multiple of {self.asked.interval} yet, so it cannot be told whether "
                "the query falls behind, or has another trigger, such as availableNow, with which the number of "
                "workers climbs for nothing"
            )
        if self.idle >= SAID:
            lines.append(
                f"the last {self.idle} micro-batches began {self.asked.interval} or more after the one before had "
                "ended: no rows came meanwhile, or the query's trigger is longer than that, and W is too high; give "
                "the trigger's own time as interval="
            )
        return lines

    def _wait(self, began: int, seconds: float) -> None:
        """Count micro-batches that began late, and see whether this one waited for its time."""
        interval = microseconds(self.asked.interval)
        late = self._ended is not None and began - self._ended >= interval
        little = ON_TIME * interval
        if self._ended is not None and began - self._ended >= little and began % interval <= little:
            self.waited = True
        self.idle = self.idle + 1 if late else 0
        self._ended = began + round(seconds * 1e6)
        if self.idle == SAID:
            log.info("%d micro-batches began %s or more after the one before", SAID, self.asked.interval)

    def _timed(self, began: int) -> bool:
        """Whether the run may have a trigger of the interval, as far as micro-batches have shown."""
        slot = began // microseconds(self.asked.interval)
        self._single = 0 if slot == self._slot else self._single + 1
        if self.untimed and self._single >= SINGLE:
            self.untimed = False
            log.info("%d micro-batches in a row began in intervals of their own: the number follows again", SINGLE)
        if slot == self._slot and not self.untimed:
            self.untimed = True
            log.info("two micro-batches began within %s: the number of workers stays", self.asked.interval)
        self._slot = slot
        return not self.untimed

    def _observation(self, seen: Observed, seconds: float, ran: int) -> Observation:
        # Of a micro-batch's time only its jobs can get shorter with more workers.
        busy = min(seconds, seconds if seen.busy is None else seen.busy)
        times = (busy, 0.0) if self.side == "map" else (0.0, busy)
        return Observation(
            self.asked.seconds,
            seconds,
            seen.rows,
            seen.keys or 0,
            *times,
            ran=Parallelism(1, 1).changed(self.side, ran),
        )
