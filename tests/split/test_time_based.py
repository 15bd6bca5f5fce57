from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.split import time_blocks

BLOCKS = st.integers(1, 9)


@given(st.lists(st.floats(5, 6.99), max_size=50), BLOCKS)
def test_a_block_is_a_part_of_the_interval(times: list[float], blocks: int) -> None:
    routed = time_blocks(np.array(times), 5, 2, blocks)
    for time, block in zip(times, routed.tolist(), strict=True):
        assert 5 + 2 * block / blocks - 1e-9 <= time < 5 + 2 * (block + 1) / blocks + 1e-9
        assert 0 <= block < blocks


@pytest.mark.parametrize(
    ("times", "interval", "blocks", "message"),
    [
        ([4.9], 2, 4, r"time 4.9 is outside \[5, 7\)"),
        ([7.0], 2, 4, r"time 7.0 is outside \[5, 7\)"),
        ([5.0], 0, 4, "interval is 0; give more than 0"),
        ([5.0], 2, 0, "blocks is 0; give at least 1"),
    ],
)
def test_times_outside_the_interval_are_refused(times: list[float], interval: float, blocks: int, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        time_blocks(np.array(times), 5, interval, blocks)
