from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.elastic import Observation, Parallelism
from support.stages import Load

NAN, INFINITY = float("nan"), float("inf")
NUMBERS = st.builds(Parallelism, st.integers(1, 40), st.integers(1, 40))
COSTS = st.floats(0, 1)
LOADS = st.builds(Load, st.floats(0, 100), st.floats(0, 100), COSTS, COSTS, COSTS)


@given(LOADS, NUMBERS, NUMBERS)
def test_what_other_numbers_would_have_taken_is_what_they_take(
    load: Load, before: Parallelism, after: Parallelism
) -> None:
    scaled, truth = load.seen(before).scaled(before, after), load.seen(after)
    assert scaled.processing == pytest.approx(truth.processing)
    assert (scaled.map_time, scaled.reduce_time) == pytest.approx((truth.map_time, truth.reduce_time))


@given(LOADS, NUMBERS, st.integers(1, 40), st.integers(1, 40))
def test_fewer_tasks_take_no_longer_than_expected_where_stages_are_not_told(
    load: Load, before: Parallelism, fewer_maps: int, fewer_reduces: int
) -> None:
    after = Parallelism(min(before.map, fewer_maps), min(before.reduce, fewer_reduces))
    expected = load.seen(before, staged=False).scaled(before, after)
    assert load.seen(after).processing <= expected.processing * (1 + 1e-12)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({"interval": 0.0}, "an interval of 0.0 seconds; give a finite number above 0"),
        ({"interval": -1.0}, "an interval of -1.0 seconds"),
        ({"interval": NAN}, "an interval of nan seconds"),
        ({"interval": INFINITY}, "an interval of inf seconds"),
        ({"processing": -0.1}, "processing is -0.1; give a finite number of at least 0"),
        ({"processing": NAN}, "processing is nan"),
        ({"processing": INFINITY}, "processing is inf"),
        ({"rows": -1}, "rows is -1"),
        ({"keys": NAN}, "keys is nan"),
        ({"map_time": -1.0, "reduce_time": 0.0}, "map_time is -1.0"),
        ({"map_time": 0.0, "reduce_time": NAN}, "reduce_time is nan"),
        ({"interval": "1"}, "interval is '1'; give a number, such as 1.0"),
        ({"rows": None}, "rows is None; give a number"),
        ({"map_time": "0.1", "reduce_time": 0.0}, "map_time is '0.1'; give a number"),
        ({"ran": (2, 1)}, r"ran is \(2, 1\); give the numbers of map and of reduce tasks, such as Parallelism\(2, 1\)"),
        ({"map_time": 0.3, "reduce_time": 0.3}, "reduce_time is 0.3 of a processing time of 0.5; give parts of it, or"),
        ({"stopped": -1.0}, "stopped is -1.0; give a finite number of at least 0"),
        ({"stopped": None}, "stopped is None; give a number"),
        ({"stopped": 0.6}, "stopped is 0.6 of a processing time of 0.5; give a part of it"),
        ({"map_time": 0.1}, "map_time is 0.1 and reduce_time is None; give both, or neither"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(measured: dict[str, object], said: str) -> None:
    with pytest.raises(SkewlessError, match=said):
        Observation(**{"interval": 1.0, "processing": 0.5, "rows": 10, "keys": 2, **measured})


def test_parts_that_were_timed_apart_may_add_up_to_a_hair_more_than_the_whole() -> None:
    assert Observation(1.0, 0.3, 10, 2, map_time=0.1, reduce_time=0.2).staged  # 0.1 + 0.2 > 0.3
    assert Observation(1.0, 0.3, 10, 2, stopped=0.1 + 0.2).unstopped.processing == 0.0


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_what_is_no_number_of_tasks_is_refused(number: object) -> None:
    with pytest.raises(SkewlessError, match=f"{number!r} reduce tasks; give a whole number of at least 1"):
        Parallelism(1, number)
