"""Rows in several parts, as one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows, one part after the other; the columns are the same."""
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(columns) for columns in zip(*(part.columns for part in parts), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)
