"""Rows of a stream delivered in order: micro-batches become results, and some of them wait for others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.chop.merge import Merger, Result, Waits
from skewless.core import blob
from skewless.core.arrays import BoolArray, Int64Array
from skewless.core.errors import SkewlessError

FORMAT = 1
"""The format of what is remembered. That of another one is refused."""


@dataclass(frozen=True)
class Order:
    """The order that rows are to have.

    Parameters
    ----------
    by
        The column that says: windows with a start, times, or whole numbers.
    every
        What a number of a result stands for: microseconds of time, or 1.
    delay
        How far below the highest value so far others may come. None if a micro-batch has all up to its own highest.
    k
        Places by which two results may be out of order.
    parts
        Micro-batches that the rows of a number come in. None where that is not known, for strict order.
    """

    by: str
    every: int = 1
    delay: int | None = None
    k: int = 0
    parts: int | None = None

    def low(self, highest: int) -> int:
        """The lowest number that may still come after this value."""
        return highest // self.every + 1 if self.delay is None else (highest - self.delay) // self.every


@dataclass(frozen=True)
class Report(Waits):
    """What order cost so far, with what waits now and what came too late.

    A result is all rows of a number, such as a window, that came in one micro-batch.

    Parameters
    ----------
    held, held_rows
        Results that wait now, and their rows, with those of parts too many, which `most_held_rows` leaves out.
    late, late_rows
        Of those delivered, results that came after their number was complete, and their rows.

    Examples
    --------
    >>> print(Report(delivered=40, batches=20, most_batches=2, held=1, held_rows=9))
    40 results delivered, none late
    waited 0.50 micro-batches on average and 2 at most, 0.00 s on average and 0.00 s at most
    held back now: 1 result, 9 rows
    """

    held: int = 0
    held_rows: int = 0
    late: int = 0
    late_rows: int = 0

    def __str__(self) -> str:
        late = f"{self.late} late ({counted(self.late_rows, 'row')})" if self.late else "none late"
        return (
            f"{counted(self.delivered, 'result')} delivered, {late}\n"
            f"waited {self.mean_batches:.2f} micro-batches on average and {self.most_batches} at most, "
            f"{self.mean_seconds:.2f} s on average and {self.most_seconds:.2f} s at most\n"
            f"held back now: {counted(self.held, 'result')}, {counted(self.held_rows, 'row')}"
        )


class Delivery:
    """Takes the rows of micro-batches, and gives those that may be delivered, in order.

    Rows of the same number in a micro-batch are one result for a `Merger`. What comes below the numbers that are
    complete is late, and so is what comes after the last part of a number: it is given at once, first. A part too many
    of a number that still waits waits with it. Rows without a value have no place in the order and are late too.

    Parameters
    ----------
    order
        The order to give.
    query
        The id of the query whose rows they are; empty where that is not known.

    Examples
    --------
    >>> delivery = Delivery(Order("n", delay=2))
    >>> for numbers in ([1, 3, 2], [5, 4], [1, 9]):
    ...     print(delivery.add(pa.table({"n": numbers}))["n"].to_pylist())
    [1]
    [2, 3]
    [1, 4, 5]
    >>> delivery.finish()["n"].to_pylist(), delivery.report.late
    ([9], 1)
    """

    def __init__(self, order: Order, query: str = "") -> None:
        self.order, self.query = order, query
        self._merger = Merger(order.k, order.parts)
        self._waiting: dict[int, list[list[int]]] = {}  # the payload of the last result of a number that is held
        self._rows: pa.Table | None = None  # those held, in order of their ids
        self._ids: Int64Array = np.zeros(0, np.int64)
        self._next = 0  # the id of the next row
        self._late = self._late_rows = 0

    @property
    def report(self) -> Report:
        """What order cost so far."""
        waits = asdict(self._merger.waits)
        waits["delivered"] += self._late
        return Report(
            **waits, held=self._merger.held, held_rows=len(self._ids), late=self._late, late_rows=self._late_rows
        )

    def add(self, rows: pa.Table, now: float = 0.0) -> pa.Table:
        """The rows of a micro-batch, in any order; those to deliver now.

        Of equal values, rows stay in the order in which they come.

        Parameters
        ----------
        rows
            All of the same schema.
        now
            The time in seconds, for the report alone.
        """
        values, known = _values(rows[self.order.by])
        at = np.lexsort((values, known))  # stable; those without a value first
        if np.any(at[1:] < at[:-1]):
            rows, values, known = rows.take(pa.array(at)), values[at], known[at]
        first, unknown = self._next, int(np.count_nonzero(~known))
        self._keep(rows)
        late = [[first, unknown]] if unknown else []
        new = []
        low, seen = self._merger.low, self._merger.seen()
        for number, start, count in _runs(values[unknown:] // self.order.every, first + unknown):
            full = self.order.parts is not None and seen[number] >= self.order.parts
            if full and number in self._waiting:
                self._waiting[number].append([start, count])
            elif full or (low is not None and number < low):
                late.append([start, count])
            else:
                self._waiting[number] = [[start, count]]
                new.append(Result(number, count, self._waiting[number]))
        self._late += len(late)
        self._late_rows += sum(count for _, count in late)
        watermark = self.order.low(int(values[-1])) if unknown < len(values) else None
        return self._give(late, self._merger.add(new, watermark, now))

    def finish(self, now: float = 0.0) -> pa.Table:
        """The stream is over: all rows that are left, in order."""
        return self._give([], self._merger.finish(now))

    def dump(self) -> bytes:
        """All that is remembered, held rows included."""
        fields = [] if self._rows is None else [[field.name, field.nullable] for field in self._rows.schema]
        state = {
            "format": FORMAT,
            "query": self.query,
            "by": self.order.by,
            "every": self.order.every,
            "merger": self._merger.state(),
            "next": self._next,
            "late": [self._late, self._late_rows],
            "fields": fields,
        }
        columns = [] if self._rows is None else [column.combine_chunks() for column in self._rows.columns]
        return blob.dump(columns, {"delivery": json.dumps(state)})

    @classmethod
    def load(cls, data: bytes, order: Order) -> Delivery:
        """One that goes on where another one stopped; k, parts and delay may be others than then.

        >>> first = Delivery(Order("n", delay=5))
        >>> _ = first.add(pa.table({"n": [7, 3]}))
        >>> Delivery.load(first.dump(), first.order).finish()["n"].to_pylist()
        [3, 7]
        """
        rows = blob.load(data)
        state = json.loads(blob.notes(rows)["delivery"])
        if state.get("format") != FORMAT:
            had = f"format {state['format']}" if "format" in state else "no format number, as in version 0.5"
            raise SkewlessError(
                f"the rows that wait have {had}, and this version of skewless reads format {FORMAT}; write the stream "
                "anew with another checkpoint, or go on with the version that wrote them"
            )
        if (state["by"], state["every"]) != (order.by, order.every):
            raise SkewlessError(
                f"the stream was numbered by {state['by']!r} and every {state['every']} before, not by {order.by!r} "
                f"and every {order.every}; order it as before, or write it anew with another checkpoint"
            )
        delivery = cls(order, state["query"])
        merger = {**state["merger"], "k": order.k, "parts": order.parts}
        delivery._merger = Merger.from_state(merger)
        delivery._waiting = {number: payload for number, _, _, payload, *_ in merger["held"]}
        delivery._next = state["next"]
        delivery._late, delivery._late_rows = state["late"]
        if state["fields"]:
            pairs = zip(state["fields"], rows.columns, strict=True)
            schema = pa.schema([pa.field(name, column.type, nullable) for (name, nullable), column in pairs])
            delivery._rows = pa.Table.from_arrays(rows.columns, schema=schema)
        delivery._ids = np.sort(_expand(run for *_, payload, _, _ in merger["held"] for run in payload))
        return delivery

    def _keep(self, rows: pa.Table) -> None:
        ids = np.arange(self._next, self._next + len(rows))
        if len(self._ids) and self._rows is not None:
            before, after = _kinds(self._rows), _kinds(rows)
            if before != after:
                raise SkewlessError(
                    f"the rows that wait have the columns {before}, and those that come have {after}; run the query "
                    "as it was, or deliver the rest first with flush(...)"
                )
            rows = pa.concat_tables([pa.Table.from_arrays(self._rows.columns, schema=rows.schema), rows])
        self._rows, self._ids = rows, np.concatenate([self._ids, ids])
        self._next += len(ids)

    def _give(self, late: list[list[int]], results: list[Result]) -> pa.Table:
        for result in results:
            if self._waiting.get(result.number) is result.payload:
                del self._waiting[result.number]
        if self._rows is None:
            return pa.table({})
        at = np.searchsorted(self._ids, _expand([*late, *[run for result in results for run in result.payload]]))
        given = self._rows.take(pa.array(at))
        stays = np.ones(len(self._ids), np.bool_)
        stays[at] = False
        self._rows, self._ids = self._rows.take(pa.array(np.flatnonzero(stays))), self._ids[stays]
        return given


def _values(column: pa.ChunkedArray) -> tuple[Int64Array, BoolArray]:
    """What to order by, as whole numbers, and which of them are known."""
    if pa.types.is_struct(column.type):
        column = pc.struct_field(column, "start")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    column = column.cast(pa.int64())
    return column.fill_null(0).to_numpy(), column.is_valid().to_numpy()


def _runs(numbers: Int64Array, first: int) -> Iterable[tuple[int, int, int]]:
    """Each number of a sorted array, with the id of its first row and how many there are."""
    found, starts, counts = np.unique(numbers, return_index=True, return_counts=True)
    return zip(found.tolist(), (starts + first).tolist(), counts.tolist(), strict=True)


def _expand(runs: Iterable[list[int]]) -> Int64Array:
    """The ids in runs of a first one and a count."""
    pairs = np.array(list(runs), np.int64).reshape(-1, 2)
    starts, counts = pairs[:, 0], pairs[:, 1]
    before = np.cumsum(counts) - counts
    expanded: Int64Array = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    return expanded


def counted(number: int, name: str) -> str:
    """So many of something, in words."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _kinds(rows: pa.Table) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in rows.schema)
