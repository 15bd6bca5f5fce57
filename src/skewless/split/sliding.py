"""The base of the splitters that learn from one slide of a window to the next."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner
from skewless.core.policy import Policy
from skewless.split.base import Splitter

# What the `meta` of every such splitter starts with.
SEEN = 0  # tuples of the current slide so far
LENGTH = 1  # tuples in a slide, or NEVER

NEVER = -1  # no count of tuples seen ever equals it: the slide ends with a call


class SlidingSplitter(Splitter):
    """Routes a stream slide by slide; what it knows of the window changes at the end of each.

    A slide is a number of tuples, or it is one of time: then `slide` is None, and each ends with a call of `end_slide`.
    """

    slide: int | None

    def plan(self, seen: Counts) -> Policy:
        """A policy for a micro-batch with counts like `seen`; each micro-batch is a window of its own."""
        meta = self._progress
        length, meta[LENGTH] = meta[LENGTH], NEVER
        try:
            return super().plan(seen)
        finally:
            meta[LENGTH], meta[SEEN] = length, 0

    def end_slide(self) -> None:
        """End a slide that is not of a number of tuples: the oldest leaves the window."""
        if self.slide is not None:
            raise SkewlessError(f"slides end after {self.slide} tuples; give slide=None to end them yourself")
        self._end_slide()

    def _assign(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> None:
        done = 0
        while done < len(keys):
            self._begin_slide()
            self._make_room()
            rest = weights if len(weights) == 1 else weights[done:]
            done += self._run(keys[done:], rest, out[done:])

    def _begin_slide(self) -> None:
        """Before more tuples are routed: end the current slide, if it is full."""
        if self._progress[SEEN] == self._progress[LENGTH]:
            self._end_slide()

    @property
    @abstractmethod
    def _progress(self) -> Int64Array:
        """An array that starts with SEEN and LENGTH."""

    @abstractmethod
    def _end_slide(self) -> None:
        """End the current slide: the oldest slide leaves the window."""

    @abstractmethod
    def _make_room(self) -> None:
        """Make sure that there is room for one more key."""

    @abstractmethod
    def _run(self, keys: Int64Array, weights: Int64Array, out: Int32Array) -> int:
        """Route tuples to the end of the slide, or until there may be no room for the next; return how many."""


def slide_length(slide: int | None) -> int:
    """What LENGTH is for a slide of so many tuples, or for one that ends with a call."""
    if slide is None:
        return NEVER
    if isinstance(slide, bool) or not isinstance(slide, (int, np.integer)) or slide < 1:
        raise SkewlessError(f"slide is {slide!r} tuples; give a whole number from 1, or None to end slides yourself")
    return int(slide)


@inner
def slide_end(meta: Int64Array, tuples: Int) -> Int:
    """How many of the next tuples belong to the current slide."""
    return tuples if meta[LENGTH] == NEVER else min(tuples, meta[LENGTH] - meta[SEEN])


@inner
def advance(meta: Int64Array, tuples: Int) -> Int:
    """Count these tuples of the current slide as routed, and return their number."""
    meta[SEEN] += tuples
    return tuples
