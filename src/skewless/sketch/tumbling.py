"""Counts in tumbling windows: after `window` tuples, counting starts again."""

from __future__ import annotations

from abc import abstractmethod

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.sketch.base import Sketch
from skewless.sketch.keys import as_keys


class Tumbling(Sketch):
    """Cuts a stream into windows of `window` tuples (None: one window without end) and counts the current one.

    A full window stays until the next tuple comes. If there is no room for more keys, `grow` makes it.
    """

    def __init__(self, window: int | None) -> None:
        """See the class."""
        if window is not None and window < 1:
            raise SkewlessError(f"window is {window} tuples; give at least 1, or None to count for ever")
        self.window = window
        self._total = 0

    @property
    def total(self) -> int:
        """Tuples of the current window so far."""
        return self._total

    def add(self, keys: Int64Array) -> None:
        """Count these tuples."""
        keys = as_keys(keys)
        start = 0
        while start < len(keys):
            if self._total == self.window:
                self.reset()
            end = len(keys) if self.window is None else min(len(keys), start + self.window - self._total)
            counted = self._count(keys[start:end])
            self._total += counted
            start += counted
            if start < end:
                self.grow()

    def reset(self) -> None:
        """Start a new window."""
        self._next_window()
        self._total = 0

    @abstractmethod
    def grow(self) -> None:
        """Make room for more keys."""

    @abstractmethod
    def _count(self, keys: Int64Array) -> int:
        """Count these tuples of one window while there is room, and return how many were counted."""

    @abstractmethod
    def _next_window(self) -> None:
        """Forget all counts."""
