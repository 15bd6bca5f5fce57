"""The worker of windows whose batches change in size while the stream runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.control.batch_sizes import BatchSizes, Work
from skewless.control.version import Version
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.store import Store
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL
from skewless.operators.windows.slices import Slices
from skewless.operators.windows.worker import Task, WindowWorker


class AdaptiveWorker(WindowWorker):
    """The windows of one worker, by the sizes of the version that its rows were sent by.

    Parameters
    ----------
    task
        What is done with the rows.
    folder
        The stream's folder.
    turn
        Whose turn it is.
    store
        Where rows wait.
    """

    def __init__(self, task: Task, folder: BatchSizes, turn: Turn, store: Store) -> None:
        self._folder, self._version = folder, Version(0)
        self._reached: dict[int, int] = {}
        """For each version that was announced, or 0, the last window of rows that came by the announcement."""
        self._work = Work(0, 0, 0, 0.0)
        first = folder.sizes(0, turn)
        self._workers = first.workers
        super().__init__(task, first, turn, store)
        self._assignment = folder.sizes(self._version.force, turn)

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Take rows of hash, time and columns, and give the answers for windows that end by the watermark."""
        start, waited = time.perf_counter(), 0.0
        if control is not None:
            self._go_by(Version.of(control))
        self._work = Work(0, 0, 0, 0.0)
        for answer in super().run(control, tables, watermark):
            before = time.perf_counter()
            yield answer
            waited += time.perf_counter() - before
        if control is not None:
            took = time.perf_counter() - start - waited
            self._folder.write_work(self._turn, replace(self._work, seconds=took))

    def add(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Take rows."""
        for table in tables:
            if table.num_rows:
                last = int(self._task.windows.last(np.asarray(table.column(1))).max())
                known = self._reached.get(self._version.announced, BEFORE_ALL)
                self._reached[self._version.announced] = max(last, known)
        super().add(tables)

    def _count(self, found: Slices, hashes: Int64Array, ended: tuple[int, int]) -> None:
        updates = found.stops - found.starts
        starts = np.bincount(hashes[found.groups] % self._workers, updates, self._workers).astype(np.int64)
        self._work = replace(
            self._work,
            updates=int(updates.sum()),
            windows=len(updates),
            rows=found.rows,
            starts=tuple(starts.tolist()),
            ended=ended,
        )

    def _go_by(self, version: Version) -> None:
        self._folder.check(version, self._turn)
        if version.force != self._version.force:
            self._take_over(version.force)
        self._version, self._assignment = version, self._folder.sizes(version.force, self._turn)

    def _take_over(self, number: int) -> None:
        if self._folder.before(number, self._turn) != self._version.force:
            raise SkewlessError(
                f"the folder {self._folder.uri} is at version {number}, but the checkpoint is at "
                f"{self._version.force}; restore both from the same time"
            )
        changes = self._folder.sizes(number, self._turn).sizes[-1][0]
        others = [last for announced, last in self._reached.items() if announced != number]
        if max(others, default=BEFORE_ALL) >= changes:
            self._folder.refuse(number, self._turn)
            raise SkewlessError(
                f"version {number} changes the batches from window {changes} on, and rows had come for it before: "
                "start the query again, and it goes on by the version before"
            )
        self._reached = {0: max(self._reached.values(), default=BEFORE_ALL)}

    def _notes(self) -> dict[str, Any]:
        noted = {"version": self._version.code, "reached": self._reached, "stream": self._folder.stream}
        return {**super()._notes(), **noted}

    def _read(self, notes: dict[str, Any]) -> None:
        super()._read(notes)
        if notes["stream"] != self._folder.stream:
            raise SkewlessError(
                f"the folder {self._folder.uri} does not belong to this checkpoint; name the one it was made with"
            )
        self._version = Version.of(notes["version"])
        self._reached = {int(announced): last for announced, last in notes["reached"].items()}
