"""From rows to partial states: one for each pane and key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.aggregate.kernel import put, take
from skewless.core.keys import codes, normal
from skewless.core.tables import numbered
from skewless.operators.panes.layout import Layout

FIRST_KEY = 2
"""The columns before the keys: of rows, hash and time; of partial states, hash and pane."""
_MANY = 1 << 18  # states


class Partials:
    """Partial states of the rows of one task, in memory that follows the number of keys and not of rows.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    reads
        For each kernel, which columns of the rows it reads; None stands for the row's time in microseconds.
    """

    def __init__(self, layout: Layout, reads: Sequence[Sequence[int | None]]) -> None:
        self._layout, self._reads = layout, reads
        self._parts: list[pa.RecordBatch] = []
        self._settled = 0  # states that were merged already

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows: the hash of the key, the time, the key columns and what the kernels read. No time, no row."""
        if rows.column(1).null_count:
            rows = rows.filter(rows.column(1).is_valid())
        if not rows.num_rows:
            return
        time = pc.cast(rows.column(1), pa.int64())
        panes = pa.array(np.asarray(time) // self._layout.windows.pane)
        keys = [normal(column) for column in rows.columns[FIRST_KEY : FIRST_KEY + len(self._layout.keys)]]
        group, first = codes([panes, *keys])
        at = pa.array(first)
        columns = [rows.column(0).take(at), panes.take(at), *[key.take(at) for key in keys]]
        for kernel, reads in zip(self._layout.kernels, self._reads, strict=True):
            inputs = [time if i is None else rows.column(i) for i in reads]
            columns += kernel.dump(kernel.partial(group, len(first), inputs))
        self._parts.append(numbered(columns))
        self._forget()
        if sum(part.num_rows for part in self._parts) > 2 * self._settled + _MANY:
            self._settle()

    def all(self) -> pa.RecordBatch | None:
        """The states: hash, pane, keys, fields. None without rows."""
        self._settle()
        return self._parts[0] if self._parts else None

    def _settle(self) -> None:
        if len(self._parts) > 1:
            self._parts = [merged(self._parts, self._layout)]
            self._forget()
        self._settled = sum(part.num_rows for part in self._parts)

    def _forget(self) -> None:
        """What is kept is dumped, so that memory follows it and not the rows."""
        for kernel in self._layout.kernels:
            kernel.forget()


def merged(parts: Sequence[pa.RecordBatch], layout: Layout) -> pa.RecordBatch:
    """The states of all parts, joined where pane and key are the same; a part has them once only."""
    fields_at = FIRST_KEY + len(layout.keys)
    columns = [pa.concat_arrays([part.column(i) for part in parts]) for i in range(fields_at)]
    group, first = codes(columns[1:])
    merged_columns = [column.take(pa.array(first)) for column in columns]
    for kernel in layout.kernels:
        states, start = kernel.empty(len(first)), 0
        for part in parts:
            at = group[start : start + part.num_rows]
            start += part.num_rows
            more = kernel.load(part.columns[fields_at : fields_at + len(kernel.types)])
            put(states, at, kernel.join(take(states, at), more))
        merged_columns += kernel.dump(states)
        fields_at += len(kernel.types)
    return numbered(merged_columns)
