"""The batch size of a stream of which nothing is known yet."""

from __future__ import annotations

from skewless.chop.cost import BatchModel, Costs
from skewless.chop.tuner import choose
from skewless.core.windows import Windows

COSTS = Costs(update=3e-9, open_close=60e-6, other=300e-9)
"""About those of a median over pandas frames, on one core."""
RATE = 100_000.0  # rows a second
_PERIOD = 10.0


def first_batch(windows: Windows, workers: int, latency: float | None = None) -> int:
    """The size that the tuner would choose for a stream of some rate, and a function that costs about what most do.

    Parameters
    ----------
    windows
        Size and slide: of rows, or of microseconds.
    workers
        That share the windows.
    latency
        Seconds for which a window may wait for its result. If not given, as long as the window is, or a second for
        windows of rows.

    Examples
    --------
    >>> first_batch(Windows.of("60 seconds", "1 second"), workers=4)
    54
    >>> first_batch(Windows.of("60 seconds", "1 second"), workers=4, latency=10)
    8
    """
    rows = 1.0 if windows.rows else RATE / 1e6
    size, slide = windows.size * rows, windows.slide * rows
    wait = latency or (1.0 if windows.rows else size / RATE)
    return choose(BatchModel(size, slide, RATE, workers, COSTS), wait, _PERIOD).batch
