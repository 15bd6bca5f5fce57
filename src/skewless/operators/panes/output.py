"""Rows of windows, gathered from a sweep and put together many windows at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, concat
from skewless.core.arrays import Int64Array
from skewless.core.tables import numbered
from skewless.operators.panes.key_numbers import KeyNumbers
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.sweep import Sweep

_ENOUGH = 200_000  # rows


class Output:
    """Gathers the rows of one window after the other.

    Keys are looked up and states are joined and finished once for all gathered windows.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    keys
        The worker's keys.
    """

    def __init__(self, layout: Layout, keys: KeyNumbers) -> None:
        self._layout, self._keys = layout, keys
        self._reset()

    def _reset(self) -> None:
        self.rows = 0
        self._windows: list[int] = []
        self._numbers: list[Int64Array] = []
        self._totals: list[list[tuple[Fields, Fields | None]]] = []

    @property
    def full(self) -> bool:
        """Whether it is time to flush."""
        return self.rows >= _ENOUGH

    def add(self, window: int, sweep: Sweep, at: Int64Array | None = None, numbers: Int64Array | None = None) -> None:
        """The keys that the sweep holds, or only those `at` these places, which stand for `numbers`."""
        at = np.flatnonzero(sweep.panes) if at is None else at
        if not len(at):
            return
        self.rows += len(at)
        self._windows.append(window)
        self._numbers.append(at if numbers is None else numbers)
        self._totals.append(sweep.totals(at))

    def flush(self) -> pa.RecordBatch:
        """Everything gathered so far: the start of the window, keys, values."""
        start = np.repeat(np.array(self._windows) * self._layout.windows.slide, [len(each) for each in self._numbers])
        columns = [pa.array(start), *self._keys.take(np.concatenate(self._numbers))]
        for i, kernel in enumerate(self._layout.kernels):
            back = concat([totals[i][0] for totals in self._totals])
            fronts = [totals[i][1] for totals in self._totals]
            if fronts[0] is not None:
                back = kernel.join(concat([front for front in fronts if front is not None]), back)
            columns.append(kernel.finish(back))
        self._reset()
        return numbered(columns)
