"""The penalties of a partial map, kept up to date as items come and go, for use inside the construction kernels.

Loads have a row for each resource and a column for each channel. A change affects at most two channels, so the three
largest and the three smallest loads of each resource give the new largest and smallest in constant time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int, Int64Array
from skewless.core.kernel import inner

UTILITIES = ("A", "APM", "APLM", "ATM", "ATLM")
RANKS = 3  # extremes kept: two may belong to the channels that change
NOBODY = -1


class Balance(NamedTuple):
    """The loads of a partial map, and the arrays that their penalty depends on, to be handed to kernels."""

    loads: FloatArray  # resource x channel
    weights: FloatArray  # resource x item
    exponents: FloatArray  # per resource: its part in the geometric mean of equation 20
    allowed: FloatArray  # per resource: the difference of loads allowed, the denominator of equation 19
    totals: FloatArray  # per resource, as the last `rank` found them
    highest: Int64Array  # resource x rank: channels of the largest loads, likewise
    lowest: Int64Array


@inner
def rank(balance: Balance) -> None:
    """Find the total of each resource, and the channels of its extreme loads; NOBODY if there are fewer channels."""
    loads, highest, lowest = balance.loads, balance.highest, balance.lowest
    for k in range(loads.shape[0]):
        balance.totals[k] = 0.0
        for r in range(RANKS):
            highest[k, r] = NOBODY
            lowest[k, r] = NOBODY
        for channel in range(loads.shape[1]):
            balance.totals[k] += loads[k, channel]
            up = channel
            down = channel
            for r in range(RANKS):
                held = highest[k, r]
                if up != NOBODY and (held == NOBODY or loads[k, up] > loads[k, held]):
                    highest[k, r] = up
                    up = held
                held = lowest[k, r]
                if down != NOBODY and (held == NOBODY or loads[k, down] < loads[k, held]):
                    lowest[k, r] = down
                    down = held


@inner
def rho(balance: Balance, giver: Int, taker: Int, item: Int, other: Int) -> Float:
    """The balance penalty (eq. 20) after `item` has moved to `taker` and, in exchange, `other` (if any) to `giver`.

    Without a giver the item is a new one.
    """
    loads = balance.loads
    product = 1.0
    for k in range(loads.shape[0]):
        change = balance.weights[k, item]
        if other != NOBODY:
            change -= balance.weights[k, other]
        high = loads[k, taker] + change
        low = high
        if giver != NOBODY:
            left = loads[k, giver] - change
            high = max(high, left)
            low = min(low, left)
        for r in range(RANKS):
            channel = balance.highest[k, r]
            if channel != NOBODY and channel != giver and channel != taker:
                high = max(high, loads[k, channel])
                break
        for r in range(RANKS):
            channel = balance.lowest[k, r]
            if channel != NOBODY and channel != giver and channel != taker:
                low = min(low, loads[k, channel])
                break
        product *= _part(balance, k, high, low)
    return product


@inner
def rho_now(balance: Balance) -> Float:
    """The balance penalty of the loads as they are."""
    loads = balance.loads
    product = 1.0
    for k in range(loads.shape[0]):
        product *= _part(balance, k, loads[k, balance.highest[k, 0]], loads[k, balance.lowest[k, 0]])
    return product


@inner
def _part(balance: Balance, k: Int, high: Float, low: Float) -> Float:
    """The part of resource `k` in the penalty, if these are its largest and smallest loads."""
    part = (high - low) / balance.allowed[k]
    return part if balance.exponents[k] == 1.0 else part ** balance.exponents[k]


@inner
def utility(code: Int, rho: Float, gamma: Float) -> Float:
    """The utility with this index in `UTILITIES`; lower is better."""
    if code == 0:
        return rho
    if code == 1:
        return rho + gamma
    if code == 2:
        return rho + np.log1p(gamma)
    if code == 3:
        return rho * (1.0 + gamma)
    return rho * (1.0 + np.log1p(gamma))
