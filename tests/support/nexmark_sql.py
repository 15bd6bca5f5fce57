"""The same queries as SQL for DuckDB, which the tests compare with."""

from __future__ import annotations

WINNING = """
    select a.*, b.auction, b.bidder, b.price, b.ts as bid_ts, b.extra as bid_extra
    from auctions a join bids b on a.id = b.auction and b.ts between a.ts and a.expires
    qualify row_number() over (partition by a.id order by b.price desc, b.ts) = 1
"""
SLIDING = """
    select start, auction, count(*) as num
    from bids, unnest([0, 2, 4, 6, 8]) as hops(back),
        lateral (select time_bucket(interval 2 second, bids.ts) - to_seconds(back) as start)
    group by all
"""


def _ranked(column: str, of: str = "count(distinct {})") -> str:
    ranks = ("price < 10000", "price >= 10000 and price < 1000000", "price >= 1000000")
    expression = of.format(column)
    total = f"{expression} as total_{column}s"
    return ", ".join(
        [total, *(f"{expression} filter (where {rank}) as rank{i + 1}_{column}s" for i, rank in enumerate(ranks))]
    )


BIDS = _ranked("bid", "count(*)")
DISTINCT = f"{_ranked('bidder')}, {_ranked('auction')}"
DAY = "strftime(ts, '%Y-%m-%d') as day"

SQL = {
    0: "select auction, bidder, price, ts, extra from bids",
    1: "select auction, bidder, price * 0.908::double as price, ts, extra from bids",
    2: "select auction, price from bids where auction % 123 = 0",
    3: """select p.name, p.city, p.state, a.id from auctions a join persons p on a.seller = p.id
          where a.category = 10 and p.state in ('OR', 'ID', 'CA')""",
    4: f"select category, avg(price) as average from ({WINNING}) group by category",
    5: f"""select start, auction, num from ({SLIDING})
           qualify num = max(num) over (partition by start)""",
    6: f"""select seller, bid_ts, avg(price) over
           (partition by seller order by bid_ts rows between 10 preceding and current row) as average
           from ({WINNING})""",
    7: """select auction, price, bidder, ts, extra from bids
          qualify price = max(price) over (partition by time_bucket(interval 10 second, ts))""",
    8: """select p.id, p.name, time_bucket(interval 10 second, p.ts) as start from persons p
          where exists (from auctions a where a.seller = p.id
                        and time_bucket(interval 10 second, a.ts) = time_bucket(interval 10 second, p.ts))""",
    9: WINNING,
    11: """select bidder, count(*) as n, min(ts) as start, max(ts) + interval 10 second as end from (
               select bidder, ts, sum(new) over (partition by bidder order by ts) as session from (
                   select bidder, ts, coalesce(ts - lag(ts) over (partition by bidder order by ts)
                                               > interval 10 second, true)::int as new from bids))
           group by bidder, session""",
    12: """select bidder, count(*) as n, time_bucket(interval 10 second, ts) as start,
                  time_bucket(interval 10 second, ts) + interval 10 second as end
           from bids group by all""",
    15: f"select {DAY}, {BIDS}, {DISTINCT} from bids group by day",
    16: f"""select channel, {DAY}, max(strftime(ts, '%H:%M')) as minute, {BIDS}, {DISTINCT} from bids
            group by channel, day""",
    17: f"""select auction, {DAY}, {BIDS}, min(price) as min_price, max(price) as max_price,
                   avg(price) as avg_price, sum(price) as sum_price from bids group by auction, day""",
    18: """select * from bids
           qualify row_number() over (partition by bidder, auction order by ts desc, price desc) = 1""",
    19: """select *, row_number() over (partition by auction order by price desc, ts) as rank from bids
           qualify rank <= 10""",
    20: """select b.*, a.item, a.description, a.initial_bid, a.reserve, a.ts as auction_ts, a.expires, a.seller,
                  a.category, a.extra as auction_extra
           from bids b join auctions a on b.auction = a.id where a.category = 10""",
}
