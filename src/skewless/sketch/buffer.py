"""Prompt's frequency-aware buffering: a micro-batch that is nearly sorted by the time it ends."""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import NamedTuple

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, lean_kernel
from skewless.sketch import count_tree
from skewless.sketch.batch import Batch, gather
from skewless.sketch.count_tree import CountTree
from skewless.sketch.keys import as_keys
from skewless.sketch.open_addressing import HELD, find, grown, put

# The columns of a key's record.
COUNT, IN_TREE, LEFT, UPDATED_AT, F_STEP, T_STEP = 0, 1, 2, 3, 4, 5
RECORD = 6
PAST = 5  # past batches that the estimates are averaged over


class Pace(NamedTuple):
    """What decides when the keys of a batch move in the tree."""

    end: int
    budget: int
    expected_tuples: float
    first_f_step: int


class FrequencyBuffer:
    """Groups a micro-batch by key while it arrives, and keeps the keys nearly sorted by frequency.

    A hash table has each key's exact count, each row has the number of its key, and a `CountTree` has the keys in the
    order of an older count. A key moves in the tree only when it has f_step new tuples, or a new tuple and t_step time
    since its last move, and at most `budget` times in a batch. f_step is (tuples expected / budget) x the key's share
    so far, so a key that keeps its share spreads its moves over the batch; t_step is the time left over the moves left,
    and serves the rare keys. A new key starts with f_step = tuples expected / (keys expected x budget). At the end a
    walk through the tree gives the batch.

    Bounds. Counts and rows are exact. In the tree a key with moves left lags behind its count by less than its f_step,
    and so by less than ceil(tuples expected / budget); a key without moves left stays where its last one put it. If a
    key comes later than one of smaller count, the two counts differ by no more than its lag. All moves cost O(budget K
    log K), and none of it is left for the end of the batch.

    Parameters
    ----------
    interval
        Length of a batch in the unit of `times`, or in tuples if no times are given.
    budget
        Moves in the tree that a key may make in a batch.
    expected_tuples, expected_keys
        Estimates for the first batch (by default `interval` tuples, and as many keys as the square root of the tuples);
        later batches use the average of the last ones.
    start
        Time at which the first batch starts; it takes the times in [start, start + interval), and the next batch
        follows.

    Examples
    --------
    >>> buffer = FrequencyBuffer(interval=8)
    >>> buffer.add(np.array([5, 9, 5, 7]))
    >>> buffer.add(np.array([5, 9]))
    >>> batch = buffer.finish()
    >>> batch.keys.tolist(), batch.counts.tolist(), batch.rows.tolist()
    ([5, 9, 7], [3, 2, 1], [0, 2, 4, 1, 5, 3])

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref. Prompt: Dynamic Data-Partitioning for Distributed
    Micro-batch Stream Processing Systems. SIGMOD 2020, Algorithm 1.
    """

    def __init__(
        self,
        interval: int,
        budget: int = 10,
        *,
        expected_tuples: float | None = None,
        expected_keys: float | None = None,
        start: int = 0,
    ) -> None:
        """See the class."""
        if interval < 1:
            raise SkewlessError(f"interval is {interval}: give the length of a batch, 1 or more")
        if budget < 1:
            raise SkewlessError(f"budget is {budget}: give every key 1 or more updates in a batch")
        self.interval = interval
        self.budget = budget
        self.start = start
        self.expected_tuples = float(max(1, interval if expected_tuples is None else expected_tuples))
        self.expected_keys = max(1.0, self.expected_tuples**0.5 if expected_keys is None else expected_keys)
        self._past: deque[tuple[int, int]] = deque(maxlen=PAST)
        # The record of tree node n is in row n; the hash table has two entries for each node.
        self._tree = CountTree()
        self._records: Int64Array = np.empty((len(self._tree.nodes), RECORD), np.int64)
        self._table: Int64Array = np.zeros((2 * len(self._tree.nodes), 2), np.int64)
        self._owners: Int64Array = np.empty(0, np.int64)
        self._rows = 0

    @property
    def end(self) -> int:
        """The time at which the open batch ends: the first time that it does not take."""
        return self.start + self.interval

    def add(self, keys: Int64Array, times: Int64Array | None = None) -> None:
        """Take the next tuples of the batch; without `times` each counts as one unit of time."""
        keys = as_keys(keys)
        if times is None:
            times = np.arange(self.start + self._rows, self.start + self._rows + len(keys), dtype=np.int64)
        times = np.ascontiguousarray(times, np.int64)
        if len(times) != len(keys):
            raise SkewlessError(f"{len(times)} times for {len(keys)} keys: give one time for each key")
        for time in (times.min(), times.max()) if len(times) else ():
            if not self.start <= time < self.end:
                raise SkewlessError(
                    f"time {time} is outside the open batch [{self.start}, {self.end}): call finish() first"
                )
        rows = self._rows + len(keys)
        if rows > len(self._owners):
            self._owners = np.resize(self._owners, max(rows, 2 * len(self._owners)))
        first_f_step = ceil(self.expected_tuples / (self.expected_keys * self.budget))
        pace = Pace(self.end, self.budget, self.expected_tuples, first_f_step)
        while len(keys):
            owners = self._owners[self._rows :]
            taken = _buffer(self._table, self._tree.nodes, self._records, pace, keys, times, owners, self._rows)
            self._rows += taken
            keys, times = keys[taken:], times[taken:]
            if len(keys):
                self._grow()

    def _grow(self) -> None:
        self._tree.grow()
        self._records = np.concatenate((self._records, np.empty_like(self._records)))
        self._table = grown(self._table)

    def __len__(self) -> int:
        """Keys of the open batch."""
        return len(self._tree)

    def finish(self) -> Batch:
        """End the batch: its keys by falling tree count, equal ones by rising key. The next batch starts empty."""
        keys, counts = self._tree.nodes[:, count_tree.KEY], self._records[:, COUNT]
        batch = gather(self.walk(), keys, counts, self._owners[: self._rows])
        self._past.append((self._rows, len(self)))
        self.expected_tuples, self.expected_keys = (max(1.0, float(mean)) for mean in np.mean(self._past, axis=0))
        self.clear()
        self.start = self.end
        return batch

    def walk(self) -> Int64Array:
        """The numbers of the open batch's keys, by falling tree count."""
        return self._tree.walk()

    def clear(self) -> None:
        """Forget the tuples of the open batch and keep the memory."""
        self._table[:] = 0
        self._tree.clear()
        self._rows = 0


