"""The column names in a schema that is written as Spark's DDL."""

from __future__ import annotations

import re

from skewless.core.errors import SkewlessError

_EXAMPLE = "write a name and a type for each column, such as 'ts timestamp, page string'"
# A quoted part is one piece, whatever brackets and commas are in it.
_PIECE = re.compile(r"`(?:[^`]|``)*`|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|.", re.DOTALL)
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+))(?:\s*:\s*|\s+)\w", re.DOTALL)
_OPEN, _CLOSE = "(<", ")>"


def column_names(ddl: str) -> tuple[str, ...]:
    """The names of the columns; fields inside a struct are not columns.

    Examples
    --------
    >>> column_names("ts timestamp, `user id` struct<a: int, b: string>, price decimal(10, 2)")
    ('ts', 'user id', 'price')
    """
    names = []
    for part in _split(ddl):
        column = _COLUMN.match(part)
        if column is None:
            raise SkewlessError(f"{part.strip()!r} is not a column; {_EXAMPLE}")
        quoted, bare = column.groups()
        names.append(quoted.replace("``", "`") if quoted else bare)
    return tuple(names)


def _split(ddl: str) -> list[str]:
    """The parts between those commas that are outside all brackets."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(ddl):
        depth += (piece in _OPEN) - (piece in _CLOSE)
        if depth < 0:
            raise SkewlessError(f"{ddl!r} closes a bracket that it did not open; {_EXAMPLE}")
        if piece == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    if depth:
        raise SkewlessError(f"{ddl!r} leaves a bracket open; {_EXAMPLE}")
    return parts
