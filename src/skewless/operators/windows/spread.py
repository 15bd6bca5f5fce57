"""Spread: each row goes to every worker that has a window containing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.chop.assignment import Assignment
from skewless.control.batch_sizes import BatchSizes
from skewless.control.version import Version
from skewless.core.arrays import Int64Array
from skewless.core.tables import cast, numbered
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL, Windows
from skewless.operators.send import Sender, Sending, control_of


@dataclass(frozen=True)
class Spread(Sending):
    """Sends rows of hash, time and columns to the workers that need them. Rows without a time are in no window.

    The note to the driver is how many rows each worker was sent.

    Parameters
    ----------
    assignment
        Which worker has a window.
    kinds
        The types of hash, time and columns.
    """

    assignment: Assignment
    kinds: tuple[pa.DataType, ...]

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        loads, had = np.zeros(len(sender.owners), np.int64), False
        for rows in parts:
            had = True
            there = timed(rows.columns, self.kinds)
            if there.num_rows:
                yield copies(there, self.assignment, sender, loads)
        if had:
            yield sender.rest(note=loads.tolist())


@dataclass(frozen=True)
class AdaptiveSpread(Sending):
    """The same by the sizes of the version whose code is in the first column of the rows.

    The note to the driver is the last window that a row is in, how many rows there were, and how many each worker was
    sent.

    Parameters
    ----------
    folder
        The stream's folder.
    windows
        Size and slide of the windows.
    kinds
        The types of hash, time and columns.
    """

    folder: BatchSizes
    windows: Windows
    kinds: tuple[pa.DataType, ...]

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        loads, reached, n, code = np.zeros(len(sender.owners), np.int64), BEFORE_ALL, 0, None
        for rows in parts:
            code = control_of(rows.column(0))
            version = Version.of(code)
            self.folder.check(version, turn)
            there = timed(rows.columns[1:], self.kinds)
            n += rows.num_rows
            if there.num_rows:
                reached = max(reached, int(self.windows.last(np.asarray(there.column(1))).max()))
                yield copies(there, self.folder.assignment(version, turn), sender, loads, code)
        if code is not None:
            yield sender.rest(code, [reached, n, *loads.tolist()])


def timed(columns: Iterable[pa.Array], kinds: Iterable[pa.DataType]) -> pa.RecordBatch:
    """The rows that have a time, as microseconds."""
    cleaned = cast(columns, kinds)
    cleaned[1] = cleaned[1].cast(pa.int64())
    rows = numbered(cleaned)
    return rows.filter(cleaned[1].is_valid()) if cleaned[1].null_count else rows


def copies(
    rows: pa.RecordBatch, assignment: Assignment, sender: Sender, loads: Int64Array, control: int | None = None
) -> pa.RecordBatch:
    """Rows of hash, time and columns, a copy to each worker that needs one; what each is sent is added to `loads`."""
    which, workers = assignment.copies(np.asarray(rows.column(0)), np.asarray(rows.column(1)))
    loads += np.bincount(workers, minlength=len(loads))
    return sender.send(rows, workers, which, control)
