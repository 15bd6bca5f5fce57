"""Pack: rows go to the worker that owns their key, in blobs; with them goes what every worker must know."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.control.location import Control, Location
from skewless.core import blob
from skewless.core.arrays import Int32Array, Int64Array
from skewless.spark.combine import larger

SCHEMA = "owner int, control long, rows binary, counts array<long>"
"""A row for each worker: the value that Spark shuffles to it, the control of the micro-batch, and its rows. One of the
last rows of a task also has how many rows there were in each slot."""

_WIRE = pa.schema(
    [("owner", pa.int32()), ("control", pa.int64()), ("rows", pa.binary()), ("counts", pa.list_(pa.int64()))]
)
HASH, CONTROL, FIRST = 0, 1, 2  # columns of the rows that come


@dataclass(frozen=True)
class Packer:
    """What a task does with its rows, for `mapInArrow`.

    Every worker gets the control from every task that had rows, though it may get no rows: so one that has had none for
    long gives its slots away all the same.

    Parameters
    ----------
    location
        Of the stream.
    schema
        Of the input columns.
    owners
        For each worker the value that Spark shuffles to it.
    """

    location: Location
    schema: pa.Schema
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of hash, control and input columns to rows of `SCHEMA`."""
        counts: Int64Array = np.zeros(0, dtype=np.int64)
        code, served = None, set[int]()
        for rows in larger(batches):
            if not rows.num_rows:
                continue
            code = rows.column(CONTROL)[0].as_py()
            placement = self.location.placement(Control.of(code).version)
            hashes = np.asarray(rows.column(HASH))
            slots = placement.slot_of(hashes)
            counted = np.bincount(slots, minlength=placement.slots)
            counts = counted if not len(counts) else counts + counted
            workers = placement.owners[slots]
            blobs = dict(self._split(rows, workers))
            served |= blobs.keys()
            yield self._wire(list(blobs), code, list(blobs.values()), None)
        if code is not None:
            rest = [worker for worker in range(len(self.owners)) if worker not in served] or [0]
            yield self._wire(rest, code, [None] * len(rest), counts)

    def _split(self, rows: pa.RecordBatch, workers: Int32Array) -> Iterator[tuple[int, bytes]]:
        columns = [rows.column(HASH)]
        for i, kind in enumerate(self.schema.types):
            column = rows.column(FIRST + i)
            columns.append(column if column.type == kind else column.cast(kind))
        order = np.argsort(workers, kind="stable")
        there, bounds = np.unique(workers[order], return_index=True)
        edges = [*bounds.tolist(), len(order)]
        together = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))]).take(
            pa.array(order)
        )
        for worker, (start, stop) in zip(there.tolist(), itertools.pairwise(edges), strict=True):
            yield worker, blob.dump(together.slice(start, stop - start).columns)

    def _wire(
        self, workers: list[int], code: int, blobs: Sequence[bytes | None], counts: Int64Array | None
    ) -> pa.RecordBatch:
        n = len(workers)
        columns = [
            [self.owners[worker] for worker in workers],
            [code] * n,
            blobs,
            [None if counts is None else counts.tolist(), *[None] * (n - 1)],
        ]
        arrays = [pa.array(column, type=kind) for column, kind in zip(columns, _WIRE.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_WIRE)
