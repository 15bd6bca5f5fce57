"""The highest rate that a cluster sustains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.simulate.result import Run

MOST_RUNS = 40


@dataclass(frozen=True, eq=False)
class Sustained:
    """The highest rate found at which no queue grows, and the run at that rate."""

    rate: float
    run: Run


def sustainable(run_at: Callable[[float], Run], start: float, since: float = 0.0, tolerance: float = 0.01) -> Sustained:
    """Search for the highest rate at which no server gets more work than it can do.

    A rate is tried, and the next one is where the demand would be 1 if it went on as between the two nearest to it:
    work for tuples grows with the rate, and work for keys hardly does.

    Parameters
    ----------
    run_at
        Runs the cluster at a rate, from the beginning.
    start
        The rate that is tried first.
    since
        Seconds at the beginning of a run that do not count, in which windows fill and splitters learn.
    tolerance
        How close the rate has to be, as a share of it.

    Examples
    --------
    >>> from skewless import split
    >>> from skewless.core.windows import Windows
    >>> from skewless.simulate import Cluster, Costs, Source, run
    >>> from skewless.workload import Zipf
    >>> cluster = Cluster(4, windows=Windows.of("2 seconds", "1 second"), costs=Costs(tuple=1e-3, partial=0.0))
    >>> found = sustainable(
    ...     lambda rate: run(cluster, Source(Zipf(0.5), rate), split.Shuffle(4), seconds=4), start=1000
    ... )
    >>> 3950 < found.rate <= 4000
    True
    """
    if not start > 0:
        raise SkewlessError(f"the first rate is {start}; give a number of tuples a second above 0")
    if not 0 < tolerance < 1:
        raise SkewlessError(f"the tolerance is {tolerance}; give a share of the rate between 0 and 1, such as 0.01")
    rate, low, high = float(start), None, None
    best: Sustained | None = None
    for _ in range(MOST_RUNS):
        found = run_at(rate)
        demand = found.demand(since)
        if demand <= 1:
            low, best = (rate, demand), Sustained(rate, found)
        else:
            high = (rate, demand)
        if best is not None and (demand == 0 or (low and high and high[0] <= (1 + tolerance) * low[0])):
            return best
        if best is not None and low is not None and low[1] > 1 - tolerance / 4:
            return best
        rate = _next(low, high, tolerance)
    raise SkewlessError(
        f"no rate was found in {MOST_RUNS} runs, the last at {rate:g} tuples a second; if work that does not depend on "
        "the rate takes all the time, give more servers"
    )


def _next(low: tuple[float, float] | None, high: tuple[float, float] | None, tolerance: float) -> float:
    """The rate to try next, from the rate and demand of the nearest runs on either side."""
    if low is None or high is None:
        near = low or high
        assert near is not None  # there was a run
        rate, demand = near
        return rate * float(np.clip((1 - tolerance / 8) / demand, 0.05, 20.0))
    slope = np.log(high[1] / low[1]) / np.log(high[0] / low[0])
    guess = low[0] * float(np.exp(-np.log(low[1]) / slope)) if slope > 0 and low[1] > 0 else 0.0
    # A demand that jumps would leave one side far away: not nearer than a tenth of what is left.
    margin = (high[0] / low[0]) ** 0.1
    return float(np.clip(guess * (1 - tolerance / 8), low[0] * margin, high[0] / margin))
