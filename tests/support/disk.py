"""A disk that can lose power: what was written and not flushed is gone then."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch


class Disk:
    """Knows what `os.fsync` was called for, instead of waiting until it is done.

    A file that was not flushed is empty after the power was lost, as on a disk that names files before it writes them.
    A name that was not flushed stands for what it stood for before. Files that were deleted stay away.
    """

    def __init__(self) -> None:
        self._flushed = set[int]()
        self._named: dict[str, dict[str, bytes]] = {}

    def fsync(self, number: int) -> None:
        """A file, or the names in a folder, are on the disk."""
        about = os.fstat(number)
        if not stat.S_ISDIR(about.st_mode):
            self._flushed.add(about.st_ino)
            return
        self._name(Path(f"/proc/self/fd/{number}").resolve())

    def sync(self, folder: Path) -> None:
        """All below a folder is on the disk, as after an operator has restored it."""
        self._flushed |= {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                self._name(path.resolve())

    def _name(self, folder: Path) -> None:
        self._named[str(folder)] = {path.name: self._content(path) for path in folder.iterdir() if path.is_file()}

    def lose_power(self, folder: Path) -> None:
        """All files below a folder are as they were flushed."""
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            named = self._named.get(str(path.parent.resolve()), {})
            if path.name not in named:
                path.unlink()
            elif named[path.name] != path.read_bytes():
                path.write_bytes(named[path.name])

    def _content(self, path: Path) -> bytes:
        return path.read_bytes() if path.stat().st_ino in self._flushed else b""


@contextmanager
def disk_without_power() -> Iterator[Disk]:
    """All that is flushed meanwhile is on a disk that can lose power."""
    disk = Disk()
    with patch("os.fsync", disk.fsync):
        yield disk
