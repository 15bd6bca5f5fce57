"""Aggregates for `agg`: count, sum, min, max, mean, var, std, first, last, distinct, quantile, top, collect, your own.

Each of them is computed from partial states that can be joined in any order. This is why a hot key can be split.

>>> from skewless import aggregate as A
>>> A.sum("price"), A.first("user", by="clicked_at")
(sum(price), first(user, by=clicked_at))
"""

# ruff: noqa: A001
# The functions carry the names that SQL and Spark gave them, and are meant to be used as `A.sum`.

from __future__ import annotations

from collections.abc import Sequence

from skewless.aggregate.collect import Collect
from skewless.aggregate.kernel import Fields, Kernel
from skewless.aggregate.measure import Measure
from skewless.aggregate.numeric import Count, Mean, Std, Sum, Var
from skewless.aggregate.order import First, Last, Max, Min
from skewless.aggregate.sketches import Distinct, Quantile, Top
from skewless.aggregate.user import Aggregate

__all__ = [
    "Aggregate",
    "Fields",
    "Kernel",
    "Measure",
    "collect",
    "count",
    "distinct",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "quantile",
    "std",
    "sum",
    "top",
    "var",
]


def count(column: str | None = None) -> Measure:
    """The number of rows, or of rows whose column is not null.

    >>> count(), count("price")
    (count(), count(price))
    """
    return Count() if column is None else Count(column)


def sum(column: str) -> Measure:
    """The sum; exact for integers and decimals, and an error if the result does not fit its type.

    >>> sum("price")
    sum(price)
    """
    return Sum(column)


def min(column: str) -> Measure:
    """Smallest value.

    >>> min("price")
    min(price)
    """
    return Min(column)


def max(column: str) -> Measure:
    """Largest value.

    >>> max("price")
    max(price)
    """
    return Max(column)


def mean(column: str) -> Measure:
    """Average.

    >>> mean("price")
    mean(price)
    """
    return Mean(column)


def var(column: str) -> Measure:
    """Variance of a sample.

    >>> var("price")
    var(price)
    """
    return Var(column)


def std(column: str) -> Measure:
    """Standard deviation of a sample.

    >>> std("price")
    std(price)
    """
    return Std(column)


def first(column: str, by: str | None = None, ignore_nulls: bool = False) -> Measure:
    """The value of the earliest row, ordered by its time or by a column; ties go to the smallest value.

    >>> first("page"), first("page", by="clicked_at")
    (first(page), first(page, by=clicked_at))
    """
    return First(column, by, ignore_nulls)


def last(column: str, by: str | None = None, ignore_nulls: bool = False) -> Measure:
    """The value of the latest row, ordered by its time or by a column; ties go to the largest value.

    >>> last("page", ignore_nulls=True)
    last(page)
    """
    return Last(column, by, ignore_nulls)


def distinct(column: str, lg_k: int = 12) -> Measure:
    """The approximate number of different values, from a HyperLogLog of 2^lg_k bytes; the default is about 1.6% off.

    >>> distinct("user")
    distinct(user)
    """
    return Distinct(column, lg_k)


def quantile(column: str, q: float | Sequence[float], k: int = 200) -> Measure:
    """The approximate value at a rank, from a KLL sketch; by default the rank is off by at most 1.33% of the rows.

    >>> quantile("price", 0.5), quantile("price", [0.25, 0.5, 0.75])
    (quantile(price), quantile(price))
    """
    return Quantile(column, q, k)


def top(column: str, k: int = 10, lg_max_k: int = 10) -> Measure:
    """The approximate most frequent values with their counts; by default a count is off by at most 0.34% of the rows.

    >>> top("page", k=3)
    top(page)
    """
    return Top(column, k, lg_max_k)


def collect(column: str) -> Measure:
    """All values that are not null, as a list in no particular order.

    >>> collect("page")
    collect(page)
    """
    return Collect(column)
