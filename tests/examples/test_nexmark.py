"""The processors under `examples/nexmark` without Spark: bids that come late, in any micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.placements import OnePlacement
from skewless.control.version import Version
from skewless.core.hashing import xxhash64
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import END
from skewless.operators.process import Processor
from skewless.operators.process.worker import Columns, ProcessWorker, Task
from skewless.place import Placement
from support.scripts import load

balanced = load("nexmark/balanced")

TIME = pa.timestamp("us", tz="UTC")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
SECOND = 1_000_000
BEGIN = int(START.timestamp()) * SECOND
SESSION = pa.struct([("start", TIME), ("last", TIME), ("n", pa.int64())])
AUCTION = pa.struct([("id", pa.int64()), ("ts", TIME), ("expires", TIME)])
BID = pa.struct(
    [("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("ts", TIME), ("extra", pa.string())]
)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


class Query:
    """A processor of one key on one worker, and the state that it keeps."""

    def __init__(self, processor: Processor, rows: pa.Schema, state: pa.Schema, given: pa.Schema) -> None:
        columns = Columns(rows, keys=(0,), order=(1,), time=1)
        self.task = Task(processor, columns, state, given, OnePlacement(Placement.of(1, [0])))
        self.store, self.rows = MemoryStore(), rows

    def run(self, rows: list[tuple[Any, ...]], watermark: float | None = None) -> list[tuple[Any, ...]]:
        """What a micro-batch gives, without the key."""
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(self.rows)]
        schema = pa.schema([("hash", pa.int64()), *self.rows])
        table = pa.RecordBatch.from_arrays([pa.array(xxhash64(columns[0])), *columns], schema=schema)
        reached = END if watermark is None else BEGIN + round(watermark * SECOND)
        worker = ProcessWorker(self.task, Turn(0), self.store)
        found = list(worker.run(Version(0).code if rows else None, [table], reached))
        return [tuple(row.values())[1:] for batch in found for row in batch.to_pylist()]

    @property
    def wakes(self) -> bool:
        """Whether a timer is set."""
        return ProcessWorker(self.task, Turn(0), self.store).wake is not None


def sessions() -> Query:
    given = pa.schema([("n", pa.int64()), ("start", TIME), ("end", TIME)])
    rows = pa.schema([("bidder", pa.int64()), ("ts", TIME)])
    return Query(balanced.Sessions(), rows, pa.schema([("open", pa.list_(SESSION))]), given)


def bids(*seconds: float) -> list[tuple[int, datetime]]:
    return [(7, at(second)) for second in seconds]


def test_a_late_bid_joins_the_sessions_before_and_after_it() -> None:
    query = sessions()
    assert query.run(bids(0, 15), watermark=-20) == []
    assert query.run(bids(8), watermark=-5) == []
    assert query.run(bids(60), watermark=25) == [(3, at(0), at(25))]


def test_a_session_is_given_when_the_watermark_has_reached_its_end_and_not_when_a_newer_bid_comes() -> None:
    query = sessions()
    query.run(bids(0, 30, 60), watermark=-30)
    assert query.run(bids(61), watermark=9.9) == []
    assert query.run([], watermark=45) == [(1, at(0), at(10)), (1, at(30), at(40))]
    assert query.run([]) == [(2, at(60), at(71))]
    assert not query.wakes


def expected(seconds: Iterable[float]) -> list[tuple[int, datetime, datetime]]:
    """The sessions of all bids, found at once."""
    groups: list[list[float]] = []
    for second in sorted(seconds):
        if groups and second <= groups[-1][-1] + 10:
            groups[-1].append(second)
        else:
            groups.append([second])
    return [(len(group), at(group[0]), at(group[-1] + 10)) for group in groups]


@given(st.lists(st.lists(st.integers(0, 120), max_size=5), max_size=8), st.integers(0, 60))
def test_sessions_are_those_of_all_bids_in_time_however_they_come(batches: list[list[int]], delay: int) -> None:
    query, found, taken, newest = sessions(), [], [], -delay
    for batch in batches:
        watermark = newest - delay
        given = query.run(bids(*batch), watermark)
        assert all(end <= at(watermark) for _n, _start, end in given)
        found += given
        taken += [second for second in batch if second > watermark]
        newest = max([newest, *batch])
    assert sorted([*found, *query.run([])], key=lambda session: session[1]) == expected(taken)


def closing(processor: Processor | None = None) -> Query:
    rows = pa.schema([("id", pa.int64()), ("ts", TIME), ("opened", AUCTION), ("bid", BID)])
    won = [("ts", TIME), ("expires", TIME), ("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64())]
    given = pa.schema([*won, ("bid_ts", TIME), ("bid_extra", pa.string())])
    return Query(
        processor or balanced.Closing(), rows, pa.schema([("auction", AUCTION), ("bids", pa.list_(BID))]), given
    )


def auction(start: float, end: float) -> tuple[Any, ...]:
    return 1, at(start), {"id": 1, "ts": at(start), "expires": at(end)}, None


def bid(second: float, price: int) -> tuple[Any, ...]:
    row = {"auction": 1, "bidder": 2, "price": price, "ts": at(second), "extra": ""}
    return 1, at(second), None, row


def won(start: float, end: float, price: int, second: float) -> tuple[Any, ...]:
    return at(start), at(end), 1, 2, price, at(second), ""


def test_a_bid_that_comes_before_its_auction_counts() -> None:
    query = closing()
    query.run([bid(10, 5), bid(4, 9)], watermark=0)
    query.run([auction(6, 20), bid(8, 4)], watermark=5)
    assert query.run([bid(19, 3), bid(21, 50)], watermark=12) == []
    assert query.run([], watermark=20) == [won(6, 20, 5, 10)]


@pytest.mark.parametrize("end", [None, 100])
def test_bids_on_an_auction_that_is_over_are_not_kept(end: float | None) -> None:
    query = closing()
    query.run([auction(0, 10), bid(5, 1)], watermark=-1)
    assert query.run([bid(11, 2), bid(30, 3)], watermark=10) == [won(0, 10, 1, 5)]
    assert query.run([bid(31, 4)], watermark=15) == []
    assert query.wakes
    assert query.run([], watermark=end) == []
    assert not query.wakes
    assert query.run([bid(120, 1)], watermark=100) == []
    assert query.run([auction(110, 130)], watermark=105) == []
    assert query.run([]) == [won(110, 130, 1, 120)]


class Counted(balanced.Closing):  # type: ignore[misc]  # a script's class has no type here
    """Counts the bids that it keeps after each micro-batch."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def process(self, key: Any, rows: Any, state: Any) -> None:
        super().process(key, rows, state)
        self.kept.append(len(state["bids"] or ()))


