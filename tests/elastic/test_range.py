"""A range of workers as it is asked for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from skewless.core.errors import SkewlessError
from skewless.elastic import Range


def test_it_makes_a_scaler_of_one_side() -> None:
    scaler = Range(2, 16, "500 milliseconds", stride="one", d=5, thres=0.8, step=0.2).scaler("reduce", 4)
    assert (scaler.parallelism.map, scaler.parallelism.reduce) == (1, 4)
    assert (scaler.bounds.least.reduce, scaler.bounds.most.reduce) == (2, 16)
    assert (scaler.stride, scaler.d, scaler.zones.thres, scaler.zones.step) == ("one", 5, 0.8, 0.2)
    assert Range(2, 16, "500 milliseconds").seconds == 0.5


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((2, 16, "1 secnd"), {}, "interval: '1 secnd' has an unknown unit, 'secnd'"),
        ((2, 16, 1), {}, "interval: 1 is not an interval; write numbers and units"),
        ((0, 16, "1 second"), {}, "workers is (0, 16); give the smaller number first, and at least 1"),
        ((2, "16", "1 second"), {}, "workers is (2, '16'); give two whole numbers, such as (2, 16)"),
        ((2, 16, "1 second"), {"stride": "two"}, "no stride 'two'; there are one, straight"),
        ((2, 16, "1 second"), {"d": 0}, "d is 0; give a whole number of micro-batches"),
        ((2, 16, "1 second"), {"thres": "0.9"}, "thres is '0.9'; give a number, such as 0.9"),
        ((2, 16, "1 second"), {"step": None}, "step is None; give a number, such as 0.1"),
        ((2, 16, "1 second"), {"thres": 1.5}, "thres is 1.5; give a number above 0 and at most 1"),
    ],
)
def test_what_is_no_range_is_refused_in_words(given: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(SkewlessError, match=re.escape(message)):
        Range(*given, **options)
