"""The streams of the Prompt experiments, against the shape of real rows and against what specifications say."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import TPCH, Cluster, Taxi, TweetWords, Zipf, synd

SEEDS = pytest.mark.parametrize("seed", [1, 2, 3])
STREAMS = pytest.mark.parametrize("stream", [Taxi(seed=3), Cluster(seed=3), TPCH(scale=0.1, seed=3)])


def rows_per_key(keys: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(keys, return_counts=True)[1])[::-1]


@STREAMS
def test_a_stream_is_the_same_however_it_is_cut_and_starts_again(stream: Taxi | Cluster | TPCH) -> None:
    whole, cut = stream.take(10_000), list(stream.blocks(10_000, block=3_001))
    assert [len(block) for block in cut] == [3_001, 3_001, 3_001, 997]
    for column in fields(whole):
        pieces = np.concatenate([getattr(block, column.name) for block in cut])
        assert pieces.tolist() == getattr(whole, column.name).tolist()
    assert len(stream.take(0)) == 0


@STREAMS
def test_time_never_goes_back(stream: Taxi | Cluster | TPCH) -> None:
    assert np.diff(stream.take(20_000).time).min() >= 0


# Of 10,000 real trips: 6,866 taxis, the busiest with 0.05 % of all trips and ten with 0.41 %; rows per taxi at the
# quantiles 0.5, 0.75, 0.9 and 0.99 are 1, 2, 2, 3; miles at 0.1, 0.5, 0.9 are 0.6, 1.6, 4.57; dollars 4.5, 8, 16.5,
# on average 9.75; all trips ended within 2,188 seconds.
@SEEDS
def test_trips_have_the_shape_of_real_ones(seed: int) -> None:
    trips = Taxi(seed=seed).take(10_000)
    rows = rows_per_key(trips.taxi)
    assert len(rows) == pytest.approx(6_866, rel=0.02)
    assert rows[0] <= 9
    assert rows[:10].sum() == pytest.approx(41, abs=20)
    assert np.abs(np.quantile(rows, [0.5, 0.75, 0.9, 0.99]) - [1, 2, 2, 3]).max() <= 1
    assert np.quantile(trips.distance, [0.1, 0.5, 0.9]) == pytest.approx([0.6, 1.6, 4.57], rel=0.12)
    assert np.quantile(trips.fare, [0.1, 0.5, 0.9]) == pytest.approx([4.5, 8, 16.5], rel=0.12)
    assert trips.fare.mean() == pytest.approx(9.75, rel=0.05)
    assert trips.time[-1] == pytest.approx(2_188, rel=0.05)
    assert np.corrcoef(trips.distance, trips.fare)[0, 1] > 0.75


# Of 10,000 real submissions: 588 jobs, the largest with 38.8 % of the tasks and ten with 69.3 %; tasks per job at the
# quantiles 0.5, 0.75, 0.9 and 0.99 are 1, 3, 10, 259; each job is one run of rows; the median request is 0.0187.
@SEEDS
def test_submissions_have_the_shape_of_real_ones(seed: int) -> None:
    events = Cluster(seed=seed).take(10_000)
    rows = rows_per_key(events.job)
    assert 250 <= len(rows) <= 1_200
    assert 0.1 <= rows[0] / 10_000 <= 0.5
    assert 0.55 <= rows[:10].sum() / 10_000 <= 0.9
    assert np.quantile(rows, [0.5, 0.75]) == pytest.approx([1, 3], abs=1)
    assert 7 <= np.quantile(rows, 0.9) <= 20
    assert 80 <= np.quantile(rows, 0.99) <= 600
    assert np.count_nonzero(np.diff(events.job)) == len(rows) - 1
    per_job = events.cpu[np.unique(events.job, return_index=True)[1]]
    assert np.median(per_job) == pytest.approx(0.0187, rel=0.3)


def test_the_hot_job_of_a_batch_is_another_one_each_time() -> None:
    hottest = [int(np.bincount(batch.job).argmax()) for batch in Cluster(seed=1).blocks(100_000, 10_000)]
    assert len(set(hottest)) >= 8


def test_lineitem_is_distributed_as_the_benchmark_says() -> None:
    rows = TPCH(scale=0.1, seed=1).take(100_000)
    assert (rows.part.min(), rows.part.max()) == (1, 20_000)
    # Uniform over 20,000 parts: the distinct ones, and no part far above five rows.
    assert len(np.unique(rows.part)) == pytest.approx(20_000 * (1 - np.exp(-5)), rel=0.01)
    assert rows_per_key(rows.part)[0] <= 20
    assert sorted(set(rows.quantity.tolist())) == list(range(1, 51))
    lines = np.bincount(rows.order)[:-1]
    assert set(lines.tolist()) == set(range(1, 8))
    assert lines.mean() == pytest.approx(4, rel=0.02)
    assert set(np.round(rows.discount * 100).astype(int).tolist()) == set(range(11))
    first = rows.part == 1  # which costs 901.00 by the formula of the benchmark
    assert first.any()
    assert (rows.price[first] / rows.quantity[first]).round(2).tolist() == [901.0] * first.sum()
    # A year of shipments of 2,526 days, 3 of 11 discounts, 23 of 50 quantities.
    assert rows.in_query_6.mean() == pytest.approx(365 / 2_406 * 3 / 11 * 23 / 50, rel=0.1)


@pytest.mark.parametrize(("words", "top"), [(450_000, 0.0269), (200_000, 0.072), (100_000, 0.3845)])
def test_the_most_frequent_word_has_its_share(words: int, top: float) -> None:
    keys = TweetWords(words, top).take(200_000)
    assert (keys == 0).mean() == pytest.approx(top, rel=0.05)
    assert keys.max() < words
    assert np.bincount(keys).argmax() == 0


def test_synd_is_zipf_of_up_to_ten_million_keys() -> None:
    assert synd(1.2, keys=1_000, seed=4) == Zipf(1.2, 1_000, 4)
    assert synd(0.5).keys == 10_000_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synd(0.05), "z is 0.05; SynD has exponents from 0.1 to 2.0"),
        (lambda: synd(1.0, keys=10**7 + 1), "keys is 10,000,001; SynD has 1 to 10,000,000 keys"),
        (lambda: TweetWords(words=1), "words is 1; give at least 2"),
        (lambda: TweetWords(words=100, top=0.01), "top is 0.01; of 100 words give more than 0.01 and less than 1"),
        (lambda: Taxi(taxis=0), "taxis is 0; give at least 1"),
        (lambda: Taxi(trips_per_second=0), "trips_per_second is 0; give more than 0"),
        (lambda: Cluster(tasks_per_second=0), "tasks_per_second is 0; give more than 0"),
        (lambda: TPCH(scale=0), "scale is 0; give at least"),
        (lambda: TPCH(rows_per_second=0), "rows_per_second is 0; give more than 0"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
