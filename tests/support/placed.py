"""A query with a placement, its workers and the loop on its driver, without Spark.

The engine here does what Spark does: it reads the control when a micro-batch begins, runs tasks and workers, commits
their stores together, and tells the driver of a committed micro-batch some time later. What each micro-batch gives is
compared with one process that has dictionaries. No step may fail unless it is one that has to.
"""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless.control import version as versions
from skewless.control.loop import Chosen, Observed
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.scaling import Scaling
from skewless.control.version import CONTROL, Version, digest
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.elastic import Range
from skewless.operators.process.pack import Pack
from skewless.operators.send import Sender
from skewless.place import AutoFlow, Placement, Rule
from skewless.place.placement import moves
from support.cluster import HASHES, KEYS, SCHEMA, TAIL, WORKERS, Cluster, In, Reference, table
from support.disk import Disk

CHOSEN = Chosen("autoflow", "as the test asks")
ROUNDS = 3  # that the placer sums rows over
NEVER = Rule(alpha=float("inf"))  # only what the test announces
QUERY = "query 1"
NAMESAKE = next(name for name in map("query {}".format, itertools.count(2)) if digest(name) == digest(QUERY))
"""Another query that a control cannot tell apart."""


class DiskFullError(OSError):
    """What a worker meets that cannot write to the folder."""


@dataclass(frozen=True)
class FullFolder(Placements):
    """A folder in which there is room for what worker 0 leaves, and for nothing else."""

    def give(
        self, placement: Placement, turn: Turn, slots: Sequence[str], entries: pa.RecordBatch, *, whole: bool = True
    ) -> None:
        if turn.worker:
            raise DiskFullError("no space left on device")
        super().give(placement, turn, slots, entries, whole=whole)


@dataclass(frozen=True)
class Death:
    """An attempt of a micro-batch that is not committed.

    Parameters
    ----------
    done
        How many workers were done.
    withdrawn
        Whether what was announced is withdrawn before the application is started again, after that, or not at all.
    """

    done: int
    withdrawn: str = ""


@dataclass
class Backup:
    """The checkpoint and the folder of one time."""

    batch: int
    stores: list[dict[str, bytes]]
    reference: Reference
    folder: Path


