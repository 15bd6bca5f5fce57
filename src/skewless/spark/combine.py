"""Combine: the rows of a worker become partial states, one blob of them for each owner of keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.panes import Layout, blob
from skewless.panes.partials import Partials

SCHEMA = "owner int, states binary"
"""A row for each owner: the value that Spark shuffles to it, and its partial states."""
_ROWS = 1 << 16  # at least so many rows are combined at a time

_WIRE = pa.schema([("owner", pa.int32()), ("states", pa.binary())])


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
    """

    layout: Layout
    reads: tuple[tuple[int | None, ...], ...]
    owners: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """From rows of hash, time, keys and values to rows of `SCHEMA`."""
        partials = Partials(self.layout, self.reads)
        for rows in _larger(batches):
            partials.add(rows)
        states = partials.all()
        if states is not None:
            yield self._by_owner(states)

    def _by_owner(self, states: pa.RecordBatch) -> pa.RecordBatch:
        owner = np.asarray(states.column(0)) % len(self.owners)
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(len(self.owners) + 1))
        parts = [states.take(pa.array(order[a:b])) for a, b in itertools.pairwise(bounds)]
        blobs = [blob.dump(part.columns) if part.num_rows else None for part in parts]
        return pa.RecordBatch.from_arrays(
            [pa.array(self.owners, type=pa.int32()), pa.array(blobs, type=pa.binary())], schema=_WIRE
        )


def _larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are not small."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS:
            yield _one(waiting)
            waiting = []
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(columns) for columns in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
