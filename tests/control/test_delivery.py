from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import disorder
from skewless.control.delivery import Delivery, Order, Report
from skewless.control.outlet import Outlet
from skewless.core import blob
from skewless.core.errors import SkewlessError
from support.campaign import campaign

Batches = list[list[int]]
Given = dict[int, list[dict[str, Any]]]


def table(numbers: list[int], batch: int = 0) -> pa.Table:
    """A row for each number, with a row number that no other has."""
    rows = [f"{batch}-{i}" for i in range(len(numbers))]
    return pa.table({"n": pa.array(numbers, pa.int64()), "row": pa.array(rows, pa.string())})


def all_rows(batches: Batches) -> list[str]:
    return [row for i, numbers in enumerate(batches) for row in table(numbers, i)["row"].to_pylist()]


@st.composite
def orders(draw: st.DrawFn) -> Order:
    k = draw(st.integers(0, 6))
    parts = draw(st.integers(1, 3) if k else st.none() | st.integers(1, 3))
    return Order("n", draw(st.integers(1, 3)), draw(st.none() | st.integers(0, 8)), k, parts)


batches = st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=10)


class Sink:
    """Keeps what it is given by the id, and fails when told."""

    def __init__(self) -> None:
        self.given: Given = {}
        self.fails = False

    def __call__(self, rows: pa.Table, batch: int) -> None:
        assert rows.num_rows
        if batch in self.given:
            assert self.given[batch] == rows.to_pylist()  # a replay gives the same again
        self.given[batch] = rows.to_pylist()
        if self.fails:
            raise RuntimeError("no network")

    @property
    def rows(self) -> list[str]:
        """In the order of the micro-batches, with the flush last."""
        ids = sorted(self.given, key=lambda batch: (batch < 0, batch))
        return [row["row"] for batch in ids for row in self.given[batch]]


@campaign(200)
@given(batches, orders())
def test_nothing_is_lost_and_nothing_comes_twice(batches: Batches, order: Order) -> None:
    delivery, out = Delivery(order), []
    for i, numbers in enumerate(batches):
        out += delivery.add(table(numbers, i))["row"].to_pylist()
        assert delivery.report.held_rows == sum(map(len, batches[: i + 1])) - len(out)
    out += delivery.finish()["row"].to_pylist() if batches else []
    assert sorted(out) == sorted(all_rows(batches))
    assert (delivery.report.held, delivery.report.held_rows) == (0, 0)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[Batches, int]:
    """Micro-batches in which each number comes in at most so many parts."""
    parts, size = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    numbers = draw(st.permutations([number for number in range(12) for _ in range(parts)]))
    return [list(numbers[i : i + size]) for i in range(0, len(numbers), size)], parts


@campaign(200)
@given(shuffled(), st.integers(0, 8), st.integers(0, 20))
def test_at_most_k_results_are_out_of_place(stream: tuple[Batches, int], k: int, delay: int) -> None:
    batches, parts = stream
    delivery, out = Delivery(Order("n", 1, delay, k, parts)), []
    for i, numbers in enumerate(batches):
        late = delivery.report.late_rows
        rows = delivery.add(table(numbers, i)).to_pylist()
        out += rows[delivery.report.late_rows - late :]
    out += delivery.finish().to_pylist()
    results = dict.fromkeys((row["n"], row["row"].split("-")[0]) for row in out)
    assert disorder(np.array([number for number, _ in results])) <= k
    assert len(out) + delivery.report.late_rows == 12 * parts
    assert len(results) + delivery.report.late == delivery.report.delivered


@campaign(100)
@given(batches, orders(), st.lists(st.integers(0, 9), max_size=6), st.integers(1, 3))
def test_replayed_batches_deliver_the_same_again(batches: Batches, order: Order, crashes: list[int], back: int) -> None:
    calm, shaken = Sink(), Sink()
    with TemporaryDirectory() as folder:
        outlet = Outlet(order, f"{folder}/calm")
        for i, numbers in enumerate(batches):
            outlet.run(i, table(numbers, i), calm)
        outlet.flush(calm)
        i, left = 0, list(crashes)
        while i < len(batches):
            shaken.fails = i in left
            try:
                Outlet(order, f"{folder}/shaken").run(i, table(batches[i], i), shaken)
                i += 1
            except RuntimeError:
                left.remove(i)
                i = max(min(i, 1), i - back + 1)  # the checkpoint may be an older one
        shaken.fails = False
        Outlet(order, f"{folder}/shaken").flush(shaken)
    assert shaken.given == calm.given
    assert sorted(calm.rows) == sorted(all_rows(batches))


