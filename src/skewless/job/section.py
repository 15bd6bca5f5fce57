"""A section of a settings file: returns its values after checking them, and says where a wrong one is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from skewless.core.errors import SkewlessError
from skewless.job.expression import nearest
from skewless.job.toml import Document

T = TypeVar("T", str, int, bool, list[Any])

_KINDS: dict[type, str] = {str: "a text in quotes", int: "a whole number", bool: "true or false", list: "a list"}


class Section:
    """One table of a document. A key that it does not know is refused at once.

    Parameters
    ----------
    document
        The file that the table is in.
    name
        The table's name, with dots: `source.options`; empty for the keys before the first table.
    known
        The keys that the table may have; any key if not given.
    """

    def __init__(self, document: Document, name: str, known: Sequence[str] | None = None) -> None:
        self._document, self._name = document, name
        values: Any = document.values
        for each in name.split(".") if name else ():
            values = values.get(each, {})
        self.given = name in document.lines
        if not isinstance(values, dict):
            raise document.error(name, f"{name} is {_toml(values)}, not a section; write [{name}]")
        self.values: dict[str, Any] = values
        for key in values:
            if known is not None and key not in known:
                raise self.refusal(key, f"{key} is unknown; {nearest(key, known)}")

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value, or None if it is missing; a value of another type is refused."""
        value = self.values.get(key)
        # In Python a bool is an int too.
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.error(key, f"{_toml(value)}, not {_KINDS[kind]}")
        return value

    def need(self, key: str, kind: type[T], example: str) -> T:
        """The value; if it is missing or empty, the error shows an example."""
        value = self.get(key, kind)
        if value is None:
            raise self.refusal(key, f"needs {key}, such as {key} = {example}")
        if value == "":
            raise self.error(key, f"empty; write one, such as {key} = {example}")
        return value

    def table(self, key: str) -> Section:
        """A section inside this one."""
        return Section(self._document, f"{self._name}.{key}")

    def options(self) -> dict[str, str]:
        """All values in the form that Spark takes: texts under names with dots, whether or not these were in quotes."""
        return dict(self._flat("", self.values))

    def shown(self, key: str) -> str:
        """The value as it is written in the file; for a text, without its quotes."""
        value = self.values[key]
        return value if isinstance(value, str) else _toml(value)

    def error(self, key: str, message: str) -> SkewlessError:
        """The error for a wrong value: `[section] key is ...`."""
        return self.refusal(key, f"{key} is {message}")

    def refusal(self, key: str | None, message: str) -> SkewlessError:
        """The error with the line of a key or, if that is missing, of the section."""
        if not self._name:
            return self._document.error(key or "", message)
        place = self._name if key is None else f"{self._name}.{key}"
        return self._document.error(place, f"[{self._name}] {message}")

    @contextmanager
    def naming(self, key: str, what: str) -> Iterator[None]:
        """Add to the errors inside the place of a key, and what is being read there."""
        try:
            yield
        except SkewlessError as error:
            raise self.refusal(key, f"{what}: {error}") from error

    def _flat(self, above: str, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for key, value in values.items():
            if isinstance(value, dict):
                yield from self._flat(f"{above}{key}.", value)
            elif isinstance(value, str | bool | int | float):
                yield above + key, value if isinstance(value, str) else _toml(value)
            else:
                raise self.error(above + key, f"{_toml(value)}, not a text or a number")


def _toml(value: object) -> str:
    return json.dumps(value, default=str)
