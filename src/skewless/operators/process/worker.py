"""The worker that owns some slots: runs a processor on their rows, and gives and takes slots as placements change.

What a micro-batch gives does not depend on the placement it ran by, so one that is replayed after a crash gives the
same by whatever placement is in force then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.control.folder import RESTORE
from skewless.control.placements import OnePlacement, Placements
from skewless.control.version import Version
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.keys import codes
from skewless.core.store import Store
from skewless.core.tables import joined
from skewless.core.turn import Turn
from skewless.operators.notes import read_notes, write_notes
from skewless.operators.process.calls import Kept, calls_of
from skewless.operators.process.entries import TIMER, TOUCHED, Layout, find, newest
from skewless.operators.process.handover import Handover
from skewless.operators.process.processor import Processor
from skewless.operators.process.slots import SlotStore, live
from skewless.operators.worker import Worker
from skewless.place.placement import Placement

LEAST_TOLD = 1 << 16
"""The driver is not told of changes of state by fewer bytes."""
_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Columns:
    """The columns of the rows that workers get: after the hash, those of the input.

    Parameters
    ----------
    schema
        The names and types of the input columns.
    keys
        The numbers of the columns that are the key.
    order
        The numbers of the columns by which the rows of a key are sorted.
    time
        The number of the column of event time, if there is one.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    order: tuple[int, ...] = ()
    time: int | None = None


@dataclass(frozen=True)
class Task:
    """What a worker must know of its query.

    Parameters
    ----------
    processor
        The user's processor.
    columns
        The columns of the rows.
    fields, result
        The names and types of the columns of state and result.
    placements
        The stream's folder, or the one placement of a batch.
    ttl
        Microseconds for which a key is kept after its last row; None for ever.
    """

    processor: Processor
    columns: Columns
    fields: pa.Schema
    result: pa.Schema
    placements: Placements | OnePlacement
    ttl: int | None = None

    @property
    def keys(self) -> pa.Schema:
        """The names and types of the key columns."""
        return pa.schema([self.columns.schema.field(i) for i in self.columns.keys])


