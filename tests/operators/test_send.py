"""Rows on their way: every worker hears of every task that had rows, and gets its rows in the order they were sent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import aggregate
from skewless.chop.assignment import BatchAssignment
from skewless.control.batch_sizes import BatchSizes
from skewless.control.placements import OnePlacement, Placements
from skewless.control.version import Version, digest
from skewless.core.errors import SkewlessError
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL, Windows
from skewless.operators.panes.combine import Combine
from skewless.operators.panes.layout import Layout
from skewless.operators.process import Processor, Rows, State
from skewless.operators.process.pack import Pack
from skewless.operators.process.processor import Key, Row
from skewless.operators.process.worker import Columns, ProcessWorker, Task
from skewless.operators.send import WIRE, Sender, Sending, control_of, received
from skewless.operators.windows.spread import AdaptiveSpread, Spread
from skewless.place.placement import Placement

WORKERS = 4
OWNERS = (50, 60, 70, 80)
"""The values that Spark shuffles to the workers."""
WINDOWS = Windows(10, 5)
KINDS = (pa.int64(), pa.timestamp("us"), pa.int64(), pa.int64())
INPUT = pa.schema([("key", pa.int64()), ("value", pa.int64())])
PLACEMENT = Placement.of(WORKERS, tail=[0, 1, 2, 3])
Line = dict[str, Any]
Made = list[tuple[int, int]]
"""Rows of key and value; the key is also the hash, and the value the time."""


def lines_of(batches: Iterable[pa.RecordBatch]) -> list[Line]:
    found: list[Line] = []
    for batch in batches:
        assert batch.schema == WIRE
        found += batch.to_pylist()
    return found


def keyed(rows: Made, control: int | None) -> pa.RecordBatch:
    """For `Pack`: hash, control and columns."""
    keys, values = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    controls = pa.array([control] * len(rows), pa.int64())
    return pa.RecordBatch.from_arrays([keys, controls, keys, values], names=["hash", "control", *INPUT.names])


def timed(rows: Made, control: int | None) -> pa.RecordBatch:
    """For `Spread` and `Combine`: hash, time and columns."""
    keys, values = (pa.array([row[i] for row in rows], pa.int64()) for i in (0, 1))
    times = values.cast(pa.timestamp("us"))
    return pa.RecordBatch.from_arrays([keys, times, keys, values], names=list("0123"))


def controlled(rows: Made, control: int | None) -> pa.RecordBatch:
    """For `AdaptiveSpread`: control, hash, time and columns."""
    return timed(rows, control).add_column(0, "control", pa.array([control] * len(rows), pa.int64()))


@dataclass(frozen=True)
class Case:
    """A way to send, rows for it, and what it notes for the driver of rows (8, 3), (9, 4) and (8, 12)."""

    make: Callable[[Path], Sending]
    rows: Callable[[Made, int | None], pa.RecordBatch]
    note: list[int]
    controlled: bool = False
    timed: bool = False


def adaptive(path: Path) -> Sending:
    folder = BatchSizes.at(str(path))
    folder.write_sizes(0, BatchAssignment.of(WINDOWS, WORKERS, 1), 0, None)
    return AdaptiveSpread(folder, WINDOWS, KINDS)


def pack(path: Path) -> Sending:
    folder = Placements.at(str(path))
    folder.write_placement(PLACEMENT, 0, None)
    return Pack(folder, INPUT)


LAYOUT = Layout(WINDOWS, (pa.int64(),), (aggregate.count().bind([]),))
CASES = {
    "combine": Case(lambda path: Combine(LAYOUT, ((),)), timed, [5, 3, 3], timed=True),
    "pack": Case(pack, keyed, [2, 1, 0, 0], controlled=True),
    "spread": Case(lambda path: Spread(BatchAssignment.of(WINDOWS, WORKERS, 1), KINDS), timed, [2, 2, 1, 1]),
    "adaptive spread": Case(adaptive, controlled, [2, 3, 2, 2, 1, 1], controlled=True),
}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_every_worker_gets_a_line_from_a_task_that_had_rows(case: Case, tmp_path: Path) -> None:
    code = Version(0).code
    sending, parts = case.make(tmp_path), [case.rows([(8, 3), (9, 4)], code), case.rows([(8, 12)], code)]
    lines = lines_of(sending.send(parts, Sender(OWNERS, 5), Turn(5, 0, "q")))
    assert {line["owner"] for line in lines} == set(OWNERS)
    assert any(line["rows"] is None for line in lines)
    assert {line["control"] for line in lines} == {code if case.controlled else None}
    (note,) = [line["note"] for line in lines if line["note"] is not None]
    assert note[: len(case.note)] == case.note
    assert [each >= 0 for each in note[len(case.note) :]] == [True] * case.timed  # microseconds
    assert len({(line["owner"], line["part"]) for line in lines}) == len(lines)  # a worker can tell them apart


def test_rows_for_all_workers_leave_room_for_a_note(case: Case, tmp_path: Path) -> None:
    code = Version(0).code
    rows: Made = [(key, time) for key in range(12) for time in range(0, 60, 5)]
    lines = lines_of(case.make(tmp_path).send([case.rows(rows, code)], Sender(OWNERS, 5), Turn(5, 0, "q")))
    assert {line["owner"] for line in lines if line["rows"] is not None} == set(OWNERS)
    assert sum(line["note"] is not None for line in lines) == 1


def test_a_task_without_rows_sends_nothing(case: Case, tmp_path: Path) -> None:
    assert list(case.make(tmp_path).send([], Sender(OWNERS, 5), Turn(5, 0, "q"))) == []


@pytest.mark.parametrize("make", [CASES["spread"], CASES["adaptive spread"]])
def test_rows_without_a_time_are_in_no_window_but_workers_hear_of_them(make: Case, tmp_path: Path) -> None:
    rows = make.rows([(8, 3)], Version(0).code)
    at = rows.schema.names.index("1")
    rows = rows.set_column(at, "1", pa.nulls(1, pa.timestamp("us")))
    lines = lines_of(make.make(tmp_path).send([rows], Sender(OWNERS, 5), Turn(5, 0, "q")))
    assert [line["owner"] for line in lines] == list(OWNERS)
    assert all(line["rows"] is None for line in lines)
    note = [line["note"] for line in lines if line["note"] is not None]
    assert note == [[0] * 4 if make is CASES["spread"] else [BEFORE_ALL, 1, 0, 0, 0, 0]]


PARTS = st.lists(st.lists(st.integers(0, WORKERS - 1), min_size=1, max_size=6), max_size=4)


@given(st.dictionaries(st.sampled_from([0, 1, 2, 9, 10, 300]), PARTS, max_size=4), st.randoms())
def test_a_worker_gets_its_rows_in_the_order_of_tasks_and_of_what_each_sent(
    tasks: dict[int, list[list[int]]], chance: random.Random
) -> None:
    lines: list[Line] = []
    wanted: dict[int, list[tuple[int, int, int]]] = {worker: [] for worker in range(WORKERS)}
    for task, parts in sorted(tasks.items()):
        sender = Sender(OWNERS, task)
        for number, workers in enumerate(parts):
            columns = [np.full(len(workers), task), np.full(len(workers), number), np.arange(len(workers))]
            rows = pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list("012"))
            lines += lines_of([sender.send(rows, np.array(workers))])
            for i, worker in enumerate(workers):
                wanted[worker].append((task, number, i))
        lines += lines_of([sender.rest()]) if parts else []
    chance.shuffle(lines)
    for worker, owner in enumerate(OWNERS):
        tables = received((line["part"], line["rows"]) for line in lines if line["owner"] == owner)
        got = [row for table in tables for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
        assert got == wanted[worker]


def test_a_copy_is_of_the_row_that_it_names() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b", "c"])], names=["0"])
    sender = Sender(OWNERS, 0)
    lines = lines_of([sender.send(rows, np.array([3, 0, 3, 1]), np.array([0, 1, 2, 0]), control=9)])
    assert {line["owner"]: received([(0, line["rows"])])[0].column(0).to_pylist() for line in lines} == {
        50: ["b"],
        60: ["a"],
        80: ["a", "c"],
    }
    assert {line["control"] for line in lines} == {9}
    assert [line["owner"] for line in lines_of([sender.rest(9)])] == [70]


def test_lines_without_rows_are_no_rows() -> None:
    assert received([]) == []
    assert received([(3, None), (1, None)]) == []


class Seen(Processor):
    """All values of a key so far, in the order in which they came."""

    state = "values string"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        state["values"] = " ".join([*([state["values"]] if state["values"] else []), *map(str, rows["value"])])
        yield (state["values"],)


@given(
    st.lists(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=5), max_size=3), min_size=1, max_size=3),
    st.randoms(),
)
def test_a_processor_sees_rows_in_the_order_in_which_they_were_sent(
    tasks: Sequence[list[list[int]]], chance: random.Random
) -> None:
    """However lines come, so that a micro-batch that is run again gives the same."""
    placements, values = OnePlacement(PLACEMENT), iter(range(1000))
    lines: list[Line] = []
    wanted: dict[int, list[int]] = {}
    for number, parts in enumerate(tasks):
        tables = []
        for keys in parts:
            rows = [(key, next(values)) for key in keys]
            tables.append(keyed(rows, Version(0).code))
            for key, value in rows:
                wanted.setdefault(key, []).append(value)
        lines += lines_of(Pack(placements, INPUT).send(tables, Sender(OWNERS, number), Turn(number)))
    chance.shuffle(lines)
    got: dict[int, list[int]] = {}
    text = pa.schema([("values", pa.string())])
    task = Task(Seen(), Columns(INPUT, keys=(0,)), text, text, placements)
    for worker, owner in enumerate(OWNERS):
        tables = received((line["part"], line["rows"]) for line in lines if line["owner"] == owner)
        for answer in ProcessWorker(task, Turn(worker), MemoryStore()).run(Version(0).code, tables, None):
            for key, seen in zip(*(column.to_pylist() for column in answer.columns), strict=True):
                got[key] = [int(value) for value in seen.split()]
    assert got == wanted


LOST = "the control file of the stream's folder is empty or gone.*restore the folder.*so that no row is lost"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.controlled])
def test_rows_that_no_control_came_with_are_refused_before_any_is_sent(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    sending = case.make(tmp_path).send([case.rows([(8, 3), (9, 4)], None)], Sender(OWNERS, 5), Turn(5, 0, "q"))
    with pytest.raises(SkewlessError, match=LOST):
        next(sending)


def test_a_control_is_the_number_that_all_rows_have() -> None:
    assert control_of(pa.array([7, 7])) == 7
    for column in (pa.nulls(2, pa.int64()), pa.array([], pa.int64())):
        with pytest.raises(SkewlessError, match=LOST):
            control_of(column)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.controlled])
def test_rows_by_the_control_of_another_query_are_refused_before_any_is_sent(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    sending, rows = case.make(tmp_path), case.rows([(8, 3)], Version(0, query=digest("one")).code)
    assert lines_of(sending.send([rows], Sender(OWNERS, 5), Turn(5, 0, "one")))
    with pytest.raises(SkewlessError, match=f"the folder {tmp_path} belongs to query .*, and this is query two"):
        next(sending.send([rows], Sender(OWNERS, 5), Turn(5, 0, "two")))


def test_pack_goes_by_the_placement_in_force(tmp_path: Path) -> None:
    folder = Placements.at(str(tmp_path))
    folder.write_placement(PLACEMENT, 0, None)
    folder.write_placement(Placement.of(WORKERS, tail=[2, 2, 2, 2], version=1), 0, "q")
    for version, owners in ((Version(0, announced=1), {60, 80}), (Version(1), {70})):
        rows = keyed([(3, 1), (5, 2)], version.code)
        lines = lines_of(Pack(folder, INPUT).send([rows], Sender(OWNERS, 0), Turn(0, 4, "q")))
        assert {line["owner"] for line in lines if line["rows"] is not None} == owners


def test_while_sizes_are_announced_rows_go_both_ways(tmp_path: Path) -> None:
    folder = BatchSizes.at(str(tmp_path))
    now = BatchAssignment.of(WINDOWS, WORKERS, 1)
    then = now.changed(3, 2)
    folder.write_sizes(0, now, 0, None)
    folder.write_sizes(1, then, 0, "q")
    rows: Made = [(0, time) for time in range(0, 60, 5)]
    got: dict[Version, set[tuple[int, int]]] = {}
    for version in (Version(0), Version(0, announced=1), Version(1)):
        sending = AdaptiveSpread(folder, WINDOWS, KINDS)
        lines = lines_of(sending.send([controlled(rows, version.code)], Sender(OWNERS, 0), Turn(0, 4, "q")))
        got[version] = set()
        for line in lines:
            if line["rows"] is not None:
                times = received([(0, line["rows"])])[0].column(1).to_pylist()
                got[version] |= {(line["owner"], time) for time in times}
    assert got[Version(0)] != got[Version(1)]
    assert got[Version(0, announced=1)] == got[Version(0)] | got[Version(1)]


def test_keys_that_several_tasks_have_go_to_one_worker() -> None:
    """Keys apart are dealt by size, where all others are in one task only."""
    owners_of_key: dict[int, set[int]] = {}
    for task, keys in enumerate(([1, 2, 3, 4, 4, 4], [1, 5, 6, 7])):
        combine = Combine(LAYOUT, ((),), apart=(1,))
        rows = timed([(key, 3) for key in keys], None)
        for line in lines_of(combine.send([rows], Sender(OWNERS, task), Turn(task))):
            for table in received([(line["part"], line["rows"])]):
                for key in table.column(2).to_pylist():
                    owners_of_key.setdefault(key, set()).add(line["owner"])
    assert set(owners_of_key) == {1, 2, 3, 4, 5, 6, 7}
    assert all(len(owners) == 1 for owners in owners_of_key.values())


def test_keys_in_one_task_only_are_dealt_by_size_and_not_by_hash() -> None:
    keys = [len(OWNERS) * i for i in range(1, 9)]  # by hash all of them are worker 0's
    sent = {}
    for apart in (None, ()):
        lines = lines_of(
            Combine(LAYOUT, ((),), apart).send([timed([(key, 3) for key in keys], None)], Sender(OWNERS, 0), Turn(0))
        )
        sent[apart] = {line["owner"] for line in lines if line["rows"] is not None}
    assert len(sent[None]) == 1
    assert sent[()] == set(OWNERS)
