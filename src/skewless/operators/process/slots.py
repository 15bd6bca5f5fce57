"""The slots of a worker in its store: each a base of entries and the changes since, so that little is written.

What a batch writes is the entries it changed. Once the changes of a slot are more than its base, both are written anew
as one; when exactly differs from slot to slot, so that not all of them are due in the same batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.core import blob
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.store import Store
from skewless.operators.process.entries import GONE, TIMER, TOUCHED, Layout, newest

MOST_PARTS = 256
"""The most parts of a slot: each is a call to the store when the slot is read."""


@dataclass
class Slot:
    """What is known of a slot without reading it.

    Parameters
    ----------
    parts
        The number of each part, base first, and how many entries it has.
    wake
        No timer of the slot is due before this time; None if there is none.
    oldest
        No entry was last touched before this time; None if there is none.
    size
        About how many bytes its entries would have as one part.
    """

    parts: list[tuple[int, int]] = field(default_factory=list)
    wake: int | None = None
    oldest: int | None = None
    size: int = 0

    def note(self, entries: pa.RecordBatch) -> None:
        """Entries were added."""
        self.wake = _least(self.wake, _minimum(entries.column(TIMER)))
        self.oldest = _least(self.oldest, _minimum(entries.column(TOUCHED)))


class SlotStore:
    """Slots by name.

    Parameters
    ----------
    layout
        The columns of their entries.
    store
        The worker's store.
    slots
        What is known of each slot, from `notes`.
    """

    def __init__(self, layout: Layout, store: Store, slots: dict[str, Any] | None = None) -> None:
        self._layout, self._store = layout, store
        self._slots = {
            name: Slot([(n, rows) for n, rows in parts], *rest) for name, (parts, *rest) in (slots or {}).items()
        }

    def notes(self) -> dict[str, Any]:
        """What is known of each slot, for JSON."""
        return {name: [slot.parts, slot.wake, slot.oldest, slot.size] for name, slot in self._slots.items()}

    @property
    def size(self) -> int:
        """About how many bytes all entries have."""
        return sum(slot.size for slot in self._slots.values())

    def __getitem__(self, name: str) -> Slot:
        return self._slots.get(name, Slot())

    @property
    def names(self) -> list[str]:
        """The names of all slots that hold entries."""
        return list(self._slots)

    def read(self, name: str) -> list[pa.RecordBatch]:
        """The parts of a slot, older ones first."""
        parts = [blob.load(self._store.need(_blob(name, number))) for number, _rows in self[name].parts]
        return [pa.RecordBatch.from_arrays(part.columns, schema=self._layout.schema) for part in parts]

    def whole(self, name: str) -> pa.RecordBatch:
        """The entries of a slot, each key's last."""
        parts = self.read(name)
        return newest(parts, self._layout) if parts else self._layout.empty()

    def add(
        self,
        name: str,
        entries: pa.RecordBatch,
        parts: Sequence[pa.RecordBatch],
        before: int | None = None,
        new: int | None = None,
    ) -> None:
        """Write entries of keys that changed.

        Parameters
        ----------
        name
            The slot's name.
        entries
            The entries, sorted by hash.
        parts
            The slot's parts, as `read` gave them.
        before
            Entries last touched before this time have expired, and go when the slot is next written as one.
        new
            How many of the entries are of keys that were not there before; all if not given.
        """
        slot = self[name]
        changes = sum(rows for _number, rows in slot.parts[1:]) + entries.num_rows
        base = slot.parts[0][1] if parts else 0
        # Changes as large as the base cost no more to write as one with it, and less to read.
        if entries.num_rows < base and changes < base * _patience(name) and len(parts) < MOST_PARTS:
            self._write(name, entries, slot.parts[-1][0] + 1, entries.num_rows if new is None else new)
        else:
            self.replace(name, newest([*parts, entries], self._layout), before)

    def replace(self, name: str, entries: pa.RecordBatch, before: int | None = None) -> None:
        """Let a slot hold just these entries."""
        entries = unexpired(entries, before)
        slot = self._slots.pop(name, Slot())
        numbers = [number for number, _rows in slot.parts]
        # The base is written over, which is one call to the store instead of two.
        for number in numbers[1:] if entries.num_rows else numbers:
            self._store.drop(_blob(name, number))
        if entries.num_rows:
            self._slots[name] = Slot()
            self._write(name, entries, numbers[0] if numbers else 0, entries.num_rows)

    def _write(self, name: str, entries: pa.RecordBatch, number: int, new: int) -> None:
        slot, data = self._slots[name], blob.dump(entries.columns)
        self._store.put(_blob(name, number), data)
        slot.parts.append((number, entries.num_rows))
        slot.size += len(data) * new // max(1, entries.num_rows)
        slot.note(entries)


def unexpired(entries: pa.RecordBatch, before: int | None) -> pa.RecordBatch:
    """The entries without those last touched before a time."""
    if before is None or not entries.num_rows:
        return entries
    touched = entries.column(TOUCHED)
    late = np.asarray(touched.fill_null(before)) < before
    return entries.filter(pa.array(~late)) if late.any() else entries


def live(entries: pa.RecordBatch, at: Int64Array, before: int | None) -> BoolArray:
    """Which of these places hold an entry that is neither gone nor expired."""
    there: BoolArray = at >= 0
    if not entries.num_rows:
        return there
    places = np.where(there, at, 0)
    there = there & ~entries.column(GONE).to_numpy(zero_copy_only=False)[places]
    if before is not None:
        there = there & (np.asarray(entries.column(TOUCHED).fill_null(before))[places] >= before)
    return there


def _patience(name: str) -> float:
    """How many times its base the changes of a slot may be: from 2 to 4."""
    return 2 + 2 * zlib.crc32(name.encode()) / 2**32


def _blob(name: str, number: int) -> str:
    return f"{name}/{number}"


def _minimum(column: pa.Array) -> int | None:
    valid = column.drop_null()
    return int(np.asarray(valid).min()) if len(valid) else None


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
