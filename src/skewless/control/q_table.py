"""The common Q-table of a stream as a file that every task reads, and what a task tells of its rows as a text.

Arrays are text too, so that a file stays one JSON object with the stream's identity inside, and a message one string
that Spark's `observe` collects. Both are of bounded size: where all would not fit, the least frequent keys are missing.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skewless.control.folder import Folder
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.split import Broadcast, Changes

FILE = 1 << 20
"""The most characters of a table's file: with 64 workers, those of some 3,000 keys."""
MESSAGE = 1 << 15
"""The most characters of what one task tells: some 5,000 pairs of a hot key and a worker that it tried."""
_KEPT, _EARNED = 65535.0, 16383.0  # in 16 bits each: what is kept is from 0 to 1, and what is earned from -2 to 2
_AGAIN = "call agg(...) or repartition() again"


@dataclass(frozen=True, eq=False)
class Table:
    """The common Q-table of a version: so many rounds were merged."""

    version: int
    common: Broadcast

    @classmethod
    def empty(cls, workers: int) -> Table:
        """Version 0, in which nothing is known."""
        none: Int64Array = np.zeros(0, dtype=np.int64)
        return cls(0, Broadcast(none, np.zeros((0, workers)), none, load=0, interval=0.0, counts=none))


@dataclass(frozen=True)
class TableFile(Folder):
    """Writes tables where the executors of a running query find the newest, and reads them there.

    Parameters
    ----------
    length
        The most characters of a file. A table that needs more is cut down to its most frequent keys.
    """

    length: int = FILE

    @property
    def name(self) -> str:
        """The file's name."""
        return f"q-table-{self.stream}.json"

    def put(self, table: Table, query: str | None = None) -> None:
        """Make this the table of every task that starts from now on."""
        common = table.common
        assert common.values is not None  # of tasks, which have none of their own
        assert common.counts is not None
        order = np.argsort(-common.counts, kind="stable")
        while True:
            fields: dict[str, Any] = {"query": query, "version": table.version, "workers": common.values.shape[1]}
            fields |= {"load": common.load, "partitioners": common.partitioners}
            fields |= {"keys": _text(common.keys[order], "<i8"), "until": _text(common.until[order], "<i8")}
            fields |= {"counts": _text(common.counts[order], "<i8"), "values": _text(common.values[order], "<f4")}
            if common.loads is not None and common.holders is not None:
                fields |= {"loads": _text(common.loads, "<i8"), "holders": _text(common.holders[order], "<u4")}
            # The identity and the punctuation are a few hundred characters more.
            if not len(order) or sum(len(str(value)) for value in fields.values()) <= self.length - 512:
                self.write_fields(self.name, fields)
                return
            order = order[: len(order) // 2]

    def get(self) -> Table:
        """The newest table, in a task."""
        data = self.read(self.name)
        if data is None:
            raise SkewlessError(f"the Q-table at {self.shown(self.name)} is gone; {_AGAIN}")
        try:
            return _table(self._checked(self.name, data))
        except (SkewlessError, KeyError, ValueError, TypeError) as error:
            raise SkewlessError(f"the Q-table at {self.shown(self.name)} is damaged ({error}); {_AGAIN}") from error


@dataclass(frozen=True, eq=False)
class Message:
    """What one attempt at a task of a micro-batch tells.

    Parameters
    ----------
    version
        The version of the table that the task started from.
    batch, task, attempt
        The micro-batch, the task's number in it, and a number that is larger for every later attempt.
    changes
        What the task learned and counted.
    """

    version: int
    batch: int
    task: int
    attempt: int
    changes: Changes

    def text(self, *, loads: bool, length: int = MESSAGE) -> str:
        """As text of at most `length` characters, with the loads or without."""
        told = self.changes
        while True:
            tried = told.kept < 1
            fields: dict[str, Any] = {"version": self.version, "batch": self.batch, "task": self.task}
            fields |= {"attempt": self.attempt, "tuples": told.tuples, "workers": len(told.loads)}
            fields |= {"keys": _text(told.keys, "<i8"), "tried": _text(np.packbits(tried), "u1")}
            fields |= {"kept": _text(np.rint(told.kept[tried] * _KEPT), "<u2")}
            fields |= {"earned": _text(np.rint(told.earned[tried] * _EARNED), "<i2")}
            fields |= {"counted": _text(told.counted, "<i8"), "counts": _text(told.counts, "<i8")}
            if loads:
                fields |= {"loads": _text(told.loads, "<i8")}
            text = json.dumps(fields, separators=(",", ":"))
            if len(text) <= length or not len(told.counted):
                return text
            told = _cut(told)

    @classmethod
    def of(cls, text: str) -> Message:
        """What `text` made."""
        fields = json.loads(text)
        keys, workers = _array(fields["keys"], "<i8"), fields["workers"]
        tried = np.unpackbits(_array(fields["tried"], "u1"), count=len(keys) * workers).reshape(-1, workers) == 1
        kept, earned = np.ones(tried.shape), np.zeros(tried.shape)
        kept[tried] = _array(fields["kept"], "<u2") / _KEPT
        earned[tried] = _array(fields["earned"], "<i2") / _EARNED
        changes = Changes(
            keys,
            kept,
            earned,
            _array(fields["counted"], "<i8"),
            _array(fields["counts"], "<i8"),
            fields["tuples"],
            _array(fields["loads"], "<i8") if "loads" in fields else np.zeros(workers, dtype=np.int64),
        )
        return cls(fields["version"], fields["batch"], fields["task"], fields["attempt"], changes)


def _cut(told: Changes) -> Changes:
    """The same for half of the keys, the more frequent ones; first of those that were learned, then of the counted."""
    if not len(told.keys):
        most = np.argsort(-told.counts, kind="stable")[: len(told.counts) // 2]
        return replace(told, counted=told.counted[most], counts=told.counts[most])
    counts = dict(zip(told.counted.tolist(), told.counts.tolist(), strict=True))
    frequency = np.array([counts.get(key, 0) for key in told.keys.tolist()])
    most = np.argsort(-frequency, kind="stable")[: len(told.keys) // 2]
    return replace(told, keys=told.keys[most], kept=told.kept[most], earned=told.earned[most])


def _table(fields: dict[str, Any]) -> Table:
    keys, workers = _array(fields["keys"], "<i8"), fields["workers"]
    shared = "loads" in fields
    common = Broadcast(
        keys,
        _array(fields["values"], "<f4").astype(np.float64).reshape(len(keys), workers),
        _array(fields["until"], "<i8"),
        load=fields["load"],
        interval=0.0,
        loads=_array(fields["loads"], "<i8") if shared else None,
        holders=_array(fields["holders"], "<u4").astype(np.int64).reshape(len(keys), workers) if shared else None,
        counts=_array(fields["counts"], "<i8"),
        partitioners=fields["partitioners"],
    )
    return Table(fields["version"], common)


def _text(array: np.ndarray[Any, Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _array(text: str, kind: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind).copy()
