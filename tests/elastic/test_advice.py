"""Advice on the trigger: against times that are made from a fixed cost and a cost of each row."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.elastic import Timed, advise

ROWS = st.lists(st.integers(100, 10_000), min_size=8, max_size=40)


def seen(fixed, a_row, rows, every=1.0, outside=0.0):
    return [Timed(number * every, each, fixed + a_row * each, outside) for number, each in enumerate(rows)]


@given(st.floats(0.01, 2.0), st.floats(1e-7, 1e-3), ROWS, st.floats(0.5, 60.0))
def test_the_line_is_found_and_the_trigger_does_what_it_says(fixed, a_row, rows, latency) -> None:
    assume(len({each // 1000 for each in rows}) >= 5)
    found = advise(seen(fixed, a_row, rows), latency)
    assert found.exact
    assert (found.fixed, found.a_row) == (pytest.approx(fixed, rel=1e-6), pytest.approx(a_row, rel=1e-6))
    assert found.rate == pytest.approx(sum(rows[1:]) / (len(rows) - 1))
    assert found.share == pytest.approx(sum(fixed / (fixed + a_row * each) for each in rows) / len(rows))
    if found.trigger is None:
        # No time between micro-batches keeps up and is within the latency.
        tries = [latency * step / 1000 for step in range(1, 1001)]
        assert not any(
            found.took(each) <= 0.999 * each and each + found.took(each) <= 0.999 * latency for each in tries
        )
        return
    assert found.took(found.trigger) <= found.trigger * (1 + 1e-9)
    assert found.trigger + found.took(found.trigger) <= latency * (1 + 1e-9)
    assert found.share_then == pytest.approx(found.fixed / found.took(found.trigger))
    shorter = 0.99 * found.trigger
    if found.share_then < 0.1 - 1e-9:  # it is as long as it is only to keep up
        assert found.took(shorter) > shorter
    elif found.share_then > 0.1 + 1e-9:  # it is as long as the latency lets it be
        longer = 1.01 * found.trigger
        assert longer + found.took(longer) > latency


def test_a_few_slow_micro_batches_do_not_matter() -> None:
    rows = [1000, 4000, 2000, 8000, 3000, 6000, 5000, 7000, 1500, 2500]
    times = seen(0.2, 1e-5, rows)
    times[0] = times[0]._replace(seconds=9.0)  # the first starts Python
    times[6] = times[6]._replace(seconds=2.0)
    found = advise(times)
    assert found.fixed == pytest.approx(0.2, rel=0.1)
    assert found.a_row == pytest.approx(1e-5, rel=0.1)


def test_with_equal_rows_only_what_is_outside_is_known_to_be_fixed() -> None:
    found = advise(seen(0.2, 1e-5, [1000] * 9, outside=0.05))
    assert not found.exact
    assert found.fixed == 0.05
    assert found.a_row == pytest.approx(0.16 / 1000)
    assert "at least 50 ms" in str(found)


def test_with_equal_rows_it_says_that_a_limit_has_to_be_raised_too() -> None:
    times = [0.21, 0.4, 0.3, 0.25, 0.6, 0.22, 0.35]  # back to back: as many rows, whatever the time since the last one
    began = [sum(times[:number]) for number in range(len(times))]
    limited = [Timed(at, 1000, took, 0.05) for at, took in zip(began, times, strict=True)]
    for latency in (None, 5.0, 0.6):
        found = advise(limited, latency)
        assert found.trigger is not None
        assert "if the source limits them, raise its limit with the trigger" in str(found)
    assert "limit" not in str(advise(seen(0.2, 1e-5, [1000, 4000, 2000, 8000, 3000, 6000])))
    assert "limit" not in str(advise(limited, 0.1))  # no trigger is advised


def test_it_says_what_no_trigger_can_do() -> None:
    rows = [1000, 4000, 2000, 8000, 3000, 6000]
    too_much = advise(seen(0.2, 1e-3, rows), 5.0)
    assert too_much.trigger is None
    assert "no trigger helps" in str(too_much)
    too_soon = advise(seen(0.2, 1e-5, rows), 0.3)
    assert too_soon.trigger is None
    assert "No trigger answers within 0.3 s" in str(too_soon)
    bounded = advise(seen(0.2, 1e-5, rows), 5.0)
    assert bounded.share_then > 0.1
    assert "The longest trigger within 5 s" in str(bounded)
    assert math.isclose(advise(seen(0.2, 1e-5, rows)).share_then, 0.1)


def test_rows_that_take_no_time_leave_the_trigger_to_the_latency() -> None:
    times = [Timed(t, rows, 0.4 - rows / 1e8) for t, rows in enumerate((1e3, 1e4, 1e5, 1e6, 1e3, 1e6))]
    found = advise(times)
    assert found.trigger is None
    assert "nothing speaks against a longer trigger" in str(found)
    assert found.busy == 0
    assert advise(times, 5.0).trigger == pytest.approx(4.6, rel=0.01)


@pytest.mark.parametrize(
    ("batches", "latency", "little", "said"),
    [
        (
            [(t, 5, 1.0) for t in range(9)],
            None,
            0.1,
            r"a micro-batch is \(0, 5, 1.0\); give Timed\(began, rows, seconds\)",
        ),
        ([Timed(t, "5", 1.0) for t in range(9)], None, 0.1, "rows of a micro-batch is '5'; give a number"),
        ([Timed(t, 5, math.nan) for t in range(9)], None, 0.1, "took nan seconds"),
        ([Timed(t, 5, -1.0) for t in range(9)], None, 0.1, "took -1.0 seconds"),
        (seen(0.1, 0.0, [5] * 4), None, 0.1, "4 micro-batches with rows are done; wait until there are 5"),
        (seen(0.1, 0.0, [5] * 9, every=0.0), None, 0.1, "began within 0.0 s"),
        (seen(0.1, 0.0, [5] * 9), -1.0, 0.1, "latency is -1.0 seconds"),
        (seen(0.1, 0.0, [5] * 9), "5 seconds", 0.1, "latency is '5 seconds'; give seconds as a number, such as 5.0"),
        (seen(0.1, 0.0, [math.inf] * 9), None, 0.1, "had inf rows; give a finite number"),
        (seen(0.1, 0.0, [math.nan] * 9), None, 0.1, "had nan rows"),
        (seen(0.1, 0.0, [5] * 9, outside=math.nan), None, 0.1, "of 0.1 seconds nan were outside of its rows"),
        (seen(0.1, 0.0, [5] * 9, outside=-3.0), None, 0.1, "-3.0 were outside of its rows; give a number from 0 to"),
        (seen(0.1, 0.0, [5] * 9, outside=0.2), None, 0.1, "0.2 were outside of its rows"),
        (seen(0.1, 0.0, [5] * 9), None, 1.0, "little is 1.0"),
        (seen(0.1, 0.0, [5] * 9), None, "a", "little is 'a'; give a share above 0 and below 1"),
        (seen(0.1, 0.0, [5] * 9), [5.0], 0.1, r"latency is \[5.0\]; give seconds as a number"),
        (
            [Timed(float(t), 5, 1.0) for t in (0, 5, 2, 9, 1, 10)],
            None,
            0.1,
            "began at 2.0 s comes after one that began at 5.0 s; give them in the order of time",
        ),
        ([Timed(math.nan, 5, 1.0)] * 6, None, 0.1, "began at nan s"),
    ],
)
def test_what_it_cannot_work_with_is_refused(batches, latency, little, said) -> None:
    with pytest.raises(SkewlessError, match=said):
        advise(batches, latency, little)
