"""The driver of a stream whose batches of windows are tuned, and its workers: runs crash, are rebuilt and restored.

The query is that of `support.tuned`. In the end every window was given once, with all rows that came in time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.version import Version
from skewless.core.windows import Windows
from support.campaign import campaign
from support.disk import disk_without_power
from support.tuned import WORKERS, Death, World, announced

Step = Callable[[World], object]
offsets = st.lists(st.one_of(st.integers(-15, 40), st.integers(-15, 40), st.integers(41, 300)), max_size=6)
near = st.lists(st.integers(0, 20), max_size=3)
rises = st.sampled_from([0, 3, 11, 60])
deaths = st.lists(st.builds(Death, st.integers(0, WORKERS), st.booleans()), min_size=1, max_size=2)
steps: dict[str, st.SearchStrategy[Step]] = {
    "micro-batch": st.tuples(offsets, rises).map(lambda some: lambda world: world.micro_batch(*some)),
    "micro-batch that crashes": st.tuples(offsets, rises, deaths).map(
        lambda some: lambda world: world.micro_batch(*some)
    ),
    "hear": st.integers(1, 2).map(lambda count: lambda world: world.hear(count)),
    "change behind a micro-batch": st.tuples(offsets, st.integers(1, 6)).map(
        lambda some: lambda world: world.change_behind(*some)
    ),
    "change": st.integers(1, 6).map(lambda batch: lambda world: world.change(batch)),
    "change by an old handle": st.integers(1, 6).map(lambda batch: lambda world: world.change(batch, world.known[0])),
    "change after a crash": st.tuples(near, st.integers(41, 300), st.integers(2, 6)).map(
        lambda some: lambda world: world.change_after_a_crash(*some)
    ),
    "change by the one before": st.integers(1, 6).map(
        lambda batch: lambda world: world.change_by_the_one_before(batch)
    ),
    "change before a crash": st.integers(2, 6).map(lambda batch: lambda world: change_before_a_crash(world, batch)),
    "lose power": st.just(World.lose_power),
    "tune": st.one_of(st.none(), st.integers(1, 6)).map(lambda batch: lambda world: world.tune(batch)),
    "withdraw": st.just(World.withdraw),
    "blank": st.just(World.blank),
    "intrude": st.just(World.intrude),
    "build": st.just(World.build),
    "restart": st.booleans().map(lambda late: lambda world: world.restart(late=late)),
    "crash": st.booleans().map(lambda late: lambda world: world.crash(late=late)),
    "keep": st.just(World.keep),
    "restore": st.booleans().map(lambda rebuilt: lambda world: world.restore(rebuilt=rebuilt)),
}
often = ["micro-batch", "micro-batch", "hear", "hear", "hear", "change behind a micro-batch", "tune"]


def change_before_a_crash(world: World, batch: int) -> None:
    """The driver that announced a size dies, and the next one hears of a micro-batch before that of its start."""
    world.hear(len(world.events))
    world.change(batch)
    world.crash(late=True)
    world.micro_batch([0, 1])
    world.hear()


@campaign(40)
@given(
    st.sampled_from([Windows(10, 5), Windows(9, 2), Windows(4, 4)]),
    st.booleans(),
    st.lists(st.sampled_from([*often, *steps]).flatmap(steps.__getitem__), min_size=10, max_size=40),
)
def test_windows_are_given_once_and_whole_whatever_lags_crashes_or_is_restored(
    tmp_path_factory: pytest.TempPathFactory, windows: Windows, again: bool, steps: list[Step]
) -> None:
    with disk_without_power() as disk:
        world = World(tmp_path_factory.mktemp("stream"), windows, again, disk=disk)
        for step in steps:
            step(world)
        world.settles()


def test_sizes_are_dropped_if_rows_that_did_not_know_of_them_reached_their_windows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.micro_batch([0, 20])
    world.hear()
    world.micro_batch([80])  # the driver has not heard of it yet
    world.change(2)
    assert world.loop.folder.sizes(1).sizes[-1][0] <= 80 // 5
    world.micro_batch([0, 1])
    world.hear(2)
    assert world.control() == world.loop.version == Version(0)
    assert world.refused == 0
    world.settles()


def test_what_an_earlier_run_announced_is_withdrawn_though_the_start_of_the_next_is_heard_late(tmp_path: Path) -> None:
    world = announced(tmp_path)
    world.crash(late=True)
    assert world.control() == Version(0, announced=1)
    world.micro_batch([0, 1])
    world.hear()
    assert world.control() == Version(0)
    world.settles()
    assert world.refused == 0


@pytest.mark.parametrize("again", [True, False])
def test_sizes_of_a_driver_that_has_forgotten_are_refused_once(tmp_path: Path, again: bool) -> None:
    world = World(tmp_path, again=again)
    world.micro_batch([0, 290])  # in window 58, which the next driver knows nothing of
    world.crash()
    world.micro_batch([0, 20])
    world.hear()
    world.change(2)
    world.micro_batch([0])
    world.hear()
    assert world.control() == Version(1)
    world.micro_batch([0, 1])
    assert world.refused == 1
    world.hear()
    assert world.control() == world.loop.version == Version(0)
    assert world.loop.sizes.batch == 1
    world.settles()
    assert world.refused == 1


def test_two_loops_of_one_folder_number_their_sizes_one_after_the_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _batch in range(2):
        world.micro_batch([0, 20])
        world.hear()
    old = world.loop
    world.build()  # while the query runs
    world.change(2, old)
    for _batch in range(2):
        world.micro_batch([0, 20])
        world.hear()
    assert world.control() == Version(1)
    world.restart()
    world.micro_batch([0, 20])
    world.hear()
    world.change(3)
    assert (world.loop.folder.sizes(1).batch, world.loop.folder.sizes(2).batch) == (2, 3)
    assert world.control() == Version(1, announced=2)
    world.settles()
