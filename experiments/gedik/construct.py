"""Constructs a partitioning function by the algorithm of a placer."""

from __future__ import annotations

import numpy as np

from experiments.gedik.function import PartitioningFunction
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.ring import Ring
from skewless.place import Consistent, Placer, Uniform
from skewless.place.penalty import NOBODY
from skewless.place.tracking import Problem, TrackingPlacer, frequency_of


def construct(
    placer: Placer,
    items: Int64Array,
    frequencies: FloatArray,
    previous: PartitioningFunction | None,
    channels: int,
    domain: int | None = None,
    error: float = 0.0,
    ring: Ring | None = None,
    weight: float = 1.0,
) -> PartitioningFunction:
    """A function for this many channels.

    Parameters
    ----------
    placer
        The algorithm. Under `Uniform` and `Consistent`, no item is tracked, and the function is a hash alone; under
        `Scan`, `Redist` and `Readj`, the frequent items are tracked, and the others are on the ring.
    items, frequencies
        The frequent items, each with its share of all rows. They may be the whole domain or what a sketch remembers of
        it.
    previous
        The function in use, from which state would have to move.
    channels
        The number of channels from now on.
    domain
        The number of all items, if those given are not all.
    error
        How much too low a frequency may be, where a sketch counted. An item that may pass the threshold is tracked.
    ring
        The ring, if it was built before.
    weight
        How much migration counts in the utility, in times of what it counts in the paper.

    Examples
    --------
    >>> from skewless.place import Scan
    >>> items, frequencies = np.array([11, 12, 13, 14]), np.array([0.4, 0.3, 0.2, 0.1])
    >>> construct(Scan(), items, frequencies, None, channels=2)(items)
    array([0, 1, 1, 0], dtype=int32)
    """
    if isinstance(placer, Uniform):
        return PartitioningFunction(channels)
    if not isinstance(placer, Consistent):
        raise ValueError(f"{placer.name} moves slots, so it constructs no function; give a placer of Gedik's paper")
    ring = ring or Ring(channels, placer.replicas)
    if not isinstance(placer, TrackingPlacer):
        return PartitioningFunction(channels, ring=ring)
    chosen = np.flatnonzero(placer.tracked(frequencies + error, channels, domain or len(items)))
    chosen = chosen[np.argsort(items[chosen])]
    mine = items[chosen]
    dropped = None
    before = np.full(len(mine), NOBODY, np.int32)
    if previous is not None:
        before = previous(mine)
        gone = ~np.isin(previous.items, mine)
        lost = previous.items[gone]
        dropped = (frequency_of(lost, items, frequencies), previous.explicit[gone], ring.route(lost))
    problem = Problem.of(
        placer.resources, placer.alpha, channels, frequencies[chosen], before, ring.route(mine), dropped
    )
    # The migration penalty is in times of the ideal, so an ideal that is larger makes it lighter.
    weighed = problem._replace(ideal=problem.ideal / weight)
    return PartitioningFunction(channels, mine, placer.assign(weighed), ring)
