from __future__ import annotations

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Zipf, synd


def test_synd_is_zipf_of_up_to_ten_million_keys() -> None:
    assert synd(1.2, keys=1_000, seed=4) == Zipf(1.2, 1_000, 4)
    assert synd(0.5).keys == 10_000_000


@pytest.mark.parametrize("z", [0.1, 1.0, 2.0])
def test_of_ten_million_keys_each_comes_as_often_as_zipf_says(z: float) -> None:
    stream, n = synd(z, seed=3), 500_000
    keys = stream.take(n)
    assert 0 <= keys.min() <= keys.max() < 10_000_000
    weights = np.arange(1, 10_000_001) ** -z
    expected = n * weights / weights.sum()
    for first, last in ((0, 1), (1, 10), (10, 1_000), (1_000, 100_000), (100_000, 5_000_000), (5_000_000, 10_000_000)):
        mean = expected[first:last].sum()
        assert abs(((keys >= first) & (keys < last)).sum() - mean) <= 5 * np.sqrt(mean) + 1
    distinct = -np.expm1(-expected).sum()
    assert abs(len(np.unique(keys)) - distinct) <= 5 * np.sqrt(distinct)
    assert (synd(z, seed=3).take(1_000) == keys[:1_000]).all()
    assert (synd(z, seed=4).take(1_000) != keys[:1_000]).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synd(0.05), "z is 0.05; SynD has exponents from 0.1 to 2.0"),
        (lambda: synd(1.0, keys=10**7 + 1), "keys is 10,000,001; SynD has 1 to 10,000,000 keys"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
