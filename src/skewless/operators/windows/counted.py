"""Windows and panes of so many rows: rows are numbered, key by key, and a window is over when all of its are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from skewless.chop.assignment import InTurn, mine
from skewless.core import blob
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.keys import codes
from skewless.core.store import Store
from skewless.core.tables import joined, numbered
from skewless.core.turn import Turn
from skewless.operators.notes import read_notes, write_notes
from skewless.operators.windows.slices import slices
from skewless.operators.windows.worker import MARKED, Task, answers, in_order, started
from skewless.operators.worker import Worker

BLOBS = 64
"""Blobs into which a worker's keys go by their hash; only those with new rows are read and written."""


class _Tables:
    """Tables in blobs, by the hash that is their first column."""

    def __init__(self, store: Store, mark: str) -> None:
        self._store, self._mark = store, mark
        noted = read_notes(store, mark, MARKED)
        self._there: set[int] = set(noted[0]["blobs"]) if noted else set()

    def read(self, blobs: Sequence[int]) -> list[pa.RecordBatch]:
        """What these blobs hold."""
        return [blob.load(self._store.need(str(number))) for number in blobs if number in self._there]

    def write(self, blobs: Sequence[int], rows: pa.RecordBatch) -> None:
        """Let these blobs hold just these rows."""
        own = blob_of(np.asarray(rows.column(0)))
        for number in blobs:
            part = rows.filter(pa.array(own == number))
            if part.num_rows:
                self._store.put(str(number), blob.dump(part.columns))
                self._there.add(number)
            elif number in self._there:
                self._store.drop(str(number))
                self._there.discard(number)
        write_notes(self._store, self._mark, {"blobs": sorted(self._there)})


class Numberer(Worker):
    """Numbers the rows of each key from 0 on: by time within a micro-batch, and in the order of micro-batches.

    Parameters
    ----------
    task
        What is done with the windows later; here its columns count.
    turn
        Whose turn it is.
    store
        Where the counts of all keys are.
    """

    def __init__(self, task: Task, turn: Turn, store: Store) -> None:
        self._columns, self._tables = task.columns, _Tables(store, task.mark)

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, sorted by key and time, with their numbers instead of their times."""
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        rows = in_order(joined(tables), self._columns)
        touched = np.unique(blob_of(rows.hashes)).tolist()
        counts = np.bincount(rows.groups, minlength=len(rows.hashes))
        # Keys that were counted before, and then those of these rows: equal ones get one number.
        known = self._tables.read(touched)
        before = np.concatenate([*[np.asarray(part.column(1)) for part in known], np.zeros(len(counts), np.int64)])
        keys = [
            pa.concat_arrays([*[part.column(2 + i) for part in known], column]) for i, column in enumerate(rows.keys)
        ]
        number, first = codes(keys) if keys else (np.zeros(len(before), np.int64), np.zeros(1, np.int64))
        old = len(before) - len(counts)
        total = np.zeros(len(first), np.int64)
        total[number[:old]] = before[:old]
        base = total[number[old:]]
        starts = np.cumsum(counts) - counts
        numbers = np.arange(len(rows.times)) - starts[rows.groups] + base[rows.groups]
        total[number[old:]] = base + counts
        hashes = np.concatenate([*[np.asarray(part.column(0)) for part in known], rows.hashes])[first]
        columns = [pa.array(hashes), pa.array(total), *[column.take(pa.array(first)) for column in keys]]
        self._tables.write(touched, numbered(columns))
        yield numbered([rows.rows.column(0), pa.array(numbers), *rows.rows.columns[2:]])


class CountedWorker(Worker):
    """The windows of rows of one worker.

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
    step
        How far the numbers of two consecutive rows are apart: 1, or, where a row is the answer for a pane and has the
        number of the pane's first row, the length of a pane.
    """

    def __init__(self, task: Task, assignment: InTurn, turn: Turn, store: Store, step: int = 1) -> None:
        self._task, self._assignment, self._worker, self._step = task, assignment, turn.worker, step
        self._tables = _Tables(store, task.mark)

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The answers for windows that have all their rows now."""
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        new = joined(tables)
        touched = np.unique(blob_of(np.asarray(new.column(0)))).tolist()
        rows = in_order(joined([*self._tables.read(touched), new]), self._task.columns)
        found = slices(rows.groups, rows.times, self._task.windows)
        whole = (found.stops - found.starts) * self._step == self._task.windows.size
        whole &= mine(self._assignment, self._worker, rows.hashes[found.groups], found.windows)
        for answer in answers(self._task, rows, found.where(whole).in_order()):
            yield self.given(answer)
        last = np.append(np.flatnonzero(np.diff(rows.groups)), len(rows.groups) - 1)
        wanted = self._wanted(rows.hashes[rows.groups], rows.times, rows.times[last][rows.groups])
        self._tables.write(touched, rows.rows.filter(pa.array(wanted)))

    def given(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """An answer of hash, window, keys and columns as it leaves."""
        return started(self._task.windows, answer)

    def _wanted(self, hashes: Int64Array, numbers: Int64Array, newest: Int64Array) -> BoolArray:
        """Which rows are in a window of this worker that is not over, where `newest` is the last row of each's key."""
        windows = self._task.windows
        over = (newest + self._step - windows.size) // windows.slide
        after = np.maximum(np.maximum(over + 1, windows.first(numbers)), 0)
        wanted: BoolArray = self._assignment.next_of(self._worker, hashes, after) <= windows.last(numbers)
        return wanted


class CountedPanes(CountedWorker):
    """The panes of rows of one worker.

    Rows are numbered when they come, so that none comes late: a pane is worked on once, and its rows go then.
    """

    def given(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """An answer as it is, to be sent on to the workers whose windows need it."""
        return answer


def blob_of(hashes: Int64Array) -> Int64Array:
    """The blob of each hash: not by its lowest digits, which say to which worker it goes."""
    blobs: Int64Array = (hashes >> 16) % BLOBS
    return blobs
