"""Nexmark's queries in Spark's own words.

Each function takes the streams and gives a DataFrame, from batches as from streams, except where its docstring says
that Spark has no such operator for streams in SQL or DataFrames. Where the benchmark leaves open which of several bids
of the same price is meant (9, 19), the earliest is; of several last bids of the same time (18), the highest is. Days
and minutes are those of UTC, whatever the time zone of the session.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from streams import Streams

BATCH_ONLY = (4, 6, 9, 15, 16, 18, 19)
"""Queries that Spark refuses for streams: counts of distinct values, rankings, and maxima of joined streams."""

RANKS = {"rank1": "price < 10000", "rank2": "price >= 10000 and price < 1000000", "rank3": "price >= 1000000"}
"""Cheap, middling and expensive bids, in cents."""


def q0(streams: Streams) -> DataFrame:
    """Bids as they are."""
    return streams.bids.select("auction", "bidder", "price", "ts", "extra")


def q1(streams: Streams) -> DataFrame:
    """Bids in another currency."""
    return streams.bids.select("auction", "bidder", (F.col("price") * 0.908).alias("price"), "ts", "extra")


def q2(streams: Streams) -> DataFrame:
    """The bids on some auctions."""
    return streams.bids.where("auction % 123 = 0").select("auction", "price")


def q3(streams: Streams) -> DataFrame:
    """Who sells in category 10 in three states; both sides are kept for ever."""
    people = streams.persons.where("state in ('OR', 'ID', 'CA')").withColumnRenamed("id", "person")
    auctions = streams.auctions.where("category = 10").select("id", "seller")
    return auctions.join(people, F.col("seller") == F.col("person")).select("name", "city", "state", "id")


def winning(streams: Streams) -> DataFrame:
    """Each auction with its highest bid while it was open. Spark ranks batches only."""
    bids = streams.bids.select(
        "auction", "bidder", "price", F.col("ts").alias("bid_ts"), F.col("extra").alias("bid_extra")
    )
    in_time = (F.col("id") == F.col("auction")) & F.col("bid_ts").between(F.col("ts"), F.col("expires"))
    best_first = Window.partitionBy("id").orderBy(F.col("price").desc(), "bid_ts")
    ranked = streams.auctions.join(bids, in_time).withColumn("rank", F.row_number().over(best_first))
    return ranked.where("rank = 1").drop("rank")


def q4(streams: Streams) -> DataFrame:
    """The average closing price of each category. Spark has no second aggregate on joined streams."""
    return winning(streams).groupBy("category").agg(F.avg("price").alias("average"))


def q5(streams: Streams) -> DataFrame:
    """The auctions with the most bids of the last 10 seconds, every 2 seconds."""
    windows = F.window("ts", "10 seconds", "2 seconds")
    counts = with_watermark(streams).groupBy(windows, "auction").agg(F.count(F.lit(1)).alias("num"))
    # Two aggregates in a row: the second is over windows that the first has closed.
    together = counts.groupBy("window").agg(F.max("num").alias("most"), F.collect_list(F.struct("auction", "num")))
    each = together.select("window", "most", F.explode(together.columns[-1]).alias("of"))
    return each.where("of.num = most").select(F.col("window.start").alias("start"), "of.auction", "of.num")


def q6(streams: Streams) -> DataFrame:
    """The average of each seller's last eleven closing prices, at each of them. Spark ranks batches only."""
    last = Window.partitionBy("seller").orderBy("bid_ts").rowsBetween(-10, 0)
    return winning(streams).select("seller", "bid_ts", F.avg("price").over(last).alias("average"))


def q7(streams: Streams) -> DataFrame:
    """The highest bids of every 10 seconds."""
    columns = ["auction", "price", "bidder", "ts", "extra"]
    windows = with_watermark(streams).groupBy(F.window("ts", "10 seconds"))
    # A join with the maximum of the window would need two event times, which Spark refuses in a stream.
    together = windows.agg(F.max("price").alias("most"), F.collect_list(F.struct(*columns)).alias("bids"))
    return together.select("most", F.explode("bids").alias("bid")).where("bid.price = most").select("bid.*")


def q8(streams: Streams) -> DataFrame:
    """Who opened an auction in the 10 seconds in which they came."""
    windows = F.window("ts", "10 seconds")
    people = streams.persons.withWatermark("ts", streams.watermark).select(windows, "id", "name")
    sellers = streams.auctions.withWatermark("ts", streams.watermark).select(windows, "seller")
    sellers = sellers.dropDuplicates(["window", "seller"]).withColumnRenamed("window", "of_seller")
    both = (F.col("id") == F.col("seller")) & (F.col("window") == F.col("of_seller"))
    return people.join(sellers, both).select("id", "name", F.col("window.start").alias("start"))


