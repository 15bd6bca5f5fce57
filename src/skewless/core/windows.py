"""Sliding windows over whole numbers: which windows hold a row, and which are over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds

LONGEST = 1 << 61  # sums of a time and a size stay whole numbers of 64 bits
BEFORE_ALL = -(1 << 62)  # a number below that of every window
END = 1 << 62
"""The watermark of a stream that is over: later than every time, and a number above that of every window."""
_GAPS = (
    "slide {0} is longer than size {1}, so that rows between windows would be in none; make the slide at most {1}, "
    "or filter the rows first"
)


@dataclass(frozen=True)
class Windows:
    """Windows `[k slide, k slide + size)`, of time as Spark's `window()` has them, or of row numbers.

    Parameters
    ----------
    size, slide
        In microseconds, or any other unit in which times are whole numbers; or in rows. They need not divide each
        other, but no row may fall between windows.
    rows
        Whether row numbers are meant, which start at 0: no window starts before. Time has no beginning, so a row's
        first windows may have started before the stream did.

    Examples
    --------
    >>> windows = Windows(size=3, slide=1, rows=True)
    >>> windows.first(np.arange(5)), windows.last(np.arange(5))
    (array([0, 0, 0, 1, 2]), array([0, 1, 2, 3, 4]))
    """

    size: int
    slide: int
    rows: bool = False

    def __post_init__(self) -> None:
        """Refuse windows with gaps between them."""
        for name, length in (("size", self.size), ("slide", self.slide)):
            if not isinstance(length, (int, np.integer)) or not 1 <= length <= LONGEST:
                raise SkewlessError(f"the {name} of a window is {length!r}; give a whole number from 1 to 2^61")
        if self.slide > self.size:
            raise SkewlessError(_GAPS.format(self.slide, self.size))

    @classmethod
    def of(cls, size: str, slide: str | None = None) -> Windows:
        """Windows of time, in microseconds, from Spark's words; tumbling where `slide` is None.

        >>> Windows.of("1 minute", "20 seconds")
        Windows(size=60000000, slide=20000000, rows=False)
        """
        lengths = microseconds(size), microseconds(size if slide is None else slide)
        if lengths[1] > lengths[0]:
            raise SkewlessError(_GAPS.format(repr(slide), repr(size)))
        return cls(*lengths)

    @property
    def tumbling(self) -> bool:
        """Whether every row is in one window only."""
        return self.size == self.slide

    @property
    def lowest(self) -> int:
        """The first window there is."""
        return 0 if self.rows else BEFORE_ALL

    def batches(self, batch: int) -> Windows:
        """The windows that hold `batch` of these each, one after the other: number b holds b batch, b batch + 1, ..."""
        if not isinstance(batch, (int, np.integer)) or batch < 1:
            raise SkewlessError(f"a batch of {batch!r} windows; give a whole number of at least 1")
        return Windows(self.size + (int(batch) - 1) * self.slide, int(batch) * self.slide, self.rows)

    @property
    def pane(self) -> int:
        """Length of a pane: the longest stretch that no edge of a window cuts."""
        return math.gcd(self.size, self.slide)

    @property
    def panes(self) -> Windows:
        """The panes, as windows that tumble."""
        return Windows(self.pane, self.pane, self.rows)

    def panes_of(self, window: int) -> range:
        """The numbers of the panes that make up a window.

        >>> Windows.of("60 seconds", "25 seconds").panes_of(1)  # panes of 5 seconds
        range(5, 17)
        """
        start, end = self.span(window)
        return range(start // self.pane, end // self.pane)

    def with_pane(self, pane: int) -> range:
        """The windows that hold a pane.

        >>> Windows.of("60 seconds", "25 seconds").with_pane(10)  # seconds 50 to 55
        range(0, 3)
        """
        at = pane * self.pane
        return range((at - self.size) // self.slide + 1, at // self.slide + 1)

    def first(self, times: Int64Array) -> Int64Array:
        """The first window that holds each time."""
        ended = (np.asarray(times, np.int64) - self.size) // self.slide
        first: Int64Array = np.maximum(ended + 1, self.lowest)
        return first

    def last(self, times: Int64Array) -> Int64Array:
        """The last window that holds each time; lower than the first where no window does."""
        return np.asarray(times, np.int64) // self.slide

    def span(self, window: int) -> tuple[int, int]:
        """Where this window starts, and where it ends: the first time after it."""
        return window * self.slide, window * self.slide + self.size

    def open_at(self, watermark: int) -> int:
        """The first window that ends after the watermark: all before it are complete, and no other."""
        return max((watermark - self.size) // self.slide + 1, self.lowest)
