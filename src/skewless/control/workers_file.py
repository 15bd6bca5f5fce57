"""The number of active workers of a running query as a small file that every micro-batch reads anew.

As with the policy, the file keeps one length and is replaced whole. A second file, named after the query, has the same
number for a later run: the first one is named after the stream, which every call that ends a description makes anew. A
query with several streams has one such file. All of them see the same W, so that those with equal ranges have equal
numbers, and the file has a number for each range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skewless.control.folder import Folder, parsed
from skewless.control.version import LENGTH


@dataclass(frozen=True)
class WorkersFile(Folder):
    """Writes the number of active workers where the executors of a running query find it."""

    @property
    def name(self) -> str:
        """The file's name."""
        return f"workers-{self.stream}.json"

    @property
    def path(self) -> str:
        """The path of the file, for Spark."""
        return self.for_spark(self.name)

    def put(self, workers: int, query: str | None = None, asked: str = "") -> None:
        """Have so many workers active in every micro-batch that starts from now on, and remember it for the query.

        `asked` says by which range they follow the load.
        """
        fields = {"query": query, "control": workers}
        self.write_fields(self.name, fields, LENGTH)
        if query is not None:
            ranges = {**self._known(query).get("ranges", {}), asked: workers}
            self.write_fields(_of(query), {**fields, "ranges": ranges})

    def remembered(self, query: str, asked: str = "") -> int | None:
        """The number that a range of a query had last; that of another one if it is new; None if there was none."""
        known = self._known(query)
        number = known.get("ranges", {}).get(asked, known.get("control"))
        return None if number is None else int(number)

    def _known(self, query: str) -> dict[str, Any]:
        data = self.read(_of(query))
        return {} if data is None else parsed(self, _of(query), data)


def _of(query: str) -> str:
    return f"workers-of-{query}.json"
