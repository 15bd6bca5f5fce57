"""Where forwarding gains as much as in the paper."""

from __future__ import annotations

import pytest

from experiments.dalton.figure_11 import SLOW, _reached


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ((2.2, 3.1, 5.0), "reached at 2 times, which is within half to 2 times"),
        ((1.2, 2.1, 5.0), "reached at 4 times, which is beyond half to 2 times"),
        ((1.1, 1.2, 1.3), "not reached"),
    ],
)
def test_where_the_papers_gain_is_reached_is_computed(gains: tuple[float, ...], said: str) -> None:
    assert said in _reached(dict(zip(SLOW, gains, strict=True)))
