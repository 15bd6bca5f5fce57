"""The one contract of everything that keeps state: a worker takes its rows of a micro-batch and gives rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from skewless.core.store import Store
from skewless.core.turn import Turn


class Worker(ABC):
    """Keeps the state of some keys, slots or windows, and is called in every micro-batch.

    It is made anew for each micro-batch, from its store.
    """

    @property
    def wake(self) -> int | None:
        """The time, in microseconds, at which there is something to do though no rows come; None if there is none."""
        return None

    @abstractmethod
    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """The result of a micro-batch. The state is stored once all of it was taken.

        Parameters
        ----------
        control
            The code of the version that the rows were sent by; None in a call without rows, which goes by the version
            of the last call, and for operators that have no versions.
        tables
            The rows, in the order in which they were sent.
        watermark
            Microseconds: no row before it is still to come. None without a watermark; `END` when all rows are there.
        """


Maker = Callable[[Turn, Store], Worker]
"""Makes a worker for its turn."""
