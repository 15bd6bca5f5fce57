"""What a micro-batch goes by: the version in force, and one that is announced to come after it.

A stream that keeps state changes its placement, or the sizes of its batches of windows, in two steps. While a version
is announced, micro-batches go on by the one in force and prepare for the next. Once a micro-batch that knew of the
announcement is committed, the announced version can come into force. An announcement that is withdrawn is told apart
from none, where a micro-batch may have gone by it before the driver heard of that.

- `control.json`: the control of the next micro-batch, in a file of one length, as Spark remembers the length.
- `versions/7.json`: version 7, never changed once it is there.
"""

from __future__ import annotations

import functools
import os
import uuid
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from skewless.control.folder import RESTORE, Folder, parsed, uri_of
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn

CONTROL = "control.json"
LENGTH = 4096
_NUMBERS, _DIGEST = 24, 15  # bits
_Versions = TypeVar("_Versions", bound="Versions")


@dataclass(frozen=True)
class Version:
    """The versions that a micro-batch goes by.

    Parameters
    ----------
    force
        The number of the version in force.
    announced
        The number of the version that is to come; 0 if none is.
    query
        A digest of the id of the query that the versions are for; 0 before that is known.
    withdrawn
        Whether the announcement is taken back: no micro-batch prepares for it any more.

    Examples
    --------
    >>> Version.of(Version(3, announced=5).code)
    Version(force=3, announced=5, query=0, withdrawn=False)
    """

    force: int
    announced: int = 0
    query: int = field(default=0, compare=False)
    withdrawn: bool = False

    @property
    def to_come(self) -> int:
        """The number of the version that micro-batches prepare for; 0 if there is none."""
        return 0 if self.withdrawn else self.announced

    @property
    def code(self) -> int:
        """As one number, which rows can carry: below 0 if the announcement is withdrawn."""
        code = (self.query << 2 * _NUMBERS) + (self.force << _NUMBERS) + self.announced
        return ~code if self.withdrawn else code

    @classmethod
    def of(cls, code: int) -> Version:
        """From the number."""
        rest, announced = divmod(~code if code < 0 else code, 1 << _NUMBERS)
        query, force = divmod(rest, 1 << _NUMBERS)
        return cls(force, announced, query, code < 0)


def digest(query: str | None) -> int:
    """A number of few bits for the id of a query, never 0; 0 for no query."""
    return 0 if query is None else 1 + zlib.crc32(query.encode()) % ((1 << _DIGEST) - 1)


