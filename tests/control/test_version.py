"""The versions of a stream: what a micro-batch goes by, and whose they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop.assignment import BatchAssignment
from skewless.control.batch_sizes import BatchSizes
from skewless.control.loop import Chosen
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.version import LENGTH, Version, Versions, digest
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.place import Even, Rule
from skewless.place.placement import Placement

ONE, OTHER = Placement.of(2, tail=[0, 1, 0]), Placement.of(2, tail=[1, 0, 1])
SIZES = BatchAssignment.of(Windows(10, 5), 2, 3)
NUMBERS, DIGESTS = st.integers(0, (1 << 24) - 1), st.integers(0, (1 << 15) - 1)
QUERIES = ("8ba3b9e0-6c4f-4f0a-a6c5-1d0c5d1f2f6e", "0b7f3a52-93b6-4a0e-8f7f-2f3f8f1c9b11")


@pytest.fixture
def folder(tmp_path: Path) -> Placements:
    return Placements.at(str(tmp_path))


@given(NUMBERS, NUMBERS, DIGESTS)
def test_a_version_is_one_number(force: int, announced: int, query: int) -> None:
    version = Version(force, announced, query)
    assert 0 <= version.code < 1 << 63  # a long of Spark's
    again = Version.of(version.code)
    assert (again.force, again.announced, again.query) == (force, announced, query)


@given(st.text())
def test_the_digest_of_a_query_fits_and_is_none_of_no_query(query: str) -> None:
    assert 1 <= digest(query) < 1 << 15
    assert digest(None) == 0


def test_versions_are_the_same_whoever_they_are_for() -> None:
    assert Version(3, 4, digest("one")) == Version(3, 4, digest("other")) != Version(3, 5)


def test_an_empty_folder_is_a_new_stream(folder: Placements, tmp_path: Path) -> None:
    assert folder.read_control() is None
    assert Placements.at(str(tmp_path)).stream != folder.stream
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_crash_left_without_control_goes_on_by_its_first_version(
    folder: Placements, tmp_path: Path
) -> None:
    folder.write_placement(ONE.with_version(0), 0, None)
    again = Placements.at(str(tmp_path))
    assert again == folder
    loop = Placing(
        "stream", Even(slots=3), again, 3, 3, Rule(), 100, Chosen("even", "")
    )  # the version that is there is what micro-batches will have gone by
    assert loop.placement == ONE.with_version(0)
    assert again.read_control() == (Version(0), None)


def test_a_folder_that_lost_its_control_is_refused_with_a_remedy(folder: Placements, tmp_path: Path) -> None:
    for number, placement in enumerate((ONE, OTHER)):
        folder.write_placement(placement.with_version(number), 0, None)
    with pytest.raises(
        SkewlessError, match=rf"the control is not at {tmp_path}/control.json, but .*; restore the fold"
    ):
        Placements.at(str(tmp_path))


def test_a_folder_is_known_again_by_path_and_uri(folder: Placements, tmp_path: Path) -> None:
    folder.write_control(Version(3), None)
    again = [Placements.at(path) for path in (str(tmp_path), f"{tmp_path}/", f"file://{tmp_path}")]
    assert again == [folder] * 3
    assert folder.control == f"file://{tmp_path}/control.json"


def test_a_folder_may_have_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Placements.at("my stream [1] 100%25")
    folder.write_control(Version(3), None)
    assert (tmp_path / "my stream [1] 100%25/control.json").exists()
    assert Placements.at(str(tmp_path / "my stream [1] 100%25")) == folder


def test_the_control_is_a_file_of_one_length(folder: Placements, tmp_path: Path) -> None:
    for version, query in (
        (Version(0), None),
        (Version(0, announced=1), None),
        (Version(9_999_999, 10**7), QUERIES[0]),
    ):
        folder.write_control(version, query)
        assert folder.read_control() == (version, query)
        assert len((tmp_path / "control.json").read_bytes()) == LENGTH
    assert [path.name for path in tmp_path.iterdir()] == ["control.json"]


NO_FORMAT = "has no format number, as in version 0.5, and this version of skewless reads format 1; name an empty folder"
DAMAGED = {
    "": r"is damaged \(.*\); restore the folder",
    "{": r"is damaged \(.*\); restore the folder",
    "[]": NO_FORMAT,
    '{"id": "x", "control": 1}': NO_FORMAT,
    '{"format": 2, "stream": "x", "query": null, "control": 1}': "has format 2, and this version .* reads format 1;",
    '{"format": 1, "query": null, "control": 1}': r"is damaged \(it names no stream\); restore the folder",
}
DAMAGED_INSIDE = {
    '{"format": 1, "stream": "x", "query": null}': r"is damaged \('control'\); restore the folder",
    '{"format": 1, "stream": "x", "query": null, "control": "y"}': r"is damaged \(invalid.*'y'\); restore the folder",
    '{"format": 1, "stream": "x", "query": null, "control": []}': r"is damaged \(.*\); restore the folder",
    '{"format": 1, "stream": "x", "control": 1}': r"is damaged \('query'\); restore the folder",
}


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_control_is_refused(folder: Placements, tmp_path: Path, text: str) -> None:
    (tmp_path / "control.json").write_text(text)
    with pytest.raises(SkewlessError, match=f"{tmp_path}/control.json {DAMAGED[text]}"):
        folder.read_control()
    with pytest.raises(SkewlessError, match=f"{tmp_path}/control.json {DAMAGED[text]}"):
        Placements.at(str(tmp_path))


@pytest.mark.parametrize("text", DAMAGED_INSIDE)
def test_a_control_that_lacks_something_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "control.json").write_text(text)
    with pytest.raises(SkewlessError, match=f"{tmp_path}/control.json {DAMAGED_INSIDE[text]}"):
        Placements.at(str(tmp_path)).read_control()


def test_the_control_of_another_stream_is_refused(folder: Placements, tmp_path: Path) -> None:
    Placements(folder.uri, "another").write_control(Version(0), None)
    with pytest.raises(SkewlessError, match=f"{tmp_path}/control.json is of another stream; restore the folder"):
        folder.read_control()


CURRENT, FIRST = '{"id": "x", "control": 4}'.ljust(LENGTH), '{"id": "x", "before": 0}'


@pytest.mark.parametrize("kind", [Placements, BatchSizes])
@pytest.mark.parametrize(
    "files",
    [
        {"current.json": CURRENT, "placements/0.json": FIRST, "moves/1/0-4.arrow": "x"},
        {"current.json": CURRENT, "deals/0.json": FIRST, "work/0.json": "[]"},
        {"current.json": CURRENT},
        {"placements/0.json": FIRST},  # the driver was stopped before it wrote the other file
        {"deals/0.json": FIRST},
    ],
)
def test_a_folder_of_version_0_5_is_refused_and_stays_as_it_is(
    tmp_path: Path, kind: type[Versions], files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    old = next(iter(files)).split("/")[0]
    message = (
        rf"{tmp_path}/{old} has no format number, as in version 0\.5, .* name an empty folder with a new checkpoint"
    )
    with pytest.raises(SkewlessError, match=message):
        kind.at(str(tmp_path))
    left = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == files


def test_a_version_is_written_once_and_never_replaced(folder: Placements, tmp_path: Path) -> None:
    folder.write_placement(ONE.with_version(4), 3, None)
    written = (tmp_path / "versions/4.json").read_bytes()
    with pytest.raises(SkewlessError, match=f"{tmp_path}/versions/4.json is there already; versions are written once"):
        folder.write_placement(OTHER.with_version(4), 3, None)
    assert (tmp_path / "versions/4.json").read_bytes() == written
    assert folder.placement(4) == ONE.with_version(4)


def test_the_highest_number_counts_versions_that_were_never_in_force(folder: Placements, tmp_path: Path) -> None:
    assert folder.last() == 0
    for number in (0, 2, 11):
        folder.write_placement(ONE.with_version(number), 0, None)
    (tmp_path / "versions/12.json.0c1d.new").write_bytes(b"half of")
    assert folder.last() == 11


def test_sizes_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = BatchSizes.at(str(tmp_path))
    changed = SIZES.changed(5, 40)
    folder.write_sizes(0, SIZES, 0, None)
    folder.write_sizes(2, changed, 0, "q")
    assert (folder.sizes(0), folder.sizes(2), folder.before(2)) == (SIZES, changed, 0)
    assert folder.sizes(2, Turn(1, 7, "q")) == changed


def test_a_version_is_read_once_in_a_micro_batch_and_anew_in_the_next(folder: Placements, tmp_path: Path) -> None:
    folder.write_placement(ONE, 0, None)
    assert folder.placement(0, Turn(0, batch=1)) == ONE
    (tmp_path / "versions/0.json").unlink()
    folder.write_placement(OTHER, 0, None)
    assert folder.placement(0, Turn(1, batch=1)) == ONE  # in one micro-batch all go by the same
    assert folder.placement(0, Turn(0, batch=2)) == OTHER
    assert folder.placement(0) == OTHER  # the driver has no turn


def test_a_version_that_was_refused_is_read_again(folder: Placements, tmp_path: Path) -> None:
    for _attempt in range(2):
        with pytest.raises(SkewlessError, match="version 0 is not at"):
            folder.placement(0, Turn(0, batch=1))
    folder.write_placement(ONE, 0, None)
    assert folder.placement(0, Turn(0, batch=1)) == ONE


@pytest.mark.parametrize("query", QUERIES)
def test_a_control_for_another_query_is_refused_with_the_names_of_both(
    folder: Placements, tmp_path: Path, query: str
) -> None:
    (other,) = set(QUERIES) - {query}
    folder.write_control(Version(0, announced=1), query)
    code = json.loads((tmp_path / "control.json").read_bytes())["control"]
    folder.check(Version.of(code), Turn(0, 5, query))
    message = (
        f"the folder {tmp_path} belongs to query {query}, and this is query {other}: build the result anew for each"
    )
    with pytest.raises(SkewlessError, match=message):
        folder.check(Version.of(code), Turn(0, 5, other))


def test_a_control_from_before_the_query_was_known_is_anyones(folder: Placements, tmp_path: Path) -> None:
    folder.write_control(Version(0), None)
    code = json.loads((tmp_path / "control.json").read_bytes())["control"]
    for query in QUERIES:
        folder.check(Version.of(code), Turn(0, 5, query))


def read_placement(folder: Placements, turn: Turn) -> object:
    return folder.placement(1, turn)


def read_before(folder: Placements, turn: Turn) -> object:
    return folder.before(1, turn)


@pytest.mark.parametrize("read", [read_placement, read_before])
def test_a_version_of_another_query_is_refused_to_a_task(
    folder: Placements, tmp_path: Path, read: Callable[[Placements, Turn], object]
) -> None:
    folder.write_placement(ONE, 0, None)
    folder.write_placement(OTHER.with_version(1), 0, "one")
    assert read(folder, Turn(0, 3, "one")) in (OTHER.with_version(1), 0)
    for _attempt in range(2):  # though the process has read it already
        with pytest.raises(SkewlessError, match=f"{tmp_path} belongs to query one, and this is query two: build the"):
            read(folder, Turn(0, 3, "two"))
    assert folder.placement(0, Turn(0, 3, "two")) == ONE  # the first version was there before any query


CHANGES: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[:30], r"is damaged \(.*\); restore the folder that goes with this checkpoint"),
    "emptied": (lambda text: "", r"is damaged \(.*\); restore the folder that goes with this checkpoint"),
    "of another number": (lambda text: text.replace('"number": 3', '"number": 4'), r"is damaged \(it is version 4\)"),
    "without a number": (lambda text: text.replace('"number": 3, ', ""), r"is damaged \('number'\); restore"),
    "without what was before": (lambda text: text.replace('"before": 0, ', ""), r"is damaged \('before'\); restore"),
    "without a stream": (lambda text: text.replace('"stream"', '"id"'), r"is damaged \(it names no stream\); restore"),
    "of another stream": (lambda text: text.replace('"stream": "', '"stream": "x'), "is of another stream; restore"),
    "of another format": (lambda text: text.replace('"format": 1', '"format": 9'), "has format 9, .* reads format 1;"),
    "without a format": (lambda text: text.replace('"format": 1, ', ""), "has no format number, as in version 0.5"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("turn", [None, Turn(0, 1, "q")])
def test_a_damaged_version_is_refused_with_its_path(
    folder: Placements, tmp_path: Path, change: str, turn: Turn | None
) -> None:
    file, (how, message) = tmp_path / "versions/3.json", CHANGES[change]
    folder.write_placement(ONE.with_version(3), 0, "q")
    text = file.read_text()
    file.write_text(how(text))
    with pytest.raises(SkewlessError, match=f"{file} {message}"):
        folder.placement(3, turn)
    file.write_text(text)
    assert folder.placement(3, turn) == ONE.with_version(3)


SIZED: dict[str, Callable[[str], str]] = {
    "without sizes": lambda text: text.replace('"sizes"', '"batches"'),
    "of half a shape": lambda text: text.replace('"shape": [10, 5, 2]', '"shape": [10]'),
    "of no worker": lambda text: text.replace('"shape": [10, 5, 2]', '"shape": [10, 5, 0]'),
    "of windows with gaps": lambda text: text.replace('"shape": [10, 5, 2]', '"shape": [5, 10, 2]'),
}


@pytest.mark.parametrize("change", SIZED)
def test_damaged_sizes_are_refused_with_their_path(tmp_path: Path, change: str) -> None:
    folder, file = BatchSizes.at(str(tmp_path)), tmp_path / "versions/0.json"
    folder.write_sizes(0, SIZES, 0, None)
    file.write_text(SIZED[change](file.read_text()))
    with pytest.raises(SkewlessError, match=rf"{file} is damaged \(.*\); restore the folder that goes with this"):
        folder.sizes(0)


def test_a_missing_version_is_refused_with_its_path(folder: Placements, tmp_path: Path) -> None:
    folder.write_placement(ONE.with_version(3), 0, "q")
    message = f"version 2 is not at {tmp_path}/versions/2.json; restore the folder that goes with this checkpoint"
    for turn in (None, Turn(0, 1, "q")):
        with pytest.raises(SkewlessError, match=message):
            folder.placement(2, turn)


def test_versions_before_one_are_forgotten(tmp_path: Path) -> None:
    folder = BatchSizes.at(str(tmp_path))
    for number in range(4):
        folder.write_sizes(number, SIZES, max(0, number - 1), None)
    folder.forget(2)
    assert sorted(path.name for path in (tmp_path / "versions").iterdir()) == ["2.json", "3.json"]
    assert folder.last() == 3
