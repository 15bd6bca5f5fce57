"""Forward: windows of keys whose rows are all in one task, from rows to results without a second stop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import END
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import Partials
from skewless.operators.panes.worker import PanesWorker


@dataclass(frozen=True)
class Forward:
    """Aggregates rows of hash, time, keys and values, if no other task has rows of the same keys.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    reads
        For each kernel, the columns of the rows that it reads.
    """

    layout: Layout
    reads: tuple[tuple[int | None, ...], ...]

    def answers(self, parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All windows of these rows: start, keys and values."""
        partials = Partials(self.layout, self.reads)
        for part in parts:
            partials.add(part)
        states = partials.all()
        if states is not None:
            worker = PanesWorker(self.layout, Turn(0), MemoryStore())
            worker.add([states])
            yield from worker.close(END)
