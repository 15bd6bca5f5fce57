"""The owner of some windows: holds rows until their windows are over, and then runs the function on each of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.chop.assignment import Assignment, mine
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.keys import codes
from skewless.core.store import Store
from skewless.core.tables import joined
from skewless.core.windows import BEFORE_ALL, Windows
from skewless.operators.windows.buffer import Buffer
from skewless.operators.windows.function import Call
from skewless.operators.windows.slices import Slices, slices

_NOTES = "notes"
EVER = -BEFORE_ALL
"""After every window."""


@dataclass(frozen=True)
class Columns:
    """Of the rows that owners get: the hash of the key, the time, and then these.

    Parameters
    ----------
    keys
        Which of the columns are the key; none for one window of all rows.
    seen
        Which of them the function sees.
    """

    keys: tuple[int, ...]
    seen: tuple[int, ...]

    def key_arrays(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The columns of the key."""
        return [rows.column(2 + i) for i in self.keys]


@dataclass(frozen=True)
class Task:
    """What owners do, whichever they are.

    Parameters
    ----------
    columns
        Of the rows.
    windows
        Size and slide.
    call
        What is done with a window.
    together
        Whether windows wait until all of their batch are over, and are worked on together.
    newest
        Whether of rows with equal keys and times the last to come stands for all.
    mark
        Names the query: state of another one is refused.
    """

    columns: Columns
    windows: Windows
    call: Call
    together: bool = False
    newest: bool = False
    mark: str = ""


