"""What a user writes: a processor of the rows of a key, and what is kept of the key from one batch to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import pyarrow as pa

Key = tuple[Any, ...]
Row = Sequence[Any] | Mapping[str, Any]


class State(dict[str, Any]):
    """What is kept of a key: a value, or None, for each field that the processor declares.

    Change it in place. A key whose fields are all None, and which has no timer, is forgotten.

    Attributes
    ----------
    timer
        When to call `Processor.expire` with the key: as soon as the watermark has reached this time. None for never.
    watermark
        In `Processor.expire`, how far the watermark is, which may be later than the timer; at the end of a batch
        DataFrame it is later than every time. None in `Processor.process`.
    """

    __slots__ = ("timer", "watermark")

    def __init__(
        self, fields: Mapping[str, Any], timer: datetime | None = None, watermark: datetime | None = None
    ) -> None:
        super().__init__(fields)
        self.timer, self.watermark = timer, watermark

    @property
    def new(self) -> bool:
        """Whether nothing is kept of the key."""
        return all(value is None for value in self.values())

    def forget(self) -> None:
        """Keep nothing of the key."""
        for name in self:
            self[name] = None
        self.timer = None


class Rows:
    """The rows of one key in a batch, in their order.

    `rows["price"]` is the list of a column's values, `len(rows)` their number, and iterating gives each row as a
    dictionary. It is a view: nothing is copied before it is asked for.
    """

    __slots__ = ("_columns", "_start", "_stop")

    def __init__(self, columns: Mapping[str, list[Any]], start: int, stop: int) -> None:
        self._columns, self._start, self._stop = columns, start, stop

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name][self._start : self._stop]

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = list(self._columns)
        for values in zip(*(self[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))


class Processor(ABC):
    """What is done with the rows of each key.

    Attributes
    ----------
    state
        The fields kept of a key, in Spark's words: `"n long, last timestamp"`.
    ttl
        How long a key is kept after its last row, in event time, such as "1 hour"; None for ever. A key that comes
        again after that is new.

    Examples
    --------
    >>> class Total(Processor):
    ...     state = "total long"
    ...
    ...     def process(self, key, rows, state):
    ...         state["total"] = (state["total"] or 0) + sum(rows["price"])
    ...         yield (state["total"],)
    """

    state: ClassVar[str]
    ttl: ClassVar[str | None] = None

    @abstractmethod
    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        """Take the rows of a key, change its state, and give rows of the result, if any, without the key columns.

        Parameters
        ----------
        key
            The values of the key columns.
        rows
            The rows of this micro-batch.
        state
            What is kept of this key.
        """

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        """The watermark has reached the key's timer, which is None again."""
        return ()


class SlotProcessor(Processor):
    """A processor that takes many keys at once, as Arrow tables: a step for a whole slot and not for each key.

    Examples
    --------
    >>> class Totals(SlotProcessor):
    ...     state = "total long"
    ...
    ...     def process_slot(self, rows, states):
    ...         sums = rows.group_by("group").aggregate([("price", "sum")]).sort_by("group")["price_sum"]
    ...         total = pc.add(states["total"].fill_null(0), sums)
    ...         return pa.table({"total": total}), pa.table({"total": total})
    """

    @abstractmethod
    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Take the rows of all keys of a slot that have any, and give the result and the new states.

        Parameters
        ----------
        rows
            All columns of the input, and `group`: the number of the row's key in `states`. Sorted by group and, in it,
            by the order asked for.
        states
            A row for each key: the key columns, the state fields (null for a new key), and `timer`.

        Returns
        -------
        result, states
            Rows of the result, without the key columns but with `group`, the number of each row's key; without
            `group`, one row for each key, in their order. And for each key, in the same order, its state fields, and
            `timer` if there are to be timers. A key with nothing but nulls is forgotten.
        """

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        """Not called: `process_slot` is."""
        raise NotImplementedError
