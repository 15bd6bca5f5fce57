from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Events, HotSpot, Nexmark

TABLES = ("persons", "auctions", "bids")


def owner(auctions: np.ndarray) -> np.ndarray:
    return auctions % 4


def seconds(table: pa.Table) -> np.ndarray:
    return (table["ts"].cast(pa.int64()).to_numpy() - table["ts"][0].value) / 1e6


def test_a_stream_is_the_same_however_it_is_cut_and_starts_again() -> None:
    stream = Nexmark(seed=3, hot_spots=(HotSpot(0.5, (1,), 0.1, 0.3),), owner=owner)
    whole, cut = stream.take(5_000), list(stream.blocks(5_000, block=1_301))
    assert [len(block) for block in cut] == [1_301, 1_301, 1_301, 1_097]
    for table in TABLES:
        assert pa.concat_tables(getattr(block, table) for block in cut).equals(getattr(whole, table))
    assert len(stream.take(0)) == 0
    assert stream.take(0).bids.schema == whole.bids.schema


def test_another_seed_is_another_stream_with_the_same_events_at_the_same_times() -> None:
    one, other = Nexmark(seed=1).take(1_000), Nexmark(seed=2).take(1_000)
    assert one.bids["ts"].equals(other.bids["ts"])
    assert not one.bids["auction"].equals(other.bids["auction"])


# An epoch of the public generator has 1 person, 3 auctions and 46 bids, in this order.
def test_events_come_in_the_proportions_and_the_order_of_the_benchmark() -> None:
    events = Nexmark(rate=1_000).take(100)
    assert [len(getattr(events, table)) for table in TABLES] == [2, 6, 92]
    assert events.persons["id"].to_pylist() == [1000, 1001]
    assert events.auctions["id"].to_pylist() == [1000, 1001, 1002, 1003, 1004, 1005]
    assert seconds(events.auctions).round(3).tolist() == [0, 0.001, 0.002, 0.05, 0.051, 0.052]
    assert seconds(events.bids)[45:47].round(3).tolist() == [0.045, 0.050]


