"""Nexmark's queries with skewless, where Spark has no operator for streams, or to compare its operators with ours.

Each function takes the streams and gives a DataFrame with the rows of the query of the same number in `plain.py`. The
queries with state that does not merge need a folder of their own when they run as streams.

- Windows (5, 7, 12): append mode.
- Auctions that close (4, 9) and sessions (11): append mode, a row when it is final.
- Counts of distinct values (15, 16) and per day (17): update mode, the rows that changed. Days are those of UTC, as
  windows of a day are, whatever the time zone of the session.
- The last or the best rows of a key (18, 19): append mode, the rows of each key that had new ones; the newest count.
- Averages over closing prices (4, 6): a second query over the files that 9 writes; of 6, the newest row of a seller and
  a winning bid counts.

Windows that overlap (5) are faster than Spark's own, and so are 9, 15, 16, 18 and 19 beside the same written by hand.
The others are not: `make bench-nexmark` writes the rates of all to docs/results/nexmark.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from plain import RANKS, day, minute_of
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from streams import AUCTIONS, BIDS, Streams

import skewless as sk

GAP = timedelta(seconds=10)
BEST, LAST = 10, 11


def counts_of_windows(streams: Streams) -> DataFrame:
    """The bids on each auction in the last 10 seconds, every 2 seconds."""
    windows = sk.keyed(streams.bids, "auction").window("ts", "10 seconds", "2 seconds", streams.watermark)
    return windows.agg(num=sk.count())


def with_most(counts: DataFrame) -> DataFrame:
    """The auctions with the most bids of each window.

    All rows of a window come in one micro-batch, so a stream of counts can be ranked in `foreachBatch`.
    """
    most = F.max("num").over(Window.partitionBy("window"))
    ranked = counts.withColumn("most", most).where("num = most")
    return ranked.select(F.col("window.start").alias("start"), "auction", "num")


def q5(streams: Streams) -> DataFrame:
    """The auctions with the most bids of the last 10 seconds, every 2 seconds; of a stream, see `with_most`."""
    return with_most(counts_of_windows(streams))


def q7(streams: Streams) -> DataFrame:
    """The highest bids of every 10 seconds: consecutive windows are on different workers."""
    rows = "auction long, price long, bidder long, ts timestamp, extra string"
    windows = sk.windowed(streams.bids, "ts", size="10 seconds", watermark=streams.watermark)
    return windows.apply(_highest, rows, arrow=True).drop("window")


def _highest(key: tuple[()], window: Any, bids: pa.Table) -> pa.Table:
    best = bids.filter(pc.equal(bids["price"], pc.max(bids["price"])))
    return best.select(["auction", "price", "bidder", "ts", "extra"])


def _struct(columns: str) -> str:
    """A struct of these columns, as a type."""
    return f"struct<{', '.join(column.replace(' ', ': ') for column in columns.split(', '))}>"


class Closing(sk.Processor):
    """Gives each auction with its best bid when it is over.

    A bid that comes before its auction waits until the watermark has passed the bid: an auction that comes later than
    that was opened after the bid, or is late. So the bids on auctions that are over are not kept for ever.
    """

    state = f"auction {_struct(AUCTIONS)}, bids array<{_struct(BIDS)}>"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> None:
        """Take the auction, and the bids on it."""
        bids = list(state["bids"] or ())
        for auction, bid in zip(rows["opened"], rows["bid"], strict=True):
            if auction is not None:
                state["auction"] = auction
                state.timer = auction["expires"]
            else:
                bids.append(bid)
        opened = state["auction"]
        if opened is None:
            self._wait(bids, state)
            return
        # Only the best is needed any more.
        in_time = (bid for bid in bids if opened["ts"] <= bid["ts"] <= opened["expires"])
        state["bids"] = sorted(in_time, key=lambda bid: (-bid["price"], bid["ts"]))[:1]

    def expire(self, key: tuple[int], state: sk.State) -> Iterator[tuple[Any, ...]]:
        """No bid on the auction can come any more, or no auction for some of the bids."""
        auction, bids = state["auction"], state["bids"]
        if auction is None:
            self._wait([bid for bid in bids if bid["ts"] > state.watermark], state)
            return
        state.forget()
        for bid in bids:
            _id, *rest = auction.values()
            yield (*rest, bid["auction"], bid["bidder"], bid["price"], bid["ts"], bid["extra"])

    @staticmethod
    def _wait(bids: list[dict[str, Any]], state: sk.State) -> None:
        """Keep bids without an auction until the watermark has passed the first of them."""
        state["bids"] = bids or None
        state.timer = min((bid["ts"] for bid in bids), default=None)


def q9(streams: Streams, folder: str | None = None) -> DataFrame:
    """Every auction with its winning bid, when it is over."""
    opened = streams.auctions.select(
        "id", "ts", F.struct(*streams.auctions.columns).alias("opened"), F.lit(None).cast(_struct(BIDS)).alias("bid")
    )
    bids = streams.bids.select(
        F.col("auction").alias("id"),
        "ts",
        F.lit(None).cast(_struct(AUCTIONS)).alias("opened"),
        F.struct(*streams.bids.columns).alias("bid"),
    )
    _, rest = AUCTIONS.split(", ", 1)
    won = f"{rest}, auction long, bidder long, price long, bid_ts timestamp, bid_extra string"
    rows = sk.keyed(opened.union(bids), "id")
    return rows.process(Closing(), won, folder=folder, order="ts", time="ts", watermark=streams.watermark)


def averages(closed: DataFrame) -> DataFrame:
    """The average closing price of each category, from the rows of `q9`."""
    return closed.groupBy("category").agg(F.avg("price").alias("average"))


def q4(streams: Streams, folder: str | None = None) -> DataFrame:
    """The average closing price of each category: for a batch.

    As a stream it is two queries: `q9` writes files, and `averages` of a stream of these files is written in complete
    or in update mode.
    """
    return averages(q9(streams, folder))


class Prices(sk.Processor):
    """Gives the average of a seller's last eleven closing prices, at each of them, in the order of winning bids.

    Auctions close in another order than their winning bids came. So all prices of a seller are kept, and one that comes
    between others gives those anew whose average it changes.
    """

    state = "closed array<struct<ts: timestamp, price: long>>"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[datetime, float]]:
        """Take auctions of a seller that have closed."""
        had = [(each["ts"], each["price"], False) for each in state["closed"] or ()]
        new = [(ts, price, True) for ts, price in zip(rows["bid_ts"], rows["price"], strict=True)]
        closed = sorted(had + new)
        state["closed"] = [{"ts": ts, "price": price} for ts, price, _new in closed]
        for i in range(len(closed)):
            last = closed[max(0, i + 1 - LAST) : i + 1]
            if any(is_new for _ts, _price, is_new in last):
                yield closed[i][0], sum(price for _ts, price, _new in last) / len(last)


def averages_of_sellers(closed: DataFrame, folder: str | None = None) -> DataFrame:
    """The average of each seller's last closing prices, at each of them, from the rows of `q9`."""
    given = "bid_ts timestamp, average double"
    return sk.keyed(closed.select("seller", "bid_ts", "price"), "seller").process(Prices(), given, folder=folder)


