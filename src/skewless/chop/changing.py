"""Batches of windows whose size changes while the stream runs, as the tuner says."""

from __future__ import annotations

from typing import Any

import numpy as np

from skewless.arrays import Int64Array
from skewless.chop.windows import BEFORE_ALL, Windows, as_times
from skewless.errors import SkewlessError

_AFTER_ALL = -BEFORE_ALL


class ChangingBatches:
    """Deals rows to batches of windows, of a size that may change from a window on.

    A partition is named by its first window, so that names of different sizes never meet. At a change the last batch of
    the old size is cut short, and no window is in two batches.

    Parameters
    ----------
    size, slide
        Of the windows, in whole units of time or in rows.
    batch
        Windows in a batch at first.
    rows
        Whether row numbers are meant, and so no window starts before row 0.

    Examples
    --------
    >>> batches = ChangingBatches(size=2, slide=1, batch=3, rows=True)
    >>> batches.assign(np.arange(5))[1]
    array([0, 0, 0, 0, 3, 3])
    >>> batches.change(2)
    >>> batches.windows_of(3), batches.windows_of(5)  # cut short, and the first of the new size
    (range(3, 5), range(5, 7))
    >>> batches.assign(np.arange(5, 8))
    (array([0, 0, 1, 2, 2]), array([3, 5, 5, 5, 7]))
    """

    def __init__(self, size: int, slide: int, batch: int = 1, *, rows: bool = False) -> None:
        self.windows = Windows(size, slide, rows)
        self.windows.batches(batch)
        # From which window on, and counted from where, and how many windows a batch.
        self._sizes: list[tuple[int, int, int]] = [(self.windows.lowest, 0, batch)]
        self._reached = self.windows.lowest - 1

    @property
    def batch(self) -> int:
        """Windows in a batch, from the last change on."""
        return self._sizes[-1][2]

    def change(self, batch: int, window: int | None = None) -> None:
        """Make batches of another size from `window` on: from the first one of which no row has come yet, if None."""
        self.windows.batches(batch)
        start = self._reached + 1 if window is None else window
        if start <= self._reached or start < self._sizes[-1][0]:
            earliest = max(self._reached + 1, self._sizes[-1][0])
            raise SkewlessError(f"windows from {start} on have been dealt already; change the size from {earliest} on")
        if start == self._sizes[-1][0]:
            self._sizes.pop()
        self._sizes.append((start, 0 if start == BEFORE_ALL else start, int(batch)))

    def assign(self, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The copies of these rows: for each, which row it is of and the first window of its batch."""
        times = as_times(times)
        first, last = self.windows.first(times), self.windows.last(times)
        pieces = [self._copies(i, first, last) for i in range(len(self._sizes))]
        copied, partitions = (np.concatenate(column) for column in zip(*pieces, strict=True))
        if len(times):
            self._reached = max(self._reached, int(last.max()))
        order = np.argsort(copied, kind="stable")
        return copied[order], partitions[order]

    def windows_of(self, partition: int) -> range:
        """The windows of the batch that starts with this one."""
        i = self._size_of(partition)
        return range(partition, min(partition + self._sizes[i][2], self._end(i)))

    def span(self, partition: int) -> tuple[int, int]:
        """The time of the first row that this partition may hold, and the first time after it."""
        windows = self.windows_of(partition)
        return self.windows.span(partition)[0], self.windows.span(windows.stop - 1)[1]

    def complete(self, partition: int, watermark: int) -> bool:
        """Whether the partition has all its rows, where no row before the watermark is still to come."""
        return self.span(partition)[1] <= watermark

    def forget(self, watermark: int) -> None:
        """No row before the watermark is still to come: forget the sizes that only such rows need."""
        open_at = self.windows.open_at(watermark)
        while len(self._sizes) > 1 and self._sizes[1][0] <= open_at:
            self._sizes.pop(0)

    def state(self) -> dict[str, Any]:
        """All that is remembered, as JSON can write it."""
        shape = self.windows.size, self.windows.slide, self.windows.rows
        return {"windows": list(shape), "sizes": [list(size) for size in self._sizes], "reached": self._reached}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ChangingBatches:
        """Batches that go on where others stopped."""
        size, slide, rows = state["windows"]
        batches = cls(size, slide, rows=rows)
        batches._sizes = [(start, origin, batch) for start, origin, batch in state["sizes"]]
        batches._reached = state["reached"]
        return batches

    def _end(self, i: int) -> int:
        """The first window after those of the i-th size."""
        return self._sizes[i + 1][0] if i + 1 < len(self._sizes) else _AFTER_ALL

    def _size_of(self, partition: int) -> int:
        for i, (start, origin, batch) in enumerate(self._sizes):
            if start <= partition < self._end(i) and (partition - origin) % batch == 0:
                return i
        raise SkewlessError(f"no batch starts with window {partition}; ask for partitions that assign() named")

    def _copies(self, i: int, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The copies that go to batches of the i-th size."""
        start, origin, batch = self._sizes[i]
        first_batch = (np.maximum(first, start) - origin) // batch
        last_batch = (np.minimum(last, self._end(i) - 1) - origin) // batch
        holds = (first < self._end(i)) & (last >= start)
        copies = np.where(holds, last_batch - first_batch + 1, 0)
        copied = np.repeat(np.arange(len(first)), copies)
        nth = np.arange(len(copied)) - np.repeat(np.cumsum(copies) - copies, copies)
        return copied, origin + (first_batch[copied] + nth) * batch
