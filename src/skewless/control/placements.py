"""The folder of a placed stream: its placements, and state on its way from one worker to another.

- `versions/7.json`: placement 7.
- `moves/8/3-41.arrow`: the entries that worker 3 gives away when placement 8 comes into force, as of micro-batch 41.
- `moves/8/3-42-changes.arrow`: those of them that micro-batch 42 changed, which had no rows.
- `sizes/3.json`: about how many bytes of state worker 3 has.

The copies in `moves/` date an announced placement. It is due in every micro-batch after one in which all workers that
give left theirs, and each task of the micro-batch finds that out by itself: what was left before a micro-batch began no
longer changes while it runs.
"""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from skewless.control.folder import FORMAT, RESTORE
from skewless.control.version import Version, Versions
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.place.placement import Placement, moves

_COPY = re.compile(r"(\d+)-(-?\d+)(-changes)?\.arrow")
_STOPS = f"{RESTORE}; the query stops so that no state is lost"


@dataclass(frozen=True)
class _Copy:
    """What a worker left in a micro-batch: all that it gives away, or what it changed of that."""

    worker: int
    batch: int
    whole: bool

    def path(self, number: int) -> str:
        """Where it is, for the placement of that number."""
        return f"moves/{number}/{self.worker}-{self.batch}{'' if self.whole else '-changes'}.arrow"


