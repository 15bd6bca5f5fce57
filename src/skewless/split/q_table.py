"""The Q-table reducer: makes one table of those that the partitioners learned, and sets how often they tell."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from skewless.core.arguments import check_whole
from skewless.core.arrays import FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.split.cooperate import Broadcast, Changes, Sync, check_merge
from skewless.split.dalton import INITIAL
from skewless.split.hot import threshold


class QTableReducer:
    """Merges the tables of several partitioners once all of them have sent theirs; it may serve several queries.

    The hot keys are those with `hot_at` of a worker's fair share of all tuples of the round; they are hot for this
    round and the next. The value of a worker for a key is the average of the partitioners' values, weighted by how
    often each of them had the key.

    The interval between messages is doubled if any partitioner asks for it, and halved if the reducer has been idle for
    longer than it worked since the last round of the query. So it settles where it is longer than the work and at most
    twice as long, and halving it never makes it shorter than the work.

    Parameters
    ----------
    partitioners
        The partitioners of a query, which all send a message before a round is merged.
    workers
        The workers that they route to.
    interval
        Seconds from one message to the next, the paper's DSYNC, as every query starts with.
    merge
        "normalised" averages over the partitioners that have the key. "printed" is the paper's formula: it divides by
        the load of all keys and by the number of partitioners, which moves all values towards 0, so that workers that
        were never tried look best and a hot key ends up on all workers. "shared" leaves every partitioner its own
        values, and tells it which loads and fragments the others have made.
    hot_at
        Share of a worker's fair load from which a key is hot, as the partitioners have it.
    shortest
        Seconds below which the interval is never set, at most `interval`; an eighth of `interval` if not given.

    Examples
    --------
    >>> from skewless.split import CooperativeDalton
    >>> reducer = QTableReducer(2, workers=4, interval=10.0)
    >>> team = [CooperativeDalton(4, slide=None, hot_at=1.0) for _ in range(2)]
    >>> for partitioner, keys in zip(team, ([7, 7, 7, 9], [7, 8, 9, 9])):
    ...     _ = partitioner.route(np.array(keys))
    ...     all_there = reducer.add(partitioner.due())
    >>> common = reducer.reduce(start=10.0, work=6.0)
    >>> common.keys, common.load, common.interval     # 4 and 3 of 8 tuples, where a quarter is fair
    (array([7, 9]), 8, 10.0)
    """

    def __init__(
        self,
        partitioners: int,
        workers: int,
        *,
        interval: float,
        merge: str = "normalised",
        hot_at: float = 1.0,
        shortest: float | None = None,
    ) -> None:
        check_whole("partitioners", partitioners)
        check_whole("workers", workers)
        for name, seconds in (("interval", interval), ("shortest", interval / 8 if shortest is None else shortest)):
            if not 0 < seconds < inf:
                raise SkewlessError(f"{name} is {seconds} seconds; give a finite number above 0")
        if shortest is not None and shortest > interval:
            raise SkewlessError(
                f"shortest is {shortest} seconds, but interval, with which every query starts, is {interval}; give at "
                f"most {interval}"
            )
        if not 0 < hot_at < inf:
            raise SkewlessError(f"hot_at is {hot_at}; give a share of the fair load above 0, such as 1.0")
        check_merge(merge)
        self.partitioners, self.workers, self.merge, self.hot_at = partitioners, workers, merge, hot_at
        self.free = 0.0
        """When all work is done that the reducer was given."""
        self._first = interval
        self._shortest = interval / 8 if shortest is None else shortest
        self._busy = 0.0  # all work so far
        self._then: dict[Hashable, tuple[float, float]] = {}  # when a query's last round was done, and _busy then
        self._intervals: dict[Hashable, float] = {}
        self._messages: dict[Hashable, list[Sync]] = {}
        self._ended: dict[Hashable, int] = {}  # a query's last round

    def interval(self, query: Hashable = 0) -> float:
        """Seconds from one message to the next, for the partitioners of a query."""
        return self._intervals.get(query, self._first)

    def add(self, message: Sync, query: Hashable = 0) -> bool:
        """Take the message of one partitioner; return whether all are there.

        A message that is delivered twice, that is of another round than those that are there, or that comes when all
        are there, is refused and changes nothing.
        """
        self._check_message(message, self._messages.get(query, []), self._ended.get(query))
        messages = self._messages.setdefault(query, [])
        messages.append(message)
        return len(messages) == self.partitioners

    def _check_message(self, message: Sync, messages: Sequence[Sync], merged: int | None) -> None:
        if message.values.shape[1] != self.workers:
            raise SkewlessError(
                f"the message is of a partitioner of {message.values.shape[1]} workers, but the reducer has "
                f"{self.workers}; give both the same number"
            )
        if any(message is each for each in messages):
            raise SkewlessError(
                f"this message of round {message.round} was added already; add the message of each partitioner once"
            )
        if messages and message.round != messages[0].round:
            raise SkewlessError(
                f"the message is of round {message.round}, but those that are there are of round {messages[0].round}, "
                "and only messages of one round are merged, not of different rounds; have every partitioner receive "
                "each broadcast once before it sends the next message"
            )
        if merged is not None and message.round <= merged:
            raise SkewlessError(
                f"the message is of round {message.round}, but round {merged} was merged already; add the message of "
                "each partitioner once, and give a query whose partitioners are new a name of its own"
            )
        if len(messages) == self.partitioners:
            raise SkewlessError(
                f"the messages of all {self.partitioners} partitioners are there; reduce them before you add another, "
                "or give the messages of another query its name"
            )

    def reduce(self, start: float, work: float, query: Hashable = 0) -> Broadcast:
        """Merge the messages of a round; if one is missing, those that are there stay.

        Parameters
        ----------
        start
            When the work begins: not before the last message has come and all work given earlier is done. A finite
            number of seconds, at least 0.
        work
            The seconds that it takes: a finite number, at least 0.
        query
            Whose messages are merged.
        """
        for name, seconds in (("start", start), ("work", work)):
            if not 0 <= seconds < inf:
                raise SkewlessError(f"{name} is {seconds} seconds; give a finite number, at least 0")
        messages = self._messages.get(query, [])
        if len(messages) != self.partitioners:
            raise SkewlessError(f"{len(messages)} of {self.partitioners} messages are there; wait for all of a round")
        del self._messages[query]
        self._ended[query] = messages[0].round
        interval = self.interval(query)
        if any(message.double for message in messages):
            interval *= 2
        elif query in self._then and self._idles(query, start, work):
            interval = max(self._shortest, interval / 2)
        self.free, self._busy = start + work, self._busy + work
        self._intervals[query], self._then[query] = interval, (self.free, self._busy)
        return _merged(messages, self.workers, self.hot_at, self.merge, interval, own=self.merge == "shared")

    def _idles(self, query: Hashable, start: float, work: float) -> bool:
        """Whether more of the time since the query's last round was idle than was spent on work."""
        since, done = self._then[query]
        busy = self._busy + work - done
        return start + work - since - busy > busy


