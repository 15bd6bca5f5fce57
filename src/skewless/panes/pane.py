"""A pane of an owner: the partial state of every key that had rows in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel, put, take
from skewless.arrays import Int64Array
from skewless.panes import blob


@dataclass
class Pane:
    """Slots (the owner's numbers for keys), ascending, and for each kernel the states of these slots.

    `after` is there once the pane is in the front of two stacks: the joined states of the slots in the panes behind
    this one, up to where the stacks were turned; None for a kernel that subtracts.
    """

    slots: Int64Array
    states: list[Fields]
    after: list[Fields | None] | None = None

    def merged(self, other: Pane, kernels: Sequence[Kernel]) -> Pane:
        """Both, as one pane that has not been turned."""
        slots = np.union1d(self.slots, other.slots)
        states = []
        for kernel, mine, others in zip(kernels, self.states, other.states, strict=True):
            fields = kernel.empty(len(slots))
            put(fields, np.searchsorted(slots, self.slots), mine)
            at = np.searchsorted(slots, other.slots)
            put(fields, at, kernel.join(take(fields, at), others))
            states.append(fields)
        return Pane(slots, states)

    def only(self, slots: Int64Array) -> Pane:
        """The part of these slots, which must be ascending."""
        mine = np.isin(self.slots, slots, assume_unique=True)
        return Pane(self.slots[mine], [take(fields, mine) for fields in self.states])

    def dump(self, kernels: Sequence[Kernel]) -> bytes:
        """As bytes for the store."""
        columns = [pa.array(self.slots, type=pa.int32())]
        for kernel, fields in zip(kernels, self.states, strict=True):
            columns += kernel.dump(fields)
        for kernel, later in zip(kernels, self.after or [], strict=bool(self.after)):
            columns += kernel.dump(later) if later is not None else []
        return blob.dump(columns)

    @classmethod
    def load(cls, data: bytes, kernels: Sequence[Kernel]) -> Pane:
        """From the bytes of `dump`."""
        columns = blob.load(data).columns
        slots = np.asarray(columns[0]).astype(np.int64)
        at = 1
        states: list[Fields] = []
        for kernel in kernels:
            states.append(kernel.load(columns[at : at + len(kernel.types)]))
            at += len(kernel.types)
        if at == len(columns):
            return cls(slots, states)
        after: list[Fields | None] = []
        for kernel in kernels:
            if kernel.inverts:
                after.append(None)
            else:
                after.append(kernel.load(columns[at : at + len(kernel.types)]))
                at += len(kernel.types)
        return cls(slots, states, after)
