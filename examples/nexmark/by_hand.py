"""Nexmark's queries that Spark's SQL and DataFrames have no operator for, written by hand with its state in Python.

They are what `balanced.py` is compared with: each is a `StatefulProcessor`, with the same rows. Where a query has many
keys, it is given rows (`transformWithState`), which is the faster of Spark's ways then; where it has few with many rows
each, as counts of distinct values do, it is given pandas frames, and its state are the sets of values.

Times are microseconds in states and rows, as Spark 4.3 gives times with a zone in rows and without one in states.

- Auctions that close (9): append mode, by event time.
- Counts of distinct values (15, 16): update mode, the rows that changed.
- The last or the best rows of a key (18, 19): append mode, the rows of each key that had new ones; the newest count.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from plain import RANKS, day, minute_of
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from streams import AUCTIONS, BIDS, Streams

BEST = 10
BID = ("bidder", "price", "channel", "url", "ts", "extra")
_BIDS, _AUCTIONS = (columns.replace("timestamp", "long") for columns in (BIDS, AUCTIONS))
_REST = _BIDS.removeprefix("auction long, ")
_OPENED = _AUCTIONS.removeprefix("id long, ")
OPENED = tuple(column.split()[0] for column in _OPENED.split(", "))


class Newest(StatefulProcessor):
    """Gives the last bid of each key, of bids of the same time the highest; the state is its time and price."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._newest = handle.getValueState("newest", "ts long, price long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Take bids of somebody on an auction."""
        last = max(rows, key=lambda row: (row.ts, row.price))
        before = self._newest.get()
        if before is None or (last.ts, last.price) >= tuple(before):
            self._newest.update((last.ts, last.price))
            yield last

    def close(self) -> None:
        """Nothing to close."""


def q18(streams: Streams) -> DataFrame:
    """The last bid of everybody on each auction."""
    keyed = _as_numbers(streams.bids, "ts").groupBy("bidder", "auction")
    return _as_times(keyed.transformWithState(Newest(), _BIDS, "append", "none"), "ts")


class Best(StatefulProcessor):
    """Keeps the ten best bids on each auction, and gives them whenever there are new ones."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._best = handle.getListState("best", _REST)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Take bids on an auction."""
        bids = [tuple(row[name] for name in BID) for row in rows]
        if self._best.exists():
            bids += [tuple(bid) for bid in self._best.get()]
        best = heapq.nsmallest(BEST, bids, key=lambda bid: (-bid[1], bid[4]))
        self._best.put(best)
        for rank, bid in enumerate(best, 1):
            yield Row(auction=key[0], **dict(zip(BID, bid, strict=True)), rank=rank)

    def close(self) -> None:
        """Nothing to close."""


def q19(streams: Streams) -> DataFrame:
    """The ten highest bids on each auction."""
    keyed = _as_numbers(streams.bids, "ts").groupBy("auction")
    return _as_times(keyed.transformWithState(Best(), f"{_BIDS}, rank int", "append", "none"), "ts")


class Closing(StatefulProcessor):
    """Gives each auction with its best bid when it is over, and keeps bids that come before their auction for so long.

    A bid that is as old as the watermark and has no auction will have none.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._handle = handle
        self._auction = handle.getValueState("auction", _OPENED)
        self._bids = handle.getListState("bids", _REST)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Take the auction, and the bids on it."""
        new = list(rows)
        bids = [tuple(row.bid[name] for name in BID) for row in new if row.bid is not None]
        if self._bids.exists():
            bids += [tuple(bid) for bid in self._bids.get()]
        opened = next((tuple(row.opened[name] for name in OPENED) for row in new if row.opened is not None), None)
        if opened is not None:
            self._auction.update(opened)
            for timer in list(self._handle.listTimers()):  # of bids that waited for it
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(_milliseconds(opened[5]))
        else:
            opened = self._auction.get()
        if opened is not None:
            self._keep(_best(bids, opened[4], opened[5]))
            return
        self._keep(bids)
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(_milliseconds(min(bid[4] for bid in bids)))
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """No bid on the auction can come any more, or no auction for some of the bids."""
        bids = [tuple(bid) for bid in self._bids.get()] if self._bids.exists() else []
        auction = self._auction.get()
        if auction is None:
            watermark = timerValues.getCurrentWatermarkInMs()
            waiting = [bid for bid in bids if _milliseconds(bid[4]) > watermark]
            self._keep(waiting)
            if waiting:
                self._handle.registerTimer(_milliseconds(min(bid[4] for bid in waiting)))
            return
        self._auction.clear()
        self._bids.clear()
        for bidder, price, _channel, _url, ts, extra in bids:
            won = dict(zip(OPENED, auction, strict=True))
            yield Row(id=key[0], **won, auction=key[0], bidder=bidder, price=price, bid_ts=ts, bid_extra=extra)

    def close(self) -> None:
        """Nothing to close."""

    def _keep(self, bids: list[tuple[Any, ...]]) -> None:
        if bids:
            self._bids.put(bids)
        else:
            self._bids.clear()