def test_bids_without_an_auction_are_kept_only_while_an_auction_may_come() -> None:
    processor = Counted()
    query = closing(processor)
    for second in range(100):  # the watermark is 20 seconds behind the bid of the micro-batch before
        query.run([bid(second, second)], watermark=second - 21)
    assert max(processor.kept) == 21
    query.run([auction(85, 200)], watermark=79)
    assert query.run([]) == [won(85, 200, 99, 99)]


def prices() -> Query:
    closed = pa.struct([("ts", TIME), ("price", pa.int64())])
    rows = pa.schema([("seller", pa.int64()), ("bid_ts", TIME), ("price", pa.int64())])
    given = pa.schema([("bid_ts", TIME), ("average", pa.float64())])
    return Query(balanced.Prices(), rows, pa.schema([("closed", pa.list_(closed))]), given)


def test_an_auction_that_closes_late_with_an_early_bid_changes_the_averages_after_it() -> None:
    query = prices()
    assert query.run([(7, at(5), 10), (7, at(9), 30)], watermark=-1) == [(at(5), 10.0), (at(9), 20.0)]
    assert query.run([(7, at(12), 50)], watermark=-1) == [(at(12), 30.0)]
    assert query.run([(7, at(7), 2)], watermark=-1) == [(at(7), 6.0), (at(9), 14.0), (at(12), 23.0)]


@given(st.permutations(range(30)), st.integers(1, 12))
def test_the_newest_average_of_each_bid_is_over_eleven_prices_however_they_come(order: list[int], size: int) -> None:
    query, newest = prices(), {}
    for start in range(0, len(order), size):
        newest |= dict(query.run([(7, at(i), i * i) for i in order[start : start + size]], watermark=-1))
    last = {at(i): [j * j for j in range(max(0, i - 10), i + 1)] for i in range(30)}
    assert newest == {ts: sum(each) / len(each) for ts, each in last.items()}
