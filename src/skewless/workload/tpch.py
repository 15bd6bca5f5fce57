"""Rows of TPC-H's table lineitem as a stream: what was ordered of each part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from skewless.core.arrays import BoolArray, FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows
from skewless.workload.stream import check_lengths

QUANTITY_WINDOWS = Windows(3600, 60)
"""Of query 1 as the thesis on Prompt has it, the quantity of each part: 1 hour by 1 minute, in seconds."""

PARTS = 200_000  # at scale 1
_ORDERS = 4_096  # that are drawn at a time
_DAYS = 2_406  # on which orders are made, from 1992-01-01
_YEAR = (731, 1_096)  # the days of 1994, which query 6 asks for


@dataclass(frozen=True, eq=False)
class LineItems:
    """Rows of lineitem in the order in which they were ordered, one array per column.

    Parameters
    ----------
    time
        Seconds since the start at which the order came.
    order, part
        The numbers of the order and of the part; the part is the key.
    quantity
        Pieces, 1 to 50.
    price, discount
        Dollars for all pieces, and the share taken off, 0 to 0.1.
    shipped
        The day of the shipment, counted from 1992-01-01.
    """

    time: FloatArray
    order: Int64Array
    part: Int64Array
    quantity: Int64Array
    price: FloatArray
    discount: FloatArray
    shipped: Int64Array

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> LineItems:
        return LineItems(*(getattr(self, column.name)[rows] for column in fields(self)))

    @property
    def in_query_6(self) -> BoolArray:
        """Whether a row is among those that query 6 sums up: of 1994, little taken off, few pieces."""
        year = (self.shipped >= _YEAR[0]) & (self.shipped < _YEAR[1])
        off = (self.discount >= 0.05 - 1e-9) & (self.discount <= 0.07 + 1e-9)
        chosen: BoolArray = year & off & (self.quantity < 24)
        return chosen


@dataclass(frozen=True)
class TPCH:
    """A stream of TPC-H's lineitem, with the distributions of the benchmark.

    An order has 1 to 7 rows, each of a part that is drawn uniformly, so keys are many and none is hot. The thesis on
    Prompt has two queries of it. In its query 1 the quantity of each part is summed up; the benchmark's own query 1 has
    four groups only. The benchmark's query 6 has no groups, and the thesis does not say what it keys by: here it is the
    part too, with the rows `in_query_6`, whose price times discount is summed up.

    Parameters
    ----------
    scale
        The benchmark's scale factor: there are 200,000 parts for each unit of it.
    rows_per_second
        How many rows come in a second, on average.
    seed
        The same seed gives the same stream.

    Examples
    --------
    >>> rows = TPCH(scale=0.01, seed=1).take(10_000)
    >>> len(np.unique(rows.part)), float(rows.quantity.mean().round(1))
    (1982, 25.5)

    References
    ----------
    Transaction Processing Performance Council: TPC benchmark H, standard specification.
    """

    scale: float = 1.0
    rows_per_second: float = 1_000.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check that there are parts and rows."""
        if not self.scale * PARTS >= 1:
            raise SkewlessError(f"scale is {self.scale}; give at least {1 / PARTS}, for one part")
        if not self.rows_per_second > 0:
            raise SkewlessError(f"rows_per_second is {self.rows_per_second}; give more than 0")

    @property
    def parts(self) -> int:
        """The number of different parts: they are 1 to this number."""
        return int(self.scale * PARTS)

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[LineItems]:
        """The first `n` rows, at most `block` of them at a time."""
        check_lengths(n, block)
        ready, have, piece, now = [_nothing()], 0, 0, 0.0
        while n > 0:
            wanted = min(block, n)
            while have < wanted:
                ready.append(self._orders(piece, now))
                have, piece, now = have + len(ready[-1]), piece + 1, float(ready[-1].time[-1])
            joined = _join(ready)
            yield joined[:wanted]
            ready, have, n = [joined[wanted:]], have - wanted, n - wanted

    def take(self, n: int) -> LineItems:
        """The first `n` rows."""
        return next(self.blocks(n, max(n, 1)), _nothing())

    def _orders(self, piece: int, now: float) -> LineItems:
        """The rows of the next orders."""
        draw = np.random.default_rng([self.seed, piece])
        lines = draw.integers(1, 8, _ORDERS)
        which = np.repeat(np.arange(_ORDERS), lines)
        time = now + (draw.standard_exponential(_ORDERS) * lines / self.rows_per_second).cumsum()
        day = draw.integers(0, _DAYS, _ORDERS)
        rows = len(which)
        part = draw.integers(1, self.parts + 1, rows)
        quantity = draw.integers(1, 51, rows)
        retail = (90_000 + part // 10 % 20_001 + 100 * (part % 1_000)) / 100
        discount = draw.integers(0, 11, rows) / 100
        shipped = day[which] + draw.integers(1, 122, rows)
        return LineItems(time[which], piece * _ORDERS + which, part, quantity, quantity * retail, discount, shipped)


def _nothing() -> LineItems:
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return LineItems(real, whole, whole, whole, real, real, whole)


def _join(pieces: list[LineItems]) -> LineItems:
    columns = (np.concatenate([getattr(piece, column.name) for piece in pieces]) for column in fields(LineItems))
    return LineItems(*columns)
