"""Rows on their way to workers: a blob for each, numbered in the order in which they were sent."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from skewless.core import blob
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.tables import glued
from skewless.core.turn import Turn

WIRE = pa.schema(
    [
        ("owner", pa.int32()),
        ("part", pa.int64()),
        ("control", pa.int64()),
        ("rows", pa.binary()),
        ("note", pa.list_(pa.int64())),
    ]
)
"""What is sent: the value that Spark shuffles to the worker, a number that orders what a worker gets, the version that
the rows were sent by, and the rows. One line of a task also has its note to the driver."""

_TASKS = 32  # bits below the number of the task


class Sender:
    """Packs what one task sends.

    Parameters
    ----------
    owners
        For each worker the value that Spark shuffles to it.
    task
        The number of the task.
    """

    def __init__(self, owners: Sequence[int], task: int) -> None:
        self.owners = owners
        self._part, self._served = task << _TASKS, set[int]()

    def send(
        self,
        rows: pa.RecordBatch,
        workers: Int32Array | Int64Array,
        which: Int64Array | None = None,
        control: int | None = None,
    ) -> pa.RecordBatch:
        """Rows, each to its worker.

        Parameters
        ----------
        rows
            The rows.
        workers
            The worker of each row, or of each copy.
        which
            The row that each copy is of; each row once if not given.
        control
            The version that the rows are sent by.
        """
        order = np.argsort(workers, kind="stable")
        sorted_rows = rows.take(pa.array(order if which is None else which[order]))
        there, starts = np.unique(workers[order], return_index=True)
        edges = [*starts.tolist(), len(order)]
        blobs = [blob.dump(sorted_rows.slice(start, stop - start).columns) for start, stop in itertools.pairwise(edges)]
        self._served.update(there.tolist())
        return self._lines(there.tolist(), blobs, control)

    def rest(self, control: int | None = None, note: Sequence[int] | None = None) -> pa.RecordBatch:
        """The last lines of a task: its note, and a line without rows for every worker that was sent none.

        So every worker hears of every micro-batch, of its version and its watermark, though it may get no rows.
        """
        silent = [worker for worker in range(len(self.owners)) if worker not in self._served] or [0]
        return self._lines(silent, [None] * len(silent), control, note)

    def _lines(
        self,
        workers: Sequence[int],
        blobs: Sequence[bytes | None],
        control: int | None,
        note: Sequence[int] | None = None,
    ) -> pa.RecordBatch:
        n = len(workers)
        columns: list[Sequence[Any]] = [
            [self.owners[worker] for worker in workers],
            [self._part] * n,
            [control] * n,
            blobs,
            [note, *[None] * n][:n],
        ]
        self._part += 1
        arrays = [pa.array(column, type=kind) for column, kind in zip(columns, WIRE.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=WIRE)


class Sending(Protocol):
    """What a task does with its rows before they travel."""

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send; none for a task without rows."""


@dataclass(frozen=True)
class Unpacked(Sending):
    """Does what `sending` does, with rows that came packed, in the first column."""

    sending: Sending

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        rows = (blob.load(packed.as_py()) for part in parts for packed in part.column(0))
        yield from self.sending.send(glued(rows), sender, turn)


def received(parts: Iterable[tuple[int, bytes | None]]) -> list[pa.RecordBatch]:
    """The rows of the lines that a worker got, in the order in which they were sent, however they came."""
    there = [(part, data) for part, data in parts if data is not None]
    return [blob.load(bytes(data)) for _part, data in sorted(there, key=lambda line: line[0])]


def control_of(column: pa.Array) -> int:
    """The control that a micro-batch's rows came with; refused where its file was not there to be read."""
    code = column[0].as_py() if len(column) else None
    if code is None:
        raise SkewlessError(
            "the control file of the stream's folder is empty or gone, so that nobody knows where rows belong; "
            "restore the folder that goes with this checkpoint. The query stops so that no row is lost"
        )
    return int(code)
