"""The driver of a placed stream hears late, dies, is built again, has two handles, or finds its folder restored."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from skewless.control.placements import Placements
from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.place import Placement
from support.cluster import KEYS, Cluster
from support.placed import ELSEWHERE, World, announced


def test_a_hand_over_stays_until_it_was_taken_however_late_the_driver_hears(tmp_path: Path) -> None:
    for retain in (1, 100):
        world = World(tmp_path / str(retain), retain)
        world.micro_batch([0, 1, 2])
        world.hear()
        world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
        for number in range(retain + 3):
            world.micro_batch([number, 1, 2])
        world.hear(len(world.events))  # of all at once
        world.micro_batch([0, 1, 2])
        assert world.control() == Version(1)
        world.settles()


def test_a_placement_is_read_anew_though_one_of_its_number_was_there_before_a_restore(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2, 3])
    world.hear()
    world.keep()
    for tail in ([0, 0, 0, 1, 0], [1, 0, 1, 0, 1]):
        world.restore(rebuilt=False)
        world.announce(Placement.of(2, tail=tail))
        for number in range(3):
            world.micro_batch([*range(number, number + 6)])
            world.hear()
        assert world.control() == Version(1)
        assert world.loop.placement.tail.tolist() == tail
        for worker in range(2):
            own = {f"t{slot}" for slot, owner in enumerate(tail) if owner == worker}
            assert world.cluster().slots(worker) <= own
    world.settles()


def test_copies_are_looked_for_anew_though_those_of_an_earlier_run_were_there_before_a_restore(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2, 3])
    world.hear()
    world.keep()
    world.announce(ELSEWHERE)
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
    assert world.force == 1  # the second one found the copies of the first
    world.restore(rebuilt=False)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(ELSEWHERE)
    world.micro_batch([0, 1, 2])  # of the number and by the control of the one that found them
    assert world.force == 0
    world.settles()


def test_a_range_of_workers_follows_the_load_though_the_driver_dies_in_between(tmp_path: Path) -> None:
    world = World(tmp_path, elastic=True)
    world.load(3.0)
    for _batch in range(2):  # the first of a run is cold, and says nothing about the load
        world.micro_batch([0, 1, 2])
        world.hear()
    assert (world.loop.announced, world.loop.placement.workers, world.loop.workers) == (True, 1, 4)
    world.crash()
    world.load(0.85)  # which is neither too much nor too little
    for _batch in range(3):
        world.micro_batch([0, 1, 2])
        world.crash()
    world.micro_batch([0, 1, 2])
    world.hear()
    assert (world.loop.announced, world.loop.placement.workers, world.loop.workers) == (False, 4, 4)
    world.settles()


def test_a_decision_waits_for_one_that_another_handle_announced(tmp_path: Path) -> None:
    world = World(tmp_path, elastic=True)
    world.load(3.0)
    world.micro_batch([0, 1, 2])  # the first of a run is cold, and says nothing about the load
    world.hear()
    world.micro_batch([0, 1, 2])
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]), world.build())  # the running loop knows nothing of it
    world.hear()
    assert world.control() == world.loop.version == Version(0, announced=1)
    world.settles()


def test_a_loop_that_was_built_while_another_announced_goes_on_from_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.build()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    world.stop()
    world.start()
    assert world.control() == Version(0, announced=1)
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
        world.hear()
    assert world.control() == world.loop.version == Version(1)


def test_what_an_old_handle_does_starts_from_what_is_in_force(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    old = world.loop
    world.stop()
    world.build()
    world.start()
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
        world.hear()
    assert world.control() == Version(1)
    with pytest.raises(SkewlessError, match="nothing is announced, so there is nothing to withdraw"):
        old.withdraw()
    old.announce(Placement.of(2, tail=[0, 1, 0, 1, 0]))
    assert world.control() == Version(1, announced=2)
    world.settles()


def test_copies_that_a_restored_folder_still_has_are_not_taken_for_those_of_a_new_placement(tmp_path: Path) -> None:
    world = announced(tmp_path)
    world.micro_batch([0, 1, 2])
    kept = tmp_path / "copies"
    shutil.copytree(world.folder / "moves", kept)
    other = World(tmp_path / "other")
    for _batch in range(3):
        other.micro_batch([0, 1, 2, 3])
        other.hear()
    shutil.copytree(kept, other.folder / "moves")  # of micro-batches that are over
    other.announce(ELSEWHERE)
    other.micro_batch([0, 1, 2])
    assert other.force == 0
    other.settles()


def test_rows_of_a_slot_that_another_worker_owns_are_refused(tmp_path: Path) -> None:
    folder = Placements.at(str(tmp_path))
    folder.write_placement(Placement.of(2, tail=[0, 1, 0, 1, 0]), 0, None)
    cluster = Cluster(folder)
    sent = cluster.sent(0, Version(0), [(*key, 5, 5) for key in KEYS])
    assert all(sum(table.num_rows for table in sent[worker]) for worker in range(2))
    with pytest.raises(SkewlessError, match=r"worker 1 got rows of slot t\d, which is worker 0's by placement 0 of"):
        list(cluster.worker(1, 0).run(Version(0).code, sent[0], None))
    assert cluster.stores[1].empty
    assert list(cluster.worker(0, 0).run(Version(0).code, sent[0], None))


def test_a_folder_is_not_touched_by_building_a_stream_that_does_not_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    before = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    world.build()
    assert {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()} == before


def test_a_loop_learns_nothing_from_a_query_that_its_folder_does_not_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
    seen = replace(world.events[-1], query="query 2", run="query 2, run 1")
    world.hear(2)
    other = world.build()
    other.hear(seen)
    assert other.loads == {}
    assert "belongs to query query 1, and this is query query 2: build the result anew" in caplog.text
    world.settles()
