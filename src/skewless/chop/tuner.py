"""The batch size of a running stream: as large as the latency bound allows, but no larger than is useful."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewless.chop.cost import BatchModel, Costs
from skewless.chop.estimate import CostEstimator
from skewless.core.arguments import check_whole
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows

MOST = 1000  # windows in a batch, at most
NEARLY = 0.02  # a throughput this close to the best is good enough, and a smaller batch is done sooner
USUAL = Costs(update=3e-9, open_close=60e-6, other=300e-9)
"""About the costs of a median over pandas frames, on one core."""
RATE = 100_000.0  # rows a second
_PERIOD = 10.0  # seconds
_NEWEST = 9  # so many micro-batches say how many windows end together: their median, as there may be gaps in time


@dataclass(frozen=True)
class Choice:
    """A batch size, and whether it keeps the latency bound."""

    batch: int
    kept: bool


def choose(model: BatchModel, latency: float, period: float, most: int = MOST) -> Choice:
    """The batch size that a stream should use for the next `period` seconds.

    Among the sizes that keep every result within `latency` seconds, it is the smallest one that reaches nearly the
    highest rate. If the stream is too fast for all of them, it is, among the sizes that would keep the bound without a
    backlog, the one under which the backlog grows least: the paper's minimum of f(B). If there is no such size either,
    it is the one that exceeds the bound by the least.

    Examples
    --------
    >>> from dataclasses import replace
    >>> model = BatchModel(100, 1, rate=5000, workers=4, costs=Costs(1.77e-6, 0, 23.2e-6))
    >>> choose(model, latency=0.5, period=10)
    Choice(batch=358, kept=True)
    >>> choose(replace(model, rate=50_000), latency=0.1, period=10)  # more than four workers can do
    Choice(batch=348, kept=False)
    """
    if not latency > 0 or not period > 0:
        raise SkewlessError(f"latency {latency} and period {period}; give seconds above 0")
    if most < 1:
        raise SkewlessError(f"a batch holds at least 1 window, not {most}")
    batches = np.arange(1, most + 1)
    worst = model.latency(batches, period)
    kept = worst <= latency
    if kept.any():
        throughput = model.throughput(batches)
        good = kept & (throughput >= (1 - NEARLY) * throughput[kept].max())
        return Choice(int(batches[good][0]), kept=True)
    idle = model.waiting(batches) + model.running(batches)
    possible = idle <= latency
    if possible.any():
        return Choice(int(batches[possible][model.excess(batches[possible]).argmin()]), kept=False)
    return Choice(int(batches[worst.argmin()]), kept=False)


class Tuner:
    """Chooses the batch size of a stream again in every period, from costs that it measures.

    It starts with batches of one window. While only one size was measured, the cost of other sizes is unknown, so the
    next period tries another one: half the size, or two windows after one. If a worker gets a row once, small batches
    all look alike, because every worker has every row; then it tries larger ones. Tumbling windows stay in batches of
    one, because larger batches gain nothing.

    Parameters
    ----------
    size, slide
        The size and slide of a window, in rows or in units of time.
    workers
        Workers that share the batches.
    latency
        Seconds within which a window's result is wanted, the paper's L_max.
    unit
        Seconds in a unit of time, such as 1e-6 where size and slide are microseconds. None where they are rows.
    period
        Seconds between choices, the paper's T.
    headroom
        Share of a worker's time that is kept free for other things, the paper's H.
    most
        The most windows in a batch.
    memory
        How fast old measurements fade: see `CostEstimator`.
    once
        Whether a worker gets a row once, however many of its batches contain it.

    Examples
    --------
    >>> truth = Costs(1.77e-6, 0, 23.2e-6)
    >>> tuner = Tuner(100, 1, workers=4, latency=0.5, period=1)
    >>> for second in range(5):
    ...     batch = tuner.tune(now=second, arrived=5000 * second)
    ...     rows, updates = 100 + batch - 1, 100 * batch
    ...     tuner.add(updates, batch, rows, truth.of(updates, batch, rows))
    ...     print(batch, end=" ")
    1 2 358 358 358
    """

    def __init__(
        self,
        size: int,
        slide: int,
        workers: int,
        latency: float,
        *,
        unit: float | None = None,
        period: float = 10.0,
        headroom: float = 0.1,
        most: int = MOST,
        memory: float = 0.98,
        once: bool = False,
    ) -> None:
        if not 0 < slide <= size:
            raise SkewlessError(f"size {size} and slide {slide}; give a slide from 1 to the size")
        check_whole("workers", workers)
        check_whole("most", most)
        if unit is not None and not unit > 0:
            raise SkewlessError(f"a unit of {unit} seconds; give a number above 0, or None where windows count rows")
        if not latency > 0 or not period > 0:
            raise SkewlessError(f"latency {latency} and period {period}; give seconds above 0")
        if not 0 <= headroom < 1:
            raise SkewlessError(f"headroom is {headroom}; give a share of a worker's time from 0 to below 1")
        self.size = size
        self.slide = slide
        self.workers = workers
        self.latency = latency
        self.unit = unit
        self.period = period
        self.headroom = headroom
        self.most = most
        self.once = once
        self.estimator = CostEstimator(memory)
        self.together = math.inf
        self.starts: tuple[float, ...] = ()
        self._ended: deque[tuple[int, FloatArray]] = deque(maxlen=_NEWEST)
        self.batch = 1
        self.model: BatchModel | None = None
        self._tuned: tuple[float, float] | None = None

    def add(self, updates: float, windows: float, rows: float, seconds: float) -> None:
        """Add the measurement of a batch: what it did, and how long that took."""
        self.estimator.add(updates, windows, rows, seconds)

    def ended(self, windows: int, starts: Sequence[float]) -> None:
        """Add how many windows of a key ended together, and the work of the keys whose turns start at each worker.

        Without it, windows are taken to end one by one.
        """
        if windows < 1 or not np.sum(starts) > 0:
            return
        self._ended.append((windows, np.asarray(starts, np.float64)))
        self.together = float(np.median([many for many, _starts in self._ended]))
        self.starts = tuple(np.sum([each for _many, each in self._ended], axis=0).tolist())

    def tune(self, now: float, arrived: float, density: float | None = None) -> int:
        """The batch size from now on. It may be called at any time, and changes the size at most once in a period.

        Parameters
        ----------
        now
            The time in seconds.
        arrived
            Rows that have come since the start.
        density
            Rows in a unit of the windows' time, if known. It is more exact than the rate: in a stream that is catching
            up, the windows' time runs faster than the clock.
        """
        if self._tuned is None:
            self._tuned = now, arrived
        then, before = self._tuned
        if now - then < self.period or arrived <= before:
            return self.batch
        self._tuned = now, arrived
        self.model = self._model((arrived - before) / (now - then), density)
        if self.estimator.resolved:
            self.batch = choose(self.model, self.latency, self.period, self.most).batch
        elif self.size > self.slide:
            half, alike = self.batch // 2, self._alike()
            self.batch = half if half > alike else min(2 * alike + 2, self.most)
        return self.batch

    def _alike(self) -> int:
        """Up to which size all batches look alike: none do, except where every worker gets every row once."""
        if not self.once or self.workers == 1:
            return 0
        return int((self.size - self.slide) / ((self.workers - 1) * self.slide))

    def _model(self, rate: float, density: float | None) -> BatchModel:
        rows = density or (1.0 if self.unit is None else self.unit * rate)
        costs = self.estimator.costs
        size, slide = self.size * rows, self.slide * rows
        return BatchModel(size, slide, rate, self.workers, costs, self.headroom, self.together, self.starts, self.once)


def first_batch(windows: Windows, workers: int, latency: float | None = None) -> int:
    """The size that the tuner would choose for a stream of a typical rate and a function of a typical cost.

    Parameters
    ----------
    windows
        The windows, with size and slide in rows or in microseconds.
    workers
        The workers that share the windows.
    latency
        Seconds that a window may wait for its result. If not given: the length of the window, or one second for windows
        of rows.

    Examples
    --------
    >>> first_batch(Windows.of("60 seconds", "1 second"), workers=16)
    54
    >>> first_batch(Windows.of("60 seconds", "1 second"), workers=16, latency=10)
    8

    Two workers need all rows, whatever the size of batches up to 60 windows:

    >>> first_batch(Windows.of("60 seconds", "1 second"), workers=2)
    1
    """
    rows = 1.0 if windows.rows else RATE / 1e6
    size, slide = windows.size * rows, windows.slide * rows
    usual = 1.0 if windows.rows else size / RATE
    wait = usual if latency is None else latency
    return choose(BatchModel(size, slide, RATE, workers, USUAL, once=True), wait, _PERIOD).batch
