"""Pack: rows go to the worker that owns their slot, and with them goes the version that they are sent by.

The control of a micro-batch names the placement in force and the announced one. Whether the announced one is due is
found here, so that nobody waits for the driver; workers go by what they are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.control.placements import OnePlacement, Placements
from skewless.control.version import Version
from skewless.core.arrays import Int64Array
from skewless.core.tables import cast, numbered
from skewless.core.turn import Turn
from skewless.operators.send import Sender, Sending, control_of

HASH, CONTROL = 0, 1  # columns of the rows that come; the input's follow


@dataclass(frozen=True)
class Pack(Sending):
    """Sends rows of hash, control and input columns to the workers that own their slots.

    The note to the driver is how many rows there were in each slot.

    Parameters
    ----------
    placements
        The stream's folder, or the one placement of a batch.
    schema
        The names and types of the input columns.
    """

    placements: Placements | OnePlacement
    schema: pa.Schema

    def send(self, parts: Iterable[pa.RecordBatch], sender: Sender, turn: Turn) -> Iterator[pa.RecordBatch]:
        """The lines to send."""
        counts: Int64Array = np.zeros(0, dtype=np.int64)
        code = None
        for rows in parts:
            version = Version.of(control_of(rows.column(CONTROL)))
            self.placements.check(version, turn)
            version = self.placements.due(version, turn)
            code = version.code
            placement = self.placements.placement(version.force, turn)
            slots = placement.slot_of(np.asarray(rows.column(HASH)))
            counted = np.bincount(slots, minlength=placement.slots)
            counts = counted if not len(counts) else counts + counted
            columns = [rows.column(HASH), *cast(rows.columns[CONTROL + 1 :], self.schema.types)]
            yield sender.send(numbered(columns), placement.owners[slots], control=code)
        if code is not None:
            yield sender.rest(code, counts.tolist())
