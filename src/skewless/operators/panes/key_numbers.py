"""The keys of a worker, each with a small number; a key without rows gives its number to a new one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skewless.core import blob
from skewless.core.arrays import Int64Array
from skewless.core.keys import codes
from skewless.core.store import Store

_NAME = "keys/{}"


class KeyNumbers:
    """Keys by number, and in how many panes each has rows.

    What is stored is a log: new keys are appended to it, and it is written anew when it is mostly outdated.

    Parameters
    ----------
    types
        The types of the key columns.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.columns: list[pa.Array] = [pa.array([], type=kind) for kind in types]
        self.uses = np.zeros(0, dtype=np.int64)
        self._new: list[tuple[Int64Array, list[pa.Array]]] = []
        self._chunks = 0
        self._logged = 0

    def __len__(self) -> int:
        return len(self.uses)

    def of(self, keys: Sequence[pa.Array]) -> Int64Array:
        """The number of each of these keys; a new key gets one."""
        old = len(self)
        together = [pa.concat_arrays([have, more]) for have, more in zip(self.columns, keys, strict=True)]
        numbers, first = codes(together)
        numbers, first = numbers[old:], first[old:]  # the keys there are differ, so these are their own
        if not len(first):
            return numbers
        free = np.flatnonzero(self.uses == 0)
        free = free[~np.isin(free, numbers)][: len(first)]
        given = np.concatenate([free, np.arange(old, old + len(first) - len(free))])
        at = np.arange(old + len(first) - len(free))
        at[given] = first
        self.columns = [column.take(pa.array(at)) for column in together]
        self.uses = np.concatenate([self.uses, np.zeros(len(at) - old, dtype=np.int64)])
        self._new.append((given, [column.take(pa.array(first)) for column in together]))
        return np.concatenate([np.arange(old), given])[numbers]

    def take(self, numbers: Int64Array) -> list[pa.Array]:
        """The key columns of these numbers."""
        return [column.take(pa.array(numbers)) for column in self.columns]

    def save(self, store: Store) -> int:
        """Write what is new, and return how many pieces there are now."""
        for given, columns in self._new:
            self._logged += len(given)
            store.put(_NAME.format(self._chunks), blob.dump([pa.array(given), *columns]))
            self._chunks += 1
        self._new = []
        if self._logged > 2 * len(self) + 1024 or self._chunks > 64:
            for chunk in range(1, self._chunks):
                store.drop(_NAME.format(chunk))
            store.put(_NAME.format(0), blob.dump([pa.array(np.arange(len(self))), *self.columns]))
            self._chunks, self._logged = 1, len(self)
        return self._chunks

    @classmethod
    def load(cls, types: Sequence[pa.DataType], uses: Int64Array, chunks: int, store: Store) -> KeyNumbers:
        """What was saved."""
        loaded = cls(types)
        loaded.uses, loaded._chunks = uses, chunks
        pieces = [blob.load(store.need(_NAME.format(chunk))).columns for chunk in range(chunks)]
        loaded._logged = sum(len(piece[0]) for piece in pieces)
        if pieces:
            where = np.concatenate([np.asarray(piece[0]) for piece in pieces])
            at = np.empty(len(uses), dtype=np.int64)
            at[where] = np.arange(len(where))  # of equal places the last one stays
            columns = [pa.concat_arrays([piece[i + 1] for piece in pieces]) for i in range(len(types))]
            loaded.columns = [column.take(pa.array(at)) for column in columns]
        return loaded
