"""The durable folder of a placed stream: its placements, which of them is in force, and state on its way.

It belongs to the checkpoint of the query: one without the other is of no use.

- `current.json`: the control of the next micro-batch, in a file of one length, as Spark remembers the length.
- `placements/7.json`: placement 7, never changed once it is there.
- `moves/8/3-41.arrow`: the entries that worker 3 gives away when placement 8 comes into force, as of micro-batch 41.
"""

from __future__ import annotations

import functools
import json
import os
import re
import uuid
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.fs

from skewless.errors import SkewlessError
from skewless.place.placement import Placement
from skewless.state import blob

LENGTH = 4096
_HANDOVER = re.compile(r"(\d+)-(-?\d+)\.arrow")


@dataclass(frozen=True)
class Control:
    """What a micro-batch goes by.

    Parameters
    ----------
    version
        Of the placement in force.
    moving
        Whether the next version comes into force in a later micro-batch, so that state that moves is to be given away.

    Examples
    --------
    >>> Control.of(Control(3, moving=True).code)
    Control(version=3, moving=True)
    """

    version: int
    moving: bool = False

    @property
    def code(self) -> int:
        """As one number, which rows can carry."""
        return 2 * self.version + self.moving

    @classmethod
    def of(cls, code: int) -> Control:
        """From the number."""
        return cls(code // 2, bool(code % 2))


@dataclass(frozen=True)
class Location:
    """A folder that the driver and all executors can read and write.

    Parameters
    ----------
    uri
        Any that Arrow knows.
    whose
        Names the stream that it belongs to.
    query
        Names the query that state is moved for: what another one gave away is not taken for it.
    """

    uri: str
    whose: str
    query: str = ""

    @classmethod
    def at(cls, path: str) -> Location:
        """The folder at a path or URI: as it is, or for a new stream if there is nothing."""
        new = cls((path if "://" in path else f"file://{os.path.abspath(path)}").rstrip("/"), uuid.uuid4().hex)
        return new._found() or new

    @property
    def current(self) -> str:
        """The URI of the file that every micro-batch reads."""
        return f"{self.uri}/current.json"

    def read_control(self) -> Control | None:
        """The control of the next micro-batch; None in an empty folder."""
        fields = self._current()
        return None if fields is None else Control.of(int(fields["control"]))

    def write_control(self, control: Control) -> None:
        """Let every micro-batch that starts from now on go by this."""
        text = json.dumps({"id": self.whose, "control": control.code}).encode()
        self._write("current.json", text.ljust(LENGTH))

    def write_placement(self, placement: Placement) -> None:
        """Add a placement."""
        text = json.dumps({"id": self.whose, "placement": placement.to_json()})
        self._write(f"placements/{placement.version}.json", text.encode())

    def placement(self, version: int) -> Placement:
        """The placement of that version."""
        return _placement(self, version)

    def write_moves(self, version: int, batch: int, source: int, entries: pa.RecordBatch) -> None:
        """Give away entries: what a replayed batch writes again is the same."""
        data = blob.dump(entries.columns, {"query": self.query})
        self._write(f"moves/{version}/{source}-{batch}.arrow", data)

    def read_moves(self, version: int, batch: int, source: int, slots: str, schema: pa.Schema) -> pa.RecordBatch:
        """What a worker gave away before a micro-batch, as of its last chance; refused if it is not to be found.

        Parameters
        ----------
        version
            The placement that came into force.
        batch
            The micro-batch in which it did.
        source
            The worker that gave.
        slots
            What is expected from it, for the message.
        schema
            Of the entries.
        """
        folder = f"moves/{version}"
        batches = [number for worker, number in self._moves(folder) if worker == source and number < batch]
        path = f"{folder}/{source}-{max(batches)}.arrow" if batches else f"{folder}/{source}-*.arrow"
        data = self._read(path) if batches else None
        remedy = "restore the folder that goes with this checkpoint; the query stops so that no state is lost"
        if data is None:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} is not at {self.uri}/{path}; {remedy}"
            )
        try:
            given = blob.load(data)
            entries = pa.RecordBatch.from_arrays(given.columns, schema=schema)
        except (pa.ArrowInvalid, ValueError, OSError, StopIteration) as error:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} at {self.uri}/{path} is damaged ({error}); {remedy}"
            ) from error
        if blob.notes(given).get("query", "") != self.query:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} at {self.uri}/{path} is of another query; "
                "give each query a process(...) and a folder of its own"
            )
        return entries

    def forget(self, version: int) -> None:
        """Delete what moved up to this version, and the placements before it."""
        files, folder = self._files()
        for kind in ("moves", "placements"):
            infos = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{kind}", allow_not_found=True))
            for info in infos:
                stem = info.base_name.removesuffix(".json")
                if not stem.isdigit():  # what was not written whole
                    continue
                number = int(stem)
                if kind == "moves" and number <= version:
                    files.delete_dir(info.path)
                if kind == "placements" and number < version:
                    files.delete_file(info.path)

    def _found(self) -> Location | None:
        fields = self._current()
        return None if fields is None else replace(self, whose=str(fields["id"]))

    def _current(self) -> dict[str, Any] | None:
        data = self._read("current.json")
        if data is None:
            return None
        try:
            fields = json.loads(data)
            return {"id": str(fields["id"]), "control": int(fields["control"])}
        except (ValueError, KeyError, TypeError) as error:
            raise SkewlessError(f"{self.current} is damaged ({error}); restore it from a copy") from error

    def _moves(self, path: str) -> list[tuple[int, int]]:
        files, folder = self._files()
        infos = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{path}", allow_not_found=True))
        matches = [_HANDOVER.fullmatch(info.base_name) for info in infos]
        return [(int(match[1]), int(match[2])) for match in matches if match]

    def _files(self) -> tuple[pyarrow.fs.FileSystem, str]:
        return _file_system(self.uri)

    def _read(self, name: str) -> bytes | None:
        files, folder = self._files()
        try:
            with files.open_input_stream(f"{folder}/{name}") as data:
                return data.read()  # type: ignore[no-any-return]  # pyarrow has no types
        except FileNotFoundError:
            return None

    def _write(self, name: str, data: bytes) -> None:
        """Whole or not at all."""
        files, folder = self._files()
        path = f"{folder}/{name}"
        files.create_dir(path.rpartition("/")[0], recursive=True)
        aside = f"{path}.{uuid.uuid4().hex}.new"
        with files.open_output_stream(aside) as out:
            out.write(data)
        files.move(aside, path)


@functools.lru_cache(maxsize=16)
def _file_system(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    # As a path: a URI may not have spaces.
    return pyarrow.fs.FileSystem.from_uri(uri.removeprefix("file://"))  # type: ignore[no-any-return]  # as above


@functools.lru_cache(maxsize=16)
def _placement(location: Location, version: int) -> Placement:
    path, remedy = f"placements/{version}.json", "restore the folder that goes with this checkpoint"
    data = location._read(path)
    if data is None:
        raise SkewlessError(f"placement {version} is not at {location.uri}/{path}; {remedy}")
    try:
        fields = json.loads(data)
        whose, placement = fields["id"], Placement.from_json(fields["placement"])
    except (ValueError, KeyError, TypeError) as error:
        raise SkewlessError(f"{location.uri}/{path} is damaged ({error}); {remedy}") from error
    if whose != location.whose:
        raise SkewlessError(f"{location.uri}/{path} is of another stream; {remedy}")
    if placement.version != version:
        raise SkewlessError(f"{location.uri}/{path} is placement {placement.version}; {remedy}")
    return placement
