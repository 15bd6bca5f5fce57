"""What becomes of an announced placement: it comes into force, is put off or withdrawn, or can never be carried out."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.place import Placement
from support.cluster import KEYS, TAIL, WORKERS
from support.placed import ELSEWHERE, Death, DiskFullError, World, announced


def test_the_micro_batch_after_the_first_that_knew_of_a_placement_goes_by_it_though_the_driver_heard_nothing(
    tmp_path: Path,
) -> None:
    world = announced(tmp_path)
    went_by = []
    for _batch in range(3):
        world.micro_batch([0, 1, 2, 3, 4])
        went_by.append(world.force)
    assert went_by == [0, 1, 1]
    assert world.control() == Version(0, announced=1)
    world.hear(1)
    assert world.control() == Version(1)
    world.settles()


def test_a_micro_batch_that_did_not_know_of_a_placement_puts_it_off(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    read = world.control()  # by the next micro-batch, before the placement is announced
    world.announce(ELSEWHERE)
    cluster = world.cluster()
    cluster.rows(world.batch, read, [(*KEYS[0], 5, 5)], -1)
    world.stores, world.batch = cluster.copies(), world.batch + 1
    world.reference.run([(*KEYS[0], 5, 5)], -1)
    went_by = []
    for _batch in range(2):
        world.micro_batch([0, 1, 2, 3, 4])
        went_by.append(world.force)
    assert went_by == [0, 1]
    world.settles()


def test_starts_after_a_placement_came_into_force_do_not_count_against_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = announced(tmp_path)
    for _batch in range(4):
        world.micro_batch([0, 1, 2])
        world.crash()  # before the driver heard of any of them
    assert (world.force, world.control()) == (1, Version(0, announced=1))
    assert not caplog.text
    world.micro_batch([0, 1, 2])
    world.hear()
    assert world.control() == Version(1)
    assert not world.loop.paused
    world.settles()


def test_runs_without_data_do_not_count_against_an_announcement(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    for _run in range(4):
        world.restart()
    assert world.control() == Version(0, announced=1)
    world.settles()
    assert not world.loop.paused


def test_an_announcement_that_cannot_be_carried_out_is_withdrawn_at_the_second_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    world.full = True
    before = copy.deepcopy(world.reference)
    for _start in range(2):
        with pytest.raises(DiskFullError):
            world.micro_batch([0, 1, 2])
        world.reference = copy.deepcopy(before)
        world.crash()
    assert world.control() == Version(0)
    assert "version 1 was announced and never came into force, so it is withdrawn" in caplog.text
    world.micro_batch([0, 1, 2])
    world.hear()
    assert world.loop.paused  # it would be announced again, and fail again
    world.full = False
    world.settles()
    assert world.control() == Version(2)  # its number is not used again
    world.restart()
    world.micro_batch([0, 1, 2])
    world.hear()
    assert not world.loop.paused


def test_a_loop_that_was_built_again_is_the_one_that_is_paused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(Placement.of(2, tail=[1, 0, 1, 0, 1]))
    for _start in range(2):  # each after a failure, with the stream built anew in the same application
        world.build()
        world.start()
    assert world.control() == Version(0)
    world.micro_batch([0, 1, 2])
    world.hear()
    assert world.loop.paused


def test_an_announcement_can_be_withdrawn_though_the_query_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 1, 2])
    world.hear()
    with pytest.raises(SkewlessError, match="nothing is announced, so there is nothing to withdraw"):
        world.loop.withdraw()
    world.announce(Placement.of(1, tail=[0] * TAIL))
    assert world.loop.workers == 1
    world.full, before = True, copy.deepcopy(world.reference)
    with pytest.raises(DiskFullError):
        world.micro_batch([0, 1, 2])
    world.reference = before
    world.loop.withdraw()
    assert (world.control(), world.loop.workers) == (Version(0, announced=1, withdrawn=True), 2)
    assert not world.loop.announced
    with pytest.raises(SkewlessError, match="version 1 is being withdrawn; try again after a micro-batch"):
        world.loop.announce(Placement.of(1, tail=[0] * TAIL))
    world.micro_batch([0, 1, 2])
    world.hear()
    assert (world.control(), world.loop.workers) == (Version(0), 2)


def test_a_placement_that_is_in_force_before_the_driver_heard_of_it_is_withdrawn_too_late(tmp_path: Path) -> None:
    world = announced(tmp_path)
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
    world.withdraw()
    world.micro_batch([0, 1, 2])
    world.hear(len(world.events))
    assert world.control() == world.loop.version == Version(1)
    world.settles()


@pytest.mark.parametrize("done", range(WORKERS + 1))
def test_what_was_left_before_a_crash_does_not_bring_a_withdrawn_placement_into_force(
    tmp_path: Path, done: int
) -> None:
    world = announced(tmp_path)
    world.micro_batch([0, 1, 2], [Death(done, "after it")])
    for _batch in range(2):
        world.micro_batch([0, 1, 2])
    assert world.force == 0
    world.hear(len(world.events))
    assert world.control() == Version(0)
    world.settles()
