"""The durable folder of a placed stream: its placements, which of them is in force, and state on its way.

It belongs to the checkpoint of the query: one without the other is of no use.

- `current.json`: the control of the next micro-batch, in a file of one length, as Spark remembers the length.
- `placements/7.json`: placement 7, never changed once it is there.
- `moves/8/3-41.arrow`: the entries that worker 3 gives away when placement 8 comes into force, as of micro-batch 41.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass

import pyarrow as pa

from skewless.control.folder import Folder
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.place.placement import Placement

_HANDOVER = re.compile(r"(\d+)-(-?\d+)\.arrow")


@dataclass(frozen=True)
class Control:
    """What a micro-batch goes by.

    Parameters
    ----------
    version
        Of the placement in force.
    moving
        Whether the next version comes into force in a later micro-batch, so that state that moves is to be given away.

    Examples
    --------
    >>> Control.of(Control(3, moving=True).code)
    Control(version=3, moving=True)
    """

    version: int
    moving: bool = False

    @property
    def code(self) -> int:
        """As one number, which rows can carry."""
        return 2 * self.version + self.moving

    @classmethod
    def of(cls, code: int) -> Control:
        """From the number."""
        return cls(code // 2, bool(code % 2))


@dataclass(frozen=True)
class Location(Folder):
    """The folder of a placed stream.

    Parameters
    ----------
    query
        Names the query that state is moved for: what another one gave away is not taken for it.
    """

    query: str = ""

    def read_control(self) -> Control | None:
        """The control of the next micro-batch; None in an empty folder."""
        code = self.read_code()
        return None if code is None else Control.of(code)

    def write_control(self, control: Control) -> None:
        """Let every micro-batch that starts from now on go by this."""
        self.write_code(control.code)

    def write_placement(self, placement: Placement) -> None:
        """Add a placement."""
        text = json.dumps({"id": self.whose, "placement": placement.to_json()})
        self.write(f"placements/{placement.version}.json", text.encode())

    def placement(self, version: int) -> Placement:
        """The placement of that version."""
        return _placement(self, version)

    def write_moves(self, version: int, batch: int, source: int, entries: pa.RecordBatch) -> None:
        """Give away entries: what a replayed batch writes again is the same."""
        data = blob.dump(entries.columns, {"query": self.query})
        self.write(f"moves/{version}/{source}-{batch}.arrow", data)

    def read_moves(self, version: int, batch: int, source: int, slots: str, schema: pa.Schema) -> pa.RecordBatch:
        """What a worker gave away before a micro-batch, as of its last chance; refused if it is not to be found.

        Parameters
        ----------
        version
            The placement that came into force.
        batch
            The micro-batch in which it did.
        source
            The worker that gave.
        slots
            What is expected from it, for the message.
        schema
            Of the entries.
        """
        folder = f"moves/{version}"
        batches = [number for worker, number in self._moves(folder) if worker == source and number < batch]
        path = f"{folder}/{source}-{max(batches)}.arrow" if batches else f"{folder}/{source}-*.arrow"
        data = self.read(path) if batches else None
        remedy = "restore the folder that goes with this checkpoint; the query stops so that no state is lost"
        if data is None:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} is not at {self.uri}/{path}; {remedy}"
            )
        try:
            given = blob.load(data)
            entries = pa.RecordBatch.from_arrays(given.columns, schema=schema)
        except (pa.ArrowInvalid, ValueError, OSError, StopIteration) as error:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} at {self.uri}/{path} is damaged ({error}); {remedy}"
            ) from error
        if blob.notes(given).get("query", "") != self.query:
            raise SkewlessError(
                f"the state of slots {slots} from worker {source} at {self.uri}/{path} is of another query; "
                "give each query a process(...) and a folder of its own"
            )
        return entries

    def forget(self, version: int) -> None:
        """Delete what moved up to this version, and the placements before it."""
        files, _folder = self.place()
        for kind in ("moves", "placements"):
            for info in self.listed(kind):
                stem = info.base_name.removesuffix(".json")
                if not stem.isdigit():  # what was not written whole
                    continue
                number = int(stem)
                if kind == "moves" and number <= version:
                    files.delete_dir(info.path)
                if kind == "placements" and number < version:
                    files.delete_file(info.path)

    def _moves(self, path: str) -> list[tuple[int, int]]:
        matches = [_HANDOVER.fullmatch(info.base_name) for info in self.listed(path)]
        return [(int(match[1]), int(match[2])) for match in matches if match]


@functools.lru_cache(maxsize=16)
def _placement(location: Location, version: int) -> Placement:
    path, remedy = f"placements/{version}.json", "restore the folder that goes with this checkpoint"
    data = location.read(path)
    if data is None:
        raise SkewlessError(f"placement {version} is not at {location.uri}/{path}; {remedy}")
    try:
        fields = json.loads(data)
        whose, placement = fields["id"], Placement.from_json(fields["placement"])
    except (ValueError, KeyError, TypeError) as error:
        raise SkewlessError(f"{location.uri}/{path} is damaged ({error}); {remedy}") from error
    if whose != location.whose:
        raise SkewlessError(f"{location.uri}/{path} is of another stream; {remedy}")
    if placement.version != version:
        raise SkewlessError(f"{location.uri}/{path} is placement {placement.version}; {remedy}")
    return placement