def learned(
    common: Broadcast, ended: int, told: Sequence[Changes], workers: int, hot_at: float, merge: str
) -> Broadcast:
    """The table after a round of partitioners that lived for that round, who learned from this table or an older one.

    Their rewards are learned by the table of now, as in the paper those are that came while a partitioner awaited it.

    Parameters
    ----------
    common
        The table of now.
    ended
        The number of the round, in which the keys are hot that `common` has until then.
    told
        What the partitioners told, at least one.
    workers, hot_at, merge
        As for `QTableReducer`; with "shared" values are merged as with "normalised", and loads and fragments told too.

    >>> table = Broadcast(np.array([7]), np.array([[-2.0, -1.0]]), np.array([1]), load=9, interval=0.0)
    >>> none, half = np.array([[1.0, 1.0]]), np.array([[0.5, 1.0]])
    >>> one = Changes(table.keys, half, np.array([[-0.5, 0.0]]), table.keys, np.array([6]), 8, np.array([8, 0]))
    >>> two = Changes(table.keys, none, np.array([[0.0, 0.0]]), table.keys, np.array([2]), 8, np.array([0, 8]))
    >>> learned(table, 1, [one, two], workers=2, hot_at=1.0, merge="normalised").values
    array([[-1.625, -1.   ]])
    """
    messages = [_replayed(common, ended, each, workers) for each in told]
    return _merged(messages, workers, hot_at, merge, common.interval, own=False)