@dataclass
class Sorted:
    """Rows sorted by key and time.

    Parameters
    ----------
    rows, times
        All of them.
    groups
        The number of each row's key.
    hashes, keys
        Of each key.
    """

    rows: pa.RecordBatch
    times: Int64Array
    groups: Int64Array
    hashes: Int64Array
    keys: list[pa.Array]
    values: list[tuple[object, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """The keys as the function sees them."""
        columns = [column.to_pylist() for column in self.keys]
        self.values = list(zip(*columns, strict=True)) if columns else [()] * len(self.hashes)


def in_order(rows: pa.RecordBatch, columns: Columns, *, newest: bool = False) -> Sorted:
    """Sort rows by key and time, those of equal times as they came; or let the last of them stand for all."""
    keys, times = columns.key_arrays(rows), np.asarray(rows.column(1))
    groups, first = codes(keys) if keys else (np.zeros(len(times), np.int64), np.zeros(min(1, len(times)), np.int64))
    order = np.lexsort((times, groups))
    if newest:
        again = (np.diff(groups[order], append=-1) == 0) & (np.diff(times[order], append=0) == 0)
        order = order[~again]
    hashes = np.asarray(rows.column(0))[first]
    taken = [column.take(pa.array(first)) for column in keys]
    return Sorted(rows.take(pa.array(order)), times[order], groups[order], hashes, taken)


def answers(task: Task, rows: Sorted, found: Slices) -> Iterator[pa.RecordBatch]:
    """Hash, window, keys, and what the function gave."""
    seen = [rows.rows.column(2 + i) for i in task.columns.seen]
    inputs = pa.RecordBatch.from_arrays(seen, names=[str(i) for i in range(len(seen))])
    for which, columns in task.call.run(inputs, rows.values, task.windows, found):
        groups = found.groups[which]
        heads = [pa.array(rows.hashes[groups]), pa.array(found.windows[which])]
        keys = [column.take(pa.array(groups)) for column in rows.keys]
        names = [str(i) for i in range(2 + len(keys) + len(columns))]
        yield pa.RecordBatch.from_arrays([*heads, *keys, *columns], names=names)


class Worker(ABC):
    """Someone who gets rows in every micro-batch, and gives rows."""

    wake: int | None
    """The time at which there is something to do, if no rows come; None if there will not be."""

    @abstractmethod
    def run(self, tables: Sequence[pa.RecordBatch], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """A micro-batch; the watermark is None where all rows are there."""

    def obey(self, code: int, batch: int) -> None:  # noqa: B027 - not all have something to do
        """What the rows of this micro-batch came by; most do not care."""


def read_notes(store: Store, mark: str) -> dict[str, Any] | None:
    """What a worker noted in its store; refused if it is of another query."""
    data = store.get(_NOTES)
    if data is None:
        return None
    notes: dict[str, Any] = json.loads(data)
    if notes["mark"] != mark:
        raise SkewlessError(
            f"the checkpoint is of another query: its windows and columns were {notes['mark']}, now they are "
            f"{mark}; use a new checkpoint for a changed query"
        )
    return notes


class Owner(Worker):
    """The windows of time of one worker.

    A window is worked on once, when the watermark has reached its end. Rows of windows that are over are late and
    count only in windows that are not, as in Spark.

    Parameters
    ----------
    task
        What is done.
    deal
        Which windows are whose.
    worker
        Its number.
    store
        Where rows wait.
    """

    def __init__(self, task: Task, deal: Assignment, worker: int, store: Store) -> None:
        self._task, self._deal, self._worker, self._store = task, deal, worker, store
        self._buffer = Buffer(store, self._stretch)
        self._next = BEFORE_ALL
        """The first window that is not over."""
        notes = read_notes(store, task.mark)
        if notes:
            self._read(notes)

    @property
    def _stretch(self) -> int:
        return max(self._task.windows.slide, self._task.windows.size // 8)

    @property
    def held(self) -> int:
        """Rows that wait."""
        return self._buffer.rows

    @property
    def wake(self) -> int | None:  # type: ignore[override]  # others never wake
        """When the first window that is not over will be: though it may hold no rows, later ones are late then."""
        if self._next in (BEFORE_ALL, EVER):
            return None
        window = self._deal.batch_of(self._next).stop - 1 if self._task.together else self._next
        return self._task.windows.span(window)[1]

    def run(self, tables: Sequence[pa.RecordBatch], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """The answers for windows that end by the watermark (all, if None): hash, window, keys and the answer."""
        self.add(tables)
        yield from self.close(watermark)
        self.save()

    def add(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Take rows."""
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        rows = joined(tables)
        times = np.asarray(rows.column(1))
        late = self._late(times)
        if late.any():
            rows, times = rows.filter(pa.array(~late)), times[~late]
        if rows.num_rows:
            self._buffer.add(rows, times)

    def close(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """The answers for windows that end by the watermark."""
        end = EVER if watermark is None else self._task.windows.open_at(watermark)
        if self._task.together and watermark is not None:
            end = self._deal.batch_of(end).start
        if end > self._next:
            yield from self._answers(self._next, end)
            self._next = end
            self._forget()

    def _answers(self, low: int, high: int) -> Iterator[pa.RecordBatch]:
        """Those for the windows from `low` to before `high`."""
        windows, least = self._task.windows, self._buffer.least
        if least is None:
            return
        start = max(low * windows.slide, least)
        parts = self._buffer.read(start, windows.span(high - 1)[1] if high < EVER else EVER)
        if parts:
            rows = in_order(joined(parts), self._task.columns, newest=self._task.newest)
            found = slices(rows.groups, rows.times, windows, low, high)
            own = mine(self._deal, self._worker, rows.hashes[found.groups], found.windows)
            found = found.where(own).in_order()
            self._count(int((found.stops - found.starts).sum()), len(found.windows))
            yield from answers(self._task, rows, found)

    def _count(self, updates: int, windows: int) -> None:
        """So many rows of so many windows are worked on; whoever wants to know may keep count."""

    def _late(self, times: Int64Array) -> BoolArray:
        """Which times are in no window that is not over."""
        late: BoolArray = self._task.windows.last(times) < self._next
        return late

    def _forget(self) -> None:
        """Drop rows that no window needs that is not over."""
        self._buffer.forget(self._next * self._task.windows.slide if self._next < EVER else EVER)

    def save(self) -> None:
        """Write to the store what is to be known next time."""
        self._store.put(_NOTES, json.dumps(self._notes()).encode())

    def _notes(self) -> dict[str, Any]:
        return {"mark": self._task.mark, "next": self._next, "rows": self._buffer.notes()}

    def _read(self, notes: dict[str, Any]) -> None:
        self._next, self._buffer = notes["next"], Buffer(self._store, self._stretch, notes["rows"])
