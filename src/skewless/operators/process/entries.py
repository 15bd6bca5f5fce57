"""The entries of a slot: a row for each key, with its hash, its columns and its state.

A column of microseconds says when the key's timer is due, another when the key was last touched, and the last whether
the entry says that the key is gone. Entries are sorted by hash, so that those of some keys are found by bisection;
keys of one hash are told apart by their columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.keys import codes
from skewless.core.tables import joined

HASH = 0
TIMER, TOUCHED, GONE = "timer", "touched", "gone"


@dataclass(frozen=True)
class Layout:
    """The columns of entries.

    Parameters
    ----------
    keys
        The columns of the key.
    fields
        The columns of the state.
    """

    keys: pa.Schema
    fields: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """The columns of entries, with names that cannot clash."""
        columns = [("hash", pa.int64())]
        columns += [(f"k{i}", kind) for i, kind in enumerate(self.keys.types)]
        columns += [(f"s{i}", kind) for i, kind in enumerate(self.fields.types)]
        return pa.schema([*columns, (TIMER, pa.int64()), (TOUCHED, pa.int64()), (GONE, pa.bool_())])

    @property
    def mark(self) -> str:
        """Names everything that stored state depends on."""
        return json.dumps([[[field.name, str(field.type)] for field in part] for part in (self.keys, self.fields)])

    def keys_of(self, entries: pa.RecordBatch) -> list[pa.Array]:
        """The key columns."""
        return entries.columns[1 : 1 + len(self.keys)]  # type: ignore[no-any-return]  # pyarrow has no types

    def fields_of(self, entries: pa.RecordBatch) -> list[pa.Array]:
        """The state columns."""
        start = 1 + len(self.keys)
        return entries.columns[start : start + len(self.fields)]  # type: ignore[no-any-return]  # as above

    def empty(self) -> pa.RecordBatch:
        """No entries."""
        return pa.RecordBatch.from_arrays([pa.array([], type=kind) for kind in self.schema.types], schema=self.schema)

    def entries(
        self,
        hashes: Int64Array,
        keys: Sequence[pa.Array],
        fields: Sequence[pa.Array],
        timers: pa.Array,
        touched: pa.Array,
        there: BoolArray,
    ) -> pa.RecordBatch:
        """Entries of these columns, sorted by hash.

        A key with nothing to keep gets an entry that says that it is gone, or none if nothing was `there` before.
        """
        kept = np.asarray(timers.is_valid())
        for field in fields:
            kept = kept | np.asarray(field.is_valid())
        columns = [pa.array(hashes), *keys, *fields, timers, touched, pa.array(~kept)]
        entries = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        order = np.argsort(hashes, kind="stable")
        return entries.take(pa.array(order[(kept | there)[order]]))


def newest(parts: Sequence[pa.RecordBatch], layout: Layout) -> pa.RecordBatch:
    """The last entry of each key, without those that say that a key is gone."""
    entries = joined(parts)
    if len(parts) > 1:
        numbers, first = codes(layout.keys_of(entries))
        last = np.empty(len(first), dtype=np.int64)
        last[numbers] = np.arange(len(numbers))  # of equal places the last one stays
        hashes = np.asarray(entries.column(HASH))[last]
        entries = entries.take(pa.array(last[np.argsort(hashes, kind="stable")]))
    gone = np.asarray(entries.column(GONE).to_numpy(zero_copy_only=False))
    return entries.filter(pa.array(~gone)) if gone.any() else entries


def find(
    parts: Sequence[pa.RecordBatch], layout: Layout, hashes: Int64Array, keys: Sequence[pa.Array]
) -> tuple[pa.RecordBatch, Int64Array]:
    """All entries of the parts, and where in them the last one of each of these keys is; -1 for none.

    Parameters
    ----------
    parts
        Entries sorted by hash, older parts first.
    layout
        The columns of entries.
    hashes, keys
        The hash and the columns of each key; the keys are all different.
    """
    starts, places = 0, []
    for part in parts:
        have = np.asarray(part.column(HASH))
        low, high = np.searchsorted(have, hashes, "left"), np.searchsorted(have, hashes, "right")
        places.append(_ranges(low, high) + starts)
        starts += len(have)
    entries, at = joined(parts), np.concatenate(places)
    found = np.full(len(hashes), -1, dtype=np.int64)
    if len(at):
        there = [column.take(pa.array(at)) for column in layout.keys_of(entries)]
        numbers, _first = codes([pa.concat_arrays([one, other]) for one, other in zip(keys, there, strict=True)])
        numbers = numbers[len(hashes) :]  # the keys asked for are different, so their numbers are their places
        same = numbers < len(hashes)
        found[numbers[same]] = at[same]  # of equal places the last one stays
    return entries, found


def _ranges(low: Int64Array, high: Int64Array) -> Int64Array:
    """All numbers from each low up to its high, one range after the other."""
    lengths = high - low
    ends = np.cumsum(lengths)
    numbers: Int64Array = np.arange(ends[-1] if len(ends) else 0) + np.repeat(low - (ends - lengths), lengths)
    return numbers
