"""The batch size of a running stream: as many windows as the latency bound allows, no more than help."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skewless.chop.cost import BatchModel
from skewless.chop.estimate import CostEstimator
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

MOST = 1000  # windows in a batch
NEARLY = 0.02  # a throughput this close to the best is as good, and a smaller batch is sooner done


@dataclass(frozen=True)
class Choice:
    """A batch size, and whether it keeps the latency bound."""

    batch: int
    kept: bool


def choose(model: BatchModel, latency: float, period: float, most: int = MOST) -> Choice:
    """The batch size with which a stream goes on for the next `period` seconds.

    Of the sizes that keep every result within `latency` seconds, the smallest of those that carry nearly the highest
    rate. Where the stream is too fast for all of them, a size that would keep the bound without a backlog, and under
    which the backlog grows least: the paper's minimum of f(B). Where not even such a size exists, the one that exceeds
    the bound by least.

    Examples
    --------
    >>> from skewless.chop import Costs
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
    """Chooses the batch size of a stream anew in every period, from costs that it measures.

    It starts with single windows. As long as only one size was measured, the cost of others is unknown, and the next
    period tries another: half the size, or two windows after one. Tumbling windows stay single: there is nothing to
    gain.

    Parameters
    ----------
    size, slide
        Of a window, in rows or in units of time.
    workers
        Workers that the batches are dealt to.
    latency
        Seconds within which a window's result is wanted, the paper's L_max.
    unit
        Seconds in a unit of time, such as 1e-6 where size and slide are microseconds. None where they are rows.
    period
        Seconds between choices, the paper's T.
    headroom
        Share of a worker's time kept for other things, the paper's H.
    most
        Windows in a batch, at most.
    memory
        How fast old measurements fade: see `CostEstimator`.

    Examples
    --------
    >>> from skewless.chop import Costs
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
    ) -> None:
        if not 0 < slide <= size:
            raise SkewlessError(f"size {size} and slide {slide}; give a slide from 1 to the size")
        if unit is not None and not unit > 0:
            raise SkewlessError(f"a unit of {unit} seconds; give a number above 0, or None where windows count rows")
        self.size = size
        self.slide = slide
        self.workers = workers
        self.latency = latency
        self.unit = unit
        self.period = period
        self.headroom = headroom
        self.most = most
        self.estimator = CostEstimator(memory)
        self.batch = 1
        self.model: BatchModel | None = None
        self._tuned: tuple[float, float] | None = None

    def add(self, updates: float, windows: float, rows: float, seconds: float) -> None:
        """A batch was worked on: what it did and how long that took."""
        self.estimator.add(updates, windows, rows, seconds)

    def tune(self, now: float, arrived: float, density: float | None = None) -> int:
        """The batch size from now on; asked as often as one likes.

        Parameters
        ----------
        now
            The time in seconds.
        arrived
            Rows that have come since the start.
        density
            Rows in a unit of the windows' time, where that is known better than from the rate: the time of a stream
            that is catching up runs faster than the clock.
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
            self.batch = self.batch // 2 if self.batch > 1 else min(2, self.most)
        return self.batch

    def expected(self, *, paper: bool = False) -> FloatArray:
        """Throughput of every batch size from 1 to `most`, by the model of the last choice."""
        if self.model is None:
            raise SkewlessError("nothing was chosen yet; call tune() a period after the first call")
        return replace(self.model, paper=paper).throughput(np.arange(1, self.most + 1))

    def _model(self, rate: float, density: float | None) -> BatchModel:
        rows = density or (1.0 if self.unit is None else self.unit * rate)
        costs = self.estimator.costs
        return BatchModel(self.size * rows, self.slide * rows, rate, self.workers, costs, self.headroom)
