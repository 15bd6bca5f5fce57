"""The worker of some panes: runs a function on each when it is over, and again if rows come late but not too late."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from skewless.chop.assignment import Assignment
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.store import Store
from skewless.core.turn import Turn
from skewless.core.windows import END, Windows
from skewless.operators.windows.worker import Task, WindowWorker


class PaneWorker(WindowWorker):
    """The panes of one worker.

    Rows stay until the last window that holds them is over: one that comes late, but in time for some window, makes
    the answer for its pane new, and the new one stands in all windows that are not over.

    Parameters
    ----------
    whole
        The windows that the panes are of.
    task
        What is done with a pane; its windows are the panes.
    assignment
        Which panes are whose.
    turn
        Whose turn it is.
    store
        Where rows wait.
    """

    def __init__(self, whole: Windows, task: Task, assignment: Assignment, turn: Turn, store: Store) -> None:
        super().__init__(task, assignment, turn, store)
        self._whole, self._again = whole, np.zeros(0, np.int64)

    def given(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        """An answer as it is, to be sent on to the workers whose windows need it."""
        return answer

    def close(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """The answers for panes that end by the watermark, and for those that had late rows."""
        for pane in self._again.tolist():
            yield from self._answers(pane, pane + 1)
        self._again = self._again[:0]
        yield from super().close(watermark)

    def _late(self, times: Int64Array) -> BoolArray:
        late: BoolArray = self._whole.last(times) < self._open_window()
        panes = self._task.windows.last(times)
        self._again = np.unique(panes[~late & (panes < self._next)])
        return late

    def _forget(self) -> None:
        window = self._open_window()
        self._buffer.forget(window * self._whole.slide if self._next < END else END)

    def _open_window(self) -> int:
        """The first window that does not end with the panes that are over."""
        return self._whole.open_at(self._next * self._task.windows.slide)
