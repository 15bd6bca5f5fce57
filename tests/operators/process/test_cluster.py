"""Workers whose slots move, with crashes and replays, against one process with dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.placements import Placements
from skewless.control.version import Version, digest
from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.operators.process import worker as workers
from skewless.operators.process.handover import changed
from skewless.place.placement import Placement, moves
from support.campaign import campaign
from support.cluster import HASHES, KEYS, QUERY, TAIL, WORKERS, Cluster, In, Reference, placements, rows_in, table


@dataclass
class Driver:
    """What decides by which version the next micro-batch goes."""

    folder: Placements
    version: Version = field(default_factory=lambda: Version(0))
    heard: Version | None = None  # what the last micro-batch with rows that was committed ran by

    def turn(self, placement: Placement) -> None:
        """Hear of the last micro-batch, and announce a placement if none is announced."""
        coming = self.version.announced
        if coming and self.heard is not None and coming in (self.heard.to_come, self.heard.force):
            self.version = Version(coming)
        elif coming and self.heard == self.version:
            self.version = Version(self.version.force)  # it is withdrawn, and was not in force
        if not self.version.announced:
            number = self.folder.last() + 1
            self.folder.announce(placement.with_version(number), self.version.force, QUERY)
            self.version = Version(self.version.force, number)

    def drop(self) -> None:
        """Take the announcement back: the number is not used again."""
        if self.version.announced:
            self.version = replace(self.version, withdrawn=True)


@dataclass(frozen=True)
class Attempt:
    """A micro-batch that is run: for the first time, or again after a crash."""

    turn: bool  # whether the version takes its next step before
    drop: bool  # whether an announcement is taken back before
    placement: Placement  # to announce, if it is time for one
    awake: frozenset[int]  # who runs although no timer is due
    done: int  # how many workers are done when it dies, unless it is the last


attempts = st.builds(
    Attempt,
    turn=st.sampled_from([True, True, False]),
    drop=st.sampled_from([False, False, False, True]),
    placement=placements(),
    awake=st.frozensets(st.integers(0, WORKERS - 1)),
    done=st.integers(0, WORKERS),
)
batches = st.lists(st.tuples(rows_in, st.lists(attempts, min_size=1, max_size=3)), min_size=3, max_size=14)


@campaign(50)
@given(ttl=st.none() | st.integers(2, 12), first=placements(), batches=batches)
def test_rows_come_out_as_from_one_process_whatever_moves_and_however_often_a_batch_is_replayed(
    tmp_path_factory: pytest.TempPathFactory,
    ttl: int | None,
    first: Placement,
    batches: list[tuple[list[tuple[Any, int, int, int]], list[Attempt]]],
) -> None:
    folder = Placements.at(str(tmp_path_factory.mktemp("stream")))
    folder.write_placement(first, 0, None)
    cluster, reference, driver = Cluster(folder, ttl), Reference(ttl), Driver(folder)
    clock = watermark = 0
    for batch, (data, attempts) in enumerate(batches):
        rows: list[In] = []
        for (a, b), step, behind, value in data:
            clock += step
            rows.append((a, b, max(0, clock - behind), value))
        wanted, before = reference.run(rows, watermark), cluster.copies()
        for number, attempt in enumerate(attempts):
            cluster.restore(before)  # the folder stays as the last attempt left it
            last = number == len(attempts) - 1
            if attempt.drop:
                driver.drop()
            if attempt.turn:
                driver.turn(attempt.placement)
            if rows and not last:
                cluster.rows(batch, driver.version, rows, watermark, attempt.done)
            elif rows:
                assert cluster.rows(batch, driver.version, rows, watermark) == wanted
            else:
                assert cluster.timers(batch, watermark, attempt.awake) == wanted
        if rows:
            driver.heard = cluster.ran_by
            placement = folder.placement(cluster.ran_by.force)
            owners = {placement.name(slot): int(worker) for slot, worker in enumerate(placement.owners)}
            for worker in range(WORKERS):
                assert all(owners[name] == worker for name in cluster.slots(worker))
        watermark = max(watermark, clock - 4)


@pytest.mark.slow
def test_a_long_stream_with_many_moves_comes_out_as_from_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    folder = Placements.at(str(tmp_path))
    folder.write_placement(Placement.of(WORKERS, rng.integers(0, WORKERS, TAIL).tolist()), 0, None)
    cluster, reference, driver = Cluster(folder, 40), Reference(40), Driver(folder)
    clock = watermark = 0
    for batch in range(60):
        keys = rng.zipf(1.3, 60) % 200
        times = clock + rng.integers(-6, 4, 60)
        clock += 3
        rows: list[In] = [
            (int(key) if key % 7 else None, None if key % 3 else 1, max(0, int(time)), int(value))
            for key, time, value in zip(keys, times, rng.integers(0, 13, 60), strict=True)
        ]
        hashes = np.asarray(table(rows, driver.version).column(0))
        own = {key: int(rng.integers(WORKERS)) for key in hashes[: rng.integers(6)].tolist()}
        driver.turn(Placement.of(WORKERS, rng.integers(0, WORKERS, TAIL).tolist(), own))
        assert cluster.rows(batch, driver.version, rows, watermark) == reference.run(rows, watermark)
        driver.heard = cluster.ran_by
        watermark = max(watermark, clock - 4)
    assert driver.version.force >= 25


def test_the_slots_that_change_are_those_that_keys_leave_or_come_to() -> None:
    before = Placement.of(3, tail=[0, 1, 0], own={4: 0, 9: 1, 12: 2})
    after = Placement.of(3, tail=[0, 2, 0], own={4: 2, 5: 1, 12: 2}, version=1)
    assert [move.slot for move in moves(before, after)] == ["t1", "k4", "k5", "k9"]
    # Key 5 leaves tail slot 2 for a slot of its own, and key 9 goes back to tail slot 0.
    assert changed(before, after) == {"t1", "k4", "k5", "t2", "k9", "t0"}
    assert changed(before, before.with_version(1)) == set()


BEFORE = Placement.of(2, tail=[0, 1, 0, 1, 0], own={HASHES[0]: 0})
AFTER = Placement.of(2, tail=[1, 0, 0, 1, 1], own={HASHES[2]: 1}, version=1)
IN_FORCE = Version(1)
ROWS: list[In] = [(a, b, 10 + i, i) for i, (a, b) in enumerate(KEYS)]


@pytest.fixture
def moving(tmp_path: Path) -> Cluster:
    """Two workers that are about to swap slots: micro-batches 0 and 1 are committed, in the second they gave."""
    cluster = Cluster(Placements.at(str(tmp_path)))
    cluster.folder.write_control(Version(0), QUERY)
    cluster.folder.write_placement(BEFORE, 0, None)
    cluster.folder.write_placement(AFTER, 0, QUERY)
    cluster.rows(0, Version(0), ROWS, 0)
    cluster.rows(1, Version(0, announced=1), ROWS, 0)
    return cluster


def refused(cluster: Cluster, message: str, version: Version | None = IN_FORCE, batch: int = 2) -> None:
    """Worker 1 refuses a micro-batch, and a retry finds what was there."""
    before, rows = cluster.copies(), table(ROWS, IN_FORCE).remove_column(1)
    control, tables = (None, []) if version is None else (version.code, [rows])
    with pytest.raises(SkewlessError, match=message):
        list(cluster.worker(1, batch).run(control, tables, 30))
    assert cluster.copies() == before


def taken(cluster: Cluster) -> None:
    """The next micro-batch comes out as if nothing had happened."""
    reference = Reference(None)
    reference.run(ROWS, 0)
    reference.run(ROWS, 0)
    assert cluster.rows(2, Version(1), ROWS, 11) == reference.run(ROWS, 11)


SLOTS = rf"the state of slots t0, t4, k{HASHES[2]} from worker 0"


def test_state_that_did_not_arrive_is_not_done_without(moving: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "moves/1/0-1.arrow"
    data = file.read_bytes()
    file.unlink()
    refused(moving, rf"{SLOTS} is not at {tmp_path}/moves/1/0-\*\.arrow; restore the folder")
    (tmp_path / "moves/1/0-2.arrow").write_bytes(data)  # as of this micro-batch: not of one before it
    refused(moving, rf"{SLOTS} is not at {tmp_path}/moves/1/0-\*\.arrow; restore the folder")
    file.write_bytes(data)
    taken(moving)


@pytest.mark.parametrize("part", [0.0, 0.002, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
def test_state_that_arrived_in_part_is_not_taken(moving: Cluster, tmp_path: Path, part: float) -> None:
    file = tmp_path / "moves/1/0-1.arrow"
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])
    refused(moving, rf"{SLOTS} at {tmp_path}/moves/1/0-1\.arrow is damaged \(.*\); restore the folder")
    file.write_bytes(data)
    taken(moving)


def test_state_of_other_columns_is_not_taken(moving: Cluster, tmp_path: Path) -> None:
    moving.folder.give(AFTER, Turn(0, 1, QUERY), ["t0"], pa.record_batch([pa.array(["x"])], names=["x"]))
    refused(moving, rf"{SLOTS} at {tmp_path}/moves/1/0-1\.arrow is damaged \(.*\); restore the folder")


def test_state_that_another_query_gave_is_not_taken(moving: Cluster, tmp_path: Path) -> None:
    data = blob.load((tmp_path / "moves/1/0-1.arrow").read_bytes())
    slots = json.loads(blob.notes(data)["move"])["slots"]
    moving.folder.give(AFTER, Turn(0, 1, "another"), slots, data)
    refused(moving, rf"the folder {tmp_path} belongs to query another, and this is query {QUERY}")
    moving.folder.give(AFTER, Turn(0, 1, QUERY), slots, data)
    taken(moving)


def test_state_that_was_given_for_another_placement_is_not_taken(moving: Cluster, tmp_path: Path) -> None:
    data = blob.load((tmp_path / "moves/1/0-1.arrow").read_bytes())
    slots = json.loads(blob.notes(data)["move"])["slots"]
    other = Placement.of(2, tail=[1, 0, 0, 1, 0], own={HASHES[2]: 1}, version=1)
    for placement, names in ((other, slots), (AFTER, slots[1:])):
        moving.folder.give(placement, Turn(0, 1, QUERY), names, data)
        refused(moving, rf"{SLOTS} at {tmp_path}/moves/1/0-1\.arrow was given for another placement; restore")
    moving.folder.give(AFTER, Turn(0, 1, QUERY), slots, data)
    taken(moving)


def test_the_control_of_another_query_is_refused(moving: Cluster, tmp_path: Path) -> None:
    moving.folder.write_control(IN_FORCE, "another")
    version = Version(1, query=digest("another"))
    refused(moving, rf"the folder {tmp_path} belongs to query another, and this is query {QUERY}: build", version)
    taken(moving)


def test_who_is_called_without_rows_goes_by_the_version_of_its_last_call(moving: Cluster, tmp_path: Path) -> None:
    moving.folder.write_control(Version(1), QUERY)  # which rows bring, and nobody else
    list(moving.worker(0, 2).run(None, [], 0))
    changes = blob.load((tmp_path / "moves/1/0-2-changes.arrow").read_bytes())  # the placement is still announced
    assert changes.num_rows == 0  # no timer was due
    taken(moving)
    held = {worker: moving.slots(worker) for worker in range(2)}
    for worker in range(2):
        list(moving.worker(worker, 3).run(None, [], 0))
    assert {worker: moving.slots(worker) for worker in range(2)} == held
    assert list((tmp_path / "moves").iterdir()) == [tmp_path / "moves/1"]


def test_what_timers_change_after_a_copy_was_left_moves_with_it(moving: Cluster, tmp_path: Path) -> None:
    reference = Reference(None)
    for _batch in range(2):
        reference.run(ROWS, 0)
    wanted = reference.run([], 30)
    assert len(wanted) > 3
    assert moving.timers(2, 30, frozenset()) == wanted
    changes = sorted(tmp_path.glob("moves/1/*-2-changes.arrow"))
    changed, left = (
        sum(blob.load(file.read_bytes()).num_rows for file in files)
        for files in (changes, tmp_path.glob("moves/1/*-1.arrow"))
    )
    assert 1 < changed < left  # not all that was left before
    later: list[In] = [(a, b, 40 + i, i) for i, (a, b) in enumerate(KEYS)]
    assert moving.rows(3, Version(0, announced=1), later, 30) == reference.run(later, 30)
    assert moving.ran_by == Version(1)


def test_workers_tell_how_much_state_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(Placements.at(str(tmp_path)))
    cluster.folder.write_placement(BEFORE, 0, None)
    cluster.rows(0, Version(0), ROWS, 0)
    assert cluster.folder.state_bytes() == 0  # too little to be told of
    monkeypatch.setattr(workers, "LEAST_TOLD", 0)
    cluster.rows(1, Version(0), ROWS, 0)
    blobs = [data for store in cluster.stores for name, data in store.blobs.items() if name != "state"]
    told = cluster.folder.state_bytes()
    assert told == sum(map(len, blobs))
    for batch in range(2, 5):  # the same keys again: what is written is more, what is held is not
        cluster.rows(batch, Version(0), ROWS, 0)
    assert cluster.folder.state_bytes() == told
    more: list[In] = [(a, b, 50, 1) for a in range(4, 40) for b in (1, 2)]
    cluster.rows(5, Version(0), more, 0)
    assert cluster.folder.state_bytes() > 2 * told


WAYS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[:40], r"is damaged \(.*\); restore the folder that goes with this checkpoint"),
    "of fewer owners": (lambda text: text.replace('own\\":[', 'own\\":[1,'), r"is damaged \(.* owners.*\); restore"),
    "of another stream": (lambda text: text.replace('"stream": "', '"stream": "x'), "is of another stream; restore"),
    "of another version": (lambda text: text.replace('"number": ', '"number": 7'), r"is damaged \(it is version 7\d\)"),
    "of another format": (lambda text: text.replace('"format": 1', '"format": 2'), "has format 2, .* reads format 1;"),
    "without its placement": (lambda text: text.replace('"placement": ', '"place": '), r"is damaged \('placement'\)"),
}


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_placement_is_refused_before_anything_is_written(
    moving: Cluster, tmp_path: Path, way: str, number: int
) -> None:
    moving.folder.write_placement(BEFORE.with_version(2), 1, QUERY)
    change, message = WAYS[way]
    file = tmp_path / f"versions/{number}.json"
    file.write_text(change(file.read_text()))
    refused(moving, rf"{tmp_path}/versions/{number}\.json {message}", Version(1, announced=2))
    if number < 2:  # who just wakes for its timers gives away as well
        refused(moving, rf"{tmp_path}/versions/{number}\.json {message}", None)


def test_a_missing_placement_is_refused(moving: Cluster, tmp_path: Path) -> None:
    message = rf"version 2 is not at {tmp_path}/versions/2\.json; restore the folder"
    refused(moving, message, Version(1, announced=2))


@pytest.mark.parametrize("version", [Version(2), Version(3, announced=4), Version(2, announced=3)])
def test_a_folder_that_is_ahead_of_the_checkpoint_is_refused(moving: Cluster, version: Version) -> None:
    for number in (2, 3, 4):
        moving.folder.write_placement(AFTER.with_version(number), number - 1, QUERY)
    message = rf"the folder file://.* is at placement {version.force}, but the checkpoint is at 0; restore both"
    refused(moving, message, version)


def test_a_placement_that_followed_one_that_was_never_in_force_is_taken(moving: Cluster) -> None:
    moving.folder.write_placement(AFTER.with_version(2), 0, QUERY)
    moving.rows(2, Version(0, announced=2), ROWS, 0)
    reference = Reference(None)
    for _batch in range(3):
        reference.run(ROWS, 0)
    assert moving.rows(3, Version(2), ROWS, 11) == reference.run(ROWS, 11)


def test_a_folder_that_is_behind_the_checkpoint_is_refused(moving: Cluster) -> None:
    taken(moving)
    message = r"the folder file://.* is at placement 0, but the checkpoint is at 1; restore both from the same time"
    refused(moving, message, Version(0, announced=1), batch=3)


def test_state_that_was_not_left_in_the_last_micro_batch_is_not_taken(moving: Cluster) -> None:
    moving.rows(2, Version(0), ROWS, 0)  # which knew nothing of placement 1
    message = r"the folder file://.* is at placement 1, for which no state was left in the last micro-batch"
    refused(moving, message, batch=3)


def test_a_folder_in_use_is_refused_to_a_new_checkpoint(moving: Cluster) -> None:
    moving.stores[1].blobs.clear()
    refused(moving, "the folder file://.* is at placement 1, but the checkpoint is new; name an empty folder")


def test_a_folder_of_another_stream_is_refused(moving: Cluster) -> None:
    moving.folder = Placements(moving.folder.uri, "another")
    message = "the folder file://.* does not belong to this checkpoint; name the one it was made with"
    refused(moving, message)
