"""A query's durable folder: files that are written whole or not at all, with the stream's identity inside.

It belongs to the checkpoint of the query: one without the other is of no use.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs

from skewless.core.errors import SkewlessError

FORMAT = 1
"""The format of all files. A folder of another one is refused."""
_REPLACING = ("local", "s3", "gcs", "abfs")  # Arrow's names of the file systems where replacing a file is one step
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # what disks without hard links say
RESTORE = "restore the folder that goes with this checkpoint"


@dataclass(frozen=True)
class Files:
    """Files in a folder, which the driver and all executors can read and write.

    Parameters
    ----------
    uri
        Any URI that Arrow knows.
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
        """Write a file, over one of the same name: whoever reads it finds the old content or the new one."""
        self._write(name, data, os.replace)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet, and say whether it was not; what is there stays as it is.

        Of two that write at once on a disk, one is told that the other was first. On an object store, or a disk that
        has no hard links, both may be told that they were: what is there then is what the second one wrote.
        """
        if self.place()[0].type_name != "local" and self.read(name) is not None:
            return False
        try:
            self._write(name, data, _link)
        except FileExistsError:
            return False
        return True

    def _write(self, name: str, data: bytes, put: Callable[[str, str], None]) -> None:
        files, folder = self.place()
        path = f"{folder}/{name}"
        if files.type_name == "local":
            _write_local(path, data, put)
        else:  # an object store replaces an object when all of it is there
            with files.open_output_stream(path) as out:
                out.write(data)

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all that is in it."""
        files, folder = self.place()
        if files.get_file_info(f"{folder}/{name}").type == pyarrow.fs.FileType.Directory:
            files.delete_dir(f"{folder}/{name}")
        else:
            files.delete_file(f"{folder}/{name}")

    def listed(self, name: str = "") -> list[str]:
        """The names of what is in the folder, or in a folder of it."""
        return list(self.lengths(name))

    def lengths(self, name: str = "") -> dict[str, int]:
        """The bytes of each file in the folder, or in a folder of it; 0 for a folder."""
        files, folder = self.place()
        try:
            infos = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{name}".rstrip("/"), allow_not_found=True))
        except NotADirectoryError:
            return {}  # a file, which whoever wants a folder there deletes
        return {info.base_name: info.size or 0 for info in infos}

    def place(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """The file system, and the folder's path in it."""
        return _file_system(self.uri)

    def shown(self, name: str) -> str:
        """The path of a file, for messages."""
        return f"{_without_options(self.uri).removeprefix('file://')}/{name}"

    def for_spark(self, name: str) -> str:
        """The path of a file, for Spark to read: it takes some characters for patterns, and calls `s3` `s3a`.

        >>> Files("file:///data/run[1]").for_spark("control.json")
        'file:///data/run\\\\[1\\\\]/control.json'
        >>> Files("s3://bucket/run").for_spark("control.json")
        's3a://bucket/run/control.json'
        """
        uri = re.sub("^s3:", "s3a:", _without_options(self.uri))
        return re.sub(r"([][{}*?\\])", r"\\\1", f"{uri}/{name}")


@dataclass(frozen=True)
class Folder(Files):
    """The folder of one stream, which writes its own identity into every file and refuses the files of others.

    Parameters
    ----------
    stream
        The identity of the stream that the folder belongs to.
    """

    stream: str

    def read_fields(self, name: str) -> dict[str, Any] | None:
        """The fields of a JSON file of this stream; None if it is not there."""
        data = self.read(name)
        return None if data is None else self._checked(name, data)

    def write_fields(self, name: str, fields: dict[str, Any], length: int = 0) -> None:
        """Write a JSON file, padded with spaces to a length."""
        self.write(name, self.text(fields).ljust(length))

    def text(self, fields: dict[str, Any]) -> bytes:
        """The content of a JSON file of this stream."""
        return json.dumps({"format": FORMAT, "stream": self.stream, **fields}).encode()

    def need_fields(self, name: str, what: str) -> dict[str, Any]:
        """The fields of a file that must be there."""
        fields = self.read_fields(name)
        if fields is None:
            raise SkewlessError(f"{what} is not at {self.shown(name)}; {RESTORE}")
        return fields

    def damaged(self, name: str, error: object) -> SkewlessError:
        """The refusal of a file that cannot be understood."""
        return SkewlessError(f"{self.shown(name)} is damaged ({error}); {RESTORE}")

    def _checked(self, name: str, data: bytes) -> dict[str, Any]:
        fields = parsed(self, name, data)
        if fields["stream"] != self.stream:
            raise SkewlessError(f"{self.shown(name)} is of another stream; {RESTORE}")
        return fields


def parsed(files: Files, name: str, data: bytes) -> dict[str, Any]:
    """The fields of a JSON file of a folder; another format is refused, as is what is no such file."""
    try:
        fields = json.loads(data)
        known = isinstance(fields, dict)
    except ValueError as error:
        raise SkewlessError(f"{files.shown(name)} is damaged ({error}); {RESTORE}") from error
    if not known or fields.get("format") != FORMAT:
        had = f"format {fields['format']}" if known and "format" in fields else "no format number, as in version 0.5"
        raise SkewlessError(
            f"{files.shown(name)} has {had}, and this version of skewless reads format {FORMAT}; name an empty folder "
            "with a new checkpoint, or go on with the version that wrote it"
        )
    if "stream" not in fields:
        raise SkewlessError(f"{files.shown(name)} is damaged (it names no stream); {RESTORE}")
    return fields  # type: ignore[no-any-return]  # JSON has no types


def uri_of(path: str | os.PathLike[str]) -> str:
    """A path or URI as a URI, without a slash at its end; of S3 by Arrow's name for it.

    >>> uri_of("file:/data/run/"), uri_of("S3A://bucket/run"), uri_of("file://localhost/data/run")
    ('file:///data/run', 's3://bucket/run', 'file:///data/run')
    """
    path = os.fspath(path)
    if not isinstance(path, str) or not path:
        raise SkewlessError(f"folder is {path!r}, and must be a path or a URI as text, such as '/data/run'")
    path = re.sub(r"^[A-Za-z][\w+.-]+(?=:/)", lambda scheme: scheme[0].lower(), os.path.expanduser(path))
    path = re.sub(r"^s3[an]://", "s3://", re.sub(r"^file:(//(localhost)?(?=/)|(?=/(?!/)))", "", path))
    if path.startswith("file://"):
        raise SkewlessError(f"the folder {path!r} is on another machine; mount it, and give its path here")
    if not path.strip("/"):
        raise SkewlessError(f"folder is {path!r}, the root of the disk; name a folder of its own, such as '/data/run'")
    return (path if re.match(r"[a-z][\w+.-]+:/", path) else f"file://{os.path.abspath(path)}").rstrip("/")


def _without_options(uri: str) -> str:
    """A URI without what Arrow reads after a question mark, as in `s3://bucket/run?region=eu`; a path may have one."""
    return uri if uri.startswith("file:") else uri.partition("?")[0].rstrip("/")


def _for_arrow(uri: str) -> str:
    """What Arrow takes for a folder: a path as it is, or a URI in which it decodes what was written as %20.

    >>> _for_arrow("file:///data/run 1"), _for_arrow("s3://bucket/run #1?region=eu")
    ('/data/run 1', 's3://bucket/run%20%231?region=eu')
    """
    if uri.startswith("file://"):
        return uri.removeprefix("file://")
    place, mark, options = uri.partition("?")
    scheme, slashes, path = place.partition("://")
    bucket, slash, path = path.partition("/")
    return f"{scheme}{slashes}{bucket}{slash}{quote(path)}{mark}{options}"


@functools.lru_cache(maxsize=16)
def _file_system(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    if uri.startswith(("hdfs:", "viewfs:")):  # though Arrow could reach it, where Hadoop's libraries are
        raise _not_in_one_step(uri)
    try:
        files, path = pyarrow.fs.FileSystem.from_uri(_for_arrow(uri))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SkewlessError(
            f"Arrow cannot reach the folder {uri!r} ({error}); give a folder that it can, such as 's3://...'"
        ) from error
    if files.type_name not in _REPLACING:
        raise _not_in_one_step(uri)
    return files, path.rstrip("/")


def _not_in_one_step(uri: str) -> SkewlessError:
    return SkewlessError(
        f"the folder {uri!r} is on {uri.partition(':')[0]}, where a file cannot be replaced in one step from Python: a "
        "micro-batch could find none, or half of one. Give a folder on a disk that all machines share, or on an object "
        "store: s3://, gs:// or abfss://"
    )


def _link(aside: str, path: str) -> None:
    """Give a file its name unless there is one of that name."""
    try:
        os.link(aside, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.replace(aside, path)
    else:
        os.unlink(aside)


def _write_local(path: str, data: bytes, put: Callable[[str, str], None]) -> None:
    """Write a file aside, have it on the disk, and name it: a machine that crashes leaves no empty file behind."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    aside = f"{path}.{uuid.uuid4().hex}.new"
    try:
        with open(aside, "xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        put(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise
    entry = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)