class ProcessWorker(Worker):
    """A worker's slots, for one micro-batch.

    Parameters
    ----------
    task
        What is done with the rows.
    turn
        Whose turn it is.
    store
        Where the slots are.
    """

    def __init__(self, task: Task, turn: Turn, store: Store) -> None:
        self._turn, self._columns, self._store, self._ttl = turn, task.columns, store, task.ttl
        self._calls = calls_of(task.processor, task.keys, task.fields, task.result)
        self._placements = task.placements
        self._layout = Layout(task.keys, task.fields)
        self._version: Version | None = None
        self._added: list[pa.RecordBatch] = []
        noted = read_notes(store, self._layout.mark, "key and state")
        notes: dict[str, Any] = noted[0] if noted else {}
        if noted and notes["stream"] != self._placements.stream:
            raise SkewlessError(f"{self._folder} does not belong to this checkpoint; name the one it was made with")
        if noted and notes["version"] is not None:
            self._version = Version.of(notes["version"])
        self._slots = SlotStore(self._layout, store, notes.get("slots"))
        self._told = int(notes.get("told", 0))  # the bytes of state that the driver knows of

    @property
    def wake(self) -> int | None:
        """When the first timer may be due; None if there is none."""
        times = [self._slots[name].wake for name in self._slots.names]
        return min((time for time in times if time is not None), default=None)

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a micro-batch: of timers that are due, and of rows of hash and input columns."""
        version = self._version if control is None else Version.of(control)
        if version is not None:
            self._go_by(version)
        before = None if self._ttl is None or watermark is None else watermark - self._ttl
        if watermark is not None:
            yield from self._timers(watermark, before)
        yield from self._rows(tables, watermark, before)
        if before is not None:
            self._sweep(before)
        if self._version is not None and self._version.announced:
            # In a call without rows there is a copy already: rows brought the announcement.
            self._handover().give(self._version, None if control is not None else self._added)
        self._save()

    @property
    def _folder(self) -> str:
        return f"the folder {self._placements.uri}" if isinstance(self._placements, Placements) else "the placement"

    def _handover(self) -> Handover:
        assert isinstance(self._placements, Placements)  # where nothing changes nothing is given or taken
        return Handover(self._placements, self._turn, self._layout, self._slots)

    def _placement(self, number: int) -> Placement:
        return self._placements.placement(number, self._turn)

    def _go_by(self, version: Version) -> None:
        had, placements = self._version, self._placements
        placements.check(version, self._turn)
        if had is None and version.force > 0:
            raise SkewlessError(
                f"{self._folder} is at placement {version.force}, but the checkpoint is new; "
                "name an empty folder with a new checkpoint"
            )
        # A placement that is missing or damaged is refused here, before anything is written.
        now = self._placement(version.force)
        if version.announced:
            self._placement(version.announced)
        if had is not None and version.force != had.force:
            assert isinstance(placements, Placements)  # where nothing changes there is one version
            if version.force < had.force or placements.before(version.force, self._turn) != had.force:
                raise SkewlessError(
                    f"{self._folder} is at placement {version.force}, but the checkpoint is at "
                    f"{had.force}; restore both from the same time"
                )
            self._handover().take(self._placement(had.force), now, carried=had.to_come == version.force)
        self._version = version

    def _rows(
        self, tables: Sequence[pa.RecordBatch], watermark: int | None, before: int | None
    ) -> Iterator[pa.RecordBatch]:
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        assert self._version is not None  # rows come with one
        rows = self._in_time(joined(tables), watermark)
        if not rows.num_rows:
            return
        placement = self._placement(self._version.force)
        groups, first = codes([rows.column(1 + i) for i in self._columns.keys])
        hashes = _hashes(rows)[first]
        slots = placement.slot_of(hashes)
        astray = np.flatnonzero(placement.owners[slots] != self._turn.worker)
        if len(astray):
            slot = int(slots[astray[0]])
            raise SkewlessError(
                f"worker {self._turn.worker} got rows of slot {placement.name(slot)}, which is worker "
                f"{placement.owners[slot]}'s by placement {placement.version} of {self._folder}: who sent them went by "
                f"another one; {RESTORE}. The query stops so that no state is split"
            )
        # Number the keys by slot and hash, and sort the rows by those numbers.
        order = np.lexsort((hashes, slots))
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        rows, groups = self._sorted(rows, number[groups])
        first, hashes, slots = first[order], hashes[order], slots[order]
        bounds = np.searchsorted(groups, np.arange(len(order) + 1))
        edges = np.flatnonzero(np.diff(slots, prepend=-1, append=placement.slots))
        keys = [rows.column(1 + i).take(pa.array(bounds[:-1])) for i in self._columns.keys]
        for start, stop in itertools.pairwise(edges):
            some = slice(int(start), int(stop))
            part = rows.slice(bounds[start], bounds[stop] - bounds[start])
            yield self._slot(
                placement.name(int(slots[start])),
                part,
                bounds[start : stop + 1] - bounds[start],
                hashes[some],
                [key[some] for key in keys],
                before,
            )

    def _slot(
        self,
        name: str,
        rows: pa.RecordBatch,
        bounds: Int64Array,
        hashes: Int64Array,
        keys: list[pa.Array],
        before: int | None,
    ) -> pa.RecordBatch:
        """Rows of a slot."""
        parts = self._slots.read(name)
        entries, at = find(parts or [self._layout.empty()], self._layout, hashes, keys)
        there = live(entries, at, before)
        places = pa.array(at, mask=~there)
        kept = Kept(
            keys,
            [field.take(places) for field in self._layout.fields_of(entries)],
            entries.column(TIMER).take(places),
        )
        inputs = pa.RecordBatch.from_arrays(rows.columns[1:], schema=self._columns.schema)
        result, kept = self._calls.rows(inputs, bounds, kept)
        touched = pa.nulls(len(hashes), pa.int64())
        if self._ttl is not None:
            assert self._columns.time is not None  # a ttl needs one
            now = 0 if before is None else before + self._ttl  # a row without a time counts as one at the watermark
            times = np.asarray(inputs.column(self._columns.time).cast(pa.int64()).fill_null(now))
            last = np.maximum.reduceat(times, bounds[:-1])
            was = np.asarray(entries.column(TOUCHED).take(places).fill_null(np.iinfo(np.int64).min))
            touched = pa.array(np.maximum(last, was))
        self._add(name, hashes, kept, touched, parts, there, before)
        return result

    def _add(
        self,
        name: str,
        hashes: Int64Array,
        kept: Kept,
        touched: pa.Array,
        parts: Sequence[pa.RecordBatch],
        there: BoolArray,
        before: int | None,
    ) -> None:
        entries = self._layout.entries(hashes, kept.keys, kept.fields, kept.timers, touched, there)
        if entries.num_rows:
            self._added.append(entries)
            self._slots.add(name, entries, parts, before, new=int(np.count_nonzero(~there)))

    def _timers(self, watermark: int, before: int | None) -> Iterator[pa.RecordBatch]:
        for name in self._slots.names:
            wake = self._slots[name].wake
            if wake is None or wake > watermark:
                continue
            parts = self._slots.read(name)
            entries = newest(parts, self._layout)
            timers = np.asarray(entries.column(TIMER).fill_null(_NEVER))
            if self._ttl is not None:
                # A timer counts if it comes before its key has expired, though the watermark may pass both at once.
                last = np.asarray(entries.column(TOUCHED).fill_null(_NEVER - self._ttl)) + self._ttl
                timers = np.where(timers <= last, timers, _NEVER)
            due = timers <= watermark
            if due.any():
                some = entries.filter(pa.array(due))
                some = some.take(pa.array(np.argsort(np.asarray(some.column(TIMER)), kind="stable")))
                result, kept = self._calls.expire(
                    Kept(self._layout.keys_of(some), self._layout.fields_of(some), some.column(TIMER)), watermark
                )
                there = np.ones(some.num_rows, dtype=bool)
                kept = _unless_expired(kept, some.column(TOUCHED), before)
                self._add(name, _hashes(some), kept, some.column(TOUCHED), parts, there, before)
                if result.num_rows:
                    yield result
                later = np.concatenate([timers[~due], np.asarray(kept.timers.drop_null())])
            else:
                later = timers[~due]
            if name in self._slots.names:
                least = int(later.min(initial=_NEVER))
                self._slots[name].wake = None if least == _NEVER else least

    def _sweep(self, before: int) -> None:
        """Write slots anew whose oldest entries expired some time ago."""
        assert self._ttl is not None  # or nothing expires
        for name in self._slots.names:
            oldest = self._slots[name].oldest
            if oldest is not None and oldest < before - self._ttl // 2:
                self._slots.replace(name, self._slots.whole(name), before)

    def _in_time(self, rows: pa.RecordBatch, watermark: int | None) -> pa.RecordBatch:
        """Without rows at or before the watermark: they are late, as in Spark."""
        if watermark is None or self._columns.time is None:
            return rows
        times = rows.column(1 + self._columns.time).cast(pa.int64()).fill_null(watermark + 1)
        late = np.asarray(times) <= watermark
        return rows.filter(pa.array(~late)) if late.any() else rows

    def _sorted(self, rows: pa.RecordBatch, groups: Int64Array) -> tuple[pa.RecordBatch, Int64Array]:
        if not self._columns.order:
            order = np.argsort(groups, kind="stable")
            return rows.take(pa.array(order)), groups[order]
        by = [f"o{i}" for i in range(len(self._columns.order))]
        columns = [pa.array(groups), *[rows.column(1 + i) for i in self._columns.order]]
        table = pa.table(columns, names=["group", *by])
        at = table.to_batches()[0]
        indices = pa.compute.sort_indices(at, sort_keys=[(name, "ascending") for name in ["group", *by]])
        return rows.take(indices), groups[np.asarray(indices)]

    def _save(self) -> None:
        code = None if self._version is None else self._version.code
        self._tell()
        notes = {"stream": self._placements.stream, "version": code, "slots": self._slots.notes(), "told": self._told}
        write_notes(self._store, self._layout.mark, notes)

    def _tell(self) -> None:
        """Let the driver know how much state there is, whenever that has changed much."""
        size = self._slots.size
        if isinstance(self._placements, Placements) and abs(size - self._told) > max(LEAST_TOLD, 0.2 * self._told):
            self._placements.tell_size(self._turn, size)
            self._told = size


def _unless_expired(kept: Kept, touched: pa.Array, before: int | None) -> Kept:
    """What is kept, without what was kept of keys that have expired: their last timer was their last word."""
    if before is None:
        return kept
    late = np.asarray(touched.fill_null(before)) < before
    places = pa.array(np.arange(len(late)), mask=late)
    return Kept(kept.keys, [field.take(places) for field in kept.fields], kept.timers.take(places))


def _hashes(rows: pa.RecordBatch) -> Int64Array:
    return np.asarray(rows.column(0))
