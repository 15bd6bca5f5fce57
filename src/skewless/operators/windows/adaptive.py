"""The owner of windows whose batches change in size while the stream runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.control.plans import Plan, Plans, Work
from skewless.core.errors import SkewlessError
from skewless.core.store import Store
from skewless.core.windows import BEFORE_ALL
from skewless.operators.windows.worker import Owner, Task


class TunedOwner(Owner):
    """The windows of one worker, by the plan that comes with its rows.

    Parameters
    ----------
    task
        What is done.
    plans
        The folder of the stream.
    worker
        Its number.
    store
        Where rows wait.
    """

    def __init__(self, task: Task, plans: Plans, worker: int, store: Store) -> None:
        self._plans, self._plan = plans, Plan(0)
        self._reached: dict[int, int] = {}
        """For each plan that was announced, or 0, the last window of rows that came by the announcement."""
        self._work = (0, 0, 0)
        self._batch: int | None = None  # not known in a micro-batch without rows
        super().__init__(task, plans.deal(0), worker, store)
        self._deal = plans.deal(self._plan.force)

    def obey(self, code: int, batch: int) -> None:
        """Go by this plan from now on."""
        plan, self._batch = Plan.of(code), batch
        if plan.force != self._plan.force:
            self._take_over(plan.force)
        self._plan, self._deal = plan, self._plans.deal(plan.force)

    def run(self, tables: Sequence[pa.RecordBatch], watermark: int | None) -> Iterator[pa.RecordBatch]:
        """The answers for windows that are over."""
        start, waited = time.perf_counter(), 0.0
        self._work = (0, 0, sum(table.num_rows for table in tables))
        for answer in super().run(tables, watermark):
            before = time.perf_counter()
            yield answer
            waited += time.perf_counter() - before
        if self._batch is not None:
            took = time.perf_counter() - start - waited
            self._plans.write_work(self._worker, Work(self._batch, *self._work, took))

    def add(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Take rows."""
        for table in tables:
            if table.num_rows:
                last = int(self._task.windows.last(np.asarray(table.column(1))).max())
                known = self._reached.get(self._plan.announced, BEFORE_ALL)
                self._reached[self._plan.announced] = max(last, known)
        super().add(tables)

    def _count(self, updates: int, windows: int) -> None:
        self._work = (self._work[0] + updates, self._work[1] + windows, self._work[2])

    def _take_over(self, number: int) -> None:
        if self._plans.before(number) != self._plan.force:
            raise SkewlessError(
                f"the folder {self._plans.uri} is at plan {number}, but the checkpoint is at {self._plan.force}; "
                "restore both from the same time"
            )
        changes = self._plans.deal(number).sizes[-1][0]
        others = [last for announced, last in self._reached.items() if announced != number]
        if max(others, default=BEFORE_ALL) >= changes:
            self._plans.refuse(number)
            raise SkewlessError(
                f"plan {number} changes the batches from window {changes} on, and rows had come for it before: "
                "start the query again, and it goes on by the plan before"
            )
        self._reached = {0: max(self._reached.values(), default=BEFORE_ALL)}

    def _notes(self) -> dict[str, Any]:
        return {**super()._notes(), "plan": self._plan.code, "reached": self._reached, "whose": self._plans.whose}

    def _read(self, notes: dict[str, Any]) -> None:
        super()._read(notes)
        if notes["whose"] != self._plans.whose:
            raise SkewlessError(
                f"the folder {self._plans.uri} does not belong to this checkpoint; name the one it was made with"
            )
        self._plan = Plan.of(notes["plan"])
        self._reached = {int(announced): last for announced, last in notes["reached"].items()}