@campaign(200)
@given(st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=8), orders()), min_size=1, max_size=10))
def test_nothing_is_lost_if_the_order_changes_on_the_way(runs: list[tuple[list[int], Order]]) -> None:
    delivery, out = Delivery(replace(runs[0][1], every=1)), []
    for i, (numbers, order) in enumerate(runs):
        delivery = Delivery.load(delivery.dump(), replace(order, every=1))
        out += delivery.add(table(numbers, i))["row"].to_pylist()
    out += delivery.finish()["row"].to_pylist()
    assert sorted(out) == sorted(all_rows([numbers for numbers, _ in runs]))


@given(batches)
def test_strict_order_without_late_rows_is_sorted_order(batches: Batches) -> None:
    delivery, out = Delivery(Order("n", delay=30)), []
    for numbers in batches:
        out += delivery.add(table(numbers))["n"].to_pylist()
    out += delivery.finish()["n"].to_pylist() if batches else []
    assert out == sorted(number for numbers in batches for number in numbers)
    assert delivery.report.late == 0


def test_without_a_delay_each_batch_is_complete() -> None:
    delivery = Delivery(Order("n"))
    assert delivery.add(table([3, 1, 2, 1]))["n"].to_pylist() == [1, 1, 2, 3]
    assert delivery.add(table([3, 5]))["n"].to_pylist() == [3, 5]
    assert (delivery.report.delivered, delivery.report.late, delivery.report.late_rows) == (5, 1, 1)


def test_with_a_delay_of_nothing_the_highest_number_may_come_again() -> None:
    delivery = Delivery(Order("n", delay=0))
    assert delivery.add(table([1, 2]))["n"].to_pylist() == [1, 2]
    assert delivery.add(table([2, 3]))["n"].to_pylist() == [2, 3]
    assert delivery.report.late == 0


def test_equal_numbers_stay_as_they_came() -> None:
    delivery = Delivery(Order("n", every=10))
    assert delivery.add(table([5, 25, 5, 4]))["row"].to_pylist() == ["0-3", "0-0", "0-2", "0-1"]


def test_windows_and_times_are_numbered_by_their_start() -> None:
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    second = timedelta(seconds=1)
    times = pa.array([start + i * second for i in (2, 0, 1)], pa.timestamp("us", "UTC"))
    windows = pa.StructArray.from_arrays([times, times], ["start", "end"])
    for column in (times, windows, times.cast(pa.timestamp("us"))):
        delivery = Delivery(Order("at", 1_000_000, 1_000_000))
        assert delivery.add(pa.table({"at": column, "i": [2, 0, 1]}))["i"].to_pylist() == [0, 1]
        assert delivery.finish()["i"].to_pylist() == [2]
    before = pa.array([datetime(1969, 12, 31, 23, 59, 59, 500_000, timezone.utc)], pa.timestamp("us", "UTC"))
    delivery = Delivery(Order("at", 1_000_000, 0, 1, 1))
    delivery.add(pa.table({"at": before}))
    assert delivery._merger.low == 0  # -1 is complete: it has had its one result


def test_rows_without_a_value_go_first_and_are_late() -> None:
    delivery = Delivery(Order("n", delay=5))
    rows = pa.table({"n": pa.array([3, None, -2], pa.int32())})
    assert delivery.add(rows)["n"].to_pylist() == [None, -2]
    assert (delivery.report.late, delivery.report.held) == (1, 1)


