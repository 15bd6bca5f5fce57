from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import TPCH


def test_a_stream_is_the_same_however_it_is_cut_and_starts_again() -> None:
    stream = TPCH(scale=0.1, seed=3)
    whole, cut = stream.take(10_000), list(stream.blocks(10_000, block=3_001))
    assert [len(block) for block in cut] == [3_001, 3_001, 3_001, 997]
    for column in fields(whole):
        pieces = np.concatenate([getattr(block, column.name) for block in cut])
        assert pieces.tolist() == getattr(whole, column.name).tolist()
    assert len(stream.take(0)) == 0


def test_time_never_goes_back() -> None:
    assert np.diff(TPCH(scale=0.1, seed=3).take(20_000).time).min() >= 0


def test_lineitem_is_distributed_as_the_benchmark_says() -> None:
    rows = TPCH(scale=0.1, seed=1).take(100_000)
    assert (rows.part.min(), rows.part.max()) == (1, 20_000)
    # Uniform over 20,000 parts: the distinct ones, and no part far above five rows.
    assert len(np.unique(rows.part)) == pytest.approx(20_000 * (1 - np.exp(-5)), rel=0.01)
    assert np.bincount(rows.part).max() <= 20
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TPCH(scale=0), "scale is 0; give at least"),
        (lambda: TPCH(rows_per_second=0), "rows_per_second is 0; give more than 0"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
