"""The folder of a stream whose batches of windows are tuned: their sizes, and what work took.

Sizes change at a window that no row has reached. While a change is announced, rows of windows from there on go both
ways, by the old sizes and by the new, and the old workers still have the windows. Once a micro-batch that went by the
announcement is committed, and none that did not had reached the window, the change is in force: the new workers have
had all rows of their windows. Otherwise it is dropped, and the copies are forgotten with their time.

- `versions/3.json`: the sizes of version 3.
- `work/41/5.json`: what worker 5 did in micro-batch 41, how long that took, and how many windows ended.
- `refused/3.json`: version 3 came into force too early, which a worker found out.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from skewless.chop.assignment import Assignment, BatchAssignment
from skewless.control.version import Version, Versions
from skewless.core.arrays import Int64Array
from skewless.core.turn import Turn
from skewless.core.windows import Windows


@dataclass(frozen=True)
class Work:
    """What a worker did in a micro-batch.

    Parameters
    ----------
    updates, windows, rows
        The rows of all windows that ended, the windows, and the rows, each of which counts once.
    seconds
        How long that took.
    starts
        The updates of the keys whose turns start at each worker.
    ended
        The first of the windows that ended, of all workers, and the one after the last.
    """

    updates: int
    windows: int
    rows: int
    seconds: float
    starts: tuple[int, ...] = ()
    ended: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BatchSizes(Versions):
    """The folder of a stream whose batches of windows are tuned."""

    def parse(self, fields: dict[str, Any]) -> BatchAssignment:
        """The sizes in the fields of a version."""
        size, slide, workers = fields["shape"]
        sizes = tuple((int(start), int(batch)) for start, batch in fields["sizes"])
        return BatchAssignment(Windows(size, slide), workers, sizes)

    def write_sizes(self, number: int, sizes: BatchAssignment, before: int, query: str | None) -> None:
        """Add sizes, to follow those of another version."""
        shape = [sizes.windows.size, sizes.windows.slide, sizes.workers]
        self.add(number, before, query, {"shape": shape, "sizes": sizes.sizes})

    def sizes(self, number: int, turn: Turn | None = None) -> BatchAssignment:
        """The sizes of a version."""
        found: BatchAssignment = self.version(number, turn)
        return found

    def assignment(self, version: Version, turn: Turn) -> Assignment:
        """Who gets a row."""
        sizes = self.sizes(version.force, turn)
        return BothAssignments(sizes, self.sizes(version.announced, turn)) if version.announced else sizes

    def write_work(self, turn: Turn, work: Work) -> None:
        """Say what a worker did."""
        told = {"query": turn.query, "work": astuple(work)}
        self.write_fields(f"work/{turn.batch}/{turn.worker}.json", told)

    def take_work(self, batch: int) -> list[Work]:
        """What workers did in a micro-batch, as far as it is known; what is of earlier ones is deleted."""
        names = [name for name in self.listed(f"work/{batch}") if name.endswith(".json")]
        found = [self.read_fields(f"work/{batch}/{name}") for name in names]
        for name in self.listed("work"):
            if name.isdigit() and int(name) < batch:
                self.delete(f"work/{name}")
        return [Work(*fields["work"]) for fields in found if fields is not None]

    def refuse(self, number: int, turn: Turn) -> None:
        """Have the driver go back to the version before this one, when it starts next."""
        self.write_fields(f"refused/{number}.json", {"query": turn.query, "worker": turn.worker})

    def refused(self, number: int) -> bool:
        """Whether a worker refused a version."""
        return self.read_fields(f"refused/{number}.json") is not None


@dataclass(frozen=True)
class BothAssignments(Assignment):
    """Rows to whom they belong by one assignment, and to whom they belong by another; windows by the first."""

    now: BatchAssignment
    then: BatchAssignment

    def worker_of(self, hashes: Int64Array, windows: Int64Array) -> Int64Array:
        """The worker of each window of a key."""
        return self.now.worker_of(hashes, windows)

    def copies(self, hashes: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
        """For each copy of these rows, which row it is of and its worker."""
        workers = self.now.workers
        each = [assignment.copies(hashes, times) for assignment in (self.now, self.then)]
        once = np.unique(np.concatenate([rows * workers + worker for rows, worker in each]))
        return once // workers, once % workers

    def batch_of(self, window: int) -> range:
        """The windows that are assigned together with this one."""
        return self.now.batch_of(window)
