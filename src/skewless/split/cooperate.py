"""Dalton with several partitioners: each learns by itself, and from time to time all take over a common Q-table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.sketch.table import table_find_all, table_items
from skewless.split.argmax import tree_fill, tree_get, tree_set
from skewless.split.dalton import EARNED, INITIAL, KEPT, Bandit, Dalton, close_rows
from skewless.split.held import WindowState, window_release, window_share
from skewless.split.hot import (
    COUNT,
    KEY,
    LAST_COUNT,
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

MERGES = ("normalised", "printed", "shared")


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
    counts
        How often all partitioners together had each key in the round.
    partitioners
        How many they were.
    round
        The round that it ends; None where partitioners live for one round only.
    """

    keys: Int64Array
    values: FloatArray | None
    until: Int64Array
    load: int
    interval: float
    loads: Int64Array | None = None
    holders: Int64Array | None = None
    counts: Int64Array | None = None
    partitioners: int = 1
    round: int | None = None


@dataclass(frozen=True, eq=False)
class Changes:
    """What a partitioner that lives for one round tells the Q-table reducer.

    Its rewards make `kept` Q + `earned` of a value Q, so that they can be learned by any table, also by one that has
    changed since the round began.

    Attributes
    ----------
    keys, kept, earned
        The hot keys, and for each worker what becomes of its value (keys x workers). A worker that was not tried keeps
        it: 1 and 0.
    counted, counts
        The hot keys and the most frequent others, and how often each came.
    tuples
        All tuples.
    loads
        The tuples on each worker.
    """

    keys: Int64Array
    kept: FloatArray
    earned: FloatArray
    counted: Int64Array
    counts: Int64Array
    tuples: int
    loads: Int64Array


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

    On Spark, where it is given as `split=` of a stream, every task of a micro-batch is a partitioner, and a micro-batch
    is a round. A task starts from the common table (`start`), learns at once, and tells what it changed when its rows
    have ended (`changes`); the loop on the driver is the Q-table reducer.

    Parameters
    ----------
    workers
        Workers that share the load.
    merge
        How the loop on the driver merges what tasks have learned; see `QTableReducer`, which says it in a simulation.
        On Spark "shared" merges the values as "normalised" does, since a task has none of its own to begin with, and
        also tells the loads and fragments of the last round.
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

    def __init__(self, workers: int = 1, *, merge: str = "normalised", **options: Any) -> None:
        for name, kept in (("stats_window", None), ("statistics", "exact")):
            if options.pop(name, kept) != kept:
                raise SkewlessError(
                    f"{name} is always {kept!r} for partitioners that learn together, as a statistics window lasts "
                    f"from one message to the next and keys are counted exactly; omit {name}"
                )
        super().__init__(workers, stats_window=None, statistics="exact", **options)
        check_merge(merge)
        self.merge = merge
        self.in_task, self.batches_in_task = True, False
        self._late = False
        self._sent: Sync | None = None
        self._others: Int64Array = np.zeros(workers, dtype=np.int64)

    @property
    def awaiting(self) -> bool:
        """Whether a message was sent and no common table has come since."""
        return not self.bandit.learns

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
        self.bandit = self.bandit._replace(learns=False, buffered=_no_rewards(self.hot.capacity, self.workers))
        return self._sent

    def receive(self, common: Broadcast) -> None:
        """Take over the common table, learn what was kept back, and prepare again.

        A broadcast that answers no message of this partitioner, such as one that is delivered twice, is refused and
        changes nothing.
        """
        self._check_answer(common)
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
        self.bandit = self.bandit._replace(learns=True, buffered=_no_rewards(0, self.workers))
        if common.loads is not None and common.holders is not None:
            self._share(common.keys, rows, common.loads, common.holders)

    def _check_answer(self, common: Broadcast) -> None:
        if not self.awaiting or self._sent is None:
            raise SkewlessError(
                "this partitioner awaits no broadcast: it has sent no message since the last one, or received this one "
                "already; call due(), give the message to the reducer, and receive each broadcast once"
            )
        if common.round is not None and common.round != self._sent.round:
            raise SkewlessError(
                f"the broadcast ends round {common.round}, but this partitioner awaits that of round "
                f"{self._sent.round}; receive the broadcasts in the order in which they were sent"
            )
        self._check_width(common)

    def _check_width(self, common: Broadcast) -> None:
        """Refuse a table of another number of workers, before anything of it is taken over."""
        for told in (common.values, common.holders, common.loads):
            if told is not None and told.shape[-1] != self.workers:
                raise SkewlessError(
                    f"the common table is of {told.shape[-1]} workers, but this partitioner routes to {self.workers}; "
                    "give the reducer and all partitioners the same number"
                )

    def start(self, common: Broadcast) -> None:
        """Begin a round from a common table, as a partitioner that was never used; it will be asked for `changes`.

        A key that the table does not have is hot by its share of what a partitioner had in the last round: partitioners
        of one round share out the same tuples, and each would find its hot keys late by the load of all.
        """
        self._check_width(common)
        hot = self.hot.state
        if common.load:
            hot.meta[THRESHOLD] = threshold(hot.hot_at, common.load // common.partitioners, self.workers)
        elif self.slide is not None:
            hot.meta[THRESHOLD] = threshold(hot.hot_at, self.slide, self.workers)
        rows = self._rows_for(common.keys)
        if common.values is not None:
            _take_over(self.bandit, rows, common.values)
        if common.counts is not None:
            self.hot.state.rows[rows, LAST_COUNT] = common.counts // common.partitioners
        if common.loads is not None and common.holders is not None:
            held = np.zeros((self.hot.capacity, self.workers), dtype=bool)
            held[rows] = common.holders > 0
            self._others = common.loads // common.partitioners  # what a partitioner had, of the size of its own
            window_share(self.window, self._others, held)
        self.bandit = self.bandit._replace(buffered=_no_rewards(self.hot.capacity, self.workers))

    def changes(self) -> Changes:
        """What was learned and counted since `start`."""
        hot, rows = self.hot.state, self._live()
        tuples = int(hot.meta[STATS_SEEN])
        counted, counts = self._frequent(rows)
        # A key that is hot with all has a hot key's share of the tuples of one of them.
        told = (np.arange(len(counted)) < len(rows)) | (counts >= threshold(hot.hot_at, tuples // 2, self.workers))
        worker = (np.arange(self.workers) - self.bandit.home[rows, None]) % self.workers
        kept, earned = (self.bandit.buffered[rows[:, None], worker, which] for which in (KEPT, EARNED))
        loads = self.loads - self._others
        return Changes(hot.rows[rows, KEY], kept, earned, counted[told], counts[told], tuples, loads)

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
        if 0 < len(self.bandit.buffered) < self.hot.capacity:
            more = _no_rewards(self.hot.capacity - len(self.bandit.buffered), self.workers)
            self.bandit = self.bandit._replace(buffered=np.concatenate([self.bandit.buffered, more]))


def check_merge(merge: str) -> None:
    """Refuse a merge that there is not."""
    if merge not in MERGES:
        raise SkewlessError(f"merge is {merge!r}; choose one of {', '.join(MERGES)}")


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
