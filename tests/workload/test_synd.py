from __future__ import annotations

import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Zipf, synd


def test_synd_is_zipf_of_up_to_ten_million_keys() -> None:
    assert synd(1.2, keys=1_000, seed=4) == Zipf(1.2, 1_000, 4)
    assert synd(0.5).keys == 10_000_000


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
