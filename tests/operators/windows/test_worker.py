"""Workers of windows, panes and counts, on random streams, against windows put together row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless import SkewlessError
from skewless.chop.assignment import Assignment, BatchAssignment, KeyAssignment
from skewless.chop.ring import PaneAssignment, PaneRing
from skewless.control.batch_sizes import BatchSizes
from skewless.control.loop import Chosen, Observed
from skewless.control.tuning import Tuning
from skewless.control.version import Version, digest
from skewless.core.store import MemoryStore, Store
from skewless.core.turn import Turn
from skewless.core.windows import END, Windows
from skewless.operators.send import Sender, received
from skewless.operators.windows.adaptive import AdaptiveWorker
from skewless.operators.windows.counted import CountedWorker, Numberer
from skewless.operators.windows.function import MergeCall, PaneCall, WindowCall
from skewless.operators.windows.panes import PaneWorker
from skewless.operators.windows.spread import AdaptiveSpread
from skewless.operators.windows.worker import Columns, Task, WindowWorker
from skewless.operators.worker import Worker
from support.windows import ANSWER, COLUMNS, ROWS, Stream, adaptive, expected, found, table, whole


def of_pane(key: tuple[int], pane: Any, frame: Any) -> list[int]:
    return frame["value"].tolist()


def of_window(key: tuple[int], window: Any, parts: list[list[int]]) -> tuple[int, list[int]]:
    values = [value for part in parts for value in part]
    return len(values), values


def sent(rows: pa.RecordBatch, deal: Assignment, worker: int) -> pa.RecordBatch:
    """What a worker gets of some rows."""
    which, workers = deal.copies(np.asarray(rows.column(0)), np.asarray(rows.column(1)))
    return rows.take(pa.array(which[workers == worker]))


def ran(
    make: Callable[[Turn, Store], Worker],
    worker: int,
    store: MemoryStore,
    tables: list[pa.RecordBatch],
    watermark: int | None,
) -> list[pa.RecordBatch]:
    return list(make(Turn(worker), store).run(None, tables, watermark))


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
            got += found(windows, ran(partial(WindowWorker, task, deal), worker, store, tables, watermark))
    assert sorted(got) == expected(stream, windows)
    for store in stores:  # nothing is left but notes
        assert list(store.blobs) == ["state"]


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
            passed += ran(partial(PaneWorker, windows, pane_task, panes), worker, store, tables, watermark)
        passed = [
            each.set_column(1, each.schema.field(1), pa.array(np.asarray(each.column(1)) * ring.pane))
            for each in passed
        ]
        for worker, (_earlier, store) in enumerate(stores):
            tables = [sent(each, deal, worker) for each in passed]
            got += found(windows, ran(partial(WindowWorker, window_task, deal), worker, store, tables, watermark))
    assert sorted(got) == expected(stream, windows)
    for pair in stores:
        assert [list(store.blobs) for store in pair] == [["state"], ["state"]]


@settings(max_examples=60, deadline=None)
@given(streams(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5))
def test_windows_of_rows_are_over_when_their_rows_are_there(
    stream: Stream, one: int, other: int, workers: int, batch: int
) -> None:
    windows = Windows(max(one, other), min(one, other), rows=True)
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    by_key, deal = KeyAssignment(workers), BatchAssignment.of(windows, workers, batch)
    stores = [(MemoryStore(), MemoryStore()) for _ in range(workers)]
    got, wanted, seen = [], [], defaultdict(list)
    for batch_rows, _watermark in stream:
        numbered: list[pa.RecordBatch] = []
        for worker, (store, _later) in enumerate(stores):
            tables = [sent(table(batch_rows), by_key, worker)] if batch_rows else []
            numbered += ran(partial(Numberer, task), worker, store, tables, None)
        for worker, (_earlier, store) in enumerate(stores):
            tables = [sent(each, deal, worker) for each in numbered]
            got += found(windows, ran(partial(CountedWorker, task, deal), worker, store, tables, None))
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
    first = ran(partial(WindowWorker, task, deal), 0, store, [table([(t, 1, t) for t in range(0, 40, 5)])], 24)
    assert [w for w, *_ in found(windows, first)] == [-1]  # the batch of windows -4 to -1
    worker = WindowWorker(task, deal, Turn(0), store)
    assert worker.wake == 25  # when window 3 ends
    second = list(worker.run(None, [], 25))
    assert [w for w, *_ in found(windows, second)] == [0, 1, 2, 3]


def test_many_small_batches_stay_few_blobs() -> None:
    windows, store = Windows(10_000, 10_000), MemoryStore()
    deal, task = BatchAssignment.of(windows, 1, 1), Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    for i in range(1000):
        ran(partial(WindowWorker, task, deal), 0, store, [table([(i, 1, i)])], 0)
    assert len(store.blobs) < 30
    answers = ran(partial(WindowWorker, task, deal), 0, store, [], 20_000)
    assert list(found(windows, answers)) == [(0, 1, 1000, tuple(range(1000)))]


def test_state_of_another_query_is_refused() -> None:
    windows, store = Windows(10, 10), MemoryStore()
    deal, call = BatchAssignment.of(windows, 1, 1), WindowCall(whole, ROWS, ANSWER)
    one, other = (Task(COLUMNS, windows, call, mark=mark) for mark in ("one", "other"))
    ran(partial(WindowWorker, one, deal), 0, store, [table([(1, 1, 1)])], 0)
    with pytest.raises(SkewlessError, match=r"were one, now they are other.*new checkpoint"):
        WindowWorker(other, deal, Turn(0), store)


def test_a_far_time_costs_nothing() -> None:
    windows, store = Windows(60_000_000, 1), MemoryStore()
    deal, task = BatchAssignment.of(windows, 2, 5), Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    far = 4_000_000_000_000_000
    ran(partial(WindowWorker, task, deal), 0, store, [table([(far, 1, 1)])], 0)
    assert not ran(partial(WindowWorker, task, deal), 0, store, [], 1_000_000)  # not one of the windows before it


@settings(max_examples=30, deadline=None)
@given(streams(), WINDOWS, st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_the_last_call_of_a_batch_closes_all_windows(
    stream: Stream, windows: Windows, workers: int, batch: int, together: bool
) -> None:
    all_rows = [row for batch_rows, _watermark in stream for row in batch_rows]
    deal, got = BatchAssignment.of(windows, workers, batch), []
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER), together=together)
    for number in range(workers):
        store = MemoryStore()
        worker = WindowWorker(task, deal, Turn(number), store)
        tables = [sent(table(all_rows), deal, number)] if all_rows else []
        assert list(worker.run(None, tables, None)) == []  # without a watermark no window is over
        got += found(windows, worker.run(None, [], END))
        assert (worker.held, worker.wake, list(store.blobs)) == (0, None, ["state"])
        assert list(worker.run(None, [], END)) == []
    assert sorted(got) == expected([(all_rows, 10**9)], windows)


def test_the_last_call_of_a_batch_closes_all_panes() -> None:
    windows = Windows(10, 4)
    deal = BatchAssignment.of(windows.panes, 1, 1)
    task, store = Task(COLUMNS, windows.panes, PaneCall(of_pane, ROWS)), MemoryStore()
    worker = PaneWorker(windows, task, deal, Turn(0), store)
    assert list(worker.run(None, [table([(0, 1, 5), (1, 1, 6), (2, 1, 7), (10**15, 2, 8)])], None)) == []
    (answer,) = worker.run(None, [], END)
    hashes, panes, keys, _objects = (column.to_pylist() for column in answer.columns)
    assert (hashes, panes, keys) == ([7, 7, 14], [0, 1, 10**15 // 2], [1, 1, 2])  # as they are sent on
    assert list(store.blobs) == ["state"]


def tuned(path: Path, windows: Windows, workers: int = 2, batch: int = 1) -> Tuning:
    """The loop on the driver of a stream whose batches change in size when a test says so."""
    sizes = BatchAssignment.of(windows, workers, batch)
    return Tuning("stream", BatchSizes.at(str(path)), sizes, 1.0, 1e9, Chosen("batches", "as the test asks"))


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
    tuning = tuned(tmp_path_factory.mktemp("sizes"), windows, workers, batch)
    folder, kinds = tuning.folder, (pa.int64(),) * 4
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    stores, got, code = [MemoryStore() for _ in range(workers)], [], Version(0).code
    for number, (batch_rows, watermark) in enumerate(stream):
        if data.draw(st.booleans()):  # or the micro-batch began before the last one was learned from
            control = folder.read_control()
            assert control is not None
            code = control[0].code
        if not batch_rows:
            for i, store in enumerate(stores):
                got += found(windows, adaptive(task, folder, Turn(i, number, "q"), store, None, [], watermark))
            continue
        rows = table(batch_rows)
        rows = rows.add_column(0, "control", pa.array([code] * rows.num_rows))
        sending = AdaptiveSpread(folder, windows, kinds)
        lines = list(sending.send([rows], Sender(range(workers), 0), Turn(0, number, "q")))
        sent_lines = [line for each in lines for line in each.to_pylist()]
        for i, store in enumerate(stores):
            tables = received((line["part"], line["rows"]) for line in sent_lines if line["owner"] == i)
            got += found(windows, adaptive(task, folder, Turn(i, number, "q"), store, code, tables, watermark))
        notes = tuple(tuple(line["note"]) for line in sent_lines if line["note"])
        assert tuning.hear(Observed("q", "run", number, control=code, notes=notes))
        assert not tuning._failed
        if not tuning.announced and data.draw(st.booleans()):
            tuning.change(data.draw(st.integers(1, 6)))
    assert sorted(got) == expected(stream, windows)


ADAPTED = Task(COLUMNS, Windows(10, 5), WindowCall(whole, ROWS, ANSWER))


@pytest.fixture
def folder(tmp_path: Path) -> BatchSizes:
    """One worker, and a window to a batch."""
    sizes = BatchSizes.at(str(tmp_path / "sizes"))
    sizes.write_sizes(0, BatchAssignment.of(ADAPTED.windows, 1, 1), 0, None)
    sizes.write_control(Version(0), "q")
    return sizes


def test_a_version_that_came_too_early_is_refused_and_taken_back(folder: BatchSizes) -> None:
    store = MemoryStore()
    adaptive(ADAPTED, folder, Turn(0, 0, "q"), store, Version(0).code, [table([(100, 1, 1)])], 0)  # reaches window 20
    folder.write_sizes(1, folder.sizes(0).changed(3, 20), 0, "q")
    folder.write_control(Version(1), "q")
    before = dict(store.blobs)
    with pytest.raises(SkewlessError, match=r"version 1 .* from window 20 on.*start the query again"):
        adaptive(ADAPTED, folder, Turn(0, 1, "q"), store, Version(1).code, [table([(101, 1, 2)])], 0)
    assert store.blobs == before
    tuning = tuned(Path(folder.uri.removeprefix("file://")), ADAPTED.windows, workers=1)  # the driver starts again
    assert folder.read_control() == (Version(0), "q")
    assert tuning.sizes.batch == 1
    adaptive(ADAPTED, folder, Turn(0, 1, "q"), store, Version(0).code, [table([(101, 1, 2)])], 0)


def test_a_worker_that_knew_of_a_version_takes_it_over(folder: BatchSizes) -> None:
    store = MemoryStore()
    adaptive(ADAPTED, folder, Turn(0, 0, "q"), store, Version(0).code, [table([(94, 1, 1)])], 0)  # reaches window 18
    folder.write_sizes(1, folder.sizes(0).changed(3, 20), 0, "q")
    adaptive(ADAPTED, folder, Turn(0, 1, "q"), store, Version(0, announced=1).code, [table([(100, 1, 2)])], 0)
    got = adaptive(ADAPTED, folder, Turn(0, 2, "q"), store, Version(1).code, [table([(101, 1, 3)])], 200)
    assert [(window, values) for window, _key, _n, values in found(ADAPTED.windows, got)] == [
        *[(17, (1,)), (18, (1,))],
        *[(19, (2, 3)), (20, (2, 3))],
    ]


def test_who_is_called_without_rows_goes_by_the_sizes_of_its_last_call(folder: BatchSizes) -> None:
    store = MemoryStore()
    task = Task(COLUMNS, ADAPTED.windows, ADAPTED.call, together=True)
    folder.write_sizes(1, folder.sizes(0).changed(4, 20), 0, "q")
    adaptive(task, folder, Turn(0, 0, "q"), store, Version(0, announced=1).code, [table([(99, 1, 1)])], 0)
    adaptive(task, folder, Turn(0, 1, "q"), store, Version(1).code, [table([(102, 1, 2)])], 0)
    folder.write_control(Version(0), "q")  # which rows would bring
    timer = partial(adaptive, task, folder, Turn(0, 2, "q"), store, None, [])
    assert [w for w, *_ in found(task.windows, timer(110))] == [18, 19]
    assert AdaptiveWorker(task, folder, Turn(0, 3, "q"), store).wake == 125  # with window 23, the last of four
    assert [w for w, *_ in found(task.windows, timer(124))] == []
    assert [w for w, *_ in found(task.windows, timer(125))] == [20]


def test_a_folder_that_is_ahead_of_the_checkpoint_is_refused(folder: BatchSizes) -> None:
    store = MemoryStore()
    adaptive(ADAPTED, folder, Turn(0, 0, "q"), store, Version(0).code, [table([(100, 1, 1)])], 0)
    for number in (1, 2):
        folder.write_sizes(number, folder.sizes(number - 1).changed(3, 20 * number), number - 1, "q")
    with pytest.raises(SkewlessError, match=r"is at version 2, but the checkpoint is at 0; restore both"):
        adaptive(ADAPTED, folder, Turn(0, 1, "q"), store, Version(2).code, [table([(101, 1, 2)])], 0)


def test_what_a_worker_did_is_told_once_for_each_micro_batch(folder: BatchSizes) -> None:
    store = MemoryStore()
    rows = [table([(100, 1, 1), (101, 1, 2), (101, 2, 3)])]
    adaptive(ADAPTED, folder, Turn(0, 4, "q"), store, Version(0).code, rows, 110)
    adaptive(ADAPTED, folder, Turn(0, 4, "q"), store, None, [], 120)  # a call without rows is not measured
    (work,) = folder.take_work(4)
    assert (work.updates, work.windows, work.rows) == (6, 4, 3)  # windows 19 and 20 of two keys
    assert 0 <= work.seconds < 60


def test_another_folder_is_refused(folder: BatchSizes, tmp_path: Path) -> None:
    store = MemoryStore()
    adaptive(ADAPTED, folder, Turn(0, 0, "q"), store, Version(0).code, [table([(100, 1, 1)])], 0)
    other = BatchSizes.at(str(tmp_path / "other"))
    other.write_sizes(0, folder.sizes(0), 0, None)
    with pytest.raises(SkewlessError, match="does not belong to this checkpoint"):
        adaptive(ADAPTED, other, Turn(0, 1, "q"), store, Version(0).code, [], 0)


def test_the_control_of_another_query_is_refused(folder: BatchSizes) -> None:
    store = MemoryStore()
    folder.write_control(Version(0), "another")
    code = Version(0, query=digest("another")).code
    with pytest.raises(SkewlessError, match="belongs to query another, and this is query q: build the result anew"):
        adaptive(ADAPTED, folder, Turn(0, 0, "q"), store, code, [table([(100, 1, 1)])], 0)
    assert store.blobs == {}
