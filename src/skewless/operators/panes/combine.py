"""Combine: the rows of a task become partial states, sent to the workers that keep their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.turn import Turn
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import Partials
from skewless.operators.send import Sender, Sending


@dataclass(frozen=True)
class Combine(Sending):
    """Sends partial states, one for each pane and key, of rows of hash, time, keys and values.

    The note to the driver is the number of the task, how many rows it had, how many states became of them, and the
    microseconds that this took. The time in which the task waited for its rows is not part of it.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    reads
        For each kernel, the columns of the rows that it reads.
    apart
        The hashes of keys that several tasks have, where all the others are in one task only: those are then
        dealt out by size (Prompt's Algorithm 3). None to go by hash, as workers that keep state must.
    """

    layout: Layout
    reads: tuple[tuple[int | None, ...], ...]
    apart: tuple[int, ...] | None = None

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        partials, rows, spent = Partials(self.layout, self.reads), 0, 0
        for part in parts:
            start = perf_counter_ns()
            partials.add(part)
            rows += part.num_rows
            spent += perf_counter_ns() - start
        start = perf_counter_ns()
        states = partials.all()
        spent += perf_counter_ns() - start
        if states is not None:
            yield sender.send(states, self._workers(np.asarray(states.column(0)), len(sender.owners), turn))
        if rows:
            made = 0 if states is None else states.num_rows
            yield sender.rest(note=[turn.worker, rows, made, spent // 1000])

    def _workers(self, hashes: Int64Array, workers: int, turn: Turn) -> Int32Array | Int64Array:
        if self.apart is None:
            return hashes % workers
        from skewless.split.blocks import allocate  # loads numba, which the other workers do without

        keys, which, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
        return allocate(keys, sizes, np.isin(keys, self.apart), workers, turn.worker)[which]