@dataclass(frozen=True)
class Versions(Folder):
    """The folder of a stream whose versions change while it runs."""

    @classmethod
    def at(cls: type[_Versions], path: str | os.PathLike[str], stream: str | None = None) -> _Versions:
        """The folder at a path or URI: that of the stream which it names, or of a new one if there is nothing.

        A new one has the identity of the call that ends its description. If the call is made again, the folder still
        names the stream that it was made for.
        """
        new = cls(uri_of(path), stream or uuid.uuid4().hex)
        name, data = CONTROL, new.read(CONTROL)
        if data is None:
            old = [name for name in ("current.json", "placements", "deals") if name in new.listed()]
            if old:
                raise SkewlessError(
                    f"{new.shown(old[0])} has no format number, as in version 0.5, and this version of skewless "
                    "cannot read it; name an empty folder with a new checkpoint, or go on with that version"
                )
            if new.last() > 0:
                raise SkewlessError(f"the control is not at {new.shown(CONTROL)}, but versions are there; {RESTORE}")
            name, data = _file(0), new.read(_file(0))  # of a stream that crashed before it could run
        return new if data is None else replace(new, stream=str(parsed(new, name, data)["stream"]))

    @property
    def control(self) -> str:
        """The path, for Spark, of the file that every micro-batch reads."""
        return self.for_spark(CONTROL)

    def read_control(self) -> tuple[Version, str | None] | None:
        """What the next micro-batch goes by, and the id of the query, if it is known; None in an empty folder."""
        fields = self.read_fields(CONTROL)
        if fields is None:
            return None
        try:
            return Version.of(int(fields["control"])), fields["query"]
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(CONTROL, error) from error

    def write_control(self, version: Version, query: str | None, paused: str | None = None) -> None:
        """Let every micro-batch that starts from now on go by this; `paused` is a run that is to decide nothing."""
        code = replace(version, query=digest(query)).code
        self.write_fields(CONTROL, {"query": query, "control": code, "paused": paused}, LENGTH)

    def paused(self) -> str | None:
        """The id of the run that is to decide nothing, if there is one."""
        return (self.read_fields(CONTROL) or {}).get("paused")

    def count_start(self, run: str) -> int:
        """How many runs have started since the control was written, this one included."""
        fields = self.need_fields(CONTROL, "the control")
        if fields.get("run") != run:
            fields |= {"run": run, "starts": fields.get("starts", 0) + 1}
            self.write_fields(CONTROL, fields, LENGTH)
        return int(fields["starts"])

    def add(self, number: int, before: int, query: str | None, fields: dict[str, Any]) -> None:
        """Add a version, which is to follow another one."""
        if not self.create(_file(number), self.text({"number": number, "before": before, "query": query, **fields})):
            raise SkewlessError(f"{self.shown(_file(number))} is there already; versions are written once")

    def has(self, number: int) -> bool:
        """Whether there is a version of that number."""
        return self.read(_file(number)) is not None

    def last(self) -> int:
        """The highest number of a version."""
        names = [name.removesuffix(".json") for name in self.listed("versions")]
        return max((int(name) for name in names if name.isdigit()), default=0)

    def version(self, number: int, turn: Turn | None = None) -> Any:
        """What a version says.

        Parameters
        ----------
        number
            The version's number.
        turn
            The turn of the task that asks: a process reads a version once in each micro-batch, and the versions of
            another query are refused.
        """
        return self._loaded(number, turn)[2]

    def before(self, number: int, turn: Turn | None = None) -> int:
        """The number of the version that this one followed."""
        return int(self._loaded(number, turn)[0])

    @abstractmethod
    def parse(self, fields: dict[str, Any]) -> Any:
        """What the fields of a version say; anything but such fields is refused."""

    def load(self, number: int) -> tuple[int, str | None, Any]:
        """The version before this one, its query, and what it says."""
        fields = self.need_fields(_file(number), f"version {number}")
        try:
            if fields["number"] != number:
                raise ValueError(f"it is version {fields['number']}")
            return fields["before"], fields["query"], self.parse(fields)
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(_file(number), error) from error

    def _loaded(self, number: int, turn: Turn | None) -> tuple[int, str | None, Any]:
        if turn is None:
            return self.load(number)
        found = _once(self, number, turn.batch, turn.run)
        if found[1] not in (None, turn.query):
            raise self.other_query(found[1], turn.query)
        return found

    def check(self, version: Version, turn: Turn) -> None:
        """Refuse a control that is for another query."""
        if version.query not in (0, digest(turn.query)):
            found = self.read_control()
            raise self.other_query(found[1] if found else None, turn.query)

    def other_query(self, whose: str | None, query: str) -> SkewlessError:
        """The refusal of a query that the folder does not belong to."""
        return SkewlessError(
            f"the folder {self.shown('')[:-1]} belongs to query {whose}, and this is query {query}: build the result "
            "anew for each query, with a folder and a checkpoint of its own"
        )

    def forget(self, number: int) -> None:
        """Delete the versions before this one."""
        for name in self.listed("versions"):
            stem = name.partition(".")[0]  # what a crash left half written goes too
            if stem.isdigit() and int(stem) < number:
                self.delete(f"versions/{name}")


def _file(number: int) -> str:
    return f"versions/{number}.json"


@functools.lru_cache(maxsize=32)
def _once(folder: Versions, number: int, _batch: int, _run: str) -> tuple[int, str | None, Any]:
    return folder.load(number)