def q6(streams: Streams, folder: str | None = None) -> DataFrame:
    """The average of each seller's last eleven closing prices, at each of them: for a batch.

    As a stream it is two queries: `q9` writes files, and `averages_of_sellers` of a stream of these files gives the
    averages that are new or have changed.
    """
    return averages_of_sellers(q9(streams, folder))


class Sessions(sk.Processor):
    """Keeps the sessions of each bidder that a bid may still join, and gives those that are over.

    A bid may come in a later micro-batch than newer ones, and then joins two sessions, or starts one before them.
    """

    state = "open array<struct<start: timestamp, last: timestamp, n: long>>"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> None:
        """Take the bids of somebody."""
        bids = ({"start": ts, "last": ts, "n": 1} for ts in rows["ts"])
        sessions: list[dict[str, Any]] = []
        for each in sorted([*(state["open"] or ()), *bids], key=lambda session: session["start"]):
            before = sessions[-1] if sessions else None
            if before is not None and each["start"] <= before["last"] + GAP:
                before.update(last=max(before["last"], each["last"]), n=before["n"] + each["n"])
            else:
                sessions.append(each)
        self._keep(sessions, state)

    def expire(self, key: tuple[int], state: sk.State) -> Iterator[tuple[int, datetime, datetime]]:
        """Give the sessions that no bid can join any more."""
        over = [session for session in state["open"] if session["last"] + GAP <= state.watermark]
        self._keep(state["open"][len(over) :], state)
        for session in over:
            yield session["n"], session["start"], session["last"] + GAP

    @staticmethod
    def _keep(sessions: list[dict[str, Any]], state: sk.State) -> None:
        state["open"] = sessions or None
        state.timer = sessions[0]["last"] + GAP if sessions else None


def q11(streams: Streams, folder: str | None = None) -> DataFrame:
    """How often people bid while they do, without a pause of 10 seconds."""
    given = "n long, start timestamp, end timestamp"
    bids = sk.keyed(streams.bids.select("bidder", "ts"), "bidder")
    return bids.process(Sessions(), given, folder=folder, order="ts", time="ts", watermark=streams.watermark)


def q12(streams: Streams, time: str = "ts") -> DataFrame:
    """How many bids people made in every 10 seconds of this column of times."""
    counts = sk.keyed(streams.bids, "bidder").window(time, "10 seconds", watermark=streams.watermark).agg(n=sk.count())
    return counts.select("bidder", "n", F.col("window.start").alias("start"), F.col("window.end").alias("end"))


