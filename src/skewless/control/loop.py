"""What the loops on the driver share: they hear of every micro-batch, and never fail the query."""

from __future__ import annotations

import copy
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skewless.core.counts import Counts

if TYPE_CHECKING:
    from skewless.control.scaling import Scaling

log = logging.getLogger("skewless")


@dataclass(frozen=True)
class Observed:
    """What was observed of a micro-batch that had rows.

    Parameters
    ----------
    query, run
        The ids of the query and of its run.
    batch
        The number of the micro-batch.
    counts
        The most frequent keys, where they are observed.
    loads
        The rows of each worker, where Spark itself counted them.
    control
        The code of the version that the micro-batch went by, where there are versions; the number of workers that were
        active, where routed rows follow the load.
    notes
        What the tasks noted for the driver.
    watermark
        Microseconds; None without one.
    told
        What the tasks that route learned, where they learn together.
    rows, keys
        The rows of the micro-batch, and about how many distinct keys they had, where that is observed.
    began
        When it began, in microseconds; None where that is not known.
    seconds, busy
        How long it took, and how long its jobs ran; None where that is not known.
    """

    query: str
    run: str
    batch: int
    counts: Counts | None = None
    loads: dict[int, int] | None = None
    control: int | None = None
    notes: tuple[tuple[int, ...], ...] = ()
    watermark: int | None = None
    told: tuple[str, ...] = ()
    rows: int = 0
    keys: int | None = None
    began: int | None = None
    seconds: float | None = None
    busy: float | None = None


@dataclass(frozen=True)
class Chosen:
    """What runs, and why."""

    strategy: str
    why: str

    def words(self, name: str, workers: str | None = None) -> str:
        """As a sentence about a stream; `workers` says how many share the rows, if rows move."""
        over = "" if workers is None else f" over {workers}"
        return f"{name}: {self.strategy}{over}, {self.why}."


class Loop(ABC):
    """The loop of one stream: measure, analyse, plan, activate.

    Whatever goes wrong in it never fails the query: that is logged once, and what is in force stays.

    Parameters
    ----------
    name
        The stream's name, for messages.
    workers
        The workers that share the rows; None where rows stay where they lie.
    chosen
        What runs, and why.
    scaling
        What decides the number of active workers; None if that does not change.
    """

    def __init__(self, name: str, workers: int | None, chosen: Chosen, scaling: Scaling | None = None) -> None:
        self.name, self.workers, self.chosen, self.scaling = name, workers, chosen, scaling
        self.query: str | None = None
        """The id of the query that runs, or ran last."""
        self.run: str | None = None
        """The id of its run; None while there is none."""
        self.batches = 0
        """Micro-batches of this run that had rows and were learned from."""
        self.loads: dict[int, int] = {}
        """The rows of each worker in the last micro-batch."""
        self._changed = threading.RLock()
        self._failed = False
        self._begun: str | None = None  # the run that was begun last
        self._others: set[str] = set()

    @property
    def imbalance(self) -> float | None:
        """The rows of the busiest worker over the average, in the last micro-batch; None before it."""
        rows = sum(self.loads.values())
        return max(self.loads.values()) * len(self.loads) / rows if rows else None

    def hear(self, seen: Observed) -> bool:
        """A micro-batch is done; false if it is of another query than the one that this loop belongs to."""
        with self._changed:
            if self.run is None:
                self.run, self.batches, self._failed = seen.run, 0, False
            if self.run != seen.run:
                self._refuse(seen)
                return False
        try:
            if self._begun != seen.run:
                self.begin(seen.query)
                self.query, self._begun = seen.query, seen.run
            self.learn(seen)
        except Exception:  # whatever it is, the query must go on
            self._fail()
        with self._changed:
            self.batches += 1
        return True

    def start(self, query: str, run: str) -> None:
        """A query of the session starts; it may be another one's."""
        try:
            self.started(query, run)
        except Exception:  # as above
            self._fail()

    def end(self, run: str, query: str = "", *, healthy: bool = False) -> None:
        """A run of a query is over, without an error or not: the next one may be of the same query or of another."""
        with self._changed:
            self._others.discard(run)
            if self.run == run:
                self.run = None

    def belongs_to(self, query: str) -> bool:
        """Whether what is decided here is kept for this query."""
        return False

    def snapshot(self) -> Loop:
        """The loop as it is now, for who watches a run that is over: another run goes on with the loop itself."""
        now = copy.copy(self)
        now.scaling = copy.copy(self.scaling)
        return now

    def started(self, query: str, run: str) -> None:  # noqa: B027 - most have nothing to do
        """A query starts, and none of its micro-batches has begun."""

    def begin(self, query: str) -> None:  # noqa: B027 - most have nothing to do
        """The first micro-batch of a run is done, so that the query is known."""

    @abstractmethod
    def learn(self, seen: Observed) -> None:
        """Learn from a micro-batch."""

    def describe(self) -> list[str]:
        """In words, what runs and why, and what is special."""
        over = None if self.workers is None else f"{self.workers} workers"
        following = [] if self.scaling is None else self.scaling.describe(self.workers)
        return [self.chosen.words(self.name, over), *following]

    def _fail(self) -> None:
        if not self._failed:
            log.exception("stream %s: nothing new is learned; what is in force stays", self.name)
        self._failed = True

    def _refuse(self, seen: Observed) -> None:
        """One DataFrame that runs as two queries at once: the second is told of, once."""
        if seen.run not in self._others:
            self._others.add(seen.run)
            log.error(
                "stream %s: query %s runs the DataFrame that query %s runs already; nothing is learned from it. %s",
                self.name,
                seen.query,
                self.query,
                "Build the result anew for each query.",
            )


class LoadLoop(Loop):
    """Knows the loads of a stream in which nothing is decided, or only how many workers are active."""

    def started(self, query: str, run: str) -> None:
        """Have the first micro-batch run with as many workers as the query had last, if it is this one's."""
        if self.scaling is not None and self.run is None:
            self.scaling.started(query)
            self.workers = self.scaling.workers

    def begin(self, query: str) -> None:
        """Go on from the number of workers that the query had last."""
        if self.scaling is not None:
            self.scaling.begin(query)
            self.workers = self.scaling.workers

    def learn(self, seen: Observed) -> None:
        """Follow the load first, as the next micro-batch may be about to begin, and keep the loads."""
        ran = self.workers
        if self.scaling is not None and seen.control is not None:
            ran = seen.control
            self.workers = self.scaling.follow(seen, ran)
        self.loads = loads_of(seen, ran) or self.loads


class CopiesLoop(Loop):
    """Knows how many rows each worker was sent, in a stream in which nothing is decided."""

    def learn(self, seen: Observed) -> None:
        """Add up what the tasks sent."""
        self.loads = copies_of(seen.notes, self.workers)


def copies_of(notes: Sequence[Sequence[int]], workers: int | None) -> dict[int, int]:
    """The rows that each worker was sent, from how many each task sent to each; other partitions get none."""
    return {worker: sum(rows) for worker, rows in enumerate(zip(*notes, strict=True)) if worker < (workers or 0)}


def loads_of(seen: Observed, workers: int | None) -> dict[int, int]:
    """The rows of each worker, as Spark counted them or as each task noted its own; without workers, of each task."""
    counted = seen.loads or {note[0]: note[1] for note in seen.notes if note[1]}
    return {**dict.fromkeys(range(workers or 0), 0), **counted} if counted else {}
