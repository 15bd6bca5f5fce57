"""The worker of some windows: holds rows until their windows are over, and then runs the function on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.chop.assignment import Assignment, mine
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.keys import codes
from skewless.core.store import Store
from skewless.core.tables import joined, numbered
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL, END, Windows
from skewless.operators.notes import read_notes, write_notes
from skewless.operators.windows.buffer import Buffer
from skewless.operators.windows.function import Call
from skewless.operators.windows.slices import Slices, slices
from skewless.operators.worker import Worker

MARKED = "windows and columns"


@dataclass(frozen=True)
class Columns:
    """The columns of the rows that workers get, after the hash of the key and the time.

    Parameters
    ----------
    keys
        The numbers of the columns that are the key; none for one window of all rows.
    seen
        The numbers of the columns that the function sees.
    """

    keys: tuple[int, ...]
    seen: tuple[int, ...]

    def key_arrays(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The columns of the key."""
        return [rows.column(2 + i) for i in self.keys]


@dataclass(frozen=True)
class Task:
    """What workers must know of their query.

    Parameters
    ----------
    columns
        The columns of the rows.
    windows
        Size and slide of the windows.
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
        The hash and the columns of each key.
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
    for which, columns in task.call.run(numbered(seen), rows.values, task.windows, found):
        groups = found.groups[which]
        heads = [pa.array(rows.hashes[groups]), pa.array(found.windows[which])]
        keys = [column.take(pa.array(groups)) for column in rows.keys]
        yield numbered([*heads, *keys, *columns])


def started(windows: Windows, answer: pa.RecordBatch) -> pa.RecordBatch:
    """An answer as it is given: the start of the window, keys, and what the function gave."""
    return numbered([pa.array(np.asarray(answer.column(1)) * windows.slide), *answer.columns[2:]])


class WindowWorker(Worker):
    """The windows of time of one worker.

    A window is worked on once, when the watermark has reached its end. Rows of windows that are over are late and
    count only in windows that are not, as in Spark.

    Parameters
    ----------
    task
        What is done with the rows.
    assignment
        Which windows are whose.
    turn
        Whose turn it is.
    store
        Where rows wait.
    """

    def __init__(self, task: Task, assignment: Assignment, turn: Turn, store: Store) -> None:
        self._task, self._assignment, self._turn, self._store = task, assignment, turn, store
        self._buffer = Buffer(store, self._stretch)
        self._next = BEFORE_ALL
        """The first window that is not over."""
        noted = read_notes(store, task.mark, MARKED)
        if noted:
            self._read(noted[0])

    @property
    def _stretch(self) -> int:
        return max(self._task.windows.slide, self._task.windows.size // 8)

    @property
    def held(self) -> int:
        """Rows that wait."""
        return self._buffer.rows

    @property
    def wake(self) -> int | None:
        """When the first window that is not over will be: though it may hold no rows, later ones are late then."""
        if self._next in (BEFORE_ALL, END):
            return None
        window = self._assignment.batch_of(self._next).stop - 1 if self._task.together else self._next
        return self._task.windows.span(window)[1]

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Take rows of hash, time and columns, and give the answers for windows that end by the watermark."""
        self.add(tables)
        for answer in self.close(watermark):
            yield self.given(answer)
        self.save()

    def given(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """An answer of hash, window, keys and columns as it leaves."""
        return started(self._task.windows, answer)

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
        """The answers for windows that end by the watermark, if there is one: hash, window, keys and columns."""
        if watermark is None:
            return
        end = END if watermark >= END else self._task.windows.open_at(watermark)
        if self._task.together and end < END:
            end = self._assignment.batch_of(end).start
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
        parts = self._buffer.read(start, windows.span(high - 1)[1] if high < END else END)
        if parts:
            rows = in_order(joined(parts), self._task.columns, newest=self._task.newest)
            found = slices(rows.groups, rows.times, windows, low, high)
            own = mine(self._assignment, self._turn.worker, rows.hashes[found.groups], found.windows)
            found = found.where(own).in_order()
            self._count(found, rows.hashes, (max(low, int(windows.first(np.array([least]))[0])), high))
            yield from answers(self._task, rows, found)

    def _count(self, found: Slices, hashes: Int64Array, ended: tuple[int, int]) -> None:
        """These windows are worked on, of keys with these hashes; whoever wants to know may keep count."""

    def _late(self, times: Int64Array) -> BoolArray:
        """Which times are in no window that is not over."""
        late: BoolArray = self._task.windows.last(times) < self._next
        return late

    def _forget(self) -> None:
        """Drop rows that no window needs that is not over."""
        self._buffer.forget(self._next * self._task.windows.slide if self._next < END else END)

    def save(self) -> None:
        """Write to the store what is to be known next time."""
        write_notes(self._store, self._task.mark, self._notes())

    def _notes(self) -> dict[str, Any]:
        return {"next": self._next, "rows": self._buffer.notes()}

    def _read(self, notes: dict[str, Any]) -> None:
        self._next, self._buffer = notes["next"], Buffer(self._store, self._stretch, notes["rows"])
