"""The stage without Spark: when a worker is called again though no rows come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from skewless.core.store import Store
from skewless.core.turn import Turn
from skewless.operators.worker import Worker
from skewless.spark.stage import Run

OWNER = 12


class Map:
    """A map of Spark's state store, as a dictionary."""

    def __init__(self) -> None:
        self.blobs: dict[tuple[str], tuple[bytes]] = {}

    def exists(self) -> bool:
        return bool(self.blobs)

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:  # noqa: N802 - Spark's name
        return self.blobs.get(key)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:  # noqa: N802 - Spark's name
        self.blobs[key] = value

    def removeKey(self, key: tuple[str]) -> None:  # noqa: N802 - Spark's name
        self.blobs.pop(key, None)


class Handle:
    """The handle of a stateful processor, with its timers."""

    def __init__(self) -> None:
        self.map, self.timers = Map(), set[int]()

    def getMapState(self, *_schemas: str) -> Map:  # noqa: N802 - Spark's name
        return self.map

    def registerTimer(self, at: int) -> None:  # noqa: N802 - Spark's name
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:  # noqa: N802 - Spark's name
        self.timers.remove(at)


class Waking(Worker):
    """Wants to be woken at a time, whatever the watermark."""

    def __init__(self, at: int | None) -> None:
        self._at = at

    @property
    def wake(self) -> int | None:
        return self._at

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        return iter(())


class Nothing:
    """No rows leave."""

    def schema(self, *, streaming: bool) -> str:
        return "x int"

    def batches(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pa.RecordBatch]:
        return answers

    def frames(self, answers: Iterator[pa.RecordBatch], turn: Turn) -> Iterator[pd.DataFrame]:
        yield from (answer.to_pandas() for answer in answers)


class Watermark:
    """What Spark says of time, in milliseconds."""

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802 - Spark's name
        return 5000


def called(handle: Handle, wakes: int | None, *, timed: bool = True) -> None:
    def make(turn: Turn, store: Store) -> Worker:
        return Waking(wakes)

    run = Run(make, Nothing(), (OWNER,), timed=timed)
    run.init(handle)  # type: ignore[arg-type]  # as much of it as is used
    timer_values: Any = Watermark()
    assert list(run.handleExpiredTimer((OWNER,), timer_values, None)) == []


@pytest.mark.parametrize(("wakes", "due"), [(1_000_000, 5001), (5_000_000, 5001), (7_000_000, 7000), (7_000_001, 7001)])
def test_no_worker_is_woken_at_or_before_the_watermark(wakes: int, due: int) -> None:
    handle = Handle()
    called(handle, wakes)
    assert handle.timers == {due}


def test_a_worker_has_one_timer_and_none_if_it_wants_none() -> None:
    handle = Handle()
    for wakes, due in ((9_000_000, {9000}), (9_000_000, {9000}), (8_000_000, {8000}), (None, set())):
        called(handle, wakes)
        assert handle.timers == due
    called(handle, 9_000_000, timed=False)
    assert handle.timers == set()
