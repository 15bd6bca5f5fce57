"""A processor on the rows of many keys: key by key, or all at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.tables import numbered
from skewless.core.values import array
from skewless.operators.process.processor import Key, Processor, Row, Rows, SlotProcessor, State

TIME = pa.timestamp("us", tz="UTC")
GROUP = "group"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MISFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)


@dataclass(frozen=True)
class Kept:
    """What is kept of some keys: a row for each, in all columns.

    Parameters
    ----------
    keys, fields
        The columns of key and state.
    timers
        Microseconds; null without a timer.
    """

    keys: Sequence[pa.Array]
    fields: Sequence[pa.Array]
    timers: pa.Array


class Calls(ABC):
    """What is done with the rows of a slot.

    Parameters
    ----------
    keys, fields, result
        The names and types of the columns of key, state and result.
    """

    def __init__(self, keys: pa.Schema, fields: pa.Schema, result: pa.Schema) -> None:
        self.keys, self.fields, self.result = keys, fields, result

    @abstractmethod
    def rows(self, rows: pa.RecordBatch, bounds: Int64Array, kept: Kept) -> tuple[pa.RecordBatch, Kept]:
        """The result for rows of keys, key columns first, and what is then kept of the keys.

        Parameters
        ----------
        rows
            The rows, sorted by key.
        bounds
            Where the rows of each key start, and where those of the last one end.
        kept
            What is kept so far: a row for each key.
        """

    @abstractmethod
    def expire(self, kept: Kept, watermark: int) -> tuple[pa.RecordBatch, Kept]:
        """The result for keys whose timers are due, key columns first, and what is then kept of the keys."""


def calls_of(processor: Processor, keys: pa.Schema, fields: pa.Schema, result: pa.Schema) -> Calls:
    """The fastest way to run a processor."""
    many = isinstance(processor, SlotProcessor)
    return ManyKeys(processor, keys, fields, result) if many else EachKey(processor, keys, fields, result)


class EachKey(Calls):
    """Calls `process` for each key, on Python's own values: no frame is built for a key."""

    def __init__(self, processor: Processor, keys: pa.Schema, fields: pa.Schema, result: pa.Schema) -> None:
        super().__init__(keys, fields, result)
        self._processor = processor

    def rows(self, rows: pa.RecordBatch, bounds: Int64Array, kept: Kept) -> tuple[pa.RecordBatch, Kept]:
        """The result, and what is then kept."""
        columns = {name: rows.column(i).to_pylist() for i, name in enumerate(rows.schema.names)}
        keys, states, given, ends = _tuples(kept.keys), self._states(kept), list[Row](), list[int]()
        process, edges = self._processor.process, bounds.tolist()
        for i, state in enumerate(states):
            result = process(keys[i], Rows(columns, edges[i], edges[i + 1]), state)
            if result is not None:
                given += result
            ends.append(len(given))
        return self._result(given, kept.keys, ends), self._kept(kept, states)

    def expire(self, kept: Kept, watermark: int) -> tuple[pa.RecordBatch, Kept]:
        """The result, and what is then kept."""
        states, given, ends = self._states(kept, moment(watermark)), list[Row](), list[int]()
        for key, state in zip(_tuples(kept.keys), states, strict=True):
            state.timer = None
            given += self._processor.expire(key, state) or ()
            ends.append(len(given))
        return self._result(given, kept.keys, ends), self._kept(kept, states)

    def _states(self, kept: Kept, watermark: datetime | None = None) -> list[State]:
        names, timers = self.fields.names, kept.timers.cast(TIME).to_pylist()
        return [
            State(dict(zip(names, values, strict=True)), timer, watermark)
            for values, timer in zip(_tuples(kept.fields), timers, strict=True)
        ]

    def _kept(self, before: Kept, states: Sequence[State]) -> Kept:
        names = set(self.fields.names)
        for state in states:
            if state.keys() != names:
                extra = ", ".join(sorted(map(str, state.keys() - names)))
                lost = ", ".join(sorted(names - state.keys()))
                raise SkewlessError(
                    f"the state {f'has {extra}, which `state` does not declare' if extra else f'lacks {lost}'}; "
                    f"keep {', '.join(self.fields.names)}, None where there is nothing to keep"
                )
        fields = [as_column(field, [state[field.name] for state in states], "state field") for field in self.fields]
        return Kept(before.keys, fields, timers_of([state.timer for state in states]))

    def _result(self, given: Sequence[Row], keys: Sequence[pa.Array], ends: Sequence[int]) -> pa.RecordBatch:
        """The rows that were given, with their keys; those of each key end at a place in `ends`."""
        names, known, width = self.result.names, set(self.result.names), len(self.result)
        rows: list[Sequence[Any]] = []
        for row in given:
            values: Sequence[Any] = ()
            if isinstance(row, (tuple, list)):
                values = row
            elif isinstance(row, Mapping) and row.keys() <= known:
                values = [row.get(name) for name in names]
            if len(values) != width:
                raise SkewlessError(
                    f"a row of the result is {row!r}; give {width} values, {', '.join(names)}, as a tuple or dictionary"
                )
            rows.append(values)
        columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * width
        arrays = [as_column(field, values, "column") for field, values in zip(self.result, columns, strict=True)]
        groups = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        return with_keys(keys, groups, arrays)


