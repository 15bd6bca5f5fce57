from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Taxi

SEEDS = pytest.mark.parametrize("seed", [1, 2, 3])


def rows_per_key(keys: np.ndarray) -> np.ndarray:
    return np.sort(np.unique(keys, return_counts=True)[1])[::-1]


def test_a_stream_is_the_same_however_it_is_cut_and_starts_again() -> None:
    stream = Taxi(seed=3)
    whole, cut = stream.take(10_000), list(stream.blocks(10_000, block=3_001))
    assert [len(block) for block in cut] == [3_001, 3_001, 3_001, 997]
    for column in fields(whole):
        pieces = np.concatenate([getattr(block, column.name) for block in cut])
        assert pieces.tolist() == getattr(whole, column.name).tolist()
    assert len(stream.take(0)) == 0


def test_time_never_goes_back() -> None:
    assert np.diff(Taxi(seed=3).take(20_000).time).min() >= 0


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Taxi(taxis=0), "taxis is 0; give at least 1"),
        (lambda: Taxi(trips_per_second=0), "trips_per_second is 0; give more than 0"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
