"""A durable folder that belongs to the checkpoint of a query: one without the other is of no use.

Its file `current.json` has the control of the next micro-batch, and is of one length, as Spark remembers the length.
"""

from __future__ import annotations

import functools
import json
import os
import re
import uuid
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs

from skewless.core.errors import SkewlessError

LENGTH = 4096
_Folder = TypeVar("_Folder", bound="Folder")


@dataclass(frozen=True)
class Files:
    """Files in a folder, each written whole or not at all.

    Parameters
    ----------
    uri
        Any that Arrow knows.
    """

    uri: str

    def read(self, name: str) -> bytes | None:
        """A file; None if it is not there."""
        files, folder = self.place()
        try:
            with files.open_input_stream(f"{folder}/{name}") as data:
                return data.read()  # type: ignore[no-any-return]  # pyarrow has no types
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
        files, folder = self.place()
        path = f"{folder}/{name}"
        files.create_dir(path.rpartition("/")[0], recursive=True)
        aside = f"{path}.{uuid.uuid4().hex}.new"
        with files.open_output_stream(aside) as out:
            out.write(data)
        files.move(aside, path)

    def listed(self, name: str = "") -> list[pyarrow.fs.FileInfo]:
        """What is in the folder, or in a folder of it."""
        files, folder = self.place()
        infos = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{name}".rstrip("/"), allow_not_found=True))
        return list(infos)

    def place(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """The file system, and the folder's path in it."""
        return _file_system(self.uri)


@dataclass(frozen=True)
class Folder(Files):
    """The folder of a query, which the driver and all executors can read and write.

    Parameters
    ----------
    whose
        Names the stream that it belongs to.
    """

    whose: str

    @classmethod
    def at(cls: type[_Folder], path: str) -> _Folder:
        """The folder at a path or URI: as it is, or for a new stream if there is nothing."""
        new = cls(uri_of(path), uuid.uuid4().hex)
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

    def _current(self) -> dict[str, Any] | None:
        data = self.read("current.json")
        if data is None:
            return None
        try:
            fields = json.loads(data)
            return {"id": str(fields["id"]), "control": int(fields["control"])}
        except (ValueError, KeyError, TypeError) as error:
            raise SkewlessError(f"{self.current} is damaged ({error}); restore it from a copy") from error


def uri_of(path: str) -> str:
    """A path or URI as a URI, without a slash at its end."""
    path = re.sub(r"^file:(//)?(?=/)", "", path)
    return (path if re.match(r"[A-Za-z][\w+.-]+:/", path) else f"file://{os.path.abspath(path)}").rstrip("/")


@functools.lru_cache(maxsize=16)
def _file_system(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    try:
        # As a path: a URI may not have spaces.
        files, path = pyarrow.fs.FileSystem.from_uri(uri.removeprefix("file://"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SkewlessError(
            f"Arrow cannot reach the folder {uri!r} ({error}); give a location that it can, such as 's3://...'"
        ) from error
    return files, path.rstrip("/")
