"""Columns as bytes and back, by Arrow's own format: types, nulls and names survive, and reading copies nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa


def dump(columns: Sequence[pa.Array], notes: Mapping[str, str] | None = None) -> bytes:
    """Columns of one length, and some text with them."""
    schema = pa.schema([(str(i), column.type) for i, column in enumerate(columns)], metadata=dict(notes or {}))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(columns), schema=schema))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow has no types


def load(data: bytes) -> pa.RecordBatch:
    """The columns; `notes` reads the text."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def notes(batch: pa.RecordBatch) -> dict[str, str]:
    """The text that was dumped with the columns."""
    return {name.decode(): value.decode() for name, value in (batch.schema.metadata or {}).items()}
