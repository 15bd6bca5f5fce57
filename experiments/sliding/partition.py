"""The paper's partitioners: time is divided window by window, batch by batch or pane by pane."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from experiments.sliding.marks import as_times
from skewless.core.arrays import BoolArray, Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.core.windows import Windows


@dataclass(frozen=True)
class Partitioner(ABC):
    """Says to which partitions a row is copied, so that each partition can be processed alone.

    Partitions are numbered in the order of their time and go to the workers in turn.

    Parameters
    ----------
    size, slide
        The size and slide of the windows, in whole units of time or in rows.
    rows
        Whether size and slide count rows; then no window starts before row 0.
    """

    name: ClassVar[str]

    size: int
    slide: int
    rows: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the windows and the partitions."""
        _ = self.extents

    @property
    def windows(self) -> Windows:
        """The windows that the partitions are made for."""
        return Windows(self.size, self.slide, self.rows)

    @property
    @abstractmethod
    def extents(self) -> Windows:
        """The time span of each partition, given as windows of another size and slide."""

    @abstractmethod
    def windows_of(self, partition: int) -> range:
        """The windows that the rows of this partition are needed for."""

    @property
    def replication(self) -> float:
        """Copies of a row, on average over a long stream."""
        return self.extents.size / self.extents.slide

    def assign(self, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each copy of these rows: the row that it copies, and its partition.

        Copies come in the order of their rows, and the copies of one row in the order of their partitions.
        """
        times = as_times(times)
        extents = self.extents
        shape = extents.size, extents.slide, extents.lowest
        copies = _count(times, *shape)
        copied, partitions = np.empty(copies, np.int64), np.empty(copies, np.int64)
        _fill(times, *shape, copied, partitions)
        return copied, partitions

    def blocks(self, times: Int64Array, most: int = 1 << 20) -> Iterator[tuple[Int64Array, Int64Array]]:
        """The same copies, about `most` of them at a time, however often a row is copied."""
        if most < 1:
            raise SkewlessError(f"a block holds at least 1 copy, not {most}")
        times = as_times(times)
        step = max(1, most // math.ceil(self.replication))
        for start in range(0, len(times), step):
            copied, partitions = self.assign(times[start : start + step])
            copied += start
            yield copied, partitions

    def worker_of(self, partitions: Int64Array, workers: int) -> Int32Array:
        """The worker of each partition; the workers take turns.

        >>> ByWindow(4, 2).worker_of(np.array([-1, 0, 1, 2, 3]), workers=3)
        array([2, 0, 1, 2, 0], dtype=int32)
        """
        if workers < 1:
            raise SkewlessError(f"workers must be at least 1, not {workers}")
        out = np.empty(len(partitions), np.int32)
        _take_turns(as_times(partitions), workers, out)
        return out

    def span(self, partition: int) -> tuple[int, int]:
        """The first time that this partition covers, and the first time after it."""
        return self.extents.span(partition)

    def open_at(self, watermark: int) -> int:
        """The first partition that may still get rows, if no row before the watermark is still to come."""
        return self.extents.open_at(watermark)

    def complete(self, partitions: Int64Array, watermark: int) -> BoolArray:
        """Whether each partition has all its rows."""
        whole: BoolArray = np.asarray(partitions) < self.open_at(watermark)
        return whole


@dataclass(frozen=True)
class ByWindow(Partitioner):
    """A partition for each window: a row is copied `size / slide` times.

    Examples
    --------
    >>> rows, partitions = ByWindow(size=10, slide=5).assign(np.array([12, 15]))
    >>> rows, partitions
    (array([0, 0, 1, 1]), array([1, 2, 2, 3]))
    """

    name: ClassVar[str] = "window"

    @property
    def extents(self) -> Windows:
        """The time spans of the windows."""
        return self.windows

    def windows_of(self, partition: int) -> range:
        """The one window of this partition."""
        return range(partition, partition + 1)


@dataclass(frozen=True)
class ByBatch(Partitioner):
    """A partition for each batch of consecutive windows: a row is copied `(size + (B - 1) slide) / (B slide)` times.

    Only rows near the edge of a batch are in two batches. The larger the batch, the fewer the copies, but the longer
    its first window waits for its last.

    Parameters
    ----------
    batch
        Windows in a batch, the paper's B.

    Examples
    --------
    >>> batches = ByBatch(size=3, slide=1, batch=3, rows=True)
    >>> rows, partitions = batches.assign(np.arange(6))
    >>> rows[partitions == 0], rows[partitions == 1]  # the paper's t4 and t5 are in both
    (array([0, 1, 2, 3, 4]), array([3, 4, 5]))
    >>> batches.windows_of(1)
    range(3, 6)
    """

    name: ClassVar[str] = "batch"

    batch: int

    @property
    def extents(self) -> Windows:
        """The time spans of the batches, each from the start of its first window to the end of its last."""
        return self.windows.batches(self.batch)

    def windows_of(self, partition: int) -> range:
        """The windows of the batch."""
        return range(partition * self.batch, (partition + 1) * self.batch)


@dataclass(frozen=True)
class ByPane(Partitioner):
    """A partition for each pane, the longest time span that no edge of a window divides: a row is in one pane only.

    The result of a pane is used by every window that contains it.

    Examples
    --------
    >>> panes = ByPane(size=6, slide=4)
    >>> panes.assign(np.array([7, 8, 9]))[1]  # panes of 2
    array([3, 4, 4])
    >>> panes.windows_of(4)
    range(1, 3)
    """

    name: ClassVar[str] = "pane"

    @property
    def extents(self) -> Windows:
        """The time spans of the panes."""
        return self.windows.panes

    def windows_of(self, partition: int) -> range:
        """The windows that contain the pane."""
        return self.windows.with_pane(partition)

    def panes_of(self, window: int) -> range:
        """The panes that make up a window.

        >>> ByPane(size=6, slide=4).panes_of(1)
        range(2, 5)
        """
        return self.windows.panes_of(window)


@inner
def _slot(time: Int, last: Int, slide: Int) -> Int:
    """The last extent that starts by `time`; most rows have the same one as the row before, which saves a division."""
    into = time - last * slide
    return last if 0 <= into < slide else time // slide


@inner
def _from(time: Int, last: Int, size: Int, slide: Int, lowest: Int) -> Int:
    """The first extent that contains `time`, given the last one."""
    first = last - size // slide + (time - last * slide >= size % slide)
    return max(first, lowest)


@lean_kernel
def _count(times: Int64Array, size: Int, slide: Int, lowest: Int) -> Int:
    copies, last = 0, 0
    for i in range(len(times)):
        last = _slot(times[i], last, slide)
        copies += max(0, last - _from(times[i], last, size, slide, lowest) + 1)
    return copies


@lean_kernel
def _fill(times: Int64Array, size: Int, slide: Int, lowest: Int, copied: Int64Array, partitions: Int64Array) -> None:
    at, last = 0, 0
    for i in range(len(times)):
        last = _slot(times[i], last, slide)
        for partition in range(_from(times[i], last, size, slide, lowest), last + 1):
            copied[at] = i
            partitions[at] = partition
            at += 1


@lean_kernel
def _take_turns(partitions: Int64Array, workers: Int, out: Int32Array) -> None:
    for i in range(len(partitions)):
        out[i] = partitions[i] % workers
