"""Rows in several parts, as fewer and larger ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

ENOUGH = 1 << 16  # rows of a part that is worth sending or working on by itself


def joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows, one part after the other; the columns are the same."""
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(columns) for columns in zip(*(part.columns for part in parts), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)


def glued(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in parts that are not small; parts without rows are left out."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for part in parts:
        if part.num_rows:
            waiting.append(part)
            rows += part.num_rows
        if rows >= ENOUGH:
            yield joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield joined(waiting)


def numbered(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Columns as rows, each column under its number."""
    return pa.RecordBatch.from_arrays(list(columns), names=[str(i) for i in range(len(columns))])


def cast(columns: Iterable[pa.Array], kinds: Iterable[pa.DataType]) -> list[pa.Array]:
    """The columns in these types; a column that has its type already is not touched."""
    pairs = zip(columns, kinds, strict=True)
    return [column if column.type == kind else column.cast(kind) for column, kind in pairs]
