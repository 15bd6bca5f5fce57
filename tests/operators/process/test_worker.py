"""One worker with slots that stay: which rows it takes, in which order, and how long it keeps a key."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from skewless.control.placements import OnePlacement, Placements
from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import END
from skewless.operators.process import Processor, Rows, SlotProcessor, State
from skewless.operators.process.processor import Key, Row
from skewless.operators.process.worker import Columns, ProcessWorker, Task
from skewless.place.placement import Placement

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("key", pa.string()), ("t", TIME), ("v", pa.int64())])
FIELDS = pa.schema([("n", pa.int64())])
RESULT = pa.schema([("what", pa.string()), ("n", pa.int64())])
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
In = tuple[str | None, int | None, int | None]  # key, time, value


class Count(Processor):
    """Counts rows and says in which order the values came; a row of value -1 makes the key forgotten."""

    state = "n long"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        state["n"] = (state["n"] or 0) + len(rows)
        yield (" ".join(map(str, rows["v"])), state["n"])
        if -1 in rows["v"]:
            state.forget()


class Timed(Processor):
    """A timer as late after the row as its value says; when it is due, another at once, until three were."""

    state = "n long"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        state["n"] = 0
        state.timer = rows["t"][-1] + timedelta(microseconds=rows["v"][-1])
        return ()

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        state["n"] += 1
        yield ("due", state["n"])
        state.timer = EPOCH if state["n"] < 3 else None


def table(rows: list[In]) -> pa.RecordBatch:
    """Rows as a worker gets them."""
    types = [pa.string(), pa.int64(), pa.int64()]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    columns[1] = columns[1].cast(TIME)
    schema = pa.schema([("hash", pa.int64()), *SCHEMA])
    return pa.RecordBatch.from_arrays([pa.array(xxhash64(columns[0])), *columns], schema=schema)


def tuples(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """All rows, by key."""
    found = [row for each in batches for row in zip(*(column.to_pylist() for column in each.columns), strict=True)]
    return sorted(found, key=lambda row: row[0] or "")


class Alone:
    """The only worker of a stream, made anew for each micro-batch."""

    def __init__(
        self, path: Path, processor: Processor, *, order: tuple[int, ...] = (), ttl: int | None = None, slots: int = 3
    ) -> None:
        self.folder, self.store, self.batch = Placements.at(str(path)), MemoryStore(), 0
        self.folder.write_placement(Placement.of(1, [0] * slots), 0, None)
        self.processor, self.ttl, self.fields = processor, ttl, FIELDS
        self.columns = Columns(SCHEMA, keys=(0,), order=order, time=1)

    def worker(self) -> ProcessWorker:
        task = Task(self.processor, self.columns, self.fields, RESULT, self.folder, self.ttl)
        return ProcessWorker(task, Turn(0, self.batch, "q"), self.store)

    def run(self, rows: list[In], watermark: int | None = None) -> list[tuple[Any, ...]]:
        """The result of the next micro-batch, by key."""
        out = list(self.worker().run(Version(0).code if rows else None, [table(rows)], watermark))
        self.batch += 1
        return tuples(out)


def test_rows_at_or_before_the_watermark_are_late(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count())
    assert alone.run([("a", 9, 1), ("a", 10, 2), ("a", 11, 3), ("b", 9, 4)], watermark=10) == [("a", "3", 1)]
    assert alone.run([("b", 3, 5)], watermark=10) == []
    assert alone.run([("a", None, 6), ("b", 11, 7)], watermark=10) == [("a", "6", 2), ("b", "7", 1)]
    assert alone.run([("b", 3, 8)]) == [("b", "8", 2)]


def test_rows_of_a_key_come_in_the_order_asked_for(tmp_path: Path) -> None:
    rows: list[In] = [("a", 5, 1), ("b", 4, 9), ("a", 3, 3), ("a", 5, 0), ("b", 4, 8), ("a", 4, 2)]
    by_time = Alone(tmp_path / "time", Count(), order=(1,))
    assert by_time.run(rows) == [("a", "3 2 1 0", 4), ("b", "9 8", 2)]  # of one time as they came
    by_both = Alone(tmp_path / "both", Count(), order=(1, 2))
    assert by_both.run(rows) == [("a", "3 2 0 1", 4), ("b", "8 9", 2)]
    by_value = Alone(tmp_path / "value", Count(), order=(2,))
    assert by_value.run(rows) == [("a", "0 1 2 3", 4), ("b", "8 9", 2)]
    as_they_come = Alone(tmp_path / "none", Count())
    assert as_they_come.run(rows) == [("a", "1 3 0 2", 4), ("b", "9 8", 2)]


def test_a_key_that_comes_again_after_its_ttl_is_new(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count(), ttl=10)
    assert alone.run([("a", 20, 1), ("b", 25, 2)], watermark=0) == [("a", "1", 1), ("b", "2", 1)]
    # Kept for as long as the watermark is not more than 10 after the last row.
    assert alone.run([("a", 31, 3)], watermark=30) == [("a", "3", 2)]
    assert alone.run([("a", 42, 4), ("b", 42, 5)], watermark=41) == [("a", "4", 3), ("b", "5", 1)]
    assert alone.run([("b", 90, 6)], watermark=52) == [("b", "6", 2)]
    assert alone.run([("a", 91, 7), ("b", 91, 8)], watermark=90) == [("a", "7", 1), ("b", "8", 3)]


def test_an_older_row_does_not_make_a_key_older(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count(), ttl=10)
    alone.run([("a", 20, 1)], watermark=0)
    alone.run([("a", 5, 2)], watermark=0)
    assert alone.run([("a", 31, 3)], watermark=30) == [("a", "3", 3)]


def test_a_row_without_a_time_counts_as_one_at_the_watermark(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count(), ttl=10)
    assert alone.run([("a", None, 1), ("b", None, 2), ("b", 25, 3)], watermark=20) == [("a", "1", 1), ("b", "2 3", 2)]
    assert alone.run([("a", None, 4), ("b", None, 5)], watermark=31) == [("a", "4", 1), ("b", "5", 3)]


def test_what_expired_is_no_longer_stored(tmp_path: Path) -> None:
    alone, sizes = Alone(tmp_path, Count(), ttl=10), []
    for second in range(0, 400, 2):
        alone.run([(f"{second}", second + 1, 1), (f"{second + 1}", second + 1, 1)], watermark=second)
        sizes.append(sum(map(len, alone.store.blobs.values())))
    assert max(sizes[100:]) <= 1.2 * max(sizes[50:100])
    alone.run([], watermark=1000)
    assert list(alone.store.blobs) == ["state"]


def test_a_forgotten_key_leaves_no_trace(tmp_path: Path) -> None:
    alone, parts = Alone(tmp_path, Count()), []
    assert alone.run([("a", 1, 1), ("b", 1, 1)]) == [("a", "1", 1), ("b", "1", 1)]
    for i in range(60):
        assert alone.run([(f"{i}", 1, 1)]) == [(f"{i}", "1", 1)]
        assert alone.run([(f"{i}", 1, -1)]) == [(f"{i}", "-1", 2)]
        parts.append(len(alone.store.blobs))
    assert max(parts) <= 1 + 3 * 5
    assert alone.run([("0", 1, 1), ("a", 1, 1)]) == [("0", "1", 1), ("a", "1", 2)]
    alone.run([("0", 1, -1), ("a", 1, -1), ("b", 1, -1)])
    assert alone.run([("0", 1, 1), ("a", 1, 1), ("b", 1, 1)]) == [("0", "1", 1), ("a", "1", 1), ("b", "1", 1)]


def test_a_key_that_is_never_kept_is_never_written(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count())
    assert alone.run([("a", 1, -1)]) == [("a", "-1", 1)]
    assert list(alone.store.blobs) == ["state"]


def test_a_timer_is_due_once_the_watermark_reaches_it(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Timed())
    alone.run([("a", 10, 5), ("b", 10, 8)], watermark=0)
    assert alone.worker().wake == 15
    assert alone.run([], watermark=14) == []
    assert alone.run([], watermark=15) == [("a", "due", 1)]
    # A timer set to a time that is past is due in the next batch.
    assert alone.worker().wake == 0
    assert alone.run([], watermark=15) == [("a", "due", 2)]
    assert alone.run([("b", 16, 20)], watermark=15) == [("a", "due", 3)]
    assert alone.run([], watermark=35) == []
    assert alone.worker().wake == 36
    assert alone.run([], watermark=36) == [("b", "due", 1)]


def test_timers_wait_for_a_watermark(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Timed())
    alone.run([("a", 10, 5)])
    assert alone.run([("b", 10, 5)]) == []
    assert alone.run([], watermark=100) == [("a", "due", 1), ("b", "due", 1)]


def test_timers_come_before_rows_of_the_same_batch(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Timed())
    alone.run([("a", 10, 5)], watermark=0)
    assert alone.run([("a", 30, 5)], watermark=20) == [("a", "due", 1)]
    assert alone.worker().wake == 35


def test_the_timers_of_a_slot_come_in_their_order(tmp_path: Path) -> None:
    seen = []

    class Seen(Timed):
        def expire(self, key: Key, state: State) -> Iterable[Row]:
            seen.append(key[0])
            return ()

    alone = Alone(tmp_path, Seen(), slots=1)
    alone.run([(key, 10, after) for key, after in zip("abcdef", [4, 2, 6, 1, 5, 3], strict=True)], watermark=0)
    alone.run([], watermark=100)
    assert seen == ["d", "b", "f", "a", "e", "c"]


class Watermarks(Timed):
    """Gives how many microseconds the watermark is beyond the epoch, and -1 without one."""

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        yield ("row", -1 if state.watermark is None else 0)
        state.timer = rows["t"][-1]

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        assert state.watermark is not None
        yield ("due", (state.watermark - EPOCH) // timedelta(microseconds=1))


def test_a_timer_that_is_due_knows_how_far_the_watermark_is(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Watermarks())
    assert alone.run([("a", 10, 0), ("b", 30, 0)], watermark=0) == [("a", "row", -1), ("b", "row", -1)]
    assert alone.run([("c", 25, 0)], watermark=20) == [("a", "due", 20), ("c", "row", -1)]
    assert alone.run([], watermark=40) == [("b", "due", 40), ("c", "due", 40)]


def test_at_the_end_of_a_batch_the_watermark_is_later_than_every_time() -> None:
    placement = OnePlacement(Placement.of(1, [0]))
    worker = ProcessWorker(
        Task(Watermarks(), Columns(SCHEMA, (0,), time=1), FIELDS, RESULT, placement), Turn(0), MemoryStore()
    )
    list(worker.run(Version(0).code, [table([("a", 10, 5)])], None))
    [(_key, _what, last)] = tuples(worker.run(None, [], END))
    assert last > (datetime(9999, 12, 31, tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)


def test_the_timer_of_a_key_whose_ttl_is_over_is_never_due(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Timed(), ttl=10)
    alone.run([("b", 10, 50)], watermark=0)
    assert alone.run([], watermark=60) == []
    assert alone.worker().wake is None


def test_a_timer_that_comes_before_its_key_expires_is_due_though_the_watermark_passes_both(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Timed(), ttl=10)
    alone.run([("a", 10, 5), ("b", 10, 50)], watermark=0)
    assert alone.run([], watermark=1000) == [("a", "due", 1)]
    assert alone.run([], watermark=1001) == []  # the key has expired since, and its next timer with it


class Counts(SlotProcessor):
    """Counts rows, for all keys at once."""

    state = "n long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        groups = rows.group_by("group", use_threads=False).aggregate([("v", "list"), ("group", "count")])
        n = pc.add(states["n"].fill_null(0), groups["group_count"])
        what = pa.array([" ".join(map(str, values)) for values in groups["v_list"].to_pylist()], pa.string())
        forget = pa.array([-1 in values for values in groups["v_list"].to_pylist()])
        return pa.table({"what": what, "n": n}), pa.table({"n": pc.if_else(forget, None, n)})


def test_all_keys_at_once_give_what_they_do_one_by_one(tmp_path: Path) -> None:
    each, many = (
        Alone(tmp_path / type(processor).__name__, processor, order=(1, 2), ttl=9) for processor in (Count(), Counts())
    )
    rng = np.random.default_rng(6)
    for batch in range(40):
        rows: list[In] = [
            (str(key) if key else None, int(time), int(value))
            for key, time, value in zip(
                rng.integers(0, 12, 20), 3 * batch + rng.integers(0, 9, 20), rng.integers(-1, 15, 20), strict=True
            )
        ]
        found = each.run(rows, watermark=3 * batch)
        assert many.run(rows, watermark=3 * batch) == found
        assert len(found) > 5


def test_another_processor_on_the_same_state_is_refused(tmp_path: Path) -> None:
    alone = Alone(tmp_path, Count())
    alone.run([("a", 1, 1)])
    alone.fields = pa.schema([("n", pa.int32())])
    with pytest.raises(
        SkewlessError,
        match=r"the checkpoint is of another query: its key and state were .*int64.*int32.*new checkpoint",
    ):
        alone.run([("a", 1, 1)])


def test_keys_of_any_type_are_kept() -> None:
    kind = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.int64()))])
    schema = pa.schema([("key", kind), ("f", pa.float64()), ("v", pa.int64())])
    nested = [{"x": 0.0, "y": [1]}, {"x": -0.0, "y": [1]}, {"x": float("nan"), "y": []}, None]
    columns = [pa.array(nested, kind), pa.array([-0.0, 0.0, float("nan"), None]), pa.array([1, 2, 3, 4])]
    hashes = pa.array([5, 5, 5, 5])  # of different keys, too
    rows = pa.RecordBatch.from_arrays([hashes, *columns], schema=pa.schema([("hash", pa.int64()), *schema]))
    placement = OnePlacement(Placement.of(1, [0, 0]))
    task = Task(Count(), Columns(schema, keys=(0, 1)), FIELDS, RESULT, placement)
    store, counts = MemoryStore(), []
    for batch in range(3):
        out = list(ProcessWorker(task, Turn(0, batch), store).run(Version(0).code, [rows], None))
        assert all(each.column(0).type == kind and each.column(1).type == pa.float64() for each in out)
        counts.append(sorted(n for each in out for n in each.column(3).to_pylist()))
    assert counts == [[1, 1, 2], [2, 2, 4], [3, 3, 6]]


def test_the_last_call_of_a_batch_makes_all_timers_due() -> None:
    task = Task(Timed(), Columns(SCHEMA, (0,), time=1), FIELDS, RESULT, OnePlacement(Placement.of(1, [0, 0, 0])))
    worker = ProcessWorker(task, Turn(0), MemoryStore())
    rows = table([("a", 10, 5), ("b", -3, 1), (None, 2, 25 * 10**16)])  # the last one in the year 9892
    assert tuples(worker.run(Version(0).code, [rows], None)) == []
    assert tuples(worker.run(None, [], END)) == [(None, "due", 1), ("a", "due", 1), ("b", "due", 1)]


def test_a_key_that_has_expired_when_a_batch_ends_is_not_waited_for() -> None:
    columns, placement = Columns(SCHEMA, (0,), time=1), OnePlacement(Placement.of(1, [0]))
    worker = ProcessWorker(Task(Timed(), columns, FIELDS, RESULT, placement, ttl=10), Turn(0), MemoryStore())
    list(worker.run(Version(0).code, [table([("a", 10, 5), ("b", 10, 50)])], None))
    assert tuples(worker.run(None, [], END)) == [("a", "due", 1)]
    assert worker.wake is None
