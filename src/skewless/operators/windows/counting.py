"""Numbers all rows of a stream in order of time: the rows of each range of time on a worker of their own.

Only counts are known to all: every task tells every worker how many rows its range has, and so every worker knows the
number of its first row. No row passes a worker that all rows pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.core.errors import SkewlessError
from skewless.core.store import Store
from skewless.core.tables import ENOUGH, joined, numbered
from skewless.core.turn import Turn
from skewless.operators.notes import read_notes, write_notes
from skewless.operators.send import Sender, Sending
from skewless.operators.windows.spread import timed
from skewless.operators.windows.worker import MARKED
from skewless.operators.worker import Worker

_COUNT = 2  # columns of a count; rows have a hash, a time, and at least the column of time


@dataclass(frozen=True)
class Ranges(Sending):
    """Sends the rows of a task, in order of time, to the worker of its number, and tells all workers how many they are.

    The rows of a task with a lower number are all earlier. Rows of equal times are in order of their hashes, so that a
    task that runs again sends them in the same order, however they came.

    Parameters
    ----------
    kinds
        The types of hash, time and columns. The hash is of the whole row; where rows arrive, it is that of no key, 0.
    """

    kinds: tuple[pa.DataType, ...]

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        there = [timed(rows.columns, self.kinds) for rows in parts]
        if not there:
            return
        workers, task = len(sender.owners), turn.worker
        if task >= workers:
            raise SkewlessError(f"range {task} of time has no worker, there are {workers}; rows are not in ranges")
        rows = joined(there)
        order = np.lexsort((np.asarray(rows.column(0)), np.asarray(rows.column(1))))
        rows, n = rows.take(pa.array(order)), rows.num_rows
        rows = rows.set_column(0, rows.schema.field(0), pa.array(np.zeros(n, np.int64)))
        for start in range(0, n, ENOUGH):
            some = rows.slice(start, ENOUGH)
            yield sender.send(some, np.full(some.num_rows, task))
        everyone = np.arange(workers)
        yield sender.send(numbered([pa.array(np.full(workers, task)), pa.array(np.full(workers, n))]), everyone)
        yield sender.rest(note=np.where(everyone == task, n, 0).tolist())


class RangeNumberer(Worker):
    """Numbers the rows of a range of time: after all rows of the micro-batches before, and of earlier ranges.

    Every worker keeps the number of all rows so far.

    Parameters
    ----------
    mark
        Names the query.
    turn
        Whose turn it is.
    store
        Where the number of rows is.
    """

    def __init__(self, mark: str, turn: Turn, store: Store) -> None:
        self._mark, self._worker, self._store = mark, turn.worker, store
        noted = read_notes(store, mark, MARKED)
        self._total: int = noted[0]["rows"] if noted else 0

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, with their numbers instead of their times."""
        counts = {table.column(0)[0].as_py(): table.column(1)[0].as_py() for table in tables if _is_count(table)}
        if not counts:
            return
        number = self._total + sum(count for task, count in counts.items() if task < self._worker)
        for rows in tables:
            if not _is_count(rows):
                numbers = pa.array(np.arange(number, number + rows.num_rows))
                number += rows.num_rows
                yield rows.set_column(1, rows.schema.field(1), numbers)
        write_notes(self._store, self._mark, {"rows": self._total + sum(counts.values())})


def _is_count(table: pa.RecordBatch) -> bool:
    return bool(table.num_columns == _COUNT)
