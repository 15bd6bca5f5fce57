"""The paper's own costs and count of window updates, to compare with the exact one of `skewless.chop.BatchModel`."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from skewless.chop import BatchModel, Costs, Tuner
from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError

RATIO, PAPER_SLIDE = 100, 10  # w/s of the paper's section 3.3, and rows of a slide

# From there: seconds of a row with one window to update, and with a hundred; and by pane.
ONE, HUNDRED, PANE = 1 / 40_000, 1 / 5_000, 1 / 32_000
PAPER = Costs(update=(HUNDRED - ONE) / 99, open_close=0.0, other=ONE - (HUNDRED - ONE) / 99)
PAPER_MERGE = (PANE - ONE) * PAPER_SLIDE / RATIO
"""Seconds to merge a pane into a window: what a row by pane costs more than a row of one window."""


class PaperModel(BatchModel):
    """Counts s B (B + 1) / 2 + (w - s) window updates in a batch, where the exact count is B w.

    The two counts agree for B = 1 and B = 2 w / s - 2. Between these the paper's count is too low, beyond them too
    high.

    References
    ----------
    C. Balkesen, N. Tatbul: Scalable data partitioning techniques for parallel sliding window processing over data
    streams. DMSN 2011 (section 2.3, equation 1).
    """

    @classmethod
    def of(cls, model: BatchModel) -> PaperModel:
        """The same stream and costs as another model, with the paper's count."""
        return cls(*(getattr(model, field.name) for field in fields(model)))

    def updates(self, batch: npt.ArrayLike) -> FloatArray:
        """Window updates in a batch."""
        b = np.asarray(batch, np.float64)
        return self.slide * b * (b + 1) / 2 + (self.size - self.slide)


class PrintedModel(PaperModel):
    """Equation 1 letter by letter, whose first term lacks the cost of an update and which is of no unit.

    >>> of = BatchModel(100, 1, rate=1000, workers=4, costs=PAPER)
    >>> float(PrintedModel.of(of).cost(10).round(3)), float(PaperModel.of(of).cost(10).round(6))
    (55.0, 2.6e-05)
    """

    def cost(self, batch: npt.ArrayLike) -> FloatArray:
        """Cost(B), to which the rows of B (B + 1) / 2 slides are added as if they were seconds."""
        b = np.asarray(batch, np.float64)
        opened = b / self.rows(b) * self.costs.open_close
        return b * (b + 1) / 2 * self.slide + (self.size - self.slide) * self.costs.update + opened + self.costs.other


def equation_3(model: BatchModel, latency: float, period: float, most: int) -> int:
    """The batch size by the paper's inequality 3: the smallest that keeps it, or else the one with the least f(B).

    It is taken as it is printed: f(B) T, which are rows, is to be less than L_max, which are seconds.

    >>> equation_3(BatchModel(100, 1, rate=5_000, workers=4, costs=PAPER), latency=0.5, period=10, most=1000)
    5
    """
    batches = np.arange(1, most + 1)
    excess = model.excess(batches)
    kept = excess * period < latency
    return int(batches[kept][0] if kept.any() else batches[excess.argmin()])


def expected(tuner: Tuner, *, paper: bool = False) -> FloatArray:
    """Throughput of every batch size from 1 to the tuner's `most`, by the model of its last choice."""
    if tuner.model is None:
        raise SkewlessError("nothing was chosen yet; call tune() a period after the first call")
    model = PaperModel.of(tuner.model) if paper else tuner.model
    return model.throughput(np.arange(1, tuner.most + 1))