def _best(bids: Iterable[tuple[Any, ...]], opened: int, expires: int) -> list[tuple[Any, ...]]:
    in_time = (bid for bid in bids if opened <= bid[4] <= expires)
    return heapq.nsmallest(1, in_time, key=lambda bid: (-bid[1], bid[4]))


def _milliseconds(time: int) -> int:
    """As Spark has timers, none of which may be early."""
    return -(-time // 1000)


def _as_numbers(rows: DataFrame, *times: str) -> DataFrame:
    return rows.withColumns({name: F.unix_micros(name) for name in times})


def _as_times(rows: DataFrame, *numbers: str) -> DataFrame:
    return rows.withColumns({name: F.timestamp_micros(name) for name in numbers})


def _struct(columns: str) -> str:
    return f"struct<{', '.join(column.replace(' ', ': ') for column in columns.split(', '))}>"


def q9(streams: Streams) -> DataFrame:
    """Every auction with its winning bid, when it is over."""
    auctions, bids = streams.auctions.withColumn("at", F.col("ts")), streams.bids.withColumn("at", F.col("ts"))
    auctions, bids = _as_numbers(auctions, "ts", "expires"), _as_numbers(bids, "ts")
    opened, bid = F.struct(*streams.auctions.columns), F.struct(*streams.bids.columns)
    no_auction, no_bid = F.lit(None).cast(_struct(_AUCTIONS)), F.lit(None).cast(_struct(_BIDS))
    rows = auctions.select("id", "at", opened.alias("opened"), no_bid.alias("bid")).union(
        bids.select("auction", "at", no_auction.alias("opened"), bid.alias("bid"))
    )
    keyed = rows.withWatermark("at", streams.watermark).groupBy("id")
    won = f"{_AUCTIONS}, auction long, bidder long, price long, bid_ts long, bid_extra string"
    return _as_times(keyed.transformWithState(Closing(), won, "append", "eventTime"), "ts", "expires", "bid_ts")


SETS = tuple((column, name) for column in ("bidder", "auction") for name in ("total", *RANKS))
COUNTED = ("total", *RANKS)
_STATE = ", ".join(
    [f"{name}_bids long" for name in COUNTED] + [f"{name}_{column}s array<long>" for column, name in SETS]
)


class Days(StatefulProcessor):
    """Counts the bids, bidders and auctions of a key; the state are counts and the sets of values.

    Parameters
    ----------
    minute
        Whether the last minute of a bid is wanted too.
    """

    def __init__(self, *, minute: bool) -> None:
        self._minute = minute

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._seen = handle.getValueState("seen", _STATE + ", minute string")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        """Take the bids of a day."""
        bids = pd.concat(rows)
        of = {name: bids if name == "total" else bids[bids[name]] for name in COUNTED}
        before = self._seen.get()
        had = before or (0,) * len(COUNTED) + ((),) * len(SETS) + ("",)
        counts = [int(n) + len(of[name]) for n, name in zip(had, COUNTED, strict=False)]
        sets = [
            set(old).union(of[name][column].tolist())
            for old, (column, name) in zip(had[len(COUNTED) : -1], SETS, strict=True)
        ]
        minute = max(had[-1], bids["minute"].max())
        self._seen.update((*counts, *(list(each) for each in sets), minute))
        given: dict[str, Any] = dict(zip(self._keys, key, strict=True))
        if self._minute:
            given["minute"] = minute
        given |= {f"{name}_bids": n for name, n in zip(COUNTED, counts, strict=True)}
        given |= {f"{name}_{column}s": len(each) for (column, name), each in zip(SETS, sets, strict=True)}
        yield pd.DataFrame({name: [value] for name, value in given.items()})

    def close(self) -> None:
        """Nothing to close."""

    @property
    def _keys(self) -> tuple[str, ...]:
        return ("channel", "day") if self._minute else ("day",)


def _by_day(streams: Streams, *keys: str, minute: bool) -> DataFrame:
    ranked = streams.bids.withColumns({name: F.expr(rank) for name, rank in RANKS.items()})
    rows = ranked.select("bidder", "auction", *RANKS, *keys, day(), minute_of("ts").alias("minute"))
    numbers = [f"{name}_bids long" for name in COUNTED] + [f"{name}_{column}s long" for column, name in SETS]
    texts = [f"{name} string" for name in (*keys, "day", *(["minute"] if minute else []))]
    given = ", ".join(texts + numbers)
    return rows.groupBy(*keys, "day").transformWithStateInPandas(Days(minute=minute), given, "update", "none")


def q15(streams: Streams) -> DataFrame:
    """Bids, bidders and auctions of each day, by price."""
    return _by_day(streams, minute=False)


def q16(streams: Streams) -> DataFrame:
    """The same for each channel, with the last minute of a bid."""
    return _by_day(streams, "channel", minute=True)


QUERIES = {number: globals()[f"q{number}"] for number in (9, 15, 16, 18, 19)}
