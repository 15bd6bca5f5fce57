"""Intervals in Spark's words: "10 seconds", "1 minute 30 seconds", "interval 2 hours"."""

from __future__ import annotations

import re

from skewless.core.errors import SkewlessError

_SECOND = 1_000_000
_UNITS = {
    "week": 7 * 86_400 * _SECOND,
    "day": 86_400 * _SECOND,
    "hour": 3_600 * _SECOND,
    "minute": 60 * _SECOND,
    "second": _SECOND,
    "millisecond": 1_000,
    "microsecond": 1,
}
_LONGEST = 2**63 - 1
# Spark wants a space before a unit, and reads no more than nine digits of a fraction.
_TERM = re.compile(r"([+-]?)\s*(?:(\d{1,30})(\.\d{0,9})?|(\.\d{1,9}))\s+(\w+)(?:\s+|$)", re.ASCII)


def microseconds(text: str, *, zero: bool = False) -> int:
    """The length of an interval as `pyspark.sql.functions.window` reads it.

    Parameters
    ----------
    text
        Numbers and units, in upper or lower case: each number may have a sign, and seconds a fraction. The word
        `interval` may come first.
    zero
        Whether a length of zero is allowed, as it is for a watermark.

    Examples
    --------
    >>> microseconds("1 minute 30 seconds")
    90000000
    >>> microseconds("1 month")
    Traceback (most recent call last):
        ...
    skewless.core.errors.SkewlessError: '1 month' has no fixed length; use days, such as '30 days'
    """
    total = _total(str(text), text)  # a number or a timedelta gets the same error as a bad text
    if total < 0 or (total == 0 and not zero):
        least = "less than nothing" if total < 0 else "no time at all"
        raise SkewlessError(f"{text!r} is {least}; write a longer interval, such as '10 seconds'")
    if total > _LONGEST:
        raise SkewlessError(f"{text!r} is longer than Spark can count; write a shorter one, such as '365 days'")
    return total


def _total(words: str, text: object) -> int:
    rest = re.sub(r"^interval\s+", "", words.strip().lower(), flags=re.ASCII)
    total, at = 0, 0
    while at < len(rest) or not rest:
        term = _TERM.match(rest, at)
        if term is None:
            raise SkewlessError(
                f"{text!r} is not an interval; write numbers and units with spaces between, such as '10 seconds' or "
                "'1 minute 30 seconds'"
            )
        total += _length(term, text)
        at = term.end()
    return total


def _length(term: re.Match[str], text: object) -> int:
    sign, whole, decimals, bare_decimals, name = term.groups()
    fraction = decimals or bare_decimals
    unit = name.removesuffix("s")
    if unit in ("month", "year"):
        raise SkewlessError(f"{text!r} has no fixed length; use days, such as '30 days'")
    if unit not in _UNITS:
        names = ", ".join(f"{each}s" for each in _UNITS)
        raise SkewlessError(f"{text!r} has an unknown unit, {name!r}; use {names}, such as '10 seconds'")
    if fraction and unit != "second":
        raise SkewlessError(f"{text!r} has a fraction of a {unit}; only seconds have one, such as '1.5 seconds'")
    length = int(whole or 0) * _UNITS[unit]
    if fraction:
        length += int(fraction[1:7].ljust(6, "0"))
    return -length if sign == "-" else length
