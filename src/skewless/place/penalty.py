"""The penalties of a partial map, kept up to date as items come and go, for use inside the construction kernels.

Loads have a row for each resource and a column for each channel. A change affects at most two channels, so the three
largest and the three smallest loads of each resource give the new largest and smallest in constant time.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int, Int64Array
from skewless.core.kernel import inner

UTILITIES = ("A", "APM", "APLM", "ATM", "ATLM")
RANKS = 3  # extremes kept: two may belong to the channels that change
NOBODY = -1


@inner
def rank(loads: FloatArray, highest: Int64Array, lowest: Int64Array) -> None:
    """Find the channels of the largest and smallest loads of each resource; NOBODY if there are fewer channels."""
    for k in range(loads.shape[0]):
        for r in range(RANKS):
            highest[k, r] = NOBODY
            lowest[k, r] = NOBODY
        for channel in range(loads.shape[1]):
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
def rho(
    loads: FloatArray,
    highest: Int64Array,
    lowest: Int64Array,
    allowed: FloatArray,
    exponents: FloatArray,
    weights: FloatArray,
    giver: Int,
    taker: Int,
    item: Int,
    other: Int,
) -> Float:
    """The balance penalty (eq. 20) after `item` has moved to `taker` and, in exchange, `other` (if any) to `giver`.

    Without a giver the item is a new one. `allowed` is the difference of loads allowed (the denominator of eq. 19).
    """
    product = 1.0
    for k in range(loads.shape[0]):
        change = weights[k, item]
        if other != NOBODY:
            change -= weights[k, other]
        high = loads[k, taker] + change
        low = high
        if giver != NOBODY:
            left = loads[k, giver] - change
            high = max(high, left)
            low = min(low, left)
        for r in range(RANKS):
            channel = highest[k, r]
            if channel != NOBODY and channel != giver and channel != taker:
                high = max(high, loads[k, channel])
                break
        for r in range(RANKS):
            channel = lowest[k, r]
            if channel != NOBODY and channel != giver and channel != taker:
                low = min(low, loads[k, channel])
                break
        part = (high - low) / allowed[k]
        product *= part if exponents[k] == 1.0 else part ** exponents[k]
    return product


@inner
def rho_now(
    loads: FloatArray, highest: Int64Array, lowest: Int64Array, allowed: FloatArray, exponents: FloatArray
) -> Float:
    """The balance penalty of the loads as they are."""
    product = 1.0
    for k in range(loads.shape[0]):
        part = (loads[k, highest[k, 0]] - loads[k, lowest[k, 0]]) / allowed[k]
        product *= part if exponents[k] == 1.0 else part ** exponents[k]
    return product


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