def q9(streams: Streams) -> DataFrame:
    """Every auction with its winning bid. Spark ranks batches only."""
    return winning(streams)


def q11(streams: Streams) -> DataFrame:
    """How often people bid while they do, without a pause of 10 seconds."""
    sessions = with_watermark(streams).groupBy(F.session_window("ts", "10 seconds"), "bidder").count()
    session = F.col("session_window")
    return sessions.select("bidder", F.col("count").alias("n"), session.start.alias("start"), session.end.alias("end"))


def q12(streams: Streams, time: str = "ts") -> DataFrame:
    """How many bids people made in every 10 seconds.

    The benchmark goes by the time at which bids arrive: give the name of that column, if the bids have one.
    """
    bids = with_watermark(streams, time)
    counts = bids.groupBy(F.window(time, "10 seconds"), "bidder").agg(F.count(F.lit(1)).alias("n"))
    return counts.select("bidder", "n", F.col("window.start").alias("start"), F.col("window.end").alias("end"))


def q15(streams: Streams) -> DataFrame:
    """Bids, bidders and auctions of each day, by price. Spark counts distinct values of batches only."""
    return streams.bids.groupBy(day()).agg(*counts(), *distinct())


def q16(streams: Streams) -> DataFrame:
    """The same for each channel, with the last minute of a bid. Spark counts distinct values of batches only."""
    last = F.max(minute_of("ts")).alias("minute")
    return streams.bids.groupBy("channel", day()).agg(last, *counts(), *distinct())


def q17(streams: Streams) -> DataFrame:
    """The bids on each auction on each day; a stream gives the rows that changed."""
    prices = (getattr(F, name)("price").alias(f"{name}_price") for name in ("min", "max", "avg", "sum"))
    return streams.bids.groupBy("auction", day()).agg(*counts(), *prices)


def q18(streams: Streams) -> DataFrame:
    """The last bid of everybody on each auction. Spark ranks batches only."""
    newest_first = Window.partitionBy("bidder", "auction").orderBy(F.col("ts").desc(), F.col("price").desc())
    ranked = streams.bids.withColumn("rank", F.row_number().over(newest_first))
    return ranked.where("rank = 1").drop("rank")


def q19(streams: Streams) -> DataFrame:
    """The ten highest bids on each auction. Spark ranks batches only."""
    best_first = Window.partitionBy("auction").orderBy(F.col("price").desc(), "ts")
    ranked = streams.bids.withColumn("rank", F.row_number().over(best_first))
    return ranked.where("rank <= 10")


def q20(streams: Streams) -> DataFrame:
    """The bids on auctions of category 10, with the auction; both sides are kept for ever."""
    auctions = streams.auctions.where("category = 10")
    auctions = auctions.withColumnsRenamed({"ts": "auction_ts", "extra": "auction_extra"})
    return streams.bids.join(auctions, F.col("auction") == F.col("id")).drop("id")


def with_watermark(streams: Streams, time: str = "ts") -> DataFrame:
    """The bids, which may be as late as the streams say."""
    return streams.bids.withWatermark(time, streams.watermark)


def day() -> Column:
    """The day of a row, of UTC as windows of a day are: a date of the session's zone would be another one."""
    days = F.floor(F.unix_seconds("ts") / 86_400).cast("int")
    return F.date_from_unix_date(days).cast("string").alias("day")


def minute_of(time: str) -> Column:
    """The hour and the minute of a time, of UTC as its day is."""
    minutes = F.pmod(F.floor(F.unix_seconds(time) / 60), F.lit(1440))
    return F.format_string("%02d:%02d", F.floor(minutes / 60), minutes % 60)


def counts() -> list[Column]:
    """All bids, and the bids of each rank."""
    ranks = (F.count(F.when(F.expr(rank), 1)).alias(f"{name}_bids") for name, rank in RANKS.items())
    return [F.count(F.lit(1)).alias("total_bids"), *ranks]


def distinct() -> list[Column]:
    """How many people bid on how many auctions, in all and for each rank."""
    columns = []
    for column in ("bidder", "auction"):
        columns.append(F.count_distinct(column).alias(f"total_{column}s"))
        for name, rank in RANKS.items():
            columns.append(F.count_distinct(F.when(F.expr(rank), F.col(column))).alias(f"{name}_{column}s"))
    return columns


QUERIES = {number: globals()[f"q{number}"] for number in (*range(10), 11, 12, *range(15, 21))}
