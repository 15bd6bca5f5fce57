"""The folder of a placed stream: what is read is what was written, or an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from skewless.control.placements import Placements
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.place.placement import Placement

PLACEMENT = Placement.of(2, tail=[0, 1, 0], own={-7: 1, 12: 0}, version=3)
EIGHT = PLACEMENT.with_version(8)
SCHEMA = pa.schema([("hash", pa.int64()), ("k0", pa.string())])
ENTRIES = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["x", None])], schema=SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Placements:
    return Placements.at(str(tmp_path))


def give(
    folder: Placements, entries: pa.RecordBatch, batch: int, worker: int = 3, placement: Placement = EIGHT
) -> None:
    folder.give(placement, Turn(worker, batch, "q"), ["t1", "k-7"], entries)


def take(folder: Placements, batch: int, placement: Placement = EIGHT, query: str = "q") -> pa.RecordBatch:
    (entries,) = folder.take(placement, Turn(0, batch, query), 3, ["t1"], SCHEMA)
    return entries


def test_a_placement_is_read_as_it_was_written(folder: Placements, tmp_path: Path) -> None:
    folder.write_placement(PLACEMENT, 0, "q")
    assert folder.placement(3) == PLACEMENT
    with pytest.raises(SkewlessError, match=rf"version 4 is not at {tmp_path}/versions/4.json; restore the folder"):
        folder.placement(4)
    folder.write_placement(PLACEMENT.with_version(4), 3, "q")
    assert folder.placement(4) == PLACEMENT.with_version(4)
    assert (folder.before(3), folder.before(4)) == (0, 3)


def test_a_placement_of_another_stream_is_refused(folder: Placements) -> None:
    Placements(folder.uri, "another").write_placement(PLACEMENT, 0, "q")
    with pytest.raises(SkewlessError, match=r"versions/3.json is of another stream; restore the folder"):
        folder.placement(3)


def test_what_is_taken_is_of_the_last_micro_batch_before(folder: Placements, tmp_path: Path) -> None:
    for batch, some in ((4, ENTRIES[:0]), (9, ENTRIES), (10, ENTRIES[:1]), (11, ENTRIES[:0])):
        give(folder, some, batch)
    give(folder, ENTRIES[1:], 10, worker=33)
    give(folder, ENTRIES[1:], 10, placement=PLACEMENT.with_version(9))
    assert take(folder, 11).equals(ENTRIES[:1])
    assert take(folder, 10).equals(ENTRIES)
    assert take(folder, 9).num_rows == 0
    message = rf"the state of slots t1 from worker 3 is not at {tmp_path}/moves/8/3-\*.arrow; restore"
    with pytest.raises(SkewlessError, match=message):
        take(folder, 4)


def test_what_changed_after_a_copy_is_taken_with_it(folder: Placements) -> None:
    for batch, whole in ((5, True), (6, False), (7, True), (8, False), (9, False), (11, False)):
        folder.give(EIGHT, Turn(3, batch, "q"), ["t1"], ENTRIES[: batch % 3], whole=whole)
    parts = folder.take(EIGHT, Turn(0, 10, "q"), 3, ["t1"], SCHEMA)
    assert [part.num_rows for part in parts] == [7 % 3, 8 % 3, 9 % 3]  # what came before the newest copy is in it


def test_many_slots_that_did_not_arrive_are_not_all_named(folder: Placements) -> None:
    with pytest.raises(SkewlessError, match="the state of slots t0, t1, t2, t3, t4 and 3 more from worker 3 is not"):
        folder.take(EIGHT, Turn(0, 9, "q"), 3, [f"t{i}" for i in range(8)], SCHEMA)


def test_what_was_not_written_whole_is_not_read(folder: Placements, tmp_path: Path) -> None:
    give(folder, ENTRIES, 4)
    (tmp_path / "moves/8/3-5.arrow.0c1d.new").write_bytes(b"half of")
    assert take(folder, 9).equals(ENTRIES)


def test_what_another_query_gave_is_refused(folder: Placements, tmp_path: Path) -> None:
    give(folder, ENTRIES, 4)
    with pytest.raises(
        SkewlessError, match=rf"{tmp_path} belongs to query q, and this is query other: build the result"
    ):
        take(folder, 9, query="other")
    assert take(folder, 9).equals(ENTRIES)


def test_what_was_given_for_another_placement_is_refused(folder: Placements, tmp_path: Path) -> None:
    give(folder, ENTRIES, 4)
    message = rf"from worker 3 at {tmp_path}/moves/8/3-4.arrow was given for another placement; restore the folder"
    for other in (
        Placement.of(2, tail=[0, 1, 1], own={-7: 1, 12: 0}, version=8),
        Placement.of(2, tail=[0, 1, 0], own={-7: 1, 12: 1}, version=8),
        Placement.of(3, tail=[0, 1, 0], own={-7: 1, 12: 0}, version=8),
    ):
        with pytest.raises(SkewlessError, match=message):
            take(folder, 9, placement=other)
    with pytest.raises(SkewlessError, match=message):  # a slot that the worker did not have to give
        folder.take(EIGHT, Turn(0, 9, "q"), 3, ["t1", "t2"], SCHEMA)


@pytest.mark.parametrize("notes", [None, {"query": "q"}, {"move": "half of"}])
def test_what_was_given_without_saying_for_what_is_refused(
    folder: Placements, tmp_path: Path, notes: dict[str, str] | None
) -> None:
    folder.write("moves/8/3-4.arrow", blob.dump(ENTRIES.columns, notes))
    with pytest.raises(SkewlessError, match=rf"{tmp_path}/moves/8/3-4.arrow is damaged \(.*\); restore the folder"):
        take(folder, 9)


def test_what_is_past_is_forgotten(folder: Placements, tmp_path: Path) -> None:
    folder.forget(3)
    for number in range(1, 6):
        folder.write_placement(PLACEMENT.with_version(number), number - 1, "q")
        give(folder, ENTRIES, 4, placement=PLACEMENT.with_version(number))
    (tmp_path / "versions/6.json.0c1d.new").write_bytes(b"half of")
    folder.forget(3)
    assert sorted(path.name for path in (tmp_path / "moves").iterdir()) == ["4", "5"]
    versions = {path.name for path in (tmp_path / "versions").iterdir()}
    assert versions - {"6.json.0c1d.new"} == {"3.json", "4.json", "5.json"}
    folder.forget(3)