class Distinct(sk.Aggregate):
    """The exact number of different values: states are sets, so that a key can be on several workers."""

    def partial(self, table: pa.Table) -> pa.Table:
        """The different values of each group."""
        valid = pc.CountOptions(mode="only_valid")
        sets = table.rename_columns(["group", "values"]).group_by("group").aggregate([("values", "distinct", valid)])
        return sets.rename_columns(["group", "values"])

    def merge(self, table: pa.Table) -> pa.Table:
        """The union of sets."""
        values = pc.list_flatten(table["values"])
        pairs = pa.table({"group": table["group"].take(pc.list_parent_indices(table["values"])), "values": values})
        nothing = pa.nulls(len(table), values.type)  # so that groups whose sets are empty are there too
        return self.partial(pa.concat_tables([pairs, pa.table({"group": table["group"], "values": nothing})]))

    def finish(self, table: pa.Table) -> pa.Table:
        """How many there are."""
        return pa.table({"group": table["group"], "n": pc.list_value_length(table["values"]).cast(pa.int64())})


def _by_rank(bids: DataFrame) -> DataFrame:
    """Bids with a column for each rank: 1, the bidder and the auction of the bids that are of it."""
    for name, rank in RANKS.items():
        of_rank = F.expr(rank)
        bids = bids.withColumns(
            {
                f"{name}_bids": F.when(of_rank, 1),
                f"{name}_bidders": F.when(of_rank, F.col("bidder")),
                f"{name}_auctions": F.when(of_rank, F.col("auction")),
            }
        )
    return bids


COUNTS = {"total_bids": sk.count(), **{f"{name}_bids": sk.count(f"{name}_bids") for name in RANKS}}
DISTINCT = {
    f"{name}_{column}s": Distinct(column if name == "total" else f"{name}_{column}s")
    for column in ("bidder", "auction")
    for name in ("total", *RANKS)
}


def _by_day(streams: Streams, keys: list[str], **aggregates: Any) -> DataFrame:
    """These aggregates of each day and key; a stream gives the rows that changed."""
    windows = sk.keyed(_by_rank(streams.bids.withColumn("day", day())), *keys, "day")
    windows = windows.window("ts", "1 day", watermark=streams.watermark)
    of_days = windows.changes(**aggregates) if streams.bids.isStreaming else windows.agg(**aggregates)
    return of_days.drop("window")


def q15(streams: Streams) -> DataFrame:
    """Bids, bidders and auctions of each day, by price: one key, and several workers."""
    return _by_day(streams, [], **COUNTS, **DISTINCT)


def q16(streams: Streams) -> DataFrame:
    """The same for each channel, with the last minute of a bid."""
    days = _by_day(streams, ["channel"], last=sk.max("ts"), **COUNTS, **DISTINCT)
    columns = [column for column in days.columns if column not in ("channel", "day", "last")]
    return days.select("channel", "day", minute_of("last").alias("minute"), *columns)


def q17(streams: Streams) -> DataFrame:
    """The bids on each auction on each day."""
    prices = {"min_price": sk.min("price"), "max_price": sk.max("price"), "avg_price": sk.mean("price")}
    return _by_day(streams, ["auction"], **COUNTS, **prices, sum_price=sk.sum("price"))


class Newest(sk.Processor):
    """Gives the last bid of each key, of bids of the same time the highest; the state is its time and price."""

    state = "ts timestamp, price long"

    def process(self, key: tuple[int, int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        """Take bids of somebody on an auction."""
        last = max(rows, key=lambda bid: (bid["ts"], bid["price"]))
        if state["ts"] is None or (last["ts"], last["price"]) >= (state["ts"], state["price"]):
            state["ts"], state["price"] = last["ts"], last["price"]
            yield tuple(last[column] for column in ("price", "channel", "url", "ts", "extra"))


def q18(streams: Streams, folder: str | None = None) -> DataFrame:
    """The last bid of everybody on each auction."""
    given = "price long, channel string, url string, ts timestamp, extra string"
    last = sk.keyed(streams.bids, "bidder", "auction").process(Newest(), given, folder=folder)
    return last.select(streams.bids.columns)


class Best(sk.Processor):
    """Keeps the ten best bids on each auction, and gives them whenever there are new ones."""

    rest = "bidder long, price long, channel string, url string, ts timestamp, extra string"
    state = f"best array<{_struct(rest)}>"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[Any, ...]]:
        """Take bids on an auction."""
        new = ({name: value for name, value in row.items() if name != "auction"} for row in rows)
        state["best"] = sorted([*(state["best"] or ()), *new], key=lambda bid: (-bid["price"], bid["ts"]))[:BEST]
        for rank, bid in enumerate(state["best"], 1):
            yield (*bid.values(), rank)


def q19(streams: Streams, folder: str | None = None) -> DataFrame:
    """The ten highest bids on each auction."""
    return sk.keyed(streams.bids, "auction").process(Best(), f"{Best.rest}, rank int", folder=folder)


BATCH_ONLY = (4, 6)
"""Queries that are two in a row when they run as streams."""

QUERIES = {number: globals()[f"q{number}"] for number in (4, 5, 6, 7, 9, 11, 12, *range(15, 20))}
