from __future__ import annotations

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


def test_the_length_of_events_is_that_of_all_three_streams() -> None:
    assert isinstance(Nexmark().take(77), Events)
    assert len(Nexmark().take(77)) == 77
