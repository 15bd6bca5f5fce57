"""The loop of a placed stream: what a micro-batch observed becomes, at times, a placement that moves slots.

Measure: packers count the rows of every slot, and `observe` the most frequent keys. Analyse: counts fade from batch to
batch, so that a spike does not move state. Plan: when the busiest worker has more than `alpha` times the average, the
placer is asked; what it proposes is taken if it brings more rows down to the average, over the next batches, than the
keys have that it moves. Activate: the placement is announced, and comes into force once a micro-batch that knew
of it is done.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from skewless.control.location import Control, Location
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place import FadingCounts, Move, Placement, Placer, moves
from skewless.spark.observe import SAMPLE, counts_of

log = logging.getLogger("skewless")

CONTROL_SCHEMA = "id string, control long"


@dataclass(frozen=True)
class Rule:
    """When to move state.

    Parameters
    ----------
    alpha
        Rows of the busiest worker over the average from which a better placement is looked for.
    horizon
        Over how many micro-batches the rows brought down to the average must be worth those that are moved.
    cost
        What moving the state of a key costs, in times of the rows that the key has in a micro-batch.
    rest
        Micro-batches with a placement before the next one is looked for, so that a hot spot that wanders does not keep
        state on the move.
    memory
        How much a micro-batch is worth of the one after it: 0 follows every spike.
    """

    alpha: float = 1.2
    horizon: int = 10
    cost: float = 1.0
    rest: int = 2
    memory: float = 0.25


class Placing:
    """Decides which worker owns each slot of a running query.

    A placer that raises never fails the query: that is logged once, and the placement stays.

    Parameters
    ----------
    name
        Of the stream.
    placer
        Proposes placements.
    location
        Of the stream.
    workers
        That are active at the start.
    partitions
        Partitions of state: no more workers than that can ever be active.
    rule
        When to move state.
    retain
        Micro-batches that Spark could replay: for so long nothing that they would need is deleted.
    """

    def __init__(
        self, name: str, placer: Placer, location: Location, workers: int, partitions: int, rule: Rule, retain: int
    ) -> None:
        self.name, self.placer, self.location, self.rule = name, placer, location, rule
        self.workers, self.partitions, self._retain = workers, partitions, retain
        self._active = workers  # of that micro-batch
        self.loads: dict[int, int] = {}
        """Rows of each worker in the last micro-batch."""
        self.batches = 0
        self._recent = FadingCounts(placer.slots, rule.memory)
        self._rested = rule.rest  # the first placement may be changed at once
        self._came: list[tuple[int, int]] = []  # versions, and the micro-batch by which each was in force
        self._lock = threading.Condition()
        self._failed = False
        self._queries: set[str] = set()
        self._top: tuple[int, Counts | None] = (-1, None)
        control = location.read_control()
        known = control is not None
        if control is None:
            none = Counts.none()
            location.write_placement(placer.place(none, None, workers).with_version(0))
            control = Control(0)
            location.write_control(control)
        self._control = control
        self.placement = location.placement(control.version)
        if self.placement.tail_slots != placer.slots:
            raise SkewlessError(
                f"the folder {location.uri} has {self.placement.tail_slots} slots, and slots is {placer.slots}; "
                "state stays in the slots it was made with, so give the same number"
            )
        if self.placement.workers > partitions:
            raise SkewlessError(
                f"the folder {location.uri} has slots on {self.placement.workers} workers, and the session has "
                f"{partitions} shuffle partitions; set spark.sql.shuffle.partitions to what it was then"
            )
        if control.version:
            self._came.append((control.version, -1))  # in force since a micro-batch that is not known
        if known:
            self.workers = (self._announced or self.placement).workers

    @property
    def _announced(self) -> Placement | None:
        return self.location.placement(self._control.version + 1) if self._control.moving else None

    @property
    def moving(self) -> bool:
        """Whether a placement is announced and not in force yet."""
        return self._control.moving

    def control(self, spark: SparkSession) -> DataFrame:
        """The control as a static DataFrame of one row, which every micro-batch reads anew."""
        return spark.read.schema(CONTROL_SCHEMA).json(self.location.current)

    @property
    def imbalance(self) -> float | None:
        """Rows of the busiest worker over the average of the active ones, in the last micro-batch."""
        if not self.loads:
            return None
        return max(self.loads.values()) * self._active / sum(self.loads.values())

    def proposed(self, workers: int | None = None) -> Placement:
        """What the placer would have now."""
        return self.placer.place(self._recent.counts(), self.placement, workers or self.workers)

    def announce(self, placement: Placement) -> None:
        """Have a placement come into force as soon as state could be handed over."""
        with self._lock:
            if self._control.moving:
                raise SkewlessError(
                    f"placement {self._control.version + 1} is on its way; await it, or try again after a micro-batch"
                )
            version = self._control.version + 1
            self.location.write_placement(placement.with_version(version))
            self.workers = placement.workers
            self._say(Control(version - 1, moving=True))

    def rebalance(self, workers: int | None = None, *, dry: bool = False) -> tuple[Move, ...]:
        """Ask the placer now, whatever the rule says; the moves it makes, or with `dry` would make."""
        if workers is not None and not 1 <= workers <= self.partitions:
            raise SkewlessError(
                f"workers is {workers}; this query has state in {self.partitions} partitions, so 1 to that many can be"
            )
        placement = self.proposed(workers)
        found = moves(self.placement, placement)
        if not dry and placement is not self.placement:
            self.announce(placement)
        return found

    def take_keys(self, row: Row, progress: StreamingQueryProgress) -> None:
        """The most frequent keys of a micro-batch."""
        self._top = progress.batchId, counts_of(row)

    def take(self, row: Row, progress: StreamingQueryProgress) -> None:
        """What the packers of a micro-batch counted."""
        if row["control"] is None:
            return  # no rows
        try:
            self._see(str(progress.id))
            self._learn(Control.of(int(row["control"])), _sum(row["counts"]), progress.batchId)
        except Exception:  # whatever it is, the query must go on
            if not self._failed:
                log.exception("stream %s: no new placement; the last one stays", self.name)
            self._failed = True
        with self._lock:
            self.batches += 1
            self._lock.notify_all()

    def wait_until(self, batches: int, timeout: float) -> bool:
        """Wait until so many micro-batches were learned from; false if that took longer than `timeout` seconds."""
        with self._lock:
            return self._lock.wait_for(lambda: self.batches >= batches, timeout)

    def _see(self, query: str) -> None:
        """Placements are for one query: another one that runs by them would not hand its state over in time."""
        self._queries.add(query)
        if len(self._queries) > 1:
            raise SkewlessError(
                f"two queries run by the placements at {self.location.uri}; give each a process(...) and a folder of "
                "its own. Nothing is placed anew"
            )

    def _learn(self, ran_by: Control, counts: Int64Array, batch: int) -> None:
        placement = self.location.placement(ran_by.version)
        loads = np.bincount(placement.owners, counts, self.partitions)
        self._active = placement.workers
        self.loads = {
            worker: int(rows) for worker, rows in enumerate(loads.tolist()) if rows or worker < placement.workers
        }
        self._count(placement, counts, batch)
        with self._lock:
            control = self._control
            if ran_by.version == control.version and ran_by.moving and control.moving:
                self.placement = self.location.placement(control.version + 1)
                self._came.append((control.version + 1, batch + 1))
                self._rested = 0
                self._say(Control(control.version + 1))
                return
            self._forget(batch)
            if ran_by != control or control.moving:
                return  # what is in force was not seen yet
            self._rested += 1
        if self._rested >= self.rule.rest:
            self._plan()

    def _plan(self) -> None:
        seen = self._recent.counts()
        before = self._loads(self.placement, seen)
        if before.max() <= self.rule.alpha * before[: self.workers].mean():
            return
        placement = self.placer.place(seen, self.placement, self.workers)
        if placement is self.placement:
            return
        gain = self._above(before) - self._above(self._loads(placement, seen))
        changed = self.placement.worker_of(seen.keys) != placement.worker_of(seen.keys)
        assert seen.tail is not None  # it is counted
        moved = seen.counts[changed].sum() + seen.tail[self.placement.tail != placement.tail].sum()
        if gain * self.rule.horizon > moved * self.rule.cost:
            self.announce(placement)

    def _above(self, loads: FloatArray) -> float:
        """The rows that workers have above the average; less of them is a gain though one of two busiest stays so."""
        return float(np.maximum(loads - loads.sum() / self.workers, 0).sum())

    def _loads(self, placement: Placement, seen: Counts) -> FloatArray:
        """Rows of each worker by a placement."""
        assert seen.tail is not None  # it is counted
        tail = np.bincount(placement.tail, seen.tail, self.partitions)
        own = np.bincount(placement.worker_of(seen.keys), seen.counts, self.partitions)
        return np.asarray(tail + own, np.float64)

    def _count(self, placement: Placement, counts: Int64Array, batch: int) -> None:
        """Let what was counted be known: tracked keys exactly, other hot keys as sampled, and the rest by slot."""
        tail = counts[: placement.tail_slots].copy()
        known = {
            key: int(rows) for key, rows in zip(placement.keys.tolist(), counts[len(tail) :].tolist(), strict=True)
        }
        at, seen = self._top
        if at == batch and seen is not None:
            for key, rows in zip(seen.keys.tolist(), seen.counts.tolist(), strict=True):
                if key not in known and rows >= 2 * SAMPLE:
                    slot = key % len(tail)
                    known[key] = min(rows, int(tail[slot]))
                    tail[slot] -= known[key]
        keys = np.array(list(known), dtype=np.int64)
        self._recent.add(keys, np.array(list(known.values()), dtype=np.int64), int(counts.sum()), tail)

    def _forget(self, batch: int) -> None:
        """Delete what no replay can need."""
        self._came = [(version, since if since >= 0 else batch) for version, since in self._came]
        done = [version for version, since in self._came if since + self._retain <= batch]
        if done:
            self._came = [(version, since) for version, since in self._came if version not in done]
            self.location.forget(max(done))

    def _say(self, control: Control) -> None:
        self.location.write_control(control)
        self._control = control


def placed(placer: Placer, seen: Counts | None, workers: int) -> Placement:
    """The placement for rows that are counted already."""
    none = Counts.none()
    first = placer.place(none, None, workers)
    if seen is None:
        return first
    counts = np.asarray(seen.counts, np.float64)
    return placer.place(Counts(seen.keys, counts, float(seen.total)), first, workers)


def _sum(counts: list[list[int]]) -> Int64Array:
    """What all tasks counted, together."""
    return np.sum(np.array(counts, dtype=np.int64), axis=0)  # type: ignore[no-any-return]  # an array of longs