def _replayed(common: Broadcast, ended: int, told: Changes, workers: int) -> Sync:
    """The message of a partitioner that had the table of now when it learned what it did."""
    keys = np.union1d(common.keys, told.keys)
    values = (
        np.full((len(keys), workers), INITIAL)
        if common.values is None
        else _rows(keys, common.keys, common.values, INITIAL)
    )
    kept, earned = _rows(keys, told.keys, told.kept, 1.0), _rows(keys, told.keys, told.earned, 0.0)
    until = np.full(len(keys), -1, dtype=np.int64)
    until[np.searchsorted(keys, common.keys)] = common.until
    return Sync(
        keys=keys,
        values=kept * values + earned,
        until=until,
        counted=told.counted,
        counts=told.counts,
        tuples=told.tuples,
        round=ended,
        double=False,
        loads=told.loads,
        held=kept < 1,
    )


def _merged(
    messages: Sequence[Sync], workers: int, hot_at: float, merge: str, interval: float, *, own: bool
) -> Broadcast:
    """One table of all messages of a round; without values if partitioners keep their own."""
    load, ended = sum(message.tuples for message in messages), messages[0].round
    keys = np.unique(np.concatenate([each for message in messages for each in (message.keys, message.counted)]))
    counts = np.zeros((len(messages), len(keys)), dtype=np.int64)
    until = np.full(len(keys), -1, dtype=np.int64)
    for row, message in zip(counts, messages, strict=True):
        row[np.searchsorted(keys, message.counted)] = message.counts
        at = np.searchsorted(keys, message.keys)
        until[at] = np.maximum(until[at], message.until)
    until[counts.sum(axis=0) >= threshold(hot_at, load, workers)] = ended + 1
    hot = until > ended
    keys, counts, until = keys[hot], counts[:, hot], until[hot]
    counted, many = counts.sum(axis=0), len(messages)
    common = Broadcast(keys, None, until, load, interval, counts=counted, partitioners=many, round=ended)
    if merge == "shared":
        held = [_rows(keys, message.keys, message.held.astype(np.float64), 0.0) for message in messages]
        loads: Int64Array = np.sum([message.loads for message in messages], axis=0)
        common = replace(common, loads=loads, holders=np.sum(held, axis=0).astype(np.int64))
    if own:
        return common
    values = np.array([_rows(keys, message.keys, message.values, np.nan) for message in messages])
    weights = counts / max(1, load) / len(messages) if merge == "printed" else _normalised(counts, values)
    merged = np.nansum(weights[:, :, None] * values, axis=0)
    merged[np.isnan(values).all(axis=0)] = INITIAL
    return replace(common, values=merged)


def _normalised(counts: Int64Array, values: FloatArray) -> FloatArray:
    """The weight of each partitioner for each key, which add up to 1 over those that have a row for it."""
    weights = np.where(np.isnan(values[:, :, 0]), 0.0, counts + 1e-9)  # a key that nobody counted is averaged evenly
    total = weights.sum(axis=0)
    normalised: FloatArray = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return normalised


def _rows(keys: Int64Array, known: Int64Array, rows: FloatArray, fill: float) -> FloatArray:
    """What a message has for each of `keys`: its row, or `fill` where it has none."""
    out = np.full((len(keys), rows.shape[1]), fill)
    mine, theirs = np.intersect1d(keys, known, return_indices=True)[1:]
    out[mine] = rows[theirs]
    return out
