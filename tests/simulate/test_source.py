from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.simulate import columns
from skewless.simulate.source import open_stream, parse_zipf
from skewless.workload import Zipf

USERS = ["ann", "bob", None, "ann", "zoë", ""]
PAGES = [1, 2, 3, 1, None, 6]


def keys_of(path: Path, *key: str, tuples: int | None = None) -> list[int]:
    with open_stream(str(path), key, tuples) as stream:
        first, again = (np.concatenate(list(stream.blocks())) for _ in range(2))
        assert len(first) == stream.tuples
    np.testing.assert_array_equal(first, again)
    return first.tolist()


def write_parquet(path: Path) -> None:
    parquet.write_table(pa.table({"page": PAGES, "user": USERS}), path, row_group_size=2)


def write_json(path: Path) -> None:
    rows = ({"user": user, "page": page} for user, page in zip(USERS, PAGES, strict=True))
    text = "".join(json.dumps({name: value for name, value in row.items() if value is not None}) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_csv(path: Path) -> None:
    table = pa.table({"page": PAGES, "user": USERS})
    with pa.output_stream(path, compression="detect") as file:
        csv.write_csv(table, file)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("events.parquet", write_parquet),
        ("events.jsonl", write_json),
        ("events.ndjson", write_json),
        ("EVENTS.JSON", write_json),
        ("events.jsonl.gz", write_json),
    ],
)
def test_keys_are_hashes_of_the_columns(tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    assert keys_of(tmp_path / name, "user") == xxhash64(USERS).tolist()
    assert keys_of(tmp_path / name, "page") == xxhash64(PAGES).tolist()
    assert keys_of(tmp_path / name, "user", "page") == xxhash64(USERS, PAGES).tolist()
    assert keys_of(tmp_path / name, "page", "user") == xxhash64(PAGES, USERS).tolist()


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz"])
def test_csv_keys_are_hashed_as_strings(tmp_path: Path, name: str) -> None:
    write_csv(tmp_path / name)
    users, pages = (["" if value is None else str(value) for value in column] for column in (USERS, PAGES))
    assert keys_of(tmp_path / name, "user") == xxhash64(users).tolist()
    assert keys_of(tmp_path / name, "user", "page") == xxhash64(users, pages).tolist()


def test_only_the_first_tuples_are_read_where_so_asked(tmp_path: Path) -> None:
    write_parquet(tmp_path / "events.parquet")
    assert keys_of(tmp_path / "events.parquet", "user", tuples=3) == xxhash64(USERS[:3]).tolist()
    assert keys_of(tmp_path / "events.parquet", "user", tuples=99) == xxhash64(USERS).tolist()


def test_a_directory_of_parquet_files_is_a_stream(tmp_path: Path) -> None:
    directory = tmp_path / "events"
    directory.mkdir()
    parquet.write_table(pa.table({"user": [1, 2]}), directory / "part-0.parquet")
    parquet.write_table(pa.table({"user": [3]}), directory / "part-1.parquet")
    (directory / "_SUCCESS").touch()
    assert keys_of(directory, "user") == xxhash64([1, 2, 3]).tolist()


def test_a_csv_column_may_change_its_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BATCH_BYTES", 64)
    rows = [str(number) for number in range(100)] + ["n/a", "007"]
    (tmp_path / "events.csv").write_text("id\n" + "\n".join(rows) + "\n")
    assert keys_of(tmp_path / "events.csv", "id") == xxhash64(rows).tolist()


@pytest.mark.parametrize("size", [1, 20, 64, 1000])
def test_json_lines_are_cut_between_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(columns, "BATCH_BYTES", size)
    lines = [json.dumps({"user": "u" * number, "n": 1}) for number in range(30)]
    # No end of the last line, an empty one, and one without the key.
    (tmp_path / "events.jsonl").write_text("\n".join([*lines, "", '{"n": 2}']))
    assert (
        keys_of(tmp_path / "events.jsonl", "user") == xxhash64(["u" * number for number in range(30)] + [None]).tolist()
    )


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, 3, None, 4], pa.uint64()),
        pa.array([3, 3, None, 4], pa.uint8()),
        pa.array(["a", "a", None, "b"]).dictionary_encode(),
        pa.array([1, 1, None, 2], pa.timestamp("ns")),
        pa.array([1, 1, None, 2], pa.time64("us")),
        pa.array([1, 1, None, 2], pa.duration("s")),
        pa.array([b"aa", b"aa", None, b"bb"], pa.binary(2)),
        pa.array([datetime.date(2024, 1, 1)] * 2 + [None, datetime.date(2024, 1, 2)], pa.date64()),
        pa.array([True, True, None, False]),
        pa.array([0.5, 0.5, None, 0.25], pa.float32()),
    ],
    ids=lambda column: str(column.type),
)
def test_equal_values_of_any_type_are_equal_keys(tmp_path: Path, column: pa.Array) -> None:
    parquet.write_table(pa.table({"key": column}), tmp_path / "events.parquet")
    first, second, null, other = keys_of(tmp_path / "events.parquet", "key")
    assert first == second
    assert len({first, null, other}) == 3


def test_a_nested_column_is_no_key(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"key": [[1], [2]]}), tmp_path / "events.parquet")
    with pytest.raises(SkewlessError, match="'key' is a list<"):
        keys_of(tmp_path / "events.parquet", "key")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("events.parquet", b"no parquet"),
        ("events.jsonl", b"{bad"),
        ("events.csv.gz", b"no gzip"),
        ("e.csv", b"a,b\n1\n"),
    ],
)
def test_a_broken_file_is_named_in_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SkewlessError, match=f"{name}: cannot be read as (parquet|json|csv)") as error:
        keys_of(tmp_path / name, "a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", ""), ("a.csv", "user\n"), ("a.jsonl", ""), ("a.jsonl", "\n\n")]
)
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SkewlessError, match="is empty"):
        keys_of(tmp_path / name, "user")


def test_an_empty_parquet_file_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"user": pa.array([], pa.int64())}), tmp_path / "events.parquet")
    with pytest.raises(SkewlessError, match="is empty"):
        keys_of(tmp_path / "events.parquet", "user")


def test_reading_is_reported(tmp_path: Path) -> None:
    write_parquet(tmp_path / "events.parquet")
    rows: list[int] = []
    with open_stream(str(tmp_path / "events.parquet"), ["user"], on_read=rows.append):
        assert sum(rows) == len(USERS)


def test_a_generated_stream_is_that_of_its_seed() -> None:
    with open_stream("zipf:1.2:keys=100", tuples=600_000, seed=5) as stream:
        keys = np.concatenate(list(stream.blocks()))
    np.testing.assert_array_equal(keys, Zipf(1.2, keys=100, seed=5).take(600_000))


@pytest.mark.parametrize("spec", ["zipf:0", "zipf:1e0", "zipf:1.50:keys=7"])
def test_zipf_specs(spec: str) -> None:
    assert parse_zipf(spec, seed=1) in (Zipf(0.0), Zipf(1.0), Zipf(1.5, keys=7))


@pytest.mark.parametrize(
    "spec", ["zipf:", "zipf:x", "zipf:1.2.3", "zipf:1:keys", "zipf:1:keys=", "zipf:1:k=3", "zipf:1:keys=2:keys=3"]
)
def test_malformed_zipf_specs_say_how_to_write_them(spec: str) -> None:
    with pytest.raises(SkewlessError, match="write zipf:EXPONENT"):
        parse_zipf(spec, seed=1)
