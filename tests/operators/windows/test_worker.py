"""Owners of windows, panes and counts, on random streams, against windows put together row by row; and the tuner's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless import SkewlessError
from skewless.chop.assignment import Assignment, BatchAssignment, KeyAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.control.plans import Plan, Plans, Work
from skewless.control.tuning import Tuning
from skewless.core.store import MemoryStore
from skewless.core.windows import BEFORE_ALL, Windows, rows
from skewless.operators.windows.adaptive import TunedOwner
from skewless.operators.windows.counted import CountOwner, Numberer
from skewless.operators.windows.function import MergeCall, PaneCall, WindowCall
from skewless.operators.windows.panes import PaneOwner
from skewless.operators.windows.worker import Columns, Owner, Task

ROWS = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ANSWER = pa.schema([("n", pa.int64()), ("values", pa.list_(pa.int64()))])
COLUMNS = Columns((0,), (0, 1))
Stream = list[tuple[list[tuple[int, int, int]], int]]
"""Micro-batches of rows (time, key, value), each with the watermark by which it runs."""


def whole(key: tuple[int], window: Any, frame: Any) -> tuple[int, list[int]]:
    """How many rows, and which, in order of time."""
    return len(frame), frame["value"].tolist()


def of_pane(key: tuple[int], pane: Any, frame: Any) -> list[int]:
    return frame["value"].tolist()


def of_window(key: tuple[int], window: Any, parts: list[list[int]]) -> tuple[int, list[int]]:
    values = [value for part in parts for value in part]
    return len(values), values


def table(batch: list[tuple[int, int, int]]) -> pa.RecordBatch:
    times, keys, values = (np.array(column, np.int64) for column in zip(*batch, strict=True))
    names = ["0", "1", "2", "3"]
    return pa.RecordBatch.from_arrays([pa.array(keys * 7), pa.array(times), pa.array(keys), pa.array(values)], names)


def sent(rows: pa.RecordBatch, deal: Assignment, worker: int) -> pa.RecordBatch:
    """What a worker gets of some rows."""
    which, workers = deal.copies(np.asarray(rows.column(0)), np.asarray(rows.column(1)))
    return rows.take(pa.array(which[workers == worker]))


def ran(make: Any, store: MemoryStore, tables: list[pa.RecordBatch], watermark: int | None) -> list[pa.RecordBatch]:
    return list(make(store).run(tables, watermark))


def found(batch: pa.RecordBatch) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Window, key, how many, which."""
    _hash, window, key, n, values = (column.to_pylist() for column in batch.columns)
    yield from ((w, k, c, tuple(v)) for w, k, c, v in zip(window, key, n, values, strict=True))


def expected(stream: Stream, windows: Windows) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Each window with the rows that came before the watermark had passed it."""
    held: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    gave, over = [], BEFORE_ALL
    for batch, watermark in stream:
        for time, key, value in batch:
            window = np.array([time])
            for k in range(max(over, int(windows.first(window)[0])), int(windows.last(window)[0]) + 1):
                held[k, key].append((time, value))
        over = max(over, windows.open_at(watermark))
        for k, key in sorted(held):
            if k < over:
                some = sorted(held.pop((k, key)), key=lambda row: row[0])
                gave.append((k, key, len(some), tuple(value for _time, value in some)))
    return sorted(gave)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Rows in nearly any order, and a watermark that only rises."""
    watermark, stream, number = 0, [], 0
    for _ in range(draw(st.integers(1, 6))):
        batch = []
        for _ in range(draw(st.integers(0, 12))):
            batch.append((watermark + draw(st.integers(-15, 40)), draw(st.integers(0, 3)), number))
            number += 1
        stream.append((batch, watermark))
        watermark += draw(st.sampled_from([0, 3, 11, 200]))
    return [*stream, ([], watermark + 10_000)]


WINDOWS = st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda pair: Windows(max(pair), min(pair)))


