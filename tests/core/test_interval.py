from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.interval import microseconds

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10 seconds", 10 * SECOND),
        ("1 minute 30 seconds", 90 * SECOND),
        ("interval 2 hours", 7200 * SECOND),
        ("INTERVAL\t2 Hours", 7200 * SECOND),
        ("1.5 seconds", 1_500_000),
        (".25 second", 250_000),
        ("1. second", SECOND),
        ("1.123456789 seconds", 1_123_456),
        ("500 milliseconds", 500_000),
        ("7 microseconds", 7),
        ("1 week", 604_800 * SECOND),
        ("  1 day\n", 86_400 * SECOND),
        ("1 hour -30 minutes", 1800 * SECOND),
        ("- 1 minute + 2 minutes", 60 * SECOND),
        ("1 second 1 second", 2 * SECOND),
        ("9223372036854775807 microseconds", 2**63 - 1),
    ],
)
def test_spark_words_have_a_length(text: str, length: int) -> None:
    assert microseconds(text) == length


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 month", "'1 month' has no fixed length; use days, such as '30 days'"),
        ("1 day 2 YEARS", "'1 day 2 YEARS' has no fixed length; use days"),
        ("0 seconds", "'0 seconds' is no time at all; write a longer interval, such as '10 seconds'"),
        ("-5 seconds", "'-5 seconds' is less than nothing; write a longer"),
        ("1 second -1 minute", "is less than nothing"),
        ("", "'' is not an interval; write numbers and units with spaces between, such as '10 seconds'"),
        ("interval", "'interval' is not an interval"),
        ("intervals 5 seconds", "is not an interval"),
        ("10seconds", "'10seconds' is not an interval"),
        ("ten seconds", "is not an interval"),
        ("10", "is not an interval"),
        ("10 seconds and", "is not an interval"),
        (". seconds", "is not an interval"),
        ("1.1234567891 seconds", "is not an interval"),
        ("5 parsecs", "'5 parsecs' has an unknown unit, 'parsecs'; use weeks, days, hours,"),
        ("5 s", "unknown unit, 's'"),
        ("5 secondss", "unknown unit, 'secondss'"),
        ("1.5 minutes", "'1.5 minutes' has a fraction of a minute; only seconds have one, such as '1.5 seconds'"),
        ("1. minutes", "has a fraction of a minute"),
        ("9223372036854775808 microseconds", "is longer than Spark can count; write a shorter one"),
        ("9" * 5000 + " seconds", "is not an interval"),
    ],
)
def test_what_is_no_interval_is_refused_with_an_example(text: str, message: str) -> None:
    with pytest.raises(SkewlessError) as refused:
        microseconds(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("value", [60, timedelta(seconds=5), None])
def test_values_that_are_no_text_are_refused_alike(value: object) -> None:
    with pytest.raises(SkewlessError, match="is not an interval; write numbers and units"):
        microseconds(value)  # type: ignore[arg-type] # what users do


def test_a_watermark_may_be_zero_but_not_less() -> None:
    assert microseconds("0 seconds", zero=True) == 0
    with pytest.raises(SkewlessError, match="less than nothing"):
        microseconds("-1 second", zero=True)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 10**6 - 1))
def test_units_add_up(days: int, minutes: int, fraction: int) -> None:
    text = f"{days} days {minutes} minutes 1.{fraction:06} seconds"
    expected = timedelta(days=days, minutes=minutes, seconds=1, microseconds=fraction)
    assert microseconds(text) == expected // timedelta(microseconds=1)
