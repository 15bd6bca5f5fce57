"""TOML with the line of each table and value, so that an error can name the line."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skewless.core.errors import SkewlessError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_GAP = re.compile(r"(?:[\s,]|#[^\n]*)*")
_OPEN, _CLOSE = re.compile(r"\[\[?"), re.compile(r"\]\]?")
_KEY = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'[^']*'|[\w-]+)\s*(\.?)""")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\n]+")


@dataclass(frozen=True)
class Document:
    """The content of a file, and the line of each part.

    Parameters
    ----------
    name
        The file's name, as the user wrote it.
    values
        The tables of the file.
    lines
        The line of each table and value, from 1, by its name with dots: `window.size`.
    """

    name: str
    values: dict[str, Any]
    lines: dict[str, int]

    def error(self, name: str, message: str) -> SkewlessError:
        """An error at the value of this name, or at the table that it should have been in."""
        while name and name not in self.lines:
            name = name.rpartition(".")[0]
        return SkewlessError(f"{self.name}:{self.lines.get(name, 1)}: {message}")


def read(path: Path) -> Document:
    """Read a file; a mistake in its syntax is refused with its line."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise SkewlessError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SkewlessError(f"{path}: cannot be read as a text in UTF-8 ({error})") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> Document:
    r"""The document in a text.

    Examples
    --------
    >>> parse('name = "clicks"\n[window]\nsize = "1 day"', "job.toml").lines
    {'name': 1, 'window': 2, 'window.size': 3}
    """
    text = text.replace("\r\n", "\n")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, line = str(error), text.count("\n") + 1
        if at := re.search(r" \(at line (\d+), column \d+\)$", reason):
            reason, line = reason[: at.start()], int(at[1])
        raise SkewlessError(f"{name}:{line}: {reason}; correct the TOML there") from error
    return Document(name, values, _Locator(text).lines)


class _Locator:
    """Goes through a text that is known to be TOML, and notes the line of each key."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[str, int] = {}
        table = ""
        while self._skip(_GAP) and self.at < len(text):
            if self._skip(_OPEN):
                table = self._key("")
                self._skip(_CLOSE)
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match is not None

    def _key(self, table: str) -> str:
        line = self.text.count("\n", 0, self.at) + 1
        more = "."
        while more and (match := _KEY.match(self.text, self.at)):
            written, more = match.groups()
            name = tomllib.loads(f"name = {written}")["name"] if written[0] in "\"'" else written
            table = f"{table}.{name}" if table else name
            self.lines.setdefault(table, line)
            self.at = match.end()
        return table

    def _pair(self, table: str) -> None:
        name = self._key(table)
        self.at = self.text.index("=", self.at) + 1
        self._value(name)

    def _value(self, name: str) -> None:
        self._skip(_GAP)
        opening = self.text[self.at]
        if opening not in "[{":
            assert self._skip(_STRING) or self._skip(_SCALAR)
            return
        self.at += 1
        while self._skip(_GAP) and self.text[self.at] not in "]}":
            if opening == "[":
                self._value(name)
            else:
                self._pair(name)
        self.at += 1
