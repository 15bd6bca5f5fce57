"""The number of active workers of a running query as a small file that every micro-batch reads anew.

As with the policy, the file keeps one length and is replaced whole. A second file, named after the query, has the same
number for a later run: the first one is named after the stream, which every call that ends a description makes anew.
"""

from __future__ import annotations

from dataclasses import dataclass

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

    def put(self, workers: int, query: str | None = None) -> None:
        """Have so many workers active in every micro-batch that starts from now on, and remember it for the query."""
        fields = {"query": query, "control": workers}
        self.write_fields(self.name, fields, LENGTH)
        if query is not None:
            self.write_fields(_of(query), fields)

    def remembered(self, query: str) -> int | None:
        """The number that a query had last; None if the folder does not know."""
        data = self.read(_of(query))
        return None if data is None else int(parsed(self, _of(query), data)["control"])


def _of(query: str) -> str:
    return f"workers-of-{query}.json"
