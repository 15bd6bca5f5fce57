"""Dalton with several partitioners: each learns by itself, and from time to time all take over a common Q-table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.sketch.table import table_find_all, table_items
from skewless.split.argmax import tree_fill, tree_get, tree_set
from skewless.split.dalton import EARNED, INITIAL, KEPT, Bandit, Dalton, close_rows
from skewless.split.held import WindowState, window_release, window_share
from skewless.split.hot import (
    COUNT,
    KEY,
    MISSING,
    STATS_SEEN,
    THRESHOLD,
    UNTIL,
    WINDOW,
    HotState,
    hot_promote,
    hot_recount,
    hot_release,
    threshold,
)


@dataclass(frozen=True, eq=False)
class Sync:
    """What a partitioner tells the Q-table reducer.

    Attributes
    ----------
    keys, values, until
        The hot keys; the value of each worker for each of them, as an array of keys x workers; and the last round in
        which each of them is hot, as far as this partitioner knows.
    counted, counts
        The hot keys and the most frequent others, and how often each came since the last message.
    tuples
        All tuples since the last message.
    round
        The number of the round, from 0.
    double
        Whether the last broadcast came after the next message was due.
    loads, held
        The tuples of the window on each worker, and whether a worker holds a hot key (keys x workers): only what this
        partitioner sent there.
    """

    keys: Int64Array
    values: FloatArray
    until: Int64Array
    counted: Int64Array
    counts: Int64Array
    tuples: int
    round: int
    double: bool
    loads: Int64Array
    held: BoolArray


@dataclass(frozen=True, eq=False)
class Broadcast:
    """What the Q-table reducer tells all partitioners.

    Attributes
    ----------
    keys, values, until
        The common Q-table: its keys, the value of each worker for each of them, or no values if every partitioner keeps
        its own; and the last round in which each key is hot.
    load
        The tuples that all partitioners together had in the round.
    interval
        Seconds from one message of a partitioner to the next, the paper's DSYNC.
    loads, holders
        The tuples of the window on each worker, and the number of partitioners that hold a key there (keys x workers);
        None if they are not shared.
    """

    keys: Int64Array
    values: FloatArray | None
    until: Int64Array
    load: int
    interval: float
    loads: Int64Array | None = None
    holders: Int64Array | None = None


class CooperativeDalton(Dalton):
    """One of several partitioners that learn together (Algorithm 2 of the paper).

    A partitioner prepares or awaits. While it prepares, it learns as `Dalton` does. With each message to the Q-table
    reducer it begins to await; then it routes on and computes rewards, but keeps them back. When the common table
    comes, it replaces the partitioner's own, the rewards kept back are learned in their order, and the partitioner
    prepares again. The rewards kept back for a worker change its value Q to a Q + b, so that a and b are all that is
    stored of them.

    A statistics window lasts from one message to the next. A key is hot if it has `hot_at` of a worker's fair share of
    what all partitioners had in the last round, or if the common table has it. Nothing is hot before the first
    broadcast.

    Parameters
    ----------
    workers
        Workers that share the load.
    options
        As for `Dalton`, except `stats_window` and `statistics`: keys are counted exactly, for a sketch does not know
        which keys are frequent.

    Examples
    --------
    >>> partitioner = CooperativeDalton(4, slide=None, hot_at=1.0)
    >>> _ = partitioner.route(np.array([7, 7, 7, 9]))
    >>> message = partitioner.due()
    >>> message.counted, message.counts, message.tuples, partitioner.awaiting
    (array([7, 9]), array([3, 1]), 4, True)
    >>> partitioner.due() is None       # no answer until now: the next message will ask for a longer interval
    True

    References
    ----------
    E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022, 4.1.
    """

    def __init__(self, workers: int = 1, **options: Any) -> None:
        super().__init__(workers, stats_window=None, statistics="exact", **options)
        self._late = False
        self._sent: Sync | None = None
        self._others: Int64Array = np.zeros(workers, dtype=np.int64)

    @property
    def awaiting(self) -> bool:
        """Whether a message was sent and no common table has come since."""
        return len(self.bandit.buffered) > 0

    def due(self) -> Sync | None:
        """The message to send now, as the interval has passed; None while the partitioner still awaits a broadcast."""
        if self.awaiting:
            assert self._sent is not None  # an answer is awaited
            self._late = not self._sent.double  # a request is already on its way
            return None
        hot, rows = self.hot.state, self._live()
        counted, counts = self._frequent(rows)
        self._sent = Sync(
            keys=hot.rows[rows, KEY],
            values=np.array([self.values(int(key)) for key in hot.rows[rows, KEY]]).reshape(-1, self.workers),
            until=hot.rows[rows, UNTIL],
            counted=counted,
            counts=counts,
            tuples=int(hot.meta[STATS_SEEN]),
            round=int(hot.meta[WINDOW]),
            double=self._late,
            loads=self.loads - self._others,
            held=self._own(rows),
        )
        self._late = False
        hot_recount(hot)
        self.bandit = self.bandit._replace(buffered=_no_rewards(self.hot.capacity, self.workers))
        return self._sent

    def receive(self, common: Broadcast) -> None:
        """Take over the common table, learn what was kept back, and prepare again."""
        hot = self.hot.state
        hot.meta[THRESHOLD] = threshold(hot.hot_at, common.load, self.workers)
        live = self._live()
        new = hot.rows[live, UNTIL] > hot.meta[WINDOW]  # hot since the message, so the reducer does not know them
        self._release(live[~new & ~np.isin(hot.rows[live, KEY], common.keys)])
        rows = self._rows_for(common.keys)
        hot = self.hot.state
        hot.rows[rows, UNTIL] = np.maximum(hot.rows[rows, UNTIL], common.until)
        if common.values is not None:
            _take_over(self.bandit, rows, common.values)
        _learn(self.bandit, self._live())
        self.bandit = self.bandit._replace(buffered=_no_rewards(0, self.workers))
        if common.loads is not None and common.holders is not None:
            self._share(common.keys, rows, common.loads, common.holders)

    def _live(self) -> Int64Array:
        """The rows of the hot keys."""
        return np.flatnonzero(self.hot.state.rows[:, UNTIL] != MISSING)

    def _frequent(self, live: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The hot keys and as many of the most frequent others as can be hot, with their counts."""
        rows = self.hot.state.rows
        keys, counts = table_items(self.hot.counts.table)
        others = ~np.isin(keys, rows[live, KEY])
        keys, counts = keys[others], counts[others]
        most = np.argsort(-counts, kind="stable")[: int(np.ceil(self.workers / self.hot.state.hot_at))]
        return np.append(rows[live, KEY], keys[most]), np.append(rows[live, COUNT], counts[most])

    def _own(self, rows: Int64Array) -> BoolArray:
        """Row x worker: where this partitioner itself sent the keys of the window."""
        bits = np.bitwise_or.reduce(self.window.bits[:-1, rows], axis=0)
        worker = np.arange(self.workers)
        own: BoolArray = (bits[:, worker >> 6] >> (worker & 63)) & 1 == 1
        return own

    def _release(self, rows: Int64Array) -> None:
        _release(self.bandit, self.hot.state, self.window, rows)
        self.bandit.buffered[rows] = _no_rewards(len(rows), self.workers)

    def _rows_for(self, keys: Int64Array) -> Int64Array:
        """The rows of these keys, which become hot if they are not."""
        missing = keys[self.hot.rows(keys) == MISSING]
        self._make_room(len(missing) + 1)
        counts = np.zeros(len(missing), dtype=np.int64)
        table_find_all(self.hot.counts.table, missing, counts)
        _open(self.bandit, self.hot.state, missing, counts, homes(missing, self.workers))
        return self.hot.rows(keys)

    def _share(self, keys: Int64Array, rows: Int64Array, loads: Int64Array, holders: Int64Array) -> None:
        """Count in what the others hold: all that was told, without what this partitioner told itself."""
        assert self._sent is not None  # a broadcast answers a message
        held = holders.copy()
        mine, theirs = np.intersect1d(self._sent.keys, keys, return_indices=True)[1:]
        held[theirs] -= self._sent.held[mine]
        every = np.zeros((self.hot.capacity, self.workers), dtype=bool)
        every[rows] = held > 0
        others = loads - self._sent.loads
        window_share(self.window, others - self._others, every)
        self._others = others

    def _make_room(self, needed: int = 1) -> None:
        super()._make_room(needed)
        if self.awaiting and self.hot.capacity > len(self.bandit.buffered):
            more = _no_rewards(self.hot.capacity - len(self.bandit.buffered), self.workers)
            self.bandit = self.bandit._replace(buffered=np.concatenate([self.bandit.buffered, more]))


