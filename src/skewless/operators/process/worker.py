"""The owner of some slots: runs a processor on their rows, and gives and takes slots as placements change.

A placement that moves slots comes into force in two steps, with the end of a micro-batch as the barrier between them.
While it is announced, the old owner goes on, and after every micro-batch leaves a copy of what it is to give in the
stream's folder. Once such a micro-batch is committed, the placement is in force: rows go to the new owner, which starts
with the copy, and the old one drops what it gave. No row waits, and what a micro-batch gives does not depend on the
placement it ran by, so one that is replayed after a crash gives the same by whatever placement is in force then.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.control.location import Control, Location
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.keys import codes
from skewless.core.store import Store
from skewless.core.tables import joined
from skewless.operators.process.calls import Kept, Step
from skewless.operators.process.entries import TIMER, TOUCHED, Layout, find, newest
from skewless.operators.process.slots import Shelf, live
from skewless.place.placement import Placement

_NOTES = "notes"
_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Columns:
    """Of the rows that owners get: after the hash, those of the input.

    Parameters
    ----------
    schema
        Of the input.
    keys
        Which of its columns are the key.
    order
        By which columns the rows of a key are sorted.
    time
        The column of event time, if there is one.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    order: tuple[int, ...] = ()
    time: int | None = None


class Owner:
    """A worker's slots, for one micro-batch.

    Parameters
    ----------
    worker
        Its number.
    columns
        Of the rows.
    step
        What is done with them.
    store
        Where the slots are.
    location
        The stream's folder.
    batch
        The number of the micro-batch.
    ttl
        Microseconds for which a key is kept after its last row; None for ever.
    """

    def __init__(
        self,
        worker: int,
        columns: Columns,
        step: Step,
        store: Store,
        location: Location,
        batch: int,
        ttl: int | None = None,
    ) -> None:
        self.worker, self._columns, self._step, self._store = worker, columns, step, store
        self._location, self._batch, self._ttl = location, batch, ttl
        self._layout = Layout(step.keys, step.fields)
        self._control: Control | None = None
        notes = store.get(_NOTES)
        self._shelf = Shelf(self._layout, store)
        if notes is not None:
            self._load(json.loads(notes))

    @property
    def wake(self) -> int | None:
        """When the first timer may be due; None if there is none."""
        times = [self._shelf[name].wake for name in self._shelf.names]
        return min((time for time in times if time is not None), default=None)

    def run(
        self, control: Control | None, rows: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a micro-batch: of timers that are due, and of rows.

        Parameters
        ----------
        control
            That the rows came by; None without rows.
        rows
            Hash and input columns, of keys that are this worker's.
        watermark
            Microseconds; None without one.
        """
        control = control or self._control
        if control is not None:
            self._go_by(control)
        before = None if self._ttl is None or watermark is None else watermark - self._ttl
        if watermark is not None:
            yield from self._timers(watermark, before)
        yield from self._rows(rows, watermark, before)
        if before is not None:
            self._sweep(before)
        if self._control is not None and self._control.moving:
            self._give(self._control.version)
        self._save()

    def _go_by(self, control: Control) -> None:
        had = self._control
        if had is None and control.version > 0:
            raise SkewlessError(
                f"the folder {self._location.uri} is at placement {control.version}, but the checkpoint is new; "
                "name an empty folder with a new checkpoint"
            )
        if had is not None and control.version not in (had.version, had.version + 1):
            raise SkewlessError(
                f"the folder {self._location.uri} is at placement {control.version}, but the checkpoint is at "
                f"{had.version}; restore both from the same time"
            )
        # A placement that is missing or damaged is refused here, before anything is written.
        for version in range(control.version, control.version + 1 + control.moving):
            self._location.placement(version)
        if had is not None and control.version == had.version + 1:
            self._take(self._location.placement(had.version), self._location.placement(control.version))
        self._control = control

    def _give(self, version: int) -> None:
        """Leave a copy of what is another worker's in the next placement."""
        now, then = self._location.placement(version), self._location.placement(version + 1)
        affected = set(changed(now, then))
        gives = bool(leaving(now, then, self.worker))
        if not gives:
            return
        parts = []
        for name in self._shelf.names:
            if name in affected:
                entries = self._shelf.whole(name)
                away = then.worker_of(_hashes(entries)) != self.worker
                parts.append(entries.filter(pa.array(away)))
        entries = joined(parts) if parts else self._layout.empty()
        self._location.write_moves(version + 1, self._batch, self.worker, entries)

    def _take(self, before: Placement, now: Placement) -> None:
        """Drop what was given, take what was got, and let keys change slots that do."""
        held = set(changed(before, now)) & set(self._shelf.names)
        parts = [self._shelf.whole(name) for name in held]
        for source, names in arriving(before, now, self.worker).items():
            some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            parts.append(self._location.read_moves(now.version, self._batch, source, some, self._layout.schema))
        if not parts:
            return
        for name in held:
            self._shelf.replace(name, self._layout.empty())
        entries = joined(parts)
        entries = entries.filter(pa.array(now.worker_of(_hashes(entries)) == self.worker))
        slots = now.slot_of(_hashes(entries))
        for slot in np.unique(slots):
            name, part = now.name(int(slot)), entries.filter(pa.array(slots == slot))
            self._shelf.replace(name, newest([self._layout.empty(), part], self._layout))

    def _rows(
        self, tables: Sequence[pa.RecordBatch], watermark: int | None, before: int | None
    ) -> Iterator[pa.RecordBatch]:
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        assert self._control is not None  # rows come with one
        rows = self._in_time(joined(tables), watermark)
        if not rows.num_rows:
            return
        placement = self._location.placement(self._control.version)
        groups, first = codes([rows.column(1 + i) for i in self._columns.keys])
        hashes = _hashes(rows)[first]
        slots = placement.slot_of(hashes)
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
        parts = self._shelf.read(name)
        entries, at = find(parts or [self._layout.empty()], self._layout, hashes, keys)
        there = live(entries, at, before)
        places = pa.array(at, mask=~there)
        kept = Kept(
            keys,
            [field.take(places) for field in self._layout.fields_of(entries)],
            entries.column(TIMER).take(places),
        )
        inputs = pa.RecordBatch.from_arrays(rows.columns[1:], schema=self._columns.schema)
        result, kept = self._step.rows(inputs, bounds, kept)
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
            self._shelf.add(name, entries, parts, before)

    def _timers(self, watermark: int, before: int | None) -> Iterator[pa.RecordBatch]:
        for name in self._shelf.names:
            wake = self._shelf[name].wake
            if wake is None or wake > watermark:
                continue
            parts = self._shelf.read(name)
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
                result, kept = self._step.expire(
                    Kept(self._layout.keys_of(some), self._layout.fields_of(some), some.column(TIMER))
                )
                there = np.ones(some.num_rows, dtype=bool)
                kept = _unless_expired(kept, some.column(TOUCHED), before)
                self._add(name, _hashes(some), kept, some.column(TOUCHED), parts, there, before)
                if result.num_rows:
                    yield result
                later = np.concatenate([timers[~due], np.asarray(kept.timers.drop_null())])
            else:
                later = timers[~due]
            if name in self._shelf.names:
                least = int(later.min(initial=_NEVER))
                self._shelf[name].wake = None if least == _NEVER else least

    def _sweep(self, before: int) -> None:
        """Write slots anew whose oldest entries expired some time ago."""
        assert self._ttl is not None  # or nothing expires
        for name in self._shelf.names:
            oldest = self._shelf[name].oldest
            if oldest is not None and oldest < before - self._ttl // 2:
                self._shelf.replace(name, self._shelf.whole(name), before)

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

    def _load(self, notes: dict[str, object]) -> None:
        if notes["mark"] != self._layout.mark:
            raise SkewlessError(
                f"the checkpoint is of another processor: its key and state were {notes['mark']}, now they are "
                f"{self._layout.mark}; use a new checkpoint for a changed processor"
            )
        if notes["id"] != self._location.whose:
            raise SkewlessError(
                f"the folder {self._location.uri} does not belong to this checkpoint; name the one it was made with"
            )
        self._control = None if notes["control"] is None else Control.of(int(str(notes["control"])))
        self._shelf = Shelf(self._layout, self._store, notes["slots"])  # type: ignore[arg-type]  # from JSON

    def _save(self) -> None:
        notes = {
            "mark": self._layout.mark,
            "id": self._location.whose,
            "control": None if self._control is None else self._control.code,
            "slots": self._shelf.notes(),
        }
        self._store.put(_NOTES, json.dumps(notes).encode())


def _unless_expired(kept: Kept, touched: pa.Array, before: int | None) -> Kept:
    """What is kept, without what was kept of keys that have expired: their last timer was their last word."""
    if before is None:
        return kept
    late = np.asarray(touched.fill_null(before)) < before
    places = pa.array(np.arange(len(late)), mask=late)
    return Kept(kept.keys, [field.take(places) for field in kept.fields], kept.timers.take(places))


def changed(before: Placement, after: Placement) -> list[str]:
    """The names of the slots, of either placement, that keys leave or come to."""
    tail = set(np.flatnonzero(before.tail != after.tail).tolist())
    was = dict(zip(before.keys.tolist(), before.own.tolist(), strict=True))
    now = dict(zip(after.keys.tolist(), after.own.tolist(), strict=True))
    keys = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
    tail |= {key % before.tail_slots for key in was.keys() ^ now.keys()}
    return [*(f"t{slot}" for slot in sorted(tail)), *(f"k{key}" for key in sorted(keys))]


def leaving(before: Placement, after: Placement, worker: int) -> list[str]:
    """The slots of the later placement of which a worker gives keys to others."""
    return [name for name, source, target in _transfers(before, after) if source == worker != target]


def arriving(before: Placement, after: Placement, worker: int) -> dict[int, list[str]]:
    """For each other worker that gives keys to this one, the slots they come to."""
    sources: dict[int, list[str]] = {}
    for name, source, target in _transfers(before, after):
        if target == worker != source:
            sources.setdefault(source, []).append(name)
    return sources


def _transfers(before: Placement, after: Placement) -> Iterator[tuple[str, int, int]]:
    """Slots of the later placement that change hands, whole or in part: name, old owner, new owner."""
    for slot in np.flatnonzero(before.tail != after.tail).tolist():
        yield f"t{slot}", int(before.tail[slot]), int(after.tail[slot])
    old = before.worker_of(after.keys)
    for key, source, target in zip(after.keys.tolist(), old.tolist(), after.own.tolist(), strict=True):
        if source != target:
            yield f"k{key}", source, target
    back = np.setdiff1d(before.keys, after.keys)
    for key, source, target in zip(
        back.tolist(), before.worker_of(back).tolist(), after.worker_of(back).tolist(), strict=True
    ):
        if source != target:
            yield f"t{key % after.tail_slots}", source, target


def _hashes(rows: pa.RecordBatch) -> Int64Array:
    return np.asarray(rows.column(0))