def test_a_part_too_many_waits_with_the_others_or_is_late() -> None:
    delivery = Delivery(Order("n", delay=10, k=1, parts=1))
    assert delivery.add(table([10]))["n"].to_pylist() == []
    delivery = Delivery.load(delivery.dump(), delivery.order)
    assert delivery.add(table([10, 10]))["n"].to_pylist() == []
    assert (delivery.report.held, delivery.report.held_rows, delivery.report.late) == (1, 3, 0)
    assert delivery.add(table([20]))["n"].to_pylist() == [10, 10, 10]
    assert delivery.add(table([10]))["n"].to_pylist() == [10]
    assert delivery.report.late == 1


def test_the_report_counts_waits() -> None:
    delivery = Delivery(Order("n", delay=2))
    delivery.add(table([1, 2, 3]), now=10.0)
    delivery.add(table([]), now=11.0)
    delivery.add(table([5, 5]), now=14.0)
    report = delivery.report
    assert (report.delivered, report.mean_batches, report.most_batches) == (3, 4 / 3, 2)
    assert (report.mean_seconds, report.most_seconds) == (8 / 3, 4.0)
    assert (report.held, report.held_rows, report.late) == (1, 2, 0)
    assert str(report).splitlines() == [
        "3 results delivered, none late",
        "waited 1.33 micro-batches on average and 2 at most, 2.67 s on average and 4.00 s at most",
        "held back now: 1 result, 2 rows",
    ]
    assert "4 results delivered, 1 late (1 row)" in str(Report(delivered=4, late=1, late_rows=1))


def test_held_rows_keep_their_types_and_names(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("n", pa.int16(), nullable=False),
            ("tags", pa.list_(pa.string())),
            ("by name", pa.map_(pa.string(), pa.int64())),
            ("s", pa.struct([("x", pa.float64())])),
        ]
    )
    rows = [{"n": i, "tags": ["a", None], "by name": [("b", i)], "s": {"x": 0.5}} for i in range(4)]
    sink = Sink()
    Outlet(Order("n", delay=9), str(tmp_path)).run(0, pa.Table.from_pylist(rows, schema=schema), sink)
    got: list[pa.Table] = []
    Outlet(Order("n", delay=9), str(tmp_path)).flush(lambda rows, _batch: got.append(rows))
    assert sink.given == {}
    assert got[0].schema == schema
    assert got[0].to_pylist() == rows


def test_a_flush_delivers_once_under_an_id_of_its_own(tmp_path: Path) -> None:
    outlet, sink = Outlet(Order("n", delay=5), str(tmp_path)), Sink()
    outlet.flush(sink)
    outlet.run(0, table([1, 2]), sink)
    outlet.flush(sink)
    outlet.flush(sink)
    assert [row["n"] for row in sink.given[-1]] == [1, 2]
    assert outlet.report.held == 0
    outlet.run(1, table([2, 9], 1), sink)
    assert [row["n"] for row in sink.given[1]] == [2]
    assert outlet.report.late == 1


def test_only_files_that_a_replay_can_need_stay(tmp_path: Path) -> None:
    outlet = Outlet(Order("n"), str(tmp_path / "a folder"), retain=2)
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "1.arrow.0f.new").touch()
    for batch in range(6):
        outlet.run(batch, table([batch]), Sink())
    assert sorted(path.name for path in (tmp_path / "a folder").iterdir()) == ["3.arrow", "4.arrow", "5.arrow"]


def test_a_flush_after_a_checkpoint_was_taken_back_gives_what_waits_there(tmp_path: Path) -> None:
    outlet, sink = Outlet(Order("n", delay=5), str(tmp_path)), Sink()
    for batch in range(4):
        outlet.run(batch, table([batch], batch), sink)
    outlet.run(1, table([1], 1), sink)
    outlet.flush(sink)
    assert {batch: [row["n"] for row in rows] for batch, rows in sink.given.items()} == {-2: [0, 1]}


def test_late_results_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outlet = Outlet(Order("n"), f"file://{tmp_path}")
    with caplog.at_level(logging.WARNING, "skewless"):
        for batch, number in enumerate([5, 3, 2]):
            outlet.run(batch, table([number]), Sink())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "micro-batch 1 has late results, 1 so far" in caplog.text
    assert outlet.report.late == 2


