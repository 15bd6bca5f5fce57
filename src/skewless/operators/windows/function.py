"""The user's function of a window, called on slices of sorted rows, and its answers gathered into columns."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.values import array
from skewless.core.windows import Windows
from skewless.operators.windows.slices import Slices

MANY = 1 << 16
"""Rows of an answer that are enough for a piece."""
_MISFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Span(NamedTuple):
    """Where a window, or a pane, starts and where it ends: times like those of the rows, or numbers of rows."""

    start: Any
    end: Any


class Call(ABC):
    """What is done with each slice.

    Parameters
    ----------
    schema
        The names and types of the answers' columns.
    zoned
        Whether windows start and end at times in UTC; if not, at times without a time zone.
    """

    schema: pa.Schema
    zoned: bool

    @abstractmethod
    def prepare(self, rows: pa.RecordBatch) -> Callable[[int, int], Any]:
        """What the function is given for the rows from a number to before another."""

    @abstractmethod
    def answers(self) -> Answers:
        """Where answers are gathered."""

    @abstractmethod
    def __call__(self, key: tuple[Any, ...], span: Span, rows: Any) -> Any:
        """The answer for a window of a key."""

    def run(
        self, rows: pa.RecordBatch, keys: Sequence[tuple[Any, ...]], windows: Windows, found: Slices
    ) -> Iterator[tuple[Int64Array, list[pa.Array]]]:
        """For pieces of the answer: of which slice each row is, and its columns.

        Parameters
        ----------
        rows
            The columns that the function sees, sorted as the slices want them.
        keys
            The key of each group.
        windows
            Size and slide.
        found
            The slices.
        """
        give, answers = self.prepare(rows), self.answers()
        columns = (found.groups, found.windows, found.starts, found.stops)
        todo = enumerate(zip(*(each.tolist() for each in columns), strict=True))
        more = True
        while more:
            # A slice that the function writes to must not change its neighbours.
            with pd.option_context("mode.copy_on_write", True):
                more = self._some(todo, keys, windows, give, answers)
            if answers.rows:
                yield answers.take()

    def _some(
        self,
        todo: Iterator[tuple[int, tuple[int, ...]]],
        keys: Sequence[tuple[Any, ...]],
        windows: Windows,
        give: Callable[[int, int], Any],
        answers: Answers,
    ) -> bool:
        """Call for slices until the answers are many; false if that was all."""
        for i, (group, window, start, stop) in todo:
            key, span = keys[group], span_of(windows, window, zoned=self.zoned)
            try:
                answers.add(i, self(key, span, give(start, stop)))
            except Exception as error:
                if hasattr(error, "add_note"):  # from Python 3.11 on
                    error.add_note(f"in the window from {span.start} to {span.end} of key {key}")
                raise
            if answers.rows >= MANY:
                return True
        return False


@dataclass(frozen=True)
class WindowCall(Call):
    """A function of the rows of a window.

    Parameters
    ----------
    function
        `function(key, window, rows)`.
    rows
        The names and types of the columns that it sees.
    schema
        The names and types of the answers' columns.
    arrow
        Whether it is given a `pyarrow.Table` instead of a pandas frame.
    zoned
        Whether times are in UTC.
    """

    function: Callable[..., Any]
    rows: pa.Schema
    schema: pa.Schema
    arrow: bool = False
    zoned: bool = True

    def prepare(self, rows: pa.RecordBatch) -> Callable[[int, int], Any]:
        """A table or a frame of the slice."""
        table = pa.Table.from_batches([pa.RecordBatch.from_arrays(rows.columns, schema=self.rows)])
        if self.arrow:
            return lambda start, stop: table.slice(start, stop - start)
        with pd.option_context("mode.copy_on_write", True):
            frame = table.to_pandas()

        def give(start: int, stop: int) -> pd.DataFrame:
            some = frame.iloc[start:stop]
            some.index = pd.RangeIndex(stop - start)
            return some

        return give

    def answers(self) -> Answers:
        """Rows of the schema."""
        return Answers(self.schema)

    def __call__(self, key: tuple[Any, ...], span: Span, rows: Any) -> Any:
        """The answer for a window of a key."""
        return self.function(key, span, rows)


OBJECT = pa.schema([("object", pa.binary())])


@dataclass(frozen=True)
class PaneCall(WindowCall):
    """A function of the rows of a pane, whose answer may be anything that pickles."""

    schema: pa.Schema = OBJECT

    def answers(self) -> Answers:
        """Objects."""
        return Objects(self.schema)


@dataclass(frozen=True)
class MergeCall(Call):
    """A function of the answers for the panes of a window, in order of time.

    Parameters
    ----------
    function
        `function(key, window, answers)`.
    schema
        The names and types of its answers' columns.
    zoned
        Whether times are in UTC.
    """

    function: Callable[..., Any]
    schema: pa.Schema
    zoned: bool = True

    def prepare(self, rows: pa.RecordBatch) -> Callable[[int, int], Any]:
        """A list of the slice; each object is made once, however many windows it serves."""
        objects = [pickle.loads(data.as_buffer()) for data in rows.column(0)]
        return lambda start, stop: objects[start:stop]

    def answers(self) -> Answers:
        """Rows of the schema."""
        return Answers(self.schema)

    def __call__(self, key: tuple[Any, ...], span: Span, rows: Any) -> Any:
        """The answer for a window of a key."""
        return self.function(key, span, rows)


class Answers:
    """Rows that functions gave, in the order of the calls.

    An answer is a tuple for one row, a list (or anything that can be gone through) of tuples, a pandas frame, a
    `pyarrow.Table`, or None.

    Parameters
    ----------
    schema
        That they must have.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self.rows = schema, 0
        self._counts: list[tuple[int, int]] = []
        self._tuples: list[tuple[Any, ...]] = []
        self._frames: list[pd.DataFrame] = []
        self._pieces: list[pa.Table] = []

    def add(self, call: int, answer: Any) -> None:
        """What a call gave."""
        if answer is None:
            return
        if isinstance(answer, tuple):
            answer = [answer]
        if isinstance(answer, pd.DataFrame):
            self._settle(tuples=True)
            self._check(answer.columns)
            self._frames.append(answer)
            count = len(answer)
        elif isinstance(answer, (pa.Table, pa.RecordBatch)):
            self._settle(tuples=True, frames=True)
            self._check(answer.schema.names)
            self._pieces.append(self._fit(answer.select(self._schema.names)))
            count = answer.num_rows
        else:
            self._settle(frames=True)
            count = self._add_tuples(answer)
        self._counts.append((call, count))
        self.rows += count

    def take(self) -> tuple[Int64Array, list[pa.Array]]:
        """Which call each row is of, and the columns; they are gone from here."""
        self._settle(tuples=True, frames=True)
        calls, counts = (np.array(column, np.int64) for column in zip(*self._counts, strict=True))
        table = pa.concat_tables(self._pieces).combine_chunks()
        arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in table.columns]
        self._counts, self._pieces, self.rows = [], [], 0
        return np.repeat(calls, counts), arrays

    def _add_tuples(self, answer: Any) -> int:
        try:
            rows = list(answer)
        except TypeError:
            raise SkewlessError(
                f"a function gave {answer!r}; give a tuple of {_names(self._schema)}, a list of such tuples, "
                "a pandas frame, an Arrow table, or None for no row"
            ) from None
        for row in rows:
            if not isinstance(row, tuple) or len(row) != len(self._schema):
                raise SkewlessError(f"a function gave {row!r} as a row; give a tuple of {_names(self._schema)}")
        self._tuples += rows
        return len(rows)

    def _check(self, names: Any) -> None:
        missing = [name for name in self._schema.names if name not in names]
        if missing:
            raise SkewlessError(
                f"a function gave the columns {', '.join(map(str, names))}, and {', '.join(missing)} is missing; "
                "give all that the schema names"
            )

    def _settle(self, *, tuples: bool = False, frames: bool = False) -> None:
        """Make columns of what waits, so that rows of different kinds stay in order."""
        if tuples and self._tuples:
            columns = zip(*self._tuples, strict=True)
            arrays = [_array(column, field) for column, field in zip(columns, self._schema, strict=True)]
            self._pieces.append(pa.Table.from_arrays(arrays, schema=self._schema))
            self._tuples = []
        if frames and self._frames:
            frame = pd.concat(self._frames, ignore_index=True) if len(self._frames) > 1 else self._frames[0]
            arrays = [_array(frame[field.name], field) for field in self._schema]
            self._pieces.append(pa.Table.from_arrays(arrays, schema=self._schema))
            self._frames = []

    def _fit(self, answer: pa.Table | pa.RecordBatch) -> pa.Table:
        table = answer if isinstance(answer, pa.Table) else pa.Table.from_batches([answer])
        try:
            return table.cast(self._schema)
        except _MISFIT as error:
            raise SkewlessError(f"a function gave {answer.schema}, not {self._schema}: {error}") from error


class Objects(Answers):
    """Objects that functions gave, pickled."""

    def _add_tuples(self, answer: Any) -> int:
        raise NotImplementedError

    def add(self, call: int, answer: Any) -> None:
        """What a call gave."""
        super().add(call, pa.table([[pickle.dumps(answer, protocol=5)]], schema=self._schema))


def span_of(windows: Windows, window: int, *, zoned: bool = True) -> Span:
    """Where a window starts and ends, as functions see it."""
    start, end = windows.span(window)
    if windows.rows:
        return Span(start, end)
    epoch = _EPOCH if zoned else _EPOCH.replace(tzinfo=None)
    return Span(epoch + timedelta(microseconds=start), epoch + timedelta(microseconds=end))


def _array(values: Any, field: pa.Field) -> pa.Array:
    try:
        is_series = isinstance(values, pd.Series)
        column = pa.array(values, type=field.type, from_pandas=True) if is_series else array(values, field.type)
    except _MISFIT as error:
        raise SkewlessError(f"a function gave a {field.name} that is no {field.type}: {error}") from error
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _names(schema: pa.Schema) -> str:
    return f"({', '.join(schema.names)})"
