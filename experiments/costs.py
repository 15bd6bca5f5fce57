"""What the work of a cluster costs in all simulated figures: chosen once, not measured.

Nobody has published these costs, and they differ between engines. They were chosen before any figure was made, so that
three things that the papers say are true. A word count over windows of 60 s by 1 s with 64 threads reaches its peak
below 40,000 tuples a second (Dalton, 5.3): 56 combiners at 200 us for parsing a tuple and 20 us for each of the 60
windows that it belongs to sustain 40,000. With windows of 60 s by 20 s, one partitioner is a bottleneck and two are not
(5.4): at 6 us a tuple, one sustains 167,000 tuples a second, while the combiners sustain 215,000. And a partial result
costs more than a tuple of a window, because it crosses the network and is merged into state: 5 times as much.

Only the ratios matter for who wins. Figures with a factor show it with half and twice the cost of all that follows the
combining of tuples.
"""

from __future__ import annotations

from dataclasses import replace

from skewless.simulate import Costs

PARSE = 200e-6
"""Seconds for a tuple, whatever the number of windows it belongs to."""

WORK = Costs(route=6e-6, tuple=20e-6, emit=20e-6, partial=100e-6, key=20e-6)
"""Seconds for everything else; `tuple` is for each window that it belongs to."""

CHOSEN = "chosen, not measured: 200 us a tuple and 20 us for each window it is in, 20 us to emit a partial result, "
CHOSEN += "100 us to merge it, 20 us a key, 6 us to route"
MULTIPLES = (0.5, 1.0, 2.0)


def work(windows: int, fraction: float = 1.0, merging: float = 1.0) -> Costs:
    """The costs where a tuple belongs to so many windows.

    Parameters
    ----------
    windows
        Windows of a tuple; 1 for micro-batches, which are combined as they are.
    fraction
        The part of the keys and of the rate that is simulated: each tuple and key takes that much longer, so that the
        servers are as busy as with all of them.
    merging
        A multiple of the costs of partial results and keys.

    Examples
    --------
    >>> round(work(windows=60).tuple * 1e6), round(work(windows=60, fraction=0.25).tuple * 1e6)
    (1400, 5600)
    >>> round(work(windows=1, merging=2).partial * 1e6)
    200
    """
    return replace(
        WORK,
        route=WORK.route / fraction,
        tuple=(PARSE + windows * WORK.tuple) / fraction,
        emit=merging * WORK.emit / fraction,
        partial=merging * WORK.partial / fraction,
        key=merging * WORK.key / fraction,
    )
