"""Changes docstrings, before griffe parses them for the site, where it would show something else than they say.

- Doctests outside a section `Examples` become code: Markdown takes `>>>` for three quotations, one in another.
- Parameters that share a description get one each: griffe gives all of them the type and the default of the first.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<title>\w[\w ]*)\n-{3,}$", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> .*(?:\n\S.*|\n +\S.*)*", re.MULTILINE)
_SHARED = re.compile(r"^(?P<names>\w+(?:, \w+)+)\n(?P<description>(?: +\S.*\n?|\n(?= ))+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes each docstring as soon as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = for_griffe(obj.docstring.value)


def for_griffe(text: str) -> str:
    """A docstring that griffe shows as it is meant."""
    title, start, parts = "", 0, []
    for section in [*_SECTION.finditer(text), None]:
        stop = section.start() if section else len(text)
        part = text[start:stop]
        if title == "Parameters":
            part = _SHARED.sub(_apart, part)
        elif title != "Examples":  # which griffe knows
            part = _DOCTEST.sub(r"```pycon\n\g<0>\n```", part)
        parts.append(part)
        if section:
            title, start = section["title"], section.start()
    return "".join(parts)


def _apart(shared: re.Match[str]) -> str:
    description = shared["description"].rstrip("\n")
    after = shared["description"][len(description) :]
    return "\n".join(f"{name}\n{description}" for name in shared["names"].split(", ")) + after
