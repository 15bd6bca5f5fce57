"""The folder of a placed stream: what is read is what was written, or an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.folder import LENGTH
from skewless.control.location import Control, Location
from skewless.core.errors import SkewlessError
from skewless.place.placement import Placement

PLACEMENT = Placement.of(2, tail=[0, 1, 0], own={-7: 1, 12: 0}, version=3)
SCHEMA = pa.schema([("hash", pa.int64()), ("k0", pa.string())])
ENTRIES = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["x", None])], schema=SCHEMA)


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location.at(str(tmp_path))


@given(st.integers(0, 1 << 40), st.booleans())
def test_a_control_is_one_number(version: int, moving: bool) -> None:
    assert Control.of(Control(version, moving).code) == Control(version, moving)


def test_an_empty_folder_is_a_new_stream(location: Location, tmp_path: Path) -> None:
    assert location.read_control() is None
    assert Location.at(str(tmp_path)).whose != location.whose
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_known_again_by_path_and_uri(location: Location, tmp_path: Path) -> None:
    location.write_control(Control(3))
    assert Location.at(str(tmp_path)) == Location.at(f"{tmp_path}/") == Location.at(f"file://{tmp_path}") == location
    assert location.current == f"file://{tmp_path}/current.json"


def test_a_folder_may_have_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    location = Location.at("my stream [1] 100%25")
    location.write_control(Control(3))
    assert (tmp_path / "my stream [1] 100%25/current.json").exists()
    assert Location.at(str(tmp_path / "my stream [1] 100%25")) == location


def test_the_control_is_a_file_of_one_length(location: Location, tmp_path: Path) -> None:
    for control in (Control(0), Control(0, moving=True), Control(123_456_789, moving=True)):
        location.write_control(control)
        assert location.read_control() == control
        assert len((tmp_path / "current.json").read_bytes()) == LENGTH
    assert [path.name for path in tmp_path.iterdir()] == ["current.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "x"}', '{"id": "x", "control": "y"}', '{"control": 1}'])
def test_a_damaged_control_is_refused(location: Location, tmp_path: Path, text: str) -> None:
    (tmp_path / "current.json").write_text(text)
    with pytest.raises(SkewlessError, match=rf"{tmp_path}/current.json is damaged \(.*\); restore it from a copy"):
        location.read_control()
    with pytest.raises(SkewlessError, match=r"current\.json is damaged"):
        Location.at(str(tmp_path))


def test_a_placement_is_read_as_it_was_written(location: Location) -> None:
    location.write_placement(PLACEMENT)
    assert location.placement(3) == PLACEMENT
    with pytest.raises(SkewlessError, match=r"placement 4 is not at file://.*/placements/4.json; restore the folder"):
        location.placement(4)
    location.write_placement(PLACEMENT.with_version(4))
    assert location.placement(4) == PLACEMENT.with_version(4)


def test_a_placement_of_another_stream_is_refused(location: Location) -> None:
    Location(location.uri, "another").write_placement(PLACEMENT)
    with pytest.raises(SkewlessError, match=r"placements/3.json is of another stream; restore the folder"):
        location.placement(3)


def test_moves_are_those_of_the_last_batch_before(location: Location) -> None:
    for batch, some in ((4, ENTRIES[:0]), (9, ENTRIES), (10, ENTRIES[:1]), (11, ENTRIES[:0])):
        location.write_moves(8, batch, 3, some)
    location.write_moves(8, 10, 33, ENTRIES[1:])
    location.write_moves(9, 10, 3, ENTRIES[1:])
    assert location.read_moves(8, 11, 3, "t1", SCHEMA).equals(ENTRIES[:1])
    assert location.read_moves(8, 10, 3, "t1", SCHEMA).equals(ENTRIES)
    assert location.read_moves(8, 9, 3, "t1", SCHEMA).num_rows == 0
    with pytest.raises(
        SkewlessError, match=r"state of slots t1 from worker 3 is not at .*/moves/8/3-\*.arrow; restore"
    ):
        location.read_moves(8, 4, 3, "t1", SCHEMA)


def test_what_was_not_written_whole_is_not_read(location: Location, tmp_path: Path) -> None:
    location.write_moves(8, 4, 3, ENTRIES)
    (tmp_path / "moves/8/3-5.arrow.0c1d.new").write_bytes(b"half of")
    assert location.read_moves(8, 9, 3, "t1", SCHEMA).equals(ENTRIES)


def test_what_is_past_is_forgotten(location: Location, tmp_path: Path) -> None:
    location.forget(3)
    for version in range(1, 6):
        location.write_placement(PLACEMENT.with_version(version))
        location.write_moves(version, 4, 3, ENTRIES)
    (tmp_path / "placements/6.json.0c1d.new").write_bytes(b"half of")
    location.forget(3)
    assert sorted(path.name for path in (tmp_path / "moves").iterdir()) == ["4", "5"]
    placements = {path.name for path in (tmp_path / "placements").iterdir()}
    assert placements - {"6.json.0c1d.new"} == {"3.json", "4.json", "5.json"}
    location.forget(3)