@pytest.mark.parametrize("ratio", [2, 10])
def test_all_but_one_of_so_many_bids_are_for_the_hot_auction(ratio: int) -> None:
    bids = Nexmark(hot_auctions=ratio, hot_bidders=ratio).take(50_000).bids
    last = np.arange(50_000)[np.arange(50_000) % 50 >= 4] // 50 * 3 + 2
    hot = np.mean(bids["auction"].to_numpy() == last // 100 * 100 + 1000)
    assert hot == pytest.approx(1 - 1 / ratio, abs=0.02)
    person = np.arange(50_000)[np.arange(50_000) % 50 >= 4] // 50
    assert np.mean(bids["bidder"].to_numpy() == person // 100 * 100 + 1001) == pytest.approx(1 - 1 / ratio, abs=0.02)


def test_without_hot_keys_bids_are_even_over_the_auctions_in_flight() -> None:
    bids = Nexmark(hot_auctions=1, in_flight=50).take(50_000).bids
    last = np.arange(50_000)[np.arange(50_000) % 50 >= 4] // 50 * 3 + 2
    back = last[10_000:] - (bids["auction"].to_numpy()[10_000:] - 1000)
    assert (back.min(), back.max()) == (-10, 50)
    counts = np.bincount(back + 10)
    assert counts.max() < 1.4 * counts.min()


def test_sellers_and_bidders_are_people_and_hot_ones_differ() -> None:
    events = Nexmark().take(100_000)
    known = events.persons["id"].to_numpy()
    for column in (events.auctions["seller"], events.bids["bidder"]):
        assert column.to_numpy().min() >= known.min()
        assert column.to_numpy().max() <= known.max() + 10
    seller = np.bincount(events.auctions["seller"].to_numpy()).argmax()
    bidder = np.bincount(events.bids["bidder"].to_numpy()).argmax()
    assert seller % 100 == 0
    assert bidder % 100 == 1


@pytest.mark.parametrize("ratio", [1, 2, 10])
def test_all_but_one_of_so_many_auctions_are_of_the_hot_seller(ratio: int) -> None:
    sellers = Nexmark(hot_sellers=ratio).take(500_000).auctions["seller"].to_numpy()
    last = np.arange(500_000 // 50).repeat(3)
    assert np.mean(sellers == last // 100 * 100 + 1000) == pytest.approx(1 - 1 / ratio, abs=0.02)


@pytest.mark.parametrize("active", [20, 500])
def test_people_who_bid_and_sell_are_the_last_ones_that_came_and_a_few_to_come(active: int) -> None:
    events = Nexmark(hot_sellers=1, hot_bidders=1, active=active).take(200_000)
    for ids, each in ((events.auctions["seller"], 3), (events.bids["bidder"], 46)):
        last = np.arange(4_000).repeat(each)
        back = (last - (ids.to_numpy() - 1000))[active * each :]  # once there are so many
        assert (back.min(), back.max()) == (-10, active - 1)
        halves = np.histogram(back, [-10, (active - 10) / 2, active])[0]
        assert halves[0] / halves.sum() == pytest.approx(0.5, abs=0.04)


def test_what_is_drawn_for_a_bid_does_not_go_together() -> None:
    bids = Nexmark(hot_auctions=1, hot_bidders=1).take(100_000).bids.slice(50_000)
    events = np.arange(100_000)[np.arange(100_000) % 50 >= 4][50_000:]
    drawn = {
        "auction": events // 50 * 3 - bids["auction"].to_numpy(),
        "bidder": events // 50 - bids["bidder"].to_numpy(),
        "price": np.log(bids["price"].to_numpy()),
        "channel": pc.rank(bids["channel"].combine_chunks()).to_numpy(),
    }
    apart = np.corrcoef(list(drawn.values())) - np.eye(len(drawn))
    assert np.abs(apart).max() < 0.02


def test_what_is_drawn_for_an_auction_does_not_go_together() -> None:
    auctions = Nexmark(hot_sellers=1).take(500_000).auctions
    drawn = {
        "seller": np.arange(500_000 // 50).repeat(3) - auctions["seller"].to_numpy(),
        "category": auctions["category"].to_numpy(),
        "initial_bid": np.log(auctions["initial_bid"].to_numpy()),
        "above": np.log(auctions["reserve"].to_numpy() - auctions["initial_bid"].to_numpy()),
        "open": pc.subtract(auctions["expires"].cast(pa.int64()), auctions["ts"].cast(pa.int64())).to_numpy(),
    }
    some = {name: each[3_000:] for name, each in drawn.items()}  # once there are as many people as are active
    apart = np.corrcoef(list(some.values())) - np.eye(len(some))
    assert np.abs(apart).max() < 0.04


def test_a_reserve_is_above_the_initial_bid_by_a_price() -> None:
    auctions = Nexmark().take(200_000).auctions
    initial, reserve = (auctions[name].to_numpy() for name in ("initial_bid", "reserve"))
    for prices in (initial, reserve - initial):
        assert np.quantile(prices, [0.25, 0.5, 0.75]) == pytest.approx([3162, 1e5, 3162e3], rel=0.1)


def test_categories_states_and_cities_are_those_of_the_benchmark_and_as_frequent() -> None:
    events = Nexmark().take(500_000)
    assert shares(events.auctions["category"]) == pytest.approx(dict.fromkeys(range(10, 15), 0.2), abs=0.02)
    states = ("AZ", "CA", "ID", "OR", "WA", "WY")
    assert shares(events.persons["state"]) == pytest.approx(dict.fromkeys(states, 1 / 6), abs=0.02)
    assert list(shares(events.persons["city"]).values()) == pytest.approx([0.1] * 10, abs=0.02)


def shares(column: pa.ChunkedArray) -> dict[object, float]:
    """The share of each value."""
    counts = pc.value_counts(column).to_pylist()
    return {each["values"]: each["counts"] / len(column) for each in counts}


def test_half_of_the_bids_are_on_four_channels_and_their_urls_are_of_the_channel() -> None:
    bids = Nexmark().take(100_000).bids
    found = shares(bids["channel"])
    hot = {name: found.pop(name) for name in ("north", "south", "east", "west")}
    assert hot == pytest.approx(dict.fromkeys(hot, 1 / 8), abs=0.01)
    assert len(found) == pytest.approx(10_000 * (1 - np.exp(-4.6)), rel=0.02)  # of 10,000 those that were drawn
    assert set(found) <= {f"channel-{number}" for number in range(10_000)}
    urls = [f"https://auctions.example/{name}/item.htm?query=1" for name in bids["channel"].to_pylist()]
    assert bids["url"].to_pylist() == urls


def test_an_auction_is_open_for_as_long_as_the_auctions_in_flight_take_to_come() -> None:
    auctions = Nexmark(rate=1_000, in_flight=100).take(100_000).auctions
    open_for = pc.subtract(auctions["expires"].cast(pa.int64()), auctions["ts"].cast(pa.int64())).to_numpy() / 1e6
    assert open_for.min() > 0
    assert open_for.mean() == pytest.approx(100 * 50 / 3 / 1_000, rel=0.05)


def test_prices_are_log_uniform_and_rows_as_long_as_the_benchmark_has_them() -> None:
    events = Nexmark().take(50_000)
    assert np.quantile(events.bids["price"].to_numpy(), [0.25, 0.5, 0.75]) == pytest.approx(
        [3162, 1e5, 3162e3], rel=0.1
    )
    for table, size in zip(TABLES, (200, 500, 100), strict=True):
        rows = getattr(events, table)
        assert rows.nbytes / len(rows) == pytest.approx(size, rel=0.3)


def test_a_hot_spot_has_its_share_of_the_bids_while_it_lasts() -> None:
    spots = (HotSpot(0.5, (1,), 1.0, 2.0), HotSpot(0.8, (0, 3), 2.0, 3.0))
    bids = Nexmark(rate=10_000, hot_spots=spots, owner=owner, hot_auctions=1).take(40_000).bids
    workers, second = owner(bids["auction"].to_numpy()), seconds(bids).astype(int)
    shares = [np.bincount(workers[second == at], minlength=4) / (second == at).sum() for at in range(4)]
    assert shares[0] == pytest.approx([0.25] * 4, abs=0.02)
    assert shares[1] == pytest.approx([0.125, 0.625, 0.125, 0.125], abs=0.02)
    assert shares[2] == pytest.approx([0.45, 0.05, 0.05, 0.45], abs=0.02)
    assert shares[3] == pytest.approx([0.25] * 4, abs=0.02)


def test_events_that_are_not_moved_are_those_without_hot_spots() -> None:
    plain = Nexmark().take(10_000).bids
    with_spot = Nexmark(hot_spots=(HotSpot(0.3, (2,)),), owner=owner).take(10_000).bids
    same = pc.equal(plain["auction"], with_spot["auction"]).to_numpy(zero_copy_only=False)
    assert owner(with_spot["auction"].to_numpy()[~same]).tolist() == [2] * int((~same).sum())
    assert plain.drop_columns("auction").equals(with_spot.drop_columns("auction"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nexmark(rate=0), "rate is 0 events a second; give a number of more than 0"),
        (lambda: Nexmark(rate=float("inf")), "rate is inf events a second; give a number of more than 0"),
        (lambda: Nexmark(rate=float("nan")), "rate is nan events a second; give a number of more than 0"),
        (lambda: Nexmark(rate="10"), "rate is '10' events a second; give a number of more than 0"),
        (lambda: Nexmark(hot_auctions=0), "hot_auctions is 0; give a whole number of at least 1"),
        (lambda: Nexmark(hot_auctions=1.5), "hot_auctions is 1.5; give a whole number of at least 1"),
        (lambda: Nexmark(hot_bidders="2"), "hot_bidders is '2'; give a whole number of at least 1"),
        (lambda: Nexmark(in_flight=2.5), "in_flight is 2.5; give a whole number of at least 1"),
        (lambda: Nexmark(active=-1), "active is -1; give a whole number of at least 1"),
        (lambda: Nexmark(seed=-1), "seed is -1; give a whole number of at least 0"),
        (lambda: Nexmark(seed=None), "seed is None; give a whole number of at least 0"),
        (
            lambda: Nexmark(start=datetime(2026, 1, 1)),
            r"start is datetime.datetime\(2026, 1, 1, 0, 0\); give a time with a time zone",
        ),
        (lambda: Nexmark(start="2026-01-01"), "start is '2026-01-01'; give a time with a time zone"),
        (lambda: Nexmark(hot_spots=(HotSpot(0.5, (1,)),)), "give owner=, the worker of each auction"),
        (lambda: HotSpot(1.5, (1,)), "share is 1.5; give 0 to 1"),
        (lambda: HotSpot(0.5, ()), "workers is empty; name at least one"),
        (lambda: HotSpot(0.5, (1,), 3.0, 2.0), "starts at 3.0 and ends at 2.0"),
        (lambda: Nexmark(hot_spots=(HotSpot(0.5, (9,)),), owner=owner).take(100), r"workers \(9,\) own no key"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()


def test_a_stream_starts_at_the_instant_whatever_zone_it_is_given_in() -> None:
    utc = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for start in (utc, utc.astimezone(timezone(timedelta(hours=-5)))):
        assert Nexmark(start=start).take(1).persons["ts"][0].as_py() == utc


def test_the_length_of_events_is_that_of_all_three_streams() -> None:
    assert isinstance(Nexmark().take(77), Events)
    assert len(Nexmark().take(77)) == 77
