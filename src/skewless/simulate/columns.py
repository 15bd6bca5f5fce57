"""Reads the key columns of a file in batches, never the whole file at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skewless.core.errors import SkewlessError

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".parquet", ".csv", ".csv.gz", ".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
BATCH_ROWS = 100_000
BATCH_BYTES = 4 << 20


def read_columns(path: Path, names: Sequence[str]) -> Iterator[list[pa.Array]]:
    """The columns `names` of a Parquet, CSV or JSON-lines file, or of a folder of Parquet files.

    CSV values are read as strings, so that the type of a key does not depend on which rows come first.

    Parameters
    ----------
    path
        The file; the end of its name gives the format.
    names
        The names of the columns, in the order in which they are returned.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = Path(directory, "clicks.csv")
    ...     _ = file.write_text("user,page\\nann,1\\nbob,2\\n")
    ...     [[column.to_pylist() for column in columns] for columns in read_columns(file, ["user"])]
    [[['ann', 'bob']]]
    """
    import pyarrow as pa

    if not path.exists():
        raise SkewlessError(f"{path}: no such file; give a file or a generated stream such as zipf:1.5")
    read = _reader(path)
    try:
        for batch in read(path, names):
            yield [_hashable(batch.column(name), name) for name in names]
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SkewlessError(f"{path}: cannot be read as {read.__name__[1:]}: {reason}") from error


def _reader(path: Path) -> Callable[[Path, Sequence[str]], Iterator[pa.RecordBatch]]:
    name = path.name.lower()
    if path.is_dir() or name.endswith(".parquet"):
        return _parquet
    if not name.endswith(ENDINGS):
        raise SkewlessError(f"{path}: unknown file ending; these can be read: {' '.join(ENDINGS)}")
    return _csv if name.removesuffix(".gz").endswith(".csv") else _json


def _parquet(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    from pyarrow import dataset

    rows = dataset.dataset(path, format="parquet", partitioning="hive")
    _check(path, names, rows.schema.names)
    # Reading ahead would hold many row groups in memory.
    yield from rows.to_batches(columns=list(names), batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)


def _csv(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import csv

    read = csv.ReadOptions(block_size=BATCH_BYTES)
    if path.stat().st_size == 0:
        return
    with csv.open_csv(path, read_options=read) as reader:
        _check(path, names, reader.schema.names)
    as_strings = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=list(names))
    with csv.open_csv(path, read_options=read, convert_options=as_strings) as reader:
        yield from reader


def _json(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyarrow import json

    first = True
    with pa.input_stream(str(path), compression="detect") as stream:
        for lines in _whole_lines(stream):
            rows = json.read_json(pa.BufferReader(lines), json.ReadOptions(block_size=len(lines) + 1))
            if first:
                _check(path, names, rows.column_names)
                first = False
            # A field that no row of a later batch has is null for all its rows.
            for name in set(names).difference(rows.column_names):
                rows = rows.append_column(name, pa.nulls(len(rows)))
            yield from rows.select(names).to_batches()


def _whole_lines(stream: Any) -> Iterator[bytes]:
    """The bytes of a stream, in pieces that end with a whole line."""
    rest = b""
    while piece := stream.read(BATCH_BYTES):
        end = piece.rfind(b"\n") + 1
        if end and (lines := rest + piece[:end]).strip():
            yield lines
        rest = piece[end:] if end else rest + piece
    if rest.strip():
        yield rest


def _check(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    there = f"{path} has the columns {', '.join(columns)}"
    if not names:
        raise SkewlessError(f"which column is the key? Name it with --key; {there}")
    for name in names:
        if name not in columns:
            raise SkewlessError(f"no column {name!r}; {there}")


def _hashable(column: pa.Array, name: str) -> pa.Array:
    """The column in a type that can be hashed; equal values stay equal."""
    import pyarrow as pa

    kind, is_ = column.type, pa.types
    if is_.is_dictionary(kind):
        return _hashable(column.dictionary_decode(), name)
    if is_.is_nested(kind):
        raise SkewlessError(f"column {name!r} is a {kind}: a key is a number, string, date or time, not a nest of them")
    if is_.is_timestamp(kind) or is_.is_duration(kind):
        return column.cast(pa.int64())
    if is_.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    if is_.is_unsigned_integer(kind) or is_.is_decimal256(kind) or is_.is_time(kind) or is_.is_date64(kind):
        return column.cast(pa.string())
    return column