def _no_rewards(rows: int, workers: int) -> FloatArray:
    """A buffer that leaves every value as it is."""
    buffer = np.zeros((rows, workers, 2))
    buffer[:, :, KEPT] = 1.0
    return buffer


@lean_kernel
def _release(bandit: Bandit, hot: HotState, window: WindowState, rows: Int64Array) -> None:
    hot_release(hot, rows)
    for row in rows:
        window_release(window, row)
    close_rows(bandit, hot)


@lean_kernel
def _open(bandit: Bandit, hot: HotState, keys: Int64Array, counts: Int64Array, homes: Int32Array) -> None:
    for i in range(keys.shape[0]):
        row = hot_promote(hot, keys[i], counts[i])
        bandit.home[row] = homes[i]
        tree_fill(bandit.tree, row, hot.workers, INITIAL)


@lean_kernel
def _take_over(bandit: Bandit, rows: Int64Array, values: FloatArray) -> None:
    workers = values.shape[1]
    for i in range(rows.shape[0]):
        for arm in range(workers):
            tree_set(bandit.tree, rows[i], arm, values[i, (bandit.home[rows[i]] + arm) % workers])


@lean_kernel
def _learn(bandit: Bandit, rows: Int64Array) -> None:
    """Learn the rewards that were kept back, as equation 5 would have, one after the other."""
    buffered = bandit.buffered
    for row in rows:
        for arm in range(buffered.shape[1]):
            if buffered[row, arm, KEPT] < 1.0:
                q = buffered[row, arm, KEPT] * tree_get(bandit.tree, row, arm) + buffered[row, arm, EARNED]
                tree_set(bandit.tree, row, arm, q)
