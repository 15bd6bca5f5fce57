"""A placement: which worker owns each slot, and what changes from one placement to the next."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import lean_kernel
from skewless.core.key_index import index_of, place_of

FORMAT = 1  # version of the JSON format
_FIELDS = ("format", "version", "workers", "tail", "keys", "own")
_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class Placement:
    """Says which worker owns each key's state; it never changes, and is small enough to send to every machine.

    A slot is the unit that is owned and moved. A key that is tracked has a slot of its own; every other key shares the
    tail slot `pmod(hash, tail_slots)`. Keys are identified by their hash, Spark's `xxhash64` of the key columns.

    Inside one placement a slot is a number: 0 to `tail_slots` - 1 for the tail, and after them the tracked keys in
    rising order. From one placement to the next, a slot is identified by its name: "t17" is tail slot 17, "k-42" is the
    slot of the key with hash -42.

    Attributes
    ----------
    workers
        The number of workers, which are numbered from 0.
    tail
        The worker of each tail slot.
    keys, own
        The hashes of the tracked keys in rising order, and the worker that owns the slot of each.
    version
        A later placement of the same stream has a higher version.

    Examples
    --------
    >>> placement = Placement.of(2, tail=[0, 1, 0, 1], own={7: 0})
    >>> placement.slot_of(np.array([7, 3, -1])), placement.worker_of(np.array([7, 3, -1]))
    (array([4, 3, 3]), array([0, 1, 1], dtype=int32))
    >>> placement.name(4), placement.name(3)
    ('k7', 't3')
    >>> Placement.from_json(placement.to_json()) == placement
    True
    """

    workers: int
    tail: Int32Array
    keys: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    own: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    version: int = 0

    def __post_init__(self) -> None:
        """Refuse a placement that is not valid, and make its arrays read-only."""
        if self.workers < 1:
            raise SkewlessError(f"workers is {self.workers}; give at least 1")
        if self.version < 0:
            raise SkewlessError(f"version is {self.version}; versions count up from 0")
        for name, dtype in (("tail", np.int32), ("keys", np.int64), ("own", np.int32)):
            given = np.asarray(getattr(self, name))
            if given.ndim != 1:
                raise SkewlessError(f"{name} has the shape {given.shape}; give a flat array")
            kept = given.astype(dtype)
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)
        if not len(self.tail):
            raise SkewlessError("a placement needs at least 1 tail slot, for the keys that are not tracked")
        if len(self.keys) != len(self.own):
            raise SkewlessError(f"{len(self.keys)} keys but {len(self.own)} owners; give each tracked key a worker")
        if np.any(self.keys[1:] <= self.keys[:-1]):
            raise SkewlessError("keys must rise, each listed once; build the placement with Placement.of")
        astray = self.owners[(self.owners < 0) | (self.owners >= self.workers)]
        if len(astray):
            raise SkewlessError(
                f"a slot lies on worker {astray[0]}; the {self.workers} workers are 0 to {self.workers - 1}"
            )

    @classmethod
    def of(
        cls, workers: int, tail: list[int] | Int32Array, own: dict[int, int] | None = None, *, version: int = 0
    ) -> Placement:
        """A placement from the worker of each tail slot and of each tracked key."""
        own = own or {}
        keys = sorted(own)
        return cls(
            workers,
            np.asarray(tail, np.int32),
            np.array(keys, np.int64),
            np.array([own[key] for key in keys], np.int32),
            version,
        )

    @property
    def tail_slots(self) -> int:
        """The number of slots that keys share by their hash."""
        return len(self.tail)

    @property
    def slots(self) -> int:
        """The number of all slots, those of tracked keys included."""
        return len(self.tail) + len(self.keys)

    @functools.cached_property
    def owners(self) -> Int32Array:
        """The worker of each slot."""
        owners = np.concatenate([self.tail, self.own])
        owners.flags.writeable = False
        return owners

    def name(self, slot: int) -> str:
        """The name of a slot, which is the same in every placement."""
        if not 0 <= slot < self.slots:
            raise SkewlessError(f"there is no slot {slot}; they are 0 to {self.slots - 1}")
        return f"t{slot}" if slot < self.tail_slots else f"k{self.keys[slot - self.tail_slots]}"

    def slot_of(self, hashes: Int64Array) -> Int64Array:
        """The slot of each key, by the hash of the key."""
        hashes = _as_hashes(hashes)
        out = np.empty(len(hashes), np.int64)
        _find_slots(self._index, self.tail_slots, hashes, out)
        return out

    def worker_of(self, hashes: Int64Array) -> Int32Array:
        """The worker of each key, by the hash of the key."""
        workers: Int32Array = self.owners[self.slot_of(hashes)]
        return workers

    def with_version(self, version: int) -> Placement:
        """The same owners under another version."""
        return replace(self, version=version)

    def same_owners(self, other: Placement) -> bool:
        """Whether both give every key to the same slot and worker, whatever their versions."""
        return self._identity == other._identity

    def to_json(self) -> str:
        """The placement as one line of JSON."""
        fields: dict[str, Any] = {"format": FORMAT, "version": self.version, "workers": self.workers}
        fields |= {"tail": self.tail.tolist(), "keys": self.keys.tolist(), "own": self.own.tolist()}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Placement:
        """The placement that `to_json` turned into this text; anything else is refused."""
        remedy = "write placements with Placement.to_json and read them whole"
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise SkewlessError(f"this is no placement, as it is no JSON ({error}); {remedy}") from error
        if not isinstance(fields, dict):
            raise SkewlessError(f"this is no placement: it is a JSON {type(fields).__name__}, not an object; {remedy}")
        missing = [name for name in _FIELDS if name not in fields]
        if missing:
            raise SkewlessError(f"this is no placement: it lacks {', '.join(missing)}; {remedy}")
        if fields["format"] != FORMAT:
            raise SkewlessError(
                f"this placement has format {fields['format']!r}, and this version of skewless reads {FORMAT}; "
                "write and read it with the same version"
            )
        workers, version = (_whole(name, fields[name], _INT32) for name in ("workers", "version"))
        tail, own = (_whole_list(name, fields[name], _INT32) for name in ("tail", "own"))
        return cls(workers, tail, _whole_list("keys", fields["keys"], _INT64), own, version)

    def __eq__(self, other: object) -> bool:
        """Whether both place in the same way under the same version."""
        if not isinstance(other, Placement):
            return NotImplemented
        return self.version == other.version and self.same_owners(other)

    def __hash__(self) -> int:
        """Equal placements have equal hashes."""
        return hash((self.version, self._identity))

    @functools.cached_property
    def _index(self) -> Int64Array:
        return index_of(self.keys)

    @property
    def _identity(self) -> tuple[object, ...]:
        return (self.workers, self.tail.tobytes(), self.keys.tobytes(), self.own.tobytes())


@dataclass(frozen=True)
class Move:
    """A slot whose state has to move to another worker, or a key whose state has to move to another slot.

    Attributes
    ----------
    slot
        The slot's name: "t17", or "k-42" for the key with hash -42.
    source, target
        The worker that has the state, and the worker that gets it. They may be the same for a split or a merge: then
        the state changes its slot on that worker.
    kind
        "move" for a slot that is in both placements; "split" for a key that leaves its tail slot for a slot of its own;
        "merge" for a key that returns to its tail slot.
    """

    slot: str
    source: int
    target: int
    kind: str = "move"


def moves(before: Placement, after: Placement) -> tuple[Move, ...]:
    """All moves from one placement to the next: tail slots first, then keys in rising order.

    >>> before = Placement.of(2, tail=[0, 1], own={4: 0, 9: 1})
    >>> after = Placement.of(3, tail=[0, 2], own={4: 2, 5: 1}, version=1)
    >>> for each in moves(before, after):
    ...     print(each.slot, each.source, "->", each.target, each.kind)
    t1 1 -> 2 move
    k4 0 -> 2 move
    k5 1 -> 1 split
    k9 1 -> 2 merge
    """
    if before.tail_slots != after.tail_slots:
        raise SkewlessError(
            f"the placements have {before.tail_slots} and {after.tail_slots} tail slots, so their keys lie in "
            "different slots; keep the number for as long as there is state"
        )
    found = [
        Move(f"t{slot}", int(before.tail[slot]), int(after.tail[slot]))
        for slot in np.flatnonzero(before.tail != after.tail)
    ]
    keys = np.union1d(before.keys, after.keys)
    was, now = np.isin(keys, before.keys), np.isin(keys, after.keys)
    sources, targets = before.worker_of(keys), after.worker_of(keys)
    for i in np.flatnonzero((was != now) | (sources != targets)):
        kind = "move" if was[i] and now[i] else "split" if now[i] else "merge"
        found.append(Move(f"k{keys[i]}", int(sources[i]), int(targets[i]), kind))
    return tuple(found)


def _as_hashes(hashes: Int64Array) -> Int64Array:
    hashes = np.asarray(hashes)
    if hashes.ndim != 1 or not np.can_cast(hashes.dtype, np.int64):
        raise SkewlessError(
            f"hashes are {hashes.dtype} of shape {hashes.shape}; give one flat array of int64, such as "
            "skewless.core.hashing.xxhash64(column) makes of any column"
        )
    return np.ascontiguousarray(hashes, np.int64)


def _whole(name: str, value: object, limits: np.iinfo[Any]) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not limits.min <= value <= limits.max:
        raise SkewlessError(f"this placement is damaged: {name} has {value!r}, which is no {limits.dtype}")
    return value


def _whole_list(name: str, values: object, limits: np.iinfo[Any]) -> Any:
    if not isinstance(values, list):
        raise SkewlessError(f"this placement is damaged: {name} is a JSON {type(values).__name__}, not a list")
    return np.array([_whole(name, value, limits) for value in values], limits.dtype)


@lean_kernel
def _find_slots(index: Int64Array, tail_slots: int, hashes: Int64Array, out: Int64Array) -> None:
    for i in range(hashes.shape[0]):
        place = place_of(index, hashes[i], xxhash64_long(hashes[i], SEED))
        out[i] = tail_slots + place if place >= 0 else pmod(hashes[i], tail_slots)
