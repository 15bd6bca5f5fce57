"""Lets griffe show the doctests of a docstring that stand outside a section `Examples` as code.

Markdown takes `>>>` for three quotations, one in another.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<title>\w[\w ]*)\n-{3,}$", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> .*(?:\n\S.*|\n +\S.*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts doctests into fences, before docstrings are parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object, as soon as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring whose doctests are in fences, but for those in `Examples`, which griffe knows."""
    title, start, parts = "", 0, []
    for section in [*_SECTION.finditer(text), None]:
        stop = section.start() if section else len(text)
        part = text[start:stop]
        parts.append(part if title == "Examples" else _DOCTEST.sub(r"```pycon\n\g<0>\n```", part))
        if section:
            title, start = section["title"], section.start()
    return "".join(parts)
