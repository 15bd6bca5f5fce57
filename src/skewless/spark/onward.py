"""From one stage to the next: the rows that workers give are sent on to other workers, in the same micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from skewless.chop.assignment import Assignment
from skewless.core.turn import Turn
from skewless.operators.send import Sender
from skewless.operators.windows.spread import copies
from skewless.spark.stage import LINES, Out

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Onward(Out):
    """Sends the rows of a worker, hash, number and columns, on to workers of the next stage.

    Parameters
    ----------
    assignment
        Which worker of the next stage has a window.
    owners
        For each worker the value that Spark shuffles to it.
    unit
        What the numbers of the rows are to be multiplied by, to be times.
    """

    assignment: Assignment
    owners: tuple[int, ...]
    unit: int = 1

    def schema(self, *, streaming: bool) -> str | T.StructType:
        """Lines."""
        return LINES

    def batches(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pa.RecordBatch]:
        """Lines; the first worker tells all others that the micro-batch is there."""
        sender, loads = Sender(self.owners, turn.worker), np.zeros(len(self.owners), np.int64)
        for answer in answers:
            times = np.asarray(answer.column(1)) * self.unit
            yield copies(answer.set_column(1, answer.schema.field(1), pa.array(times)), self.assignment, sender, loads)
        if turn.worker == 0:
            yield sender.rest()

    def frames(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pd.DataFrame]:
        """The same for pandas."""
        for lines in self.batches(answers, turn):
            yield lines.to_pandas()
