"""Gedik's partitioning function: an explicit map for the tracked items, a hash for all others."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.home import homes
from skewless.core.ring import Ring


@dataclass(frozen=True, eq=False)
class PartitioningFunction:
    """p = <explicit map, hash>, from any item to one of the channels.

    A `Placement` is the same thing with slots between items and channels, so that a worker can hand over state without
    knowing the keys in it. This is the paper's own form, for its experiments.

    Attributes
    ----------
    channels
        The number of channels, which are numbered from 0.
    items, explicit
        The tracked items in rising order, and the channel of each.
    ring
        The ring that places all other items; None means uniform hashing.

    Examples
    --------
    >>> p = PartitioningFunction(4, np.array([7]), np.array([3], np.int32), Ring(4))
    >>> p(np.array([7])), bool(p(np.array([8]))[0] == Ring(4).route(np.array([8]))[0])
    (array([3], dtype=int32), True)
    """

    channels: int
    items: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    explicit: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    ring: Ring | None = None

    def __call__(self, items: Int64Array) -> Int32Array:
        """The channel of each item (Algorithm 1)."""
        where = self.untracked(items)
        at = np.searchsorted(self.items, items)
        known = at < len(self.items)
        known[known] = self.items[at[known]] == items[known]
        where[known] = self.explicit[at[known]]
        return where

    def untracked(self, items: Int64Array) -> Int32Array:
        """The channel that the hash gives each item."""
        return homes(items, self.channels) if self.ring is None else self.ring.route(items)

    def __len__(self) -> int:
        """The number of tracked items, which is the size of the function."""
        return len(self.items)
