"""What the loops share that change versions: the folder names its query first, and one version comes after another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from skewless.control.loop import Chosen, Loop, log
from skewless.control.scaling import Scaling
from skewless.control.version import Version, Versions
from skewless.core.errors import SkewlessError


class AnnouncingLoop(Loop):
    """A loop whose decisions are versions in the stream's folder: announced first, and then in force.

    The folder is the truth: another loop of the same stream may have written to it, or it was restored together with
    the checkpoint. So it is read when a run begins, and when a micro-batch went by a version that is not expected.

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
    scaling
        What decides the number of active workers; None if that does not change.
    """

    workers: int
    carried_on: int
    """How many starts of the query an announcement outlives before it is withdrawn."""

    def __init__(
        self, name: str, workers: int, chosen: Chosen, folder: Versions, scaling: Scaling | None = None
    ) -> None:
        super().__init__(name, workers, chosen, scaling)
        self.folder = folder
        found = folder.read_control()
        self.known = found is not None
        """Whether the folder was in use before."""
        self.version, self.whose = found or (Version(0), None)
        """What the folder says, and the id of the query that it belongs to, if that is known."""
        self.paused = False
        """Whether this run decides nothing by itself, because what was decided before could not be carried out."""

    def begin_with(self, write: Callable[[], None]) -> None:
        """Have version 0 in force in a folder that is new: written now, or by one that crashed before it said so."""
        if not self.known:
            if not self.folder.has(0):
                write()
            self.say(Version(0))

    @property
    def announced(self) -> bool:
        """Whether a version is announced and not in force yet."""
        return self.version.to_come > 0

    @property
    def stuck(self) -> bool:
        """Whether no micro-batch that is over can have gone by the announced version."""
        return True

    def started(self, query: str, run: str) -> None:
        """If it is this stream's query: an announcement that too many runs have not carried out is withdrawn."""
        with self._changed:
            if self.whose not in (None, query) or not self.reread() or self.whose != query:
                return  # which spares a look at the folders of all other streams
            if self.announced and self.stuck and self.folder.count_start(run) > self.carried_on:
                number, pause = self.version.announced, self.carried_on > 0
                self.withdraw(paused=run if pause else None)
                if pause:
                    log.warning(
                        "stream %s: version %d was announced and never came into force, so it is withdrawn; this run "
                        "makes no other unless it is told to. Look why its micro-batches failed",
                        self.name,
                        number,
                    )

    def begin(self, query: str) -> None:
        """Go by what the folder says, and have it name its query; another query than the one it names is refused."""
        with self._changed:
            self.reread()
            self.paused = self.run is not None and self.folder.paused() == self.run
            if self.whose is None:
                self.whose = query
                self.say(self.version)
        if self.whose != query:
            raise self.folder.other_query(self.whose, query)

    def end(self, run: str, query: str = "", *, healthy: bool = False) -> None:
        """A run is over; if nothing was wrong with it, it does not count among those that failed to carry on."""
        super().end(run, query, healthy=healthy)
        with self._changed:
            if healthy and self.whose == query and self.reread() and self.announced:
                self.say(self.version)

    def belongs_to(self, query: str) -> bool:
        """Whether the folder names this query."""
        return self.whose == query

    def reread(self) -> bool:
        """Go by what the folder says, if that is not what is known here; false if it says nothing."""
        found = self.folder.read_control()
        if found is not None and found != (self.version, self.whose):
            self.version, self.whose = found
            self.adopt()
        return found is not None

    def ran_by(self, code: int | None) -> Version:
        """The version that a micro-batch went by. If it is not the one known here, the folder is read."""
        assert code is not None  # its rows came with one
        ran_by = Version.of(code)
        with self._changed:
            if ran_by != self.version:
                self.reread()
        return ran_by

    @abstractmethod
    def adopt(self) -> None:
        """Another version is in force than the one known so far: read what it says."""

    def withdraw(self, paused: str | None = None) -> None:
        """Take the announcement back: what is in force stays, and the number is never used again.

        Parameters
        ----------
        paused
            The id of a run that is to decide nothing by itself, if there is one.
        """
        with self._changed:
            self.reread()
            if not self.announced:
                raise SkewlessError("nothing is announced, so there is nothing to withdraw")
            self.take_back(paused)

    def take_back(self, paused: str | None) -> None:
        """What `withdraw` does once it is sure that there is something to withdraw."""
        self.say(Version(self.version.force), paused)
        self.adopt()

    def free(self) -> bool:
        """Whether no version is on its way, as the folder says: another loop of the stream may have announced one."""
        with self._changed:
            self.reread()
            return not self.version.announced

    def next_number(self) -> int:
        """The number of the version to announce; refused while one is on its way, or the query is not known."""
        self.reread()  # another loop of the stream may have gone on since
        if self.whose is None:
            raise SkewlessError("no micro-batch has ended yet, so the query is not known; try again after one")
        if self.version.withdrawn:
            raise SkewlessError(f"version {self.version.announced} is being withdrawn; try again after a micro-batch")
        if self.version.announced:
            raise SkewlessError(f"version {self.version.announced} is on its way; wait for it, or withdraw() it")
        return self.folder.last() + 1

    def say(self, version: Version, paused: str | None = None) -> None:
        """Let every micro-batch that starts from now on go by this."""
        self.folder.write_control(version, self.whose, paused)
        self.version = version
