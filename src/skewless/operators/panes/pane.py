"""A pane of a worker: the partial state of every key that had rows in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.aggregate.kernel import Fields, Kernel, put, take
from skewless.core.arrays import Int64Array


@dataclass
class Pane:
    """The numbers of keys, ascending, and for each kernel the states of these keys.

    `after` is there once the pane is in the front of two stacks: the joined states of the keys in the panes behind
    this one, up to where the stacks were turned; None for a kernel that subtracts.
    """

    keys: Int64Array
    states: list[Fields]
    after: list[Fields | None] | None = None

    def merged(self, other: Pane, kernels: Sequence[Kernel]) -> Pane:
        """Both, as one pane that has not been turned."""
        keys = np.union1d(self.keys, other.keys)
        states = []
        for kernel, mine, others in zip(kernels, self.states, other.states, strict=True):
            fields = kernel.empty(len(keys))
            put(fields, np.searchsorted(keys, self.keys), mine)
            at = np.searchsorted(keys, other.keys)
            put(fields, at, kernel.join(take(fields, at), others))
            states.append(fields)
        return Pane(keys, states)

    def only(self, keys: Int64Array) -> Pane:
        """The part of these keys, whose numbers must be ascending."""
        mine = np.isin(self.keys, keys, assume_unique=True)
        return Pane(self.keys[mine], [take(fields, mine) for fields in self.states])