@settings(max_examples=60, deadline=None)
@given(streams(), WINDOWS, st.integers(1, 4), st.integers(1, 7), st.booleans())
def test_windows_hold_what_came_in_time(
    stream: Stream, windows: Windows, workers: int, batch: int, arrow: bool
) -> None:
    def function(key: tuple[int], window: Any, given: Any) -> Any:
        return whole(key, window, given.to_pandas() if arrow else given)

    deal = BatchAssignment.of(windows, workers, batch)
    task = Task(COLUMNS, windows, WindowCall(function, ROWS, ANSWER, arrow))
    stores = [MemoryStore() for _ in range(workers)]
    got = []
    for batch_rows, watermark in stream:
        for worker, store in enumerate(stores):
            tables = [sent(table(batch_rows), deal, worker)] if batch_rows else []
            for answer in ran(partial(Owner, task, deal, worker), store, tables, watermark):
                got += found(answer)
    assert sorted(got) == expected(stream, windows)
    for store in stores:  # nothing is left but notes
        assert list(store.blobs) == ["notes"]


@settings(max_examples=60, deadline=None)
@given(streams(), WINDOWS, st.integers(1, 4))
def test_panes_give_what_windows_give(stream: Stream, windows: Windows, workers: int) -> None:
    ring = PaneRing(windows.size, windows.slide, workers)
    panes, deal = PaneAssignment(ring), BatchAssignment.of(windows, workers, ring.run)
    pane_task = Task(COLUMNS, windows.panes, PaneCall(of_pane, ROWS))
    window_task = Task(Columns((0,), (1,)), windows, MergeCall(of_window, ANSWER), newest=True)
    stores = [(MemoryStore(), MemoryStore()) for _ in range(workers)]
    got = []
    for batch_rows, watermark in stream:
        passed: list[pa.RecordBatch] = []
        for worker, (store, _later) in enumerate(stores):
            tables = [sent(table(batch_rows), panes, worker)] if batch_rows else []
            passed += ran(partial(PaneOwner, windows, pane_task, panes, worker), store, tables, watermark)
        passed = [
            each.set_column(1, each.schema.field(1), pa.array(np.asarray(each.column(1)) * ring.pane))
            for each in passed
        ]
        for worker, (_earlier, store) in enumerate(stores):
            tables = [sent(each, deal, worker) for each in passed]
            for answer in ran(partial(Owner, window_task, deal, worker), store, tables, watermark):
                got += found(answer)
    assert sorted(got) == expected(stream, windows)
    for pair in stores:
        assert [list(store.blobs) for store in pair] == [["notes"], ["notes"]]


@settings(max_examples=60, deadline=None)
@given(streams(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5))
def test_windows_of_rows_are_over_when_their_rows_are_there(
    stream: Stream, one: int, other: int, workers: int, batch: int
) -> None:
    windows = rows(max(one, other), min(one, other))
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    by_key, deal = KeyAssignment(workers), BatchAssignment.of(windows, workers, batch)
    stores = [(MemoryStore(), MemoryStore()) for _ in range(workers)]
    got, wanted, seen = [], [], defaultdict(list)
    for batch_rows, _watermark in stream:
        numbered: list[pa.RecordBatch] = []
        for worker, (store, _later) in enumerate(stores):
            tables = [sent(table(batch_rows), by_key, worker)] if batch_rows else []
            numbered += ran(partial(Numberer, task, worker), store, tables, None)
        for worker, (_earlier, store) in enumerate(stores):
            tables = [sent(each, deal, worker) for each in numbered]
            for answer in ran(partial(CountOwner, task, deal, worker), store, tables, None):
                got += found(answer)
        for _time, key, value in sorted(batch_rows, key=lambda row: row[0]):
            seen[key].append(value)
    for key, values in seen.items():
        for start in range(0, len(values) - windows.size + 1, windows.slide):
            some = tuple(values[start : start + windows.size])
            wanted.append((start // windows.slide, key, windows.size, some))
    assert sorted(got) == sorted(wanted)


def test_windows_of_a_batch_come_together() -> None:
    windows = Windows(10, 5)
    deal = BatchAssignment.of(windows, 1, 4)
    task, store = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER), together=True), MemoryStore()
    first = ran(partial(Owner, task, deal, 0), store, [table([(t, 1, t) for t in range(0, 40, 5)])], 24)
    assert [w for answer in first for w, *_ in found(answer)] == [-1]  # the batch of windows -4 to -1
    owner = Owner(task, deal, 0, store)
    assert owner.wake == 25  # when window 3 ends
    second = list(owner.run([], 25))
    assert [w for answer in second for w, *_ in found(answer)] == [0, 1, 2, 3]


