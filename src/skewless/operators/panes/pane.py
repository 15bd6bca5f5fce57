"""A pane of an owner: the partial state of every key that had rows in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.aggregate.kernel import Fields, Kernel, put, take
from skewless.core.arrays import Int64Array


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
