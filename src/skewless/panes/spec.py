"""Sliding windows cut into panes: which windows hold an instant, and which panes make up a window."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skewless.errors import SkewlessError
from skewless.interval import microseconds


@dataclass(frozen=True)
class WindowSpec:
    """Windows `[k slide, k slide + size)` for every whole k, as Spark's `window()` has them. Microseconds.

    Examples
    --------
    >>> spec = WindowSpec.of("60 seconds", "25 seconds")
    >>> spec.pane // 1_000_000
    5
    >>> spec.first(10), spec.last(10)  # the pane of seconds 50 to 55 is in the windows of seconds 0, 25 and 50
    (0, 2)
    """

    size: int
    slide: int

    @classmethod
    def of(cls, size: str, slide: str | None = None) -> WindowSpec:
        """From Spark's words; tumbling where `slide` is None."""
        spec = cls(microseconds(size), microseconds(size if slide is None else slide))
        if spec.slide > spec.size:
            raise SkewlessError(
                f"slide {slide!r} is longer than size {size!r}, so that rows between windows would be in none; "
                f"make the slide at most {size!r}, or filter the rows first"
            )
        return spec

    @property
    def pane(self) -> int:
        """Length of a pane: the longest stretch of time that no window's edge cuts."""
        return math.gcd(self.size, self.slide)

    @property
    def tumbling(self) -> bool:
        """Whether every instant is in one window only."""
        return self.size == self.slide

    def end(self, window: int) -> int:
        """Where this window ends."""
        return window * self.slide + self.size

    def first(self, pane: int) -> int:
        """The first window that holds this pane."""
        return (pane * self.pane - self.size) // self.slide + 1

    def last(self, pane: int) -> int:
        """The last window that holds this pane."""
        return pane * self.pane // self.slide

    def panes(self, window: int) -> tuple[int, int]:
        """The panes of this window: from the first up to, not including, the second."""
        return window * self.slide // self.pane, self.end(window) // self.pane

    def open_at(self, watermark: int) -> int:
        """The first window that ends after the watermark."""
        return (watermark - self.size) // self.slide + 1
