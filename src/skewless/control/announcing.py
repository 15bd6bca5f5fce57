"""What the loops share that change versions: the folder names its query first, and one version comes after another."""

from __future__ import annotations

from skewless.control.loop import Chosen, Loop
from skewless.control.version import Version, Versions
from skewless.core.errors import SkewlessError


class AnnouncingLoop(Loop):
    """A loop whose decisions are versions in the stream's folder: announced first, and then in force.

    Parameters
    ----------
    name
        The stream's name, for messages.
    workers
        The workers that share the rows.
    chosen
        What runs, and why.
    folder
        The stream's folder.
    """

    workers: int

    def __init__(self, name: str, workers: int, chosen: Chosen, folder: Versions) -> None:
        super().__init__(name, workers, chosen)
        self.folder = folder
        found = folder.read_control()
        self.known = found is not None
        """Whether the folder was in use before."""
        self.version, self._whose = found or (Version(0), None)

    @property
    def announced(self) -> bool:
        """Whether a version is announced and not in force yet."""
        return self.version.announced > 0

    def bind(self, query: str) -> None:
        """Have the folder name its query; another query than the one it names is refused."""
        with self._changed:
            if self._whose is None:
                self._whose = query
                self.say(self.version)
        if self._whose != query:
            raise self.folder.other_query(self._whose, query)

    def next_number(self) -> int:
        """The number of the version to announce; refused while one is on its way, or the query is not known."""
        if self._whose is None:
            raise SkewlessError("no micro-batch has ended yet, so the query is not known; try again after one")
        if self.version.announced:
            raise SkewlessError(
                f"version {self.version.announced} is on its way; wait for it, or try again after a micro-batch"
            )
        return self.folder.last() + 1

    @property
    def whose(self) -> str | None:
        """The id of the query that the folder belongs to, if it is known."""
        return self._whose

    def say(self, version: Version) -> None:
        """Let every micro-batch that starts from now on go by this."""
        self.folder.write_control(version, self._whose)
        self.version = version