class ManyKeys(EachKey):
    """Calls `process_slot` once for all keys; timers still go key by key."""

    _processor: SlotProcessor

    def rows(self, rows: pa.RecordBatch, bounds: Int64Array, kept: Kept) -> tuple[pa.RecordBatch, Kept]:
        """The result, and what is then kept."""
        groups = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        table = pa.table([*rows.columns, pa.array(groups)], names=[*rows.schema.names, GROUP])
        names = [*self.keys.names, *self.fields.names, "timer"]
        states = pa.table([*kept.keys, *kept.fields, kept.timers.cast(TIME)], names=names)
        result, states = self._processor.process_slot(table, states)
        if states.num_rows != len(bounds) - 1:
            raise SkewlessError(
                f"process_slot gave states for {states.num_rows} keys where {len(bounds) - 1} came; "
                "give a row for each key, in the order they came"
            )
        fields = self._cast(states, self.fields, "states")
        timers = pa.nulls(states.num_rows, pa.int64())
        if "timer" in states.column_names:
            timers = _timers(states.column("timer"))
        given = with_keys(kept.keys, self._groups(result, states.num_rows), self._cast(result, self.result, "result"))
        return given, Kept(kept.keys, fields, timers)

    @staticmethod
    def _groups(result: pa.Table, keys: int) -> Int64Array | None:
        """The number of each row's key."""
        if GROUP in result.column_names:
            column = _cast(result.column(GROUP), pa.field(GROUP, pa.int64()), "result")
            groups = np.asarray(column.fill_null(-1))
            astray = groups[(groups < 0) | (groups >= keys)]
            if len(astray):
                wrong = "null" if column.null_count else astray[0]
                raise SkewlessError(f"a row of the result of process_slot has group {wrong}; there are {keys} keys")
            return groups
        if result.num_rows != keys:
            raise SkewlessError(
                f"process_slot gave {result.num_rows} rows for {keys} keys; add a column {GROUP!r} with the number of "
                "each row's key in `states`, or give one row for each key, in their order"
            )
        return None

    @staticmethod
    def _cast(table: pa.Table, schema: pa.Schema, what: str) -> list[pa.Array]:
        missing = [name for name in schema.names if name not in table.column_names]
        if missing:
            raise SkewlessError(f"the {what} of process_slot lack {', '.join(missing)}; they have {table.column_names}")
        return [_cast(table.column(field.name), field, what) for field in schema]


def _cast(column: pa.ChunkedArray, field: pa.Field, what: str) -> pa.Array:
    try:
        return _whole(column.cast(field.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SkewlessError(f"{field.name} in the {what} of process_slot is no {field.type}: {error}") from error


def _timers(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    kind = column.type
    if not pa.types.is_null(kind) and getattr(kind, "tz", None) is None:
        raise SkewlessError(f"timer in the states of process_slot is {kind}; give a timestamp with a time zone")
    return _cast(column, pa.field("timer", TIME), "states").cast(pa.int64())


def with_keys(keys: Sequence[pa.Array], groups: Int64Array | None, columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Columns after those of the key of each row; without groups, row i is of key i."""
    heads = keys if groups is None else [key.take(pa.array(groups)) for key in keys]
    return numbered([*heads, *columns])


def as_column(field: pa.Field, values: Sequence[Any], what: str) -> pa.Array:
    """Values as a column, or an error that names one that does not fit."""
    try:
        return array(values, field.type)
    except _MISFIT as error:
        wrong = next((value for value in values if not _fits(value, field.type)), None)
        raise SkewlessError(
            f"{what} {field.name!r} is {wrong!r}, which is no {field.type} ({error}); give one or declare another type"
        ) from error


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        array([value], kind)
    except _MISFIT:
        return False
    return True


def moment(watermark: int) -> datetime:
    """A watermark in microseconds as a time; the last one there is if it is later.

    >>> moment(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    try:
        return _EPOCH + timedelta(microseconds=watermark)
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc)


def timers_of(times: Sequence[datetime | None]) -> pa.Array:
    """Timers as microseconds."""
    if all(time is None for time in times):
        return pa.nulls(len(times), pa.int64())
    for time in times:
        if time is not None and not isinstance(time, datetime):
            raise SkewlessError(f"state.timer is {time!r}; give a datetime, or None for no timer")
        if time is not None and time.tzinfo is None:
            raise SkewlessError(f"state.timer is {time!r}, without a time zone; add one, such as tzinfo=timezone.utc")
    return pa.array(times, type=TIME).cast(pa.int64())


def _tuples(columns: Sequence[pa.Array]) -> list[Key]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
