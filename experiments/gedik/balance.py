"""How balanced a partitioning function is and what changing it costs: the equations of Gedik's paper.

Items are positions in arrays: `frequencies[d]` is the share of the rows that item d has, `where[d]` the channel it is
on, one of 0 to `channels` - 1. Equations 14 to 17 are in `skewless.place.threshold`, the utilities of section 4.3 in
`skewless.place.penalty`. Equations 7 and 8 ask for a small function that is built fast, and have nothing to compute.

Reference
---------
Gedik. Partitioning functions for stateful data parallelism in stream processing. VLDB Journal 23(4), 2014.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import FloatArray, Int32Array
from skewless.core.errors import SkewlessError
from skewless.place.resources import Resources, Tolerance, beta
from skewless.place.threshold import theta


def loads(letter: str, frequencies: FloatArray, where: Int32Array, channels: int) -> FloatArray:
    """Equations 1, 3 and 5: the load of each channel under a resource function.

    >>> loads("Q", np.array([5.0, 3, 2, 1, 4, 3, 3, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int32), 2)
    array([39., 35.])
    """
    if len(where) and not 0 <= where.min() <= where.max() < channels:
        raise SkewlessError(f"channels run from 0 to {channels - 1}, but items lie on {where.min()} to {where.max()}")
    load: FloatArray = np.bincount(where, beta(letter, frequencies), channels).astype(np.float64)
    return load


def ratio(load: FloatArray) -> float:
    """Equations 2, 4 and 6, r: the largest load over the smallest, infinite where a channel has nothing to do.

    >>> ratio(np.array([8.0, 7.0, 7.0]))
    1.1428571428571428
    """
    return float(load.max() / load.min()) if load.min() > 0 else float("inf")


def migrated(state: FloatArray, before: Int32Array, after: Int32Array) -> float:
    """Equation 9, M: the state of the items that change channels.

    >>> migrated(np.array([4.0, 3.0, 1.0]), np.array([0, 0, 1]), np.array([2, 0, 1]))
    4.0
    """
    return float(state[before != after].sum())


def ideal_migration(state: FloatArray, channels: int) -> float:
    """Equation 10: an even share of the state, which is what a new channel needs."""
    return float(state.sum()) / channels


def imbalances(
    resources: Resources, alpha: Tolerance, frequencies: FloatArray, where: Int32Array, channels: int
) -> tuple[float, float, float]:
    """Equation 11's b_k: the imbalance r of each resource, relative to the imbalance that is tolerated."""
    s, c, n = (
        ratio(loads(letter, frequencies, where, channels)) / tolerated
        for letter, tolerated in zip(resources.letters, alpha, strict=True)
    )
    return s, c, n


def relative_imbalance(
    resources: Resources, alpha: Tolerance, frequencies: FloatArray, where: Int32Array, channels: int
) -> float:
    """Equation 11, b: the geometric mean of the three b_k; up to 1, the balance is as required.

    >>> where = np.array([0, 0, 1, 1], np.int32)
    >>> round(relative_imbalance(Resources("LLL"), Tolerance.of(1.2), np.array([0.3, 0.3, 0.2, 0.2]), where, 2), 9)
    1.25
    """
    s, c, n = imbalances(resources, alpha, frequencies, where, channels)
    return float((s * c * n) ** (1 / 3))


def relative_migration(
    resources: Resources, frequencies: FloatArray, before: Int32Array, after: Int32Array, channels: int
) -> float:
    """Equation 12, m: the state that moves, relative to the ideal; `channels` is their number after the change.

    >>> f, before, after = np.full(8, 1 / 8), np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([2, 2, 0, 0, 1, 1, 1, 1])
    >>> round(relative_migration(Resources("LCL"), f, before, after, 3), 9)
    0.75
    """
    state = beta(resources.state, frequencies)
    return migrated(state, before, after) / ideal_migration(state, channels)


def objective(imbalance: float, migration: float) -> float:
    """Equation 13: imbalance and migration in one number, b (1 + m).

    >>> objective(1.2, 0.5)
    1.7999999999999998
    """
    return imbalance * (1 + migration)


def migration_penalty(
    state: FloatArray,
    before: Int32Array,
    after: Int32Array,
    channels: int,
    dropped: FloatArray,
    dropped_before: Int32Array,
    dropped_after: Int32Array,
    unplaced: float = 0.0,
) -> float:
    """Equation 18, gamma: what moved so far, relative to the ideal for all items tracked before or from now on.

    `state`, `before` and `after` describe the items in the explicit map, `dropped...` the items that are no longer
    tracked, and `unplaced` is the state of the items that are yet to be placed.
    """
    moved = migrated(dropped, dropped_before, dropped_after) + migrated(state, before, after)
    return moved * channels / float(state.sum() + dropped.sum() + unplaced)


def spread(load: FloatArray, alpha: float) -> float:
    """Equation 19, rho_k: the largest load less the smallest, relative to the difference that is allowed.

    >>> round(spread(np.array([3.0, 2.0]), 1.2), 3)  # theta is 1/11
    4.4
    """
    return float((load.max() - load.min()) / (theta(alpha, len(load)) * load.mean()))


def balance_penalty(
    resources: Resources, alpha: Tolerance, frequencies: FloatArray, where: Int32Array, channels: int
) -> float:
    """Equation 20, rho: the geometric mean of rho_k over the resources that are not constant (section 4.4)."""
    spreads = [
        spread(loads(letter, frequencies, where, channels), tolerated)
        for letter, tolerated in zip(resources.letters, alpha, strict=True)
        if letter != "C"
    ]
    return float(np.prod(spreads) ** (1 / len(spreads))) if spreads else 0.0
