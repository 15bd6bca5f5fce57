"""Rows that wait for their windows, in blobs by stretches of time, which go when no window needs them any more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skewless.core import blob
from skewless.core.arrays import Int64Array
from skewless.core.store import Store
from skewless.core.tables import joined

MOST_PARTS = 12
"""The most parts of a stretch: then the newer ones become one."""


class Buffer:
    """Rows by time.

    Parameters
    ----------
    store
        The worker's store.
    stretch
        The length of a stretch of time.
    notes
        What `notes` said when the store was last left.
    """

    def __init__(self, store: Store, stretch: int, notes: dict[str, Any] | None = None) -> None:
        self._store, self._stretch = store, stretch
        self._parts = {int(name): [(n, rows) for n, rows in parts] for name, (parts, _least) in (notes or {}).items()}
        self._least = {int(name): int(least) for name, (_parts, least) in (notes or {}).items()}

    def notes(self) -> dict[str, Any]:
        """What is to be known when the store is read again, for JSON."""
        return {str(name): (parts, self._least[name]) for name, parts in self._parts.items()}

    @property
    def rows(self) -> int:
        """Rows that are held."""
        return sum(rows for parts in self._parts.values() for _number, rows in parts)

    @property
    def least(self) -> int | None:
        """The first time of a row that is held."""
        return min(self._least.values(), default=None)

    def add(self, rows: pa.RecordBatch, times: Int64Array) -> None:
        """Hold rows."""
        stretches = times // self._stretch
        order = np.argsort(stretches, kind="stable")
        there, starts = np.unique(stretches[order], return_index=True)
        edges = [*starts.tolist(), len(order)]
        for i, name in enumerate(there.tolist()):
            some = order[edges[i] : edges[i + 1]]
            part = rows if len(some) == rows.num_rows else rows.take(pa.array(some))
            self._least[name] = min(int(times[some].min()), self._least.get(name, int(times[some[0]])))
            self._append(name, part)

    def read(self, start: int, stop: int) -> list[pa.RecordBatch]:
        """All stretches with a time from `start` to before `stop`, earlier ones first."""
        found = []
        for name in sorted(self._parts):
            if name * self._stretch < stop and (name + 1) * self._stretch > start:
                found += [self._load(name, number) for number, _rows in self._parts[name]]
        return found

    def forget(self, before: int) -> None:
        """Drop the stretches that end by a time."""
        for name in [name for name in self._parts if (name + 1) * self._stretch <= before]:
            self._drop(name, self._parts.pop(name))
            del self._least[name]

    def _append(self, name: int, rows: pa.RecordBatch) -> None:
        parts = self._parts.setdefault(name, [])
        if len(parts) >= MOST_PARTS:
            # Join the newer half, and on to one that is larger than all after it: each row is written anew a few times.
            size, keep = rows.num_rows, len(parts)
            while keep and (keep > MOST_PARTS // 2 or parts[keep - 1][1] <= size):
                keep -= 1
                size += parts[keep][1]
            newest = [*[self._load(name, number) for number, _rows in parts[keep:]], rows]
            self._drop(name, parts[keep:])
            del parts[keep:]
            rows = joined(newest)
        number = parts[-1][0] + 1 if parts else 0
        self._store.put(f"{name}/{number}", blob.dump(rows.columns))
        parts.append((number, rows.num_rows))

    def _load(self, name: int, number: int) -> pa.RecordBatch:
        return blob.load(self._store.need(f"{name}/{number}"))

    def _drop(self, name: int, parts: list[tuple[int, int]]) -> None:
        for number, _rows in parts:
            self._store.drop(f"{name}/{number}")
