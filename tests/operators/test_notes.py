"""What workers note beside their state: the state of an older version, a newer one or another query is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skewless import aggregate
from skewless.chop.assignment import BatchAssignment
from skewless.control.batch_sizes import BatchSizes
from skewless.control.placements import OnePlacement
from skewless.control.version import Version
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.store import MemoryStore, Store
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.operators.notes import FORMAT, read_notes, write_notes
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import Partials
from skewless.operators.panes.worker import PanesWorker
from skewless.operators.process import Processor, Rows, State
from skewless.operators.process import worker as process
from skewless.operators.process.processor import Key, Row
from skewless.operators.windows import worker as windows
from skewless.operators.windows.adaptive import AdaptiveWorker
from skewless.operators.windows.counted import CountedWorker, Numberer
from skewless.operators.windows.function import PaneCall, WindowCall
from skewless.operators.windows.panes import PaneWorker
from skewless.operators.worker import Worker
from skewless.place.placement import Placement

TURN = Turn(0, 3, "q")
SIZE, SLIDE = 10, 5
INPUT = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ANSWER = pa.schema([("n", pa.int64())])
NOTED = {"mark": "", "next": 3, "rows": {"3": [[[0, 2]], 15]}}
"""The notes of windows in version 0.5."""


class Count(Processor):
    """Counts rows."""

    state = "n long"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        state["n"] = (state["n"] or 0) + len(rows)
        yield (state["n"],)


def count(key: tuple[Any, ...], window: Any, frame: Any) -> tuple[int]:
    return (len(frame),)


def rows_of_panes() -> pa.RecordBatch:
    """Partial states."""
    key, time = pa.array([1, 1]), pa.array([1, 2]).cast(pa.timestamp("us"))
    partials = Partials(panes_layout(), ((),))
    partials.add(pa.RecordBatch.from_arrays([key, time, key], names=list("htk")))
    return partials.all()


def rows_of_keys() -> pa.RecordBatch:
    """Hash and input columns."""
    columns = [pa.array([7, 7]), pa.array([1, 1]), pa.array([5, 6])]
    return pa.RecordBatch.from_arrays(columns, names=["hash", *INPUT.names])


def rows_of_windows() -> pa.RecordBatch:
    """Hash, time and columns."""
    columns = [pa.array([7, 7]), pa.array([1, 2]), pa.array([1, 1]), pa.array([5, 6])]
    return pa.RecordBatch.from_arrays(columns, names=list("0123"))


def panes_layout(size: int = SIZE) -> Layout:
    return Layout(Windows(size, SLIDE), (pa.int64(),), (aggregate.count().bind([]),))


def windows_task(mark: str, *, rows: bool = False, call: Any = None) -> windows.Task:
    call = call or WindowCall(count, INPUT, ANSWER)
    return windows.Task(windows.Columns((0,), (0, 1)), Windows(SIZE, SLIDE, rows), call, mark=mark)


def make_panes(path: Path, store: Store, changed: bool) -> Worker:
    return PanesWorker(panes_layout(2 * SIZE if changed else SIZE), TURN, store)


def make_process(path: Path, store: Store, changed: bool) -> Worker:
    fields = pa.schema([("n", pa.int32() if changed else pa.int64())])
    placement = OnePlacement(Placement.of(1, [0, 0]))
    return process.ProcessWorker(
        process.Task(Count(), process.Columns(INPUT, (0,)), fields, ANSWER, placement), TURN, store
    )


def make_windows(path: Path, store: Store, changed: bool) -> Worker:
    task = windows_task("other" if changed else "")
    return windows.WindowWorker(task, BatchAssignment.of(task.windows, 1, 1), TURN, store)


def make_window_panes(path: Path, store: Store, changed: bool) -> Worker:
    whole = Windows(SIZE, SLIDE)
    columns, call = windows.Columns((0,), (0, 1)), PaneCall(lambda key, pane, frame: len(frame), INPUT)
    task = windows.Task(columns, whole.panes, call, mark="other" if changed else "")
    return PaneWorker(whole, task, BatchAssignment.of(whole.panes, 1, 1), TURN, store)


def make_adaptive(path: Path, store: Store, changed: bool) -> Worker:
    folder, task = BatchSizes.at(str(path)), windows_task("other" if changed else "")
    if folder.read_control() is None:
        folder.write_sizes(0, BatchAssignment.of(task.windows, 1, 1), 0, None)
        folder.write_control(Version(0), "q")
    return AdaptiveWorker(task, folder, TURN, store)


def make_numberer(path: Path, store: Store, changed: bool) -> Worker:
    return Numberer(windows_task("other" if changed else "", rows=True), TURN, store)


def make_counted(path: Path, store: Store, changed: bool) -> Worker:
    task = windows_task("other" if changed else "", rows=True)
    return CountedWorker(task, BatchAssignment.of(task.windows, 1, 1), TURN, store)


@dataclass(frozen=True)
class Operator:
    """An operator, rows for it, and what version 0.5 had in the store of such a worker."""

    make: Callable[[Path, Store, bool], Worker]
    rows: Callable[[], pa.RecordBatch]
    old: dict[str, bytes]


def told(**notes: Any) -> bytes:
    return json.dumps(notes).encode()


COLUMNS = blob.dump([pa.array([1, 2])])
WINDOWS_OLD = {"notes": told(**NOTED), "3/0": COLUMNS}
COUNTED_OLD = {"notes": told(mark="", slots=[7]), "7": COLUMNS}
OPERATORS = {
    "panes": Operator(
        make_panes,
        rows_of_panes,
        {
            "summary": blob.dump([pa.array([1])], {"notes": told(mark=panes_layout().mark, next=None).decode()}),
            "keys/0": COLUMNS,
            "page/0": COLUMNS,
            "timer": b"15",
        },
    ),
    "process": Operator(
        make_process,
        rows_of_keys,
        {"notes": told(mark="", id="x", control=0, slots={"t0": [[[0, 2]], None, None]}), "t0/0": COLUMNS},
    ),
    "windows": Operator(make_windows, rows_of_windows, WINDOWS_OLD),
    "panes of windows": Operator(make_window_panes, rows_of_windows, WINDOWS_OLD),
    "adaptive": Operator(
        make_adaptive, rows_of_windows, {**WINDOWS_OLD, "notes": told(**NOTED, plan=0, reached={"0": 4}, whose="x")}
    ),
    "numberer": Operator(make_numberer, rows_of_windows, COUNTED_OLD),
    "counted": Operator(make_counted, rows_of_windows, COUNTED_OLD),
}


@pytest.fixture(params=list(OPERATORS))
def operator(request: pytest.FixtureRequest) -> Operator:
    return OPERATORS[request.param]


def run(operator: Operator, path: Path, store: MemoryStore) -> None:
    """A micro-batch with rows, after which there is state."""
    list(operator.make(path, store, False).run(Version(0).code, [operator.rows()], None))


def test_an_empty_store_is_taken_as_new(operator: Operator, tmp_path: Path) -> None:
    store = MemoryStore()
    operator.make(tmp_path, store, False)
    assert store.blobs == {}
    run(operator, tmp_path, store)
    assert "state" in store.blobs
    assert len(store.blobs) > 1
    operator.make(tmp_path, store, False)  # and known again


def test_state_of_version_0_5_is_refused_and_stays_as_it_is(operator: Operator, tmp_path: Path) -> None:
    store = MemoryStore()
    store.blobs = dict(operator.old)
    message = "state without a format number, as version 0.5 and older ones wrote it.*; start with a new checkpoint, or"
    with pytest.raises(SkewlessError, match=message):
        run(operator, tmp_path, store)
    assert store.blobs == operator.old


@pytest.mark.parametrize("left", ["first", "last"])
def test_one_blob_of_version_0_5_is_enough(operator: Operator, tmp_path: Path, left: str) -> None:
    store, names = MemoryStore(), list(operator.old)
    store.blobs = {name: operator.old[name] for name in (names[:1] if left == "first" else names[-1:])}
    with pytest.raises(SkewlessError, match="without a format number"):
        operator.make(tmp_path, store, False)


@pytest.mark.parametrize("number", [FORMAT + 1, FORMAT - 1])
def test_state_of_another_format_is_refused(operator: Operator, tmp_path: Path, number: int) -> None:
    store = MemoryStore()
    run(operator, tmp_path, store)
    noted = blob.load(store.blobs["state"])
    notes = json.loads(blob.notes(noted)["notes"])
    store.blobs["state"] = blob.dump(noted.columns, {"notes": json.dumps({**notes, "format": number})})
    before = dict(store.blobs)
    message = f"the checkpoint has state of format {number}, and this version of skewless reads format {FORMAT}; go on"
    with pytest.raises(SkewlessError, match=message):
        run(operator, tmp_path, store)
    assert store.blobs == before


def test_state_of_another_mark_is_refused(operator: Operator, tmp_path: Path) -> None:
    store = MemoryStore()
    run(operator, tmp_path, store)
    before = dict(store.blobs)
    message = "the checkpoint is of another query: its .* were .*, now they are .*; use a new checkpoint for a changed"
    with pytest.raises(SkewlessError, match=message):
        operator.make(tmp_path, store, True)
    assert store.blobs == before


def test_notes_are_read_as_they_were_written() -> None:
    store = MemoryStore()
    assert read_notes(store, "a mark", "words") is None
    columns = [pa.array([1, None]), pa.array(["x", "y"])]
    write_notes(store, "a mark", {"next": None, "of": {"3": [1, 2]}}, columns)
    noted = read_notes(store, "a mark", "words")
    assert noted is not None
    assert noted[0] == {"format": FORMAT, "mark": "a mark", "next": None, "of": {"3": [1, 2]}}
    assert noted[1] == columns
    with pytest.raises(SkewlessError, match="its words were a mark, now they are another;"):
        read_notes(store, "another", "words")
