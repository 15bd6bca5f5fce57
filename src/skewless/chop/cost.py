"""What a batch size costs: the work per row, the rows per worker, and the time until a window's result is ready."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from skewless.chop.evenness import batch_sizes, evenness
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

Amount = TypeVar("Amount", float, FloatArray)


@dataclass(frozen=True)
class Costs:
    """Seconds that a worker needs for the parts of its work.

    Parameters
    ----------
    update
        Seconds to add one row to one window.
    open_close
        Seconds to open and close one window.
    other
        Seconds for one row, however many windows contain it, such as to read it and to find its group.
    """

    update: float
    open_close: float
    other: float

    def __post_init__(self) -> None:
        """Refuse negative times."""
        if not all(seconds >= 0 for seconds in (self.update, self.open_close, self.other)):
            raise SkewlessError(f"costs are {self}; give seconds of at least 0")

    def of(self, updates: Amount, windows: Amount, rows: Amount) -> Amount:
        """Seconds for this many updates, windows (opened and closed) and rows."""
        return updates * self.update + windows * self.open_close + rows * self.other


@dataclass(frozen=True)
class BatchModel:
    """Predicts the cost and latency of batches of B windows, for many B at once (B may be an array).

    Parameters
    ----------
    size, slide
        The size and slide of a window in rows; for windows of time, the rows that arrive in that time.
    rate
        Rows that arrive in a second, the paper's R.
    workers
        Workers that share the batches, the paper's d.
    costs
        Seconds for each part of the work.
    headroom
        Share of a worker's time that is kept free for other things, the paper's H.
    together
        Windows of a key that end together, as in a micro-batch. The paper gives each by itself.
    starts
        The work of the keys whose turns start at each worker; see `evenness`. If not given, there is one key.
    once
        Whether a worker gets a row once, however many of its batches contain it. In the paper it gets a copy for each.

    Examples
    --------
    These are the costs behind the paper's Figure 7b: 40,000 rows a second with one window to update, 5,000 with a
    hundred. In the paper, four workers gained 6,500 rows/s from B = 2 to 10, and 1,200 from 33 to 50. The exact count
    gives:

    >>> model = BatchModel(100, 1, rate=1000, workers=4, costs=Costs(1.77e-6, 0, 23.2e-6), headroom=0)
    >>> two, ten, more, most = model.throughput([2, 10, 33, 50])
    >>> int(ten - two), int(most - more)
    (6338, 1425)

    If 400 windows of the only key end together, batches of more than 100 leave workers without any:

    >>> model = BatchModel(100, 1, 1000, 4, Costs(1.77e-6, 0, 23.2e-6), headroom=0, together=400)
    >>> model.throughput([50, 100, 200]).astype(int)
    array([15887, 17478,  9199])

    If a worker gets each row once, small batches cost no more than the rows that all workers need:

    >>> BatchModel(100, 1, 1000, 4, Costs(1.77e-6, 0, 23.2e-6), headroom=0, once=True).throughput([1, 25]).astype(int)
    array([14825, 14825])

    References
    ----------
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (section 2.3, equations 1 to 3).
    """

    size: float
    slide: float
    rate: float
    workers: int
    costs: Costs
    headroom: float = 0.1
    together: float = math.inf
    starts: tuple[float, ...] = ()
    once: bool = False

    def __post_init__(self) -> None:
        """Check that there are windows, rows and workers."""
        if not 0 < self.slide <= self.size:
            raise SkewlessError(f"windows of {self.size} rows sliding by {self.slide}; give a slide from 0 to the size")
        if not self.rate > 0:
            raise SkewlessError(f"the rate is {self.rate} rows a second; give a number above 0")
        if not self.workers >= 1:
            raise SkewlessError(f"workers must be at least 1, not {self.workers}")
        if not 0 <= self.headroom < 1:
            raise SkewlessError(f"headroom is {self.headroom}; give a share of a worker's time from 0 to below 1")
        if not self.together > 0:
            raise SkewlessError(f"{self.together} windows of a key end together; give more than 0")
        if self.starts and (len(self.starts) != self.workers or not min(self.starts) >= 0 or not sum(self.starts) > 0):
            raise SkewlessError(
                f"starts is {self.starts}; give the work of the keys that start at each of {self.workers} workers"
            )

    def rows(self, batch: npt.ArrayLike) -> FloatArray:
        """Rows that a worker reads for a batch: those in it, or its share of all rows where that is less.

        Of windows that end together some are of a batch whose others end before or after them. Rows that both have are
        read twice then, which is those of a window but for a slide.
        """
        sizes, again = batch_sizes(batch), self.size - self.slide
        inside = again * (1 + (sizes - 1) / self.together) + sizes * self.slide
        if not self.once:
            return inside
        return np.minimum(inside, self.workers * sizes * (again / self.together + self.slide))

    def updates(self, batch: npt.ArrayLike) -> FloatArray:
        """Window updates in a batch: each of its windows is updated by each of its rows."""
        return batch_sizes(batch) * self.size

    def work(self, batch: npt.ArrayLike) -> FloatArray:
        """Seconds of work in a batch."""
        return self.costs.of(self.updates(batch), batch_sizes(batch), self.rows(batch))

    def cost(self, batch: npt.ArrayLike) -> FloatArray:
        """Cost(B): seconds of work for a row that a worker gets."""
        return self.work(batch) / self.rows(batch)

    def load(self, batch: npt.ArrayLike) -> FloatArray:
        """Rate(B): rows that the busiest worker gets in a second, copies included."""
        mean = self.rate / self.workers * self.rows(batch) / (batch_sizes(batch) * self.slide)
        return mean / evenness(batch, self.together, self.workers, self.starts)

    def capacity(self, batch: npt.ArrayLike) -> FloatArray:
        """Rows that a worker can take in a second: (1 - H) / Cost(B)."""
        with np.errstate(divide="ignore"):  # work that costs nothing has no limit
            return (1 - self.headroom) / self.cost(batch)

    def excess(self, batch: npt.ArrayLike) -> FloatArray:
        """f(B): rows by which a worker's backlog grows in a second; if negative, the rows that it could still take."""
        return self.load(batch) - self.capacity(batch)

    def throughput(self, batch: npt.ArrayLike) -> FloatArray:
        """The highest rate at which no backlog grows."""
        return self.rate * self.capacity(batch) / self.load(batch)

    def waiting(self, batch: npt.ArrayLike) -> FloatArray:
        """Seconds from the end of a batch's first window to the end of its last, which is when the batch can start.

        If the stream is faster than the workers, its rows count as arriving only when the workers can take them.
        """
        return (batch_sizes(batch) - 1) * self.slide / np.minimum(self.rate, self.throughput(batch))

    def running(self, batch: npt.ArrayLike) -> FloatArray:
        """Seconds that a worker needs for a batch."""
        return self.work(batch) / (1 - self.headroom)

    def backlog(self, batch: npt.ArrayLike, period: float) -> FloatArray:
        """Seconds of work that accumulate for a worker in `period` seconds."""
        return np.maximum(self.excess(batch), 0.0) * period / self.capacity(batch)

    def latency(self, batch: npt.ArrayLike, period: float) -> FloatArray:
        """Seconds from the end of a window to its result, at worst, after `period` seconds at this batch size.

        The paper bounds only the backlog, and it does so in rows although it means seconds. Here rows are converted
        into the time they take, and the time to wait for the batch and to run it counts too.
        """
        return self.waiting(batch) + self.running(batch) + self.backlog(batch, period)