def test_what_deliver_raises_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    outlet, sink = Outlet(Order("n", delay=1), str(tmp_path)), Sink()
    outlet.run(0, table([1]), sink)
    sink.fails = True
    with pytest.raises(RuntimeError, match="no network"):
        outlet.run(1, table([3]), sink)
    sink.fails = False
    assert (outlet.report.delivered, outlet.report.held) == (0, 1)
    outlet.run(1, table([3]), sink)
    outlet.flush(sink)
    assert [row["n"] for batch in (0, 1, -2) for row in sink.given.get(batch, [])] == [1, 3]


def test_more_may_be_allowed_when_a_stream_goes_on(tmp_path: Path) -> None:
    sink = Sink()
    Outlet(Order("n", delay=9), str(tmp_path)).run(0, table([7, 3, 12]), sink)
    Outlet(Order("n", delay=9, k=9, parts=1), str(tmp_path)).run(1, table([]), sink)
    assert {batch: [row["n"] for row in rows] for batch, rows in sink.given.items()} == {0: [3], 1: [7, 12]}


@pytest.mark.parametrize("batch", [0, 1])
def test_the_folder_of_another_query_is_refused(tmp_path: Path, batch: int) -> None:
    outlet, sink = Outlet(Order("n", delay=9), str(tmp_path)), Sink()
    outlet.run(0, table([7, 3]), sink, "one")
    message = rf"{tmp_path}/0.arrow belongs to query one, and this is query two; give each query a folder of its own"
    with pytest.raises(SkewlessError, match=message):
        Outlet(Order("n", delay=9), str(tmp_path)).run(batch, table([1]), sink, "two")
    outlet.run(batch, table([7, 3]), sink, "one")
    outlet.flush(sink)
    assert [row["n"] for row in sink.given[-1 - batch]] == [3, 3, 7, 7][:: 2 - batch]


def test_rows_that_version_0_5_left_are_refused(tmp_path: Path) -> None:
    outlet, sink = Outlet(Order("n", delay=9), str(tmp_path)), Sink()
    outlet.run(0, table([7, 3]), sink)
    file = tmp_path / "0.arrow"
    held = blob.load(file.read_bytes())
    state = json.loads(blob.notes(held)["delivery"])
    for change, message in (
        ({"format": 7}, "the rows that wait have format 7, and this version of skewless reads format 1"),
        (None, "the rows that wait have no format number, as in version 0.5, and this version of skewless reads"),
    ):
        changed = {**state, **change} if change else {key: state[key] for key in state.keys() - {"format", "query"}}
        file.write_bytes(blob.dump(held.columns, {"delivery": json.dumps(changed)}))
        with pytest.raises(SkewlessError, match=message):
            outlet.run(1, table([1]), sink)


def test_a_folder_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    outlet, sink = Outlet(Order("n", delay=9), str(tmp_path)), Sink()
    with pytest.raises(SkewlessError, match=rf"after micro-batch 3 are not at {tmp_path}/3.arrow; restore the folder"):
        outlet.run(4, table([1]), sink)
    Outlet(Order("n", delay=9), str(tmp_path), first=4).run(4, table([1]), sink)
    with pytest.raises(SkewlessError, match=r"4.arrow is of a later micro-batch than 0"):
        outlet.run(0, table([1]), sink)
    with pytest.raises(SkewlessError, match="numbered by 'n' and every 1 before, not by 'n' and every 5"):
        Outlet(Order("n", every=5), str(tmp_path)).run(5, table([1]), sink)
    with pytest.raises(SkewlessError, match="have the columns n int64, row string, and those that come have n int32"):
        outlet.run(5, pa.table({"n": pa.array([1], pa.int32())}), sink)
    (tmp_path / "4.arrow").write_bytes(b"half of it")
    with pytest.raises(SkewlessError, match=r"4.arrow is damaged"):
        outlet.run(5, table([1]), sink)
    with pytest.raises(SkewlessError, match="Arrow cannot reach the folder 'dbfs:/x/ordered'"):
        Outlet(Order("n"), "dbfs:/x/ordered")
