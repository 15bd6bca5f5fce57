"""A durable folder that belongs to the checkpoint of a query: one without the other is of no use.

Its file `current.json` has the control of the next micro-batch, and is of one length, as Spark remembers the length.
"""

from __future__ import annotations

import functools
import json
import os
import uuid
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow.fs

from skewless.errors import SkewlessError

LENGTH = 4096
_Folder = TypeVar("_Folder", bound="Folder")


@dataclass(frozen=True)
class Folder:
    """A folder that the driver and all executors can read and write.

    Parameters
    ----------
    uri
        Any that Arrow knows.
    whose
        Names the stream that it belongs to.
    """

    uri: str
    whose: str

    @classmethod
    def at(cls: type[_Folder], path: str) -> _Folder:
        """The folder at a path or URI: as it is, or for a new stream if there is nothing."""
        new = cls((path if "://" in path else f"file://{os.path.abspath(path)}").rstrip("/"), uuid.uuid4().hex)
        fields = new._current()
        return new if fields is None else replace(new, whose=str(fields["id"]))

    @property
    def current(self) -> str:
        """The URI of the file that every micro-batch reads."""
        return f"{self.uri}/current.json"

    def read_code(self) -> int | None:
        """The number that the next micro-batch goes by; None in an empty folder."""
        fields = self._current()
        return None if fields is None else int(fields["control"])

    def write_code(self, code: int) -> None:
        """Let every micro-batch that starts from now on go by this number."""
        text = json.dumps({"id": self.whose, "control": code}).encode()
        self.write("current.json", text.ljust(LENGTH))

    def read(self, name: str) -> bytes | None:
        """A file of the folder; None if it is not there."""
        files, folder = self.files()
        try:
            with files.open_input_stream(f"{folder}/{name}") as data:
                return data.read()  # type: ignore[no-any-return]  # pyarrow has no types
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        files, folder = self.files()
        path = f"{folder}/{name}"
        files.create_dir(path.rpartition("/")[0], recursive=True)
        aside = f"{path}.{uuid.uuid4().hex}.new"
        with files.open_output_stream(aside) as out:
            out.write(data)
        files.move(aside, path)

    def listed(self, name: str) -> list[pyarrow.fs.FileInfo]:
        """What is in a folder of the folder."""
        files, folder = self.files()
        infos = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{name}", allow_not_found=True))
        return list(infos)

    def files(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """The file system, and the folder's path in it."""
        return _file_system(self.uri)

    def _current(self) -> dict[str, Any] | None:
        data = self.read("current.json")
        if data is None:
            return None
        try:
            fields = json.loads(data)
            return {"id": str(fields["id"]), "control": int(fields["control"])}
        except (ValueError, KeyError, TypeError) as error:
            raise SkewlessError(f"{self.current} is damaged ({error}); restore it from a copy") from error


@functools.lru_cache(maxsize=16)
def _file_system(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    # As a path: a URI may not have spaces.
    return pyarrow.fs.FileSystem.from_uri(uri.removeprefix("file://"))  # type: ignore[no-any-return]  # as above
