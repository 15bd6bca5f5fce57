"""What goes on teaching a PartLy while a stream runs, as far as whoever runs it needs to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from skewless.core.counts import Counts
from skewless.split.weights import Weights


class TaskTime(NamedTuple):
    """What a task noted of its micro-batch: its rows, the states that became of them, and the seconds it took."""

    worker: int
    rows: int
    states: int
    seconds: float


class Teacher(Protocol):
    """Goes on teaching a policy."""

    @property
    def weights(self) -> Weights:
        """The newest weights that are fit to be used."""

    def hear(self, seen: Counts, workers: int, tasks: Sequence[TaskTime]) -> None:
        """A micro-batch is done; it must not be waited for what is learned from it."""

    def describe(self) -> str:
        """How far the lessons are, in words."""