@dataclass
class World:
    """A query with its checkpoint, its folder, and the loop on its driver."""

    path: Path
    retain: int = 2
    query: str = QUERY
    batch: int = 0
    runs: int = 0
    full: bool = False
    moved: int = 0
    """The number of versions that came into force."""
    unheard: int = 0
    """How many micro-batches went by a placement that the driver had not written to be in force."""
    elastic: bool = False
    """Whether the number of active workers follows how long micro-batches take."""
    seconds: float | None = None
    """How long that is, with an interval of a second."""
    disk: Disk = field(default_factory=Disk)
    events: deque[Observed] = field(default_factory=deque)
    backup: Backup | None = None

    def __post_init__(self) -> None:
        self.reference, self.force = Reference(None), 0
        self.known: list[Placing] = []  # those that were built last, with handles that somebody may still have
        self.counted: dict[int, Int64Array] = {}  # the rows of each slot, in each micro-batch
        self.rounds: list[Int64Array] = []  # of those that the loop has heard of
        self.stores: list[dict[str, bytes]] = [{} for _worker in range(WORKERS)]
        self.built = self.loop = self.build()
        self.start()

    @property
    def folder(self) -> Path:
        return self.path / "placement"

    @property
    def run(self) -> str:
        return f"{self.query}, run {self.runs}"

    def make(self) -> Placing:
        """A loop of the folder, such as that of another driver."""
        scaling = Scaling(Range(1, WORKERS, "1 second", d=1), "reduce") if self.elastic else None
        folder, workers = Placements.at(str(self.folder)), 1 if self.elastic else 2
        placer = AutoFlow(slots=TAIL, window_length=ROUNDS)
        return Placing("stream", placer, folder, workers, WORKERS, NEVER, self.retain, CHOSEN, None, scaling)

    def build(self) -> Placing:
        """`process(...)` is called, which touches nothing that runs."""
        self.built = self.make()
        self.known = [*self.known[-3:], self.built]
        return self.built

    def start(self) -> None:
        """A run of the DataFrame that was built last: all loops that there are hear that a query starts."""
        self.runs += 1
        for loop in self.known:
            loop.start(self.query, self.run)
        self.rounds = self.rounds if self.built is self.loop else []
        self.loop = self.built

    def stop(self, *, healthy: bool = True) -> None:
        """The run ends: the driver hears of all that was done."""
        self.hear(len(self.events))
        for loop in self.known:
            loop.end(self.run, self.query, healthy=healthy)

    def restart(self) -> None:
        """The query is stopped and started again."""
        self.stop()
        self.start()

    def crash(self) -> None:
        """The application dies, with what the driver had not heard yet, and is started again."""
        self.events.clear()
        self.known = []
        versions._once.cache_clear()
        self.loop, self.rounds = self.build(), []
        self.start()

    def lose_power(self) -> None:
        """The machine of the driver and of its disk dies: what was not flushed is gone."""
        self.disk.lose_power(self.folder)
        self.crash()

    def fail(self, again: bool) -> None:
        """A micro-batch has failed: the query is started again, in the same application or a new one."""
        if again:
            self.stop(healthy=False)
            self.start()
        else:
            self.crash()

    def control(self) -> Version:
        """What the rows of a micro-batch are given, as Spark reads it from the file."""
        return Version.of(int(json.loads((self.folder / CONTROL).read_text())["control"]))

    def micro_batch(self, values: list[int], deaths: Sequence[Death] = ()) -> None:
        """A micro-batch, which is run again after every crash until the last attempt is committed."""
        rows: list[In] = [(*KEYS[value % len(KEYS)], 1000 * self.batch + i, value) for i, value in enumerate(values)]
        wanted = self.reference.run(rows, -1)
        for death in deaths:
            self.cluster().rows(self.batch, self.control(), rows, -1, death.done)
            if death.withdrawn == "before the start":
                self.withdraw()
            self.crash()
            if death.withdrawn == "after it":
                self.withdraw()
        cluster = self.cluster()
        assert cluster.rows(self.batch, self.control(), rows, -1) == wanted
        ran_by = cluster.ran_by
        self.moved += ran_by.force != self.force
        self.unheard += ran_by.force == self.control().announced > 0
        self.force = ran_by.force
        self.stores = cluster.copies()
        placement = self.loop.folder.placement(self.force)  # as it is in the folder
        for worker in range(WORKERS):
            own = {placement.name(slot) for slot in np.flatnonzero(placement.owners == worker).tolist()}
            assert cluster.slots(worker) <= own
        slots = [HASHES[value % len(KEYS)] % TAIL for value in values]
        self.counted[self.batch] = np.bincount(slots, minlength=TAIL)
        seen = Observed(self.query, self.run, self.batch, control=ran_by.code, notes=cluster.notes)
        times = {"rows": 1000, "began": self.batch * 1_000_000, "seconds": self.seconds, "busy": self.seconds}
        self.events.append(replace(seen, **times))
        self.batch += 1

    def cluster(self) -> Cluster:
        """The workers, with what is committed."""
        kind = FullFolder if self.full else Placements
        folder = self.loop.folder
        cluster = Cluster(kind(folder.uri, folder.stream), None, self.query, self.run)
        cluster.restore(self.stores)
        return cluster

    def hear(self, count: int = 1) -> None:
        """Some of what was done reaches the driver."""
        for _ in range(min(count, len(self.events))):
            self.rounds.append(self.counted[self.events[0].batch])
            self.loop.hear(self.events.popleft())
        assert not self.loop._failed

    def ask(self) -> None:
        """Somebody asks twice what the placer would do, which knows each micro-batch that was heard of once."""
        for _ask in range(2):
            found = self.loop.rebalance(dry=True)
        if self.rounds:
            none, rows = np.zeros(0, np.int64), np.sum(self.rounds[-ROUNDS:], axis=0)
            seen, now = Counts(none, none, int(rows.sum()), rows), self.loop.placement
            assert found == moves(now, AutoFlow(slots=TAIL).place(seen, now, self.loop.workers))

    def announce(self, placement: Placement, loop: Placing | None = None) -> None:
        """Somebody has a placement announced; refused while another is on its way, or nothing was heard."""
        with suppress(SkewlessError):
            (loop or self.loop).announce(placement)

    def announce_by_an_old_handle(self, placement: Placement) -> None:
        self.announce(placement, self.known[0])

    def withdraw(self) -> None:
        """By any handle, such as that of a run that is over."""
        with suppress(SkewlessError):
            self.known[0].withdraw()
            assert not self.control().to_come

    def blank(self) -> None:
        """The control is gone when a micro-batch begins: it is refused, and none of its rows is lost."""
        rows: list[In] = [(*key, 1, 1) for key in KEYS]
        without = table(rows, Version(0)).set_column(1, "control", pa.nulls(len(rows), pa.int64()))
        with pytest.raises(SkewlessError, match="the control file of the stream's folder is empty or gone"):
            list(Pack(self.loop.folder, SCHEMA).send([without], Sender(range(WORKERS), 0), Turn(0, self.batch)))

    def keep(self) -> None:
        """The query is stopped, and folder and checkpoint are copied."""
        self.stop()
        kept = self.path / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept)
        self.backup = Backup(self.batch, copy.deepcopy(self.stores), copy.deepcopy(self.reference), kept)
        self.start()

    def restore(self, *, rebuilt: bool) -> None:
        """Both are restored in the running application."""
        if self.backup is None:
            return
        self.stop()
        shutil.rmtree(self.folder)
        shutil.copytree(self.backup.folder, self.folder)
        self.disk.sync(self.folder)
        self.batch, self.stores = self.backup.batch, copy.deepcopy(self.backup.stores)
        self.reference = copy.deepcopy(self.backup.reference)
        if rebuilt:
            self.build()
        self.start()

    def load(self, seconds: float | None) -> None:
        """From now on micro-batches take so long."""
        self.seconds = seconds

    def intrude(self) -> None:
        """Another query of the same folder, with a new checkpoint: it gets no row out, and does no harm."""
        control = self.control()
        if control.query == 0:
            return  # nobody's yet
        for query in ("query 2", NAMESAKE) if control.force or control.announced else ("query 2",):
            other = Cluster(Placements.at(str(self.folder)), None, query, f"{query}, run {self.runs}")
            with pytest.raises(SkewlessError, match=f"belongs to query query 1, and this is query {query}"):
                other.rows(0, control, [(*KEYS[0], 5, 5)], -1)

    def settles(self) -> None:
        """Whatever came before: what is announced now comes into force within a few micro-batches."""
        self.load(None)
        self.hear(len(self.events))
        for number in range(8 if self.elastic else 6):
            self.micro_batch([number, number + 1, 3])
            self.hear(len(self.events))
        assert not self.loop.announced
        force, scaling = self.loop.version.force, self.loop.scaling
        if scaling is not None:
            assert self.loop.paused or scaling.workers == self.loop.workers == self.loop.placement.workers
        self.loop.announce(Placement.of(2, tail=[0, 1, 1, 0, number % 2]))
        for number in range(2):
            self.micro_batch([number, 4, 5])
            self.hear(len(self.events))
        assert self.loop.version.force > force
        assert self.control() == self.loop.version


ELSEWHERE = Placement.of(2, tail=[1, 0, 1, 0, 1])


def announced(path: Path) -> World:
    """A query for which a placement was announced after its first micro-batch."""
    world = World(path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(ELSEWHERE)
    return world
