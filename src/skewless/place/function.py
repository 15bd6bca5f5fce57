"""Gedik's partitioning function: an explicit map for the tracked items, a hash for all others."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.home import homes
from skewless.core.ring import Ring
from skewless.place.base import NO_KEYS, NO_OWNERS, Placer


@dataclass(frozen=True, eq=False)
class PartitioningFunction:
    """p = <explicit map, hash>, from any item to one of the channels.

    A `Placement` is the same thing with slots between items and channels, so that a worker can hand over state it was
    never told the keys of. This is the paper's own form, for its experiments.

    Attributes
    ----------
    channels
        Channels there are, numbered from 0.
    items, explicit
        The tracked items, rising, and the channel of each.
    ring
        Where all other items go; None is uniform hashing.

    Examples
    --------
    >>> p = PartitioningFunction(4, np.array([7]), np.array([3], np.int32), Ring(4))
    >>> p(np.array([7])), bool(p(np.array([8]))[0] == Ring(4).route(np.array([8]))[0])
    (array([3], dtype=int32), True)
    """

    channels: int
    items: Int64Array = field(default_factory=lambda: NO_KEYS)
    explicit: Int32Array = field(default_factory=lambda: NO_OWNERS)
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
        """How many items are tracked: the size of the function."""
        return len(self.items)


class Constructor(Placer):
    """A placer that can also construct the paper's own form of a partitioning function."""

    @abstractmethod
    def construct(
        self,
        items: Int64Array,
        frequencies: FloatArray,
        previous: PartitioningFunction | None,
        channels: int,
        domain: int | None = None,
    ) -> PartitioningFunction:
        """A function for so many channels.

        Parameters
        ----------
        items, frequencies
            The frequent items, each with its share of all rows. They may be the whole domain or what a sketch
            remembers of it.
        previous
            The function in use, from which state would have to move.
        channels
            Channels there are to be.
        domain
            The number of all items, if those given are not all.
        """
