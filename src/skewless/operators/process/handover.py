"""Hand-over: a worker leaves copies of the state that another one gets, and takes what others left for it.

A placement that moves slots comes into force in two steps, with the end of a micro-batch as the barrier between them.
While it is announced, the old owner goes on, and after the micro-batch leaves a copy of what it is to give in the
stream's folder. The next micro-batch goes by the new placement: rows go to the new owner, which starts with the copy,
and the old one drops what it gave. No row waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.control.placements import Placements
from skewless.control.version import Version
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.tables import joined
from skewless.core.turn import Turn
from skewless.operators.process.entries import HASH, Layout, newest
from skewless.operators.process.slots import SlotStore
from skewless.place.placement import Placement, moves


@dataclass(frozen=True)
class Handover:
    """What a worker gives and takes in a micro-batch.

    Parameters
    ----------
    placements
        The stream's folder.
    turn
        Whose turn it is.
    layout, slots
        The worker's slots, and the columns of their entries.
    """

    placements: Placements
    turn: Turn
    layout: Layout
    slots: SlotStore

    def give(self, version: Version, changes: Sequence[pa.RecordBatch] | None) -> None:
        """Leave a copy of what is another worker's in the announced placement; take it back if that is withdrawn.

        Parameters
        ----------
        version
            What the micro-batch goes by.
        changes
            The entries that changed since a copy was left; None if there is no copy yet.
        """
        if version.withdrawn:
            self.placements.take_back(version.announced, self.turn)
            return
        now, then = (self.placements.placement(number, self.turn) for number in (version.force, version.announced))
        gives = [move.slot for move in moves(now, then) if move.source == self.turn.worker != move.target]
        if not gives:
            return
        affected = changed(now, then)
        held = [self.slots.whole(name) for name in self.slots.names if name in affected] if changes is None else changes
        parts = [_where(part, then.worker_of(_hashes(part)) != self.turn.worker) for part in held]
        entries = joined(parts) if parts else self.layout.empty()
        self.placements.give(then, self.turn, gives, entries, whole=changes is None)

    def take(self, before: Placement, now: Placement, *, carried: bool) -> None:
        """Drop what was given, take what was got, and let keys change slots that do.

        Parameters
        ----------
        before, now
            The placements.
        carried
            Whether copies were left in the last micro-batch, as this worker was told in it: or they are too old.
        """
        held = changed(before, now) & set(self.slots.names)
        parts = [self.slots.whole(name) for name in held]
        sources: dict[int, list[str]] = {}
        for move in moves(before, now):
            if move.target == self.turn.worker != move.source:
                sources.setdefault(move.source, []).append(move.slot)
        if sources and not carried:
            raise SkewlessError(
                f"the folder {self.placements.uri} is at placement {now.version}, for which no state was left in the "
                "last micro-batch of the checkpoint; restore both from the same time"
            )
        for source, names in sources.items():
            parts += self.placements.take(now, self.turn, source, names, self.layout.schema)
        if not parts:
            return
        for name in held:
            self.slots.replace(name, self.layout.empty())
        entries = joined(parts)
        entries = _where(entries, now.worker_of(_hashes(entries)) == self.turn.worker)
        slots = now.slot_of(_hashes(entries))
        for slot in np.unique(slots):
            name, part = now.name(int(slot)), _where(entries, slots == slot)
            self.slots.replace(name, newest([self.layout.empty(), part], self.layout))


def changed(before: Placement, after: Placement) -> set[str]:
    """The names of the slots, of either placement, that keys leave or come to."""
    found = set()
    for move in moves(before, after):
        found.add(move.slot)
        if move.kind != "move":  # the key also leaves, or comes to, its tail slot
            found.add(f"t{int(move.slot[1:]) % before.tail_slots}")
    return found


def _where(entries: pa.RecordBatch, mask: BoolArray) -> pa.RecordBatch:
    """The entries for which it is true; copied only if some are not."""
    return entries if mask.all() else entries.filter(pa.array(mask))


def _hashes(entries: pa.RecordBatch) -> Int64Array:
    return np.asarray(entries.column(HASH))