def test_many_small_batches_stay_few_blobs() -> None:
    windows, store = Windows(10_000, 10_000), MemoryStore()
    deal, task = BatchAssignment.of(windows, 1, 1), Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    for i in range(1000):
        ran(partial(Owner, task, deal, 0), store, [table([(i, 1, i)])], 0)
    assert len(store.blobs) < 30
    (answer,) = ran(partial(Owner, task, deal, 0), store, [], 20_000)
    assert list(found(answer)) == [(0, 1, 1000, tuple(range(1000)))]


def test_state_of_another_query_is_refused() -> None:
    windows, store = Windows(10, 10), MemoryStore()
    deal, call = BatchAssignment.of(windows, 1, 1), WindowCall(whole, ROWS, ANSWER)
    ran(partial(Owner, Task(COLUMNS, windows, call, mark="one"), deal, 0), store, [table([(1, 1, 1)])], 0)
    with pytest.raises(SkewlessError, match=r"were one, now they are other.*new checkpoint"):
        Owner(Task(COLUMNS, windows, call, mark="other"), deal, 0, store)


def test_a_far_time_costs_nothing() -> None:
    windows, store = Windows(60_000_000, 1), MemoryStore()
    deal, task = BatchAssignment.of(windows, 2, 5), Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    far = 4_000_000_000_000_000
    ran(partial(Owner, task, deal, 0), store, [table([(far, 1, 1)])], 0)
    assert not ran(partial(Owner, task, deal, 0), store, [], 1_000_000)  # not one of the windows before it


def loop(path: Path, windows: Windows, workers: int = 2, batch: int = 1) -> Tuning:
    return Tuning("stream", Plans.at(str(path)), BatchAssignment.of(windows, workers, batch), latency=1.0, period=1e9)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(), WINDOWS, st.integers(1, 3), st.integers(1, 5), st.data())
def test_windows_are_whole_whatever_the_sizes_do(
    tmp_path_factory: pytest.TempPathFactory,
    stream: Stream,
    windows: Windows,
    workers: int,
    batch: int,
    data: st.DataObject,
) -> None:
    tuning = loop(tmp_path_factory.mktemp("plans"), windows, workers, batch)
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    stores, got, code = [MemoryStore() for _ in range(workers)], [], Plan(0).code
    for number, (batch_rows, watermark) in enumerate(stream):
        if data.draw(st.booleans()):
            code = tuning.plans.read_code() or 0  # or the micro-batch began before the last one was learned from
        if not batch_rows:
            answers = [
                answer
                for i, store in enumerate(stores)
                for answer in owner(task, tuning, i, store, None, [], watermark)
            ]
        else:
            dealer = tuning.plans.dealer(Plan.of(code))
            answers = []
            for i, store in enumerate(stores):
                answers += owner(
                    task, tuning, i, store, (code, number), [sent(table(batch_rows), dealer, i)], watermark
                )
            reached = int(windows.last(np.array([time for time, _key, _value in batch_rows])).max())
            progress: Any = SimpleNamespace(id="one", batchId=number, eventTime={})
            tuning.take({"control": code, "reached": reached, "n": len(batch_rows)}, progress)  # type: ignore[arg-type]
            assert not tuning._failed
            if not tuning.announced and data.draw(st.booleans()):
                tuning.change(data.draw(st.integers(1, 6)))
        for answer in answers:
            got += found(answer)
    assert sorted(got) == expected(stream, windows)


def owner(
    task: Task,
    tuning: Tuning,
    worker: int,
    store: MemoryStore,
    control: tuple[int, int] | None,
    tables: list[pa.RecordBatch],
    watermark: int,
) -> list[pa.RecordBatch]:
    made = TunedOwner(task, tuning.plans, worker, store)
    if control:
        made.obey(*control)
    return list(made.run(tables, watermark))