@dataclass(frozen=True)
class Placements(Versions):
    """The folder of a placed stream."""

    def placement(self, number: int, turn: Turn | None = None) -> Placement:
        """The placement of that version."""
        found: Placement = self.version(number, turn)
        return found

    def parse(self, fields: dict[str, Any]) -> Placement:
        """The placement in the fields of a version."""
        return Placement.from_json(fields["placement"]).with_version(fields["number"])

    def write_placement(self, placement: Placement, before: int, query: str | None) -> None:
        """Add a placement, to follow another one."""
        self.add(placement.version, before, query, {"placement": placement.to_json()})

    def announce(self, placement: Placement, before: int, query: str | None) -> None:
        """Add a placement that is to be announced, without copies that another one of its number left behind."""
        self.write_placement(placement, before, query)  # refused if another driver has announced one of this number
        if str(placement.version) in self.listed("moves"):  # as a restored folder may have them
            self.delete(f"moves/{placement.version}")

    def due(self, version: Version, turn: Turn) -> Version:
        """What a micro-batch goes by whose control is `version`: the announced placement, if its copies were left."""
        if not version.announced or not _left_once(self, version, turn.batch, turn.run):
            return version
        return replace(version, force=version.announced, announced=0, withdrawn=False)

    def left(self, version: Version, batch: int | None = None) -> bool:
        """Whether workers have to give state for the announced placement, and every one that does has left a copy.

        Parameters
        ----------
        version
            The placement in force, and the announced one.
        batch
            The micro-batch before which they must have left it; any if not given.
        """
        givers = {
            move.source
            for move in moves(self.placement(version.force), self.placement(version.announced))
            if move.source != move.target
        }
        there = self._copies(version.announced)
        return bool(givers) and givers <= {
            copy.worker for copy in there if copy.whole and (batch is None or copy.batch < batch)
        }

    def take_back(self, number: int, turn: Turn) -> None:
        """Delete the copy that a worker left in an attempt of this micro-batch that was not committed, if it did."""
        for copy in self._copies(number):
            if (copy.worker, copy.batch) == (turn.worker, turn.batch):
                self.delete(copy.path(number))

    def _copies(self, number: int) -> list[_Copy]:
        matches = [_COPY.fullmatch(name) for name in self.listed(f"moves/{number}")]
        return [_Copy(int(match[1]), int(match[2]), not match[3]) for match in matches if match]

    def give(
        self, placement: Placement, turn: Turn, slots: Sequence[str], entries: pa.RecordBatch, *, whole: bool = True
    ) -> None:
        """Leave a copy of the entries that a worker gives away; what a replayed micro-batch writes again is the same.

        Parameters
        ----------
        placement
            The placement that is to come into force.
        turn
            The turn of the worker that gives.
        slots
            The names of what it gives.
        entries
            The entries.
        whole
            Whether these are all, or those that changed since it left a copy.
        """
        notes = {"format": FORMAT, "stream": self.stream, "query": turn.query}
        notes |= {"placement": _digest(placement), "slots": list(slots)}
        data = blob.dump(entries.columns, {"move": json.dumps(notes)})
        self.write(_Copy(turn.worker, turn.batch, whole).path(placement.version), data)

    def take(
        self, placement: Placement, turn: Turn, source: int, slots: Sequence[str], schema: pa.Schema
    ) -> list[pa.RecordBatch]:
        """The newest entries that a worker gave away before this micro-batch, and then those that changed since.

        It is refused if they are not to be found.

        Parameters
        ----------
        placement
            The placement that came into force.
        turn
            The turn of the worker that takes.
        source
            The worker that gave.
        slots
            The names of what it gave.
        schema
            The columns of entries.
        """
        copies = [copy for copy in self._copies(placement.version) if copy.worker == source and copy.batch < turn.batch]
        some = ", ".join(slots[:5]) + (f" and {len(slots) - 5} more" if len(slots) > 5 else "")
        what = f"the state of slots {some} from worker {source}"
        newest = max((copy.batch for copy in copies if copy.whole), default=None)
        if newest is None:
            path = f"moves/{placement.version}/{source}-*.arrow"
            raise SkewlessError(f"{what} is not at {self.shown(path)}; {_STOPS}")
        since = [copy for copy in copies if copy.batch > newest or (copy.whole and copy.batch == newest)]
        paths = [copy.path(placement.version) for copy in sorted(since, key=lambda copy: copy.batch)]
        return [self._entries(path, placement, turn, slots, schema, what) for path in paths]

    def _entries(
        self, path: str, placement: Placement, turn: Turn, slots: Sequence[str], schema: pa.Schema, what: str
    ) -> pa.RecordBatch:
        """The entries of a copy; `what` says what it has."""
        try:
            given = blob.load(self.read(path) or b"")
            notes = json.loads(blob.notes(given)["move"])
            entries = pa.RecordBatch.from_arrays(given.columns, schema=schema)
            if (notes["format"], notes["stream"]) != (FORMAT, self.stream):
                raise ValueError(f"it is of format {notes['format']} and of stream {notes['stream']}")
        except (pa.ArrowInvalid, ValueError, KeyError, OSError, StopIteration) as error:
            raise SkewlessError(f"{what} at {self.shown(path)} is damaged ({error}); {_STOPS}") from error
        if notes["query"] != turn.query:
            raise self.other_query(notes["query"], turn.query)
        if notes["placement"] != _digest(placement) or not set(slots) <= set(notes["slots"]):
            raise SkewlessError(f"{what} at {self.shown(path)} was given for another placement; {_STOPS}")
        return entries

    def tell_size(self, turn: Turn, size: int) -> None:
        """Let it be known how many bytes of state a worker has."""
        self.write_fields(f"sizes/{turn.worker}.json", {"query": turn.query, "bytes": size})

    def state_bytes(self) -> int:
        """About how many bytes of state all workers have, by what they told last."""
        told = [self.read_fields(f"sizes/{name}") for name in self.listed("sizes") if name.endswith(".json")]
        return sum(int(fields.get("bytes", 0)) for fields in told if fields is not None)

    def forget(self, number: int) -> None:
        """Delete what moved up to this version, and the placements before it."""
        super().forget(number)
        for name in self.listed("moves"):
            if name.isdigit() and int(name) <= number:
                self.delete(f"moves/{name}")


@dataclass(frozen=True)
class OnePlacement:
    """A placement that nothing changes, for rows that all come at once: it travels with the plan."""

    fixed: Placement
    stream: str = ""

    def placement(self, number: int, turn: Turn | None = None) -> Placement:
        """The one there is."""
        return self.fixed

    def check(self, version: Version, turn: Turn) -> None:
        """There is one query only."""

    def due(self, version: Version, turn: Turn) -> Version:
        """Nothing is ever announced."""
        return version


@functools.lru_cache(maxsize=32)
def _left_once(folder: Placements, version: Version, batch: int, _run: str) -> bool:
    """The same for all tasks of a process in a micro-batch, as it does not change."""
    return folder.left(version, batch)


def _digest(placement: Placement) -> int:
    """A number that differs where placements do."""
    return zlib.crc32(placement.with_version(0).to_json().encode())
