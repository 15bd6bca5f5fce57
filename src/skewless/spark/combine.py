"""Combine: the rows of a worker become partial states, one blob of them for each owner of keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from skewless.core import blob
from skewless.core.arrays import Int64Array
from skewless.core.tables import joined
from skewless.operators.panes import Layout
from skewless.operators.panes.partials import Partials

SCHEMA = "owner int, states binary, worker int, rows long"
"""A row for each owner: the value that Spark shuffles to it and its partial states. The first row of a worker also has
its number and how many rows it had."""
_ROWS = 1 << 16  # at least so many rows are combined at a time

_WIRE = pa.schema([("owner", pa.int32()), ("states", pa.binary()), ("worker", pa.int32()), ("rows", pa.int64())])


@dataclass(frozen=True)
class Combiner:
    """What a worker does with its rows, for `mapInArrow`.

    Every owner gets a row from every worker that had any, though it may hold no states: so all owners have a timer from
    the first batch on, and know later which windows had closed before their first key came.

    Parameters
    ----------
    layout
        Of the query.
    reads
        For each kernel, the columns of the rows that it reads.
    owners
        For each owner the value that Spark shuffles to it.
    apart
        The hashes of keys that several workers have, where all the others are with one worker only: those are then
        dealt out to owners by size (Prompt's Algorithm 3). None to go by hash, as owners that keep state must.
    """

    layout: Layout
    reads: tuple[tuple[int | None, ...], ...]
    owners: tuple[int, ...]
    apart: tuple[int, ...] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of hash, time, keys and values to rows of `SCHEMA`."""
        partials, n = Partials(self.layout, self.reads), 0
        for rows in larger(batches):
            partials.add(rows)
            n += rows.num_rows
        states = partials.all()
        if states is not None:
            yield self._by_owner(states, n)

    def _by_owner(self, states: pa.RecordBatch, rows: int) -> pa.RecordBatch:
        owner = self._owner(np.asarray(states.column(0)))
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(len(self.owners) + 1))
        parts = [states.take(pa.array(order[a:b])) for a, b in itertools.pairwise(bounds)]
        blobs = [blob.dump(part.columns) if part.num_rows else None for part in parts]
        context, none = TaskContext.get(), [None] * (len(self.owners) - 1)
        columns = [self.owners, blobs, [context.partitionId() if context else 0, *none], [rows, *none]]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, type=kind) for column, kind in zip(columns, _WIRE.types, strict=True)], schema=_WIRE
        )

    def _owner(self, hashes: Int64Array) -> Int64Array:
        if self.apart is None:
            return hashes % len(self.owners)
        from skewless.split.blocks import allocate  # loads numba, which the other workers do without

        keys, which, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
        return allocate(keys, sizes, np.isin(keys, self.apart), len(self.owners))[which].astype(np.int64)


def larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are not small."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)