def test_a_plan_that_came_too_early_is_refused_and_taken_back(tmp_path: Path) -> None:
    windows, store = Windows(10, 5), MemoryStore()
    tuning = loop(tmp_path, windows, workers=1)
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    plans = tuning.plans
    owner(task, tuning, 0, store, (Plan(0).code, 0), [table([(100, 1, 1)])], 0)  # reaches window 20
    plans.write_deal(1, BatchAssignment.of(windows, 1, 1).changed(3, 20), before=0)
    plans.write_plan(Plan(1))
    with pytest.raises(SkewlessError, match=r"plan 1 .* from window 20 on.*start the query again"):
        owner(task, tuning, 0, store, (Plan(1).code, 1), [table([(101, 1, 2)])], 0)
    again = loop(tmp_path, windows, workers=1)
    assert plans.read_plan() == Plan(0)
    assert again.deal.batch == 1
    owner(task, again, 0, store, (Plan(0).code, 1), [table([(101, 1, 2)])], 0)


def test_an_announcement_does_not_outlive_the_driver(tmp_path: Path) -> None:
    tuning = loop(tmp_path, Windows(10, 5))
    tuning.take({"control": 0, "reached": 7, "n": 10}, SimpleNamespace(id="q", batchId=0, eventTime={}))  # type: ignore[arg-type]
    tuning.change(4)
    assert tuning.announced
    with pytest.raises(SkewlessError, match="on its way"):
        tuning.change(5)
    again = loop(tmp_path, Windows(10, 5))
    assert not again.announced
    again.take({"control": 0, "reached": 7, "n": 10}, SimpleNamespace(id="q", batchId=1, eventTime={}))  # type: ignore[arg-type]
    again.change(4)
    assert again.plans.read_plan() == Plan(0, announced=2)  # not a number that was used before


def test_another_shape_or_another_folder_is_refused(tmp_path: Path) -> None:
    windows, store = Windows(10, 5), MemoryStore()
    tuning = loop(tmp_path / "one", windows)
    with pytest.raises(SkewlessError, match="empty folder"):
        loop(tmp_path / "one", Windows(20, 5))
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    owner(task, tuning, 0, store, (0, 0), [table([(100, 1, 1)])], 0)
    with pytest.raises(SkewlessError, match="does not belong to this checkpoint"):
        owner(task, loop(tmp_path / "two", windows), 0, store, (0, 1), [], 0)


def test_sizes_of_windows_that_are_over_are_left_out() -> None:
    windows = Windows(10, 5)
    deal = BatchAssignment.of(windows, 3, 2).changed(4, 10).changed(1, 20).changed(5, 33)
    short = deal.from_window(25)
    assert short.sizes == (deal.sizes[0], (20, 1), (33, 5))
    later, hashes = np.arange(25, 80), np.full(55, 11)
    assert (short.worker_of(hashes, later) == deal.worker_of(hashes, later)).all()
    assert deal.from_window(5) == deal
    assert BatchAssignment.of(windows, 3, 2).from_window(100) == BatchAssignment.of(windows, 3, 2)


def test_a_size_that_is_hardly_better_is_not_worth_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows, clock = Windows(10_000_000, 1_000_000), iter(range(0, 1000, 10))
    monkeypatch.setattr("skewless.control.tuning.time.monotonic", lambda: next(clock))
    plans = Plans.at(str(tmp_path))
    tuning = Tuning("stream", plans, BatchAssignment.of(windows, 2, 2), latency=1000.0, period=1.0, most=8)
    sizes = []
    for batch in range(40):
        code = plans.read_code()
        deal = plans.deal(Plan.of(code or 0).force)
        rows = (10 + deal.batch - 1) * 1000
        work = Work(batch, 10_000 * deal.batch, deal.batch, rows, rows * 1e-5)
        for worker in range(2):
            plans.write_work(worker, work)
        row: Any = {"control": code, "reached": 20 * batch, "n": 20_000}
        tuning.take(row, SimpleNamespace(id="q", batchId=batch, eventTime={}))  # type: ignore[arg-type]
        sizes.append(tuning.deal.batch)
    assert not tuning._failed
    assert max(sizes) == 8  # as many as there may be: rows cost, and larger batches copy fewer
    assert sizes[-20:] == [8] * 20
