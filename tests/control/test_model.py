"""The driver of a placed stream and its workers, without Spark: events lag, runs crash, are rebuilt and restored.

The query is that of `support.placed`, and what befalls it in several steps is in `support.troubles`. What each mending
is for that the campaign here, and the tests of single cases, hold in place is in `test_mendings.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.place import Placement
from support import troubles
from support.campaign import campaign, examples
from support.cluster import TAIL, WORKERS, placements
from support.disk import Disk, disk_without_power
from support.placed import Death, World

Step = Callable[[World], object]
deaths = st.builds(Death, st.integers(0, WORKERS), st.sampled_from(["", "", "before the start", "after it"]))
values = st.lists(st.integers(0, 12), min_size=1, max_size=6)
steps: dict[str, st.SearchStrategy[Step]] = {
    "micro-batch": values.map(lambda some: lambda world: world.micro_batch(some)),
    "micro-batch that crashes": st.tuples(values, st.lists(deaths, min_size=1, max_size=2)).map(
        lambda some: lambda world: world.micro_batch(some[0], some[1])
    ),
    "hear": st.integers(1, 5).map(lambda count: lambda world: world.hear(count)),
    "announce by an old handle": placements().map(
        lambda placement: lambda world: world.announce_by_an_old_handle(placement)
    ),
    "blank": st.just(World.blank),
    "load": st.sampled_from([None, 0.2, 0.85, 3.0]).map(lambda seconds: lambda world: world.load(seconds)),
    "announce": placements().map(lambda placement: lambda world: world.announce(placement)),
    "withdraw": st.just(World.withdraw),
    "build": st.just(World.build),
    "restart": st.just(World.restart),
    "crash": st.just(World.crash),
    "keep": st.just(World.keep),
    "restore": st.booleans().map(lambda rebuilt: lambda world: world.restore(rebuilt=rebuilt)),
    "intrude": st.just(World.intrude),
    "ask": st.just(World.ask),
    "overheard": st.just(troubles.overheard),
    "astray": values.map(lambda some: lambda world: troubles.astray(world, some)),
    "lag": st.tuples(placements(), st.integers(2, 5)).map(lambda some: lambda world: troubles.lag(world, *some)),
    "race": st.tuples(placements(), placements(), values).map(lambda some: lambda world: troubles.race(world, *some)),
    "announced behind": st.tuples(placements(), values).map(
        lambda some: lambda world: troubles.announced_behind(world, *some)
    ),
    "full disk": st.tuples(placements(), values, st.booleans()).map(
        lambda some: lambda world: troubles.full_disk(world, *some)
    ),
    "relive": st.tuples(placements(), placements(), st.integers(0, 1)).map(
        lambda some: lambda world: troubles.relive(world, *some)
    ),
    "stray copies": st.tuples(placements(), st.integers(0, TAIL - 1)).map(
        lambda some: lambda world: troubles.stray_copies(world, *some)
    ),
    "two queries": values.map(lambda some: lambda world: troubles.two_queries(world, some)),
    "lose power": st.just(World.lose_power),
}
often = ["micro-batch", "micro-batch", "micro-batch", "hear", "announce", "announce"]


@campaign(40)
@given(
    st.sampled_from([1, 2, 3, 100]),
    st.booleans(),
    st.lists(st.sampled_from([*often, *steps]).flatmap(steps.__getitem__), min_size=10, max_size=40),
)
def test_a_stream_goes_on_whatever_lags_crashes_or_is_restored(
    tmp_path_factory: pytest.TempPathFactory, retain: int, elastic: bool, steps: list[Step]
) -> None:
    with disk_without_power() as disk:
        world = World(tmp_path_factory.mktemp("stream"), retain, elastic=elastic, disk=disk)
        for step in steps:
            step(world)
        world.settles()


@pytest.fixture
def disk() -> Iterator[Disk]:
    with disk_without_power() as disk:
        yield disk


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_long_stream_goes_on_whatever_lags_crashes_or_is_restored(tmp_path: Path, disk: Disk, seed: int) -> None:
    chance, world = random.Random(seed), World(tmp_path, disk=disk)

    def placement() -> Placement:
        workers = chance.randint(1, WORKERS)
        return Placement.of(workers, [chance.randrange(workers) for _slot in range(TAIL)])

    def micro_batch() -> None:
        dies = [Death(chance.randint(0, WORKERS), chance.choice(["", "", "before the start", "after it"]))]
        world.micro_batch([chance.randint(0, 12) for _row in range(4)], chance.choice([(), (), (), (), dies]))

    acts: list[tuple[int, Callable[[], object]]] = [
        (10, micro_batch),
        (7, lambda: world.hear(chance.randint(1, 4))),
        (6, lambda: world.announce(placement())),
        (1, world.withdraw),
        (2, lambda: world.announce_by_an_old_handle(placement())),
        (1, world.build),
        (1, world.restart),
        (1, world.keep),
        (1, lambda: world.restore(rebuilt=chance.random() < 0.5)),
        (1, world.intrude),
        (1, world.lose_power),
    ]
    for _step in range(250):
        chance.choices([act for _weight, act in acts], [weight for weight, _act in acts])[0]()
    assert world.moved > 10
    assert world.unheard > 3
    world.settles()
    for number in range(2 * world.retain):
        world.micro_batch([number])
        world.hear()
    kept = [path.name for path in (world.folder / "versions").iterdir()]
    assert kept == [f"{world.loop.version.force}.json"]  # what nobody needs any more was deleted
    assert list((world.folder / "moves").iterdir()) == []