@lean_kernel
def _buffer(
    table: Int64Array,
    nodes: Int64Array,
    records: Int64Array,
    pace: Pace,
    keys: Int64Array,
    times: Int64Array,
    owners: Int64Array,
    before: Int,
) -> Int:
    """Take tuples up to the first new key for which there is no room, and return how many were taken."""
    for i in range(len(keys)):
        key, now = keys[i], times[i]
        slot = find(table, key)
        node = table[slot, HELD]
        if node == 0:
            if count_tree.full(nodes):
                return i
            node = count_tree.insert(nodes, key, 1)
            put(table, key, node, slot)
            owners[i] = node
            records[node, COUNT] = 1
            records[node, IN_TREE] = 1
            records[node, LEFT] = pace.budget
            records[node, UPDATED_AT] = now
            records[node, F_STEP] = pace.first_f_step
            records[node, T_STEP] = _ceil_div(pace.end - now, pace.budget)
            continue
        owners[i] = node
        count = records[node, COUNT] + 1
        records[node, COUNT] = count
        if records[node, LEFT] == 0:
            continue
        # The paper compares with ==, but a time that jumps could miss its step. Steps are rounded up to whole numbers.
        by_frequency = count - records[node, IN_TREE] >= records[node, F_STEP]
        if by_frequency or now - records[node, UPDATED_AT] >= records[node, T_STEP]:
            count_tree.update(nodes, node, count)
            records[node, IN_TREE] = count
            records[node, LEFT] -= 1
            records[node, UPDATED_AT] = now
            if by_frequency:
                records[node, F_STEP] = np.int64(np.ceil(pace.expected_tuples / pace.budget * count / (before + i + 1)))
            elif records[node, LEFT] > 0:
                records[node, T_STEP] = _ceil_div(pace.end - now, records[node, LEFT])
    return len(keys)


@inner
def _ceil_div(a: Int, b: Int) -> Int:
    return -(-a // b)
