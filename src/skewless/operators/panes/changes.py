"""What changed, window by window: the rows that Spark's update mode gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int64Array
from skewless.operators.panes.key_numbers import KeyNumbers
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.output import Output
from skewless.operators.panes.pane import Pane
from skewless.operators.panes.sweep import Sweep


def changes(
    layout: Layout,
    keys: KeyNumbers,
    panes: Mapping[int, Pane],
    touched: Mapping[int, Int64Array],
    windows: Sequence[int],
) -> Iterator[pa.RecordBatch]:
    """The rows of these windows for keys that were touched in one of their panes.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    keys
        The worker's keys.
    panes
        All panes of the windows, in order of time.
    touched
        For each pane that got new rows, the numbers of the keys that did.
    windows
        The windows, in order of time.
    """
    touched_keys = np.unique(np.concatenate(list(touched.values())))
    fresh = {number: np.searchsorted(touched_keys, some) for number, some in touched.items()}
    numbers = list(panes)
    parts = []
    for pane in panes.values():
        part = pane.only(touched_keys)
        part.keys = np.searchsorted(touched_keys, part.keys)
        parts.append(part)
    sweep, news = Sweep(layout.kernels, len(touched_keys)), np.zeros(len(touched_keys), dtype=np.int32)
    output = Output(layout, keys)
    oldest = newest = 0  # the sweep holds the parts from one up to the other
    for window in windows:
        inside = layout.windows.panes_of(window)
        while oldest < newest and numbers[oldest] < inside.start:
            held = ((numbers[i], parts[i]) for i in range(newest - 1, oldest - 1, -1))
            sweep.leave(numbers[oldest], parts[oldest], held)
            news[fresh.get(numbers[oldest], _NONE)] -= 1
            oldest += 1
        while newest < len(parts) and numbers[newest] < inside.start:  # in none of these windows
            oldest = newest = newest + 1
        while newest < len(parts) and numbers[newest] < inside.stop:
            sweep.enter(parts[newest])
            news[fresh.get(numbers[newest], _NONE)] += 1
            newest += 1
        at = np.flatnonzero(news)
        output.add(window, sweep, at, touched_keys[at])
        if output.full:
            yield output.flush()
    if output.rows:
        yield output.flush()


_NONE = np.zeros(0, dtype=np.int64)
