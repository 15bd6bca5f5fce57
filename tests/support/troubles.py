"""What can befall a placed stream in several steps: each is one rule of the campaign in `test_model.py`."""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from skewless.control import version as versions
from skewless.control.loop import Observed
from skewless.control.placements import Placements
from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.place import Placement
from skewless.place.placement import moves
from support.cluster import KEYS, WORKERS, Cluster, In
from support.placed import DiskFullError, World


@dataclass(frozen=True)
class SlowFolder(Placements):
    """A folder in which something happens before an announcement is written."""

    meanwhile: Callable[[], object] = field(default=lambda: None, compare=False)

    def announce(self, placement: Placement, before: int, query: str | None) -> None:
        self.meanwhile()
        super().announce(placement, before, query)


def heard(world: World) -> None:
    """What was announced is in force, and the driver knows it."""
    world.load(None)
    for number in range(2):
        world.micro_batch([number])
        world.hear(len(world.events))


def race(world: World, placement: Placement, other: Placement, values: list[int]) -> None:
    """While a driver announces, another one does so by the same number, and a micro-batch prepares for that.

    The first one is refused: tasks have read what the second one wrote, and workers have left copies for it.
    """
    there: list[tuple[int, Placement, list[str]]] = []
    heard(world)

    def meanwhile() -> None:
        world.announce(other, world.make())
        world.micro_batch(values)
        number = folder.last()
        there.append((number, folder.placement(number), folder.listed(f"moves/{number}")))

    slow, folder = world.known[0], world.known[0].folder
    slow.folder = SlowFolder(folder.uri, folder.stream, meanwhile)
    world.announce(placement, slow)
    slow.folder = folder
    for number, known, left in there:
        assert (folder.placement(number), folder.listed(f"moves/{number}")) == (known, left)
    world.micro_batch(values)


def two_queries(world: World, values: list[int]) -> None:
    """Another query starts on a new folder, together with the one that the folder names after a micro-batch."""
    shutil.rmtree(world.path / "shared", ignore_errors=True)
    shared = World(world.path / "shared")
    shared.micro_batch(values)
    shared.hear()
    shared.intrude()


def announced_behind(world: World, placement: Placement, values: list[int]) -> None:
    """Another handle announces what the loop does not know when it hears of a micro-batch that asks for workers."""
    heard(world)
    world.load(3.0 if world.loop.workers < WORKERS else 0.2)
    world.micro_batch(values)
    world.announce(placement, world.build())
    world.hear(len(world.events))


def lag(world: World, placement: Placement, batches: int) -> None:
    """The driver hears of many micro-batches at once, all after an announcement."""
    world.hear(len(world.events))
    world.announce(placement)
    for number in range(batches):
        world.micro_batch([number])
    world.hear(len(world.events))


def full_disk(world: World, placement: Placement, values: list[int], again: bool) -> None:
    """The disk stays full: what is announced is withdrawn at the second start, in the same application or a new one."""
    world.hear(len(world.events))
    world.announce(placement)
    world.full = True
    for _start in range(3):
        before = copy.deepcopy(world.reference)
        try:
            world.micro_batch(values)
            break
        except DiskFullError:
            world.reference = before
            world.fail(again)
    else:
        pytest.fail(f"{world.control()} is still tried at the third start")
    world.full = False


def relive(world: World, first: Placement, second: Placement, later: int) -> None:
    """What is announced after a restore is another placement than before, or is so a micro-batch later."""
    world.micro_batch([0, 1, 2])
    world.keep()
    for placement, wait in ((first, 0), (second, later)):
        for number in range(wait):
            world.micro_batch([number])
        world.hear(len(world.events))
        world.announce(placement)
        for number in range(2):
            world.micro_batch([number, 3, 4, 5])
        if placement is first:
            world.restore(rebuilt=False)


def astray(world: World, values: list[int]) -> None:
    """Rows reach another worker than the one that they were sent to: it refuses them."""
    rows: list[In] = [(*KEYS[value % len(KEYS)], 1000 * world.batch, value) for value in values]
    cluster = world.cluster()
    for owner, tables in enumerate(cluster.sent(world.batch, world.control(), rows)):
        if tables:
            with pytest.raises(SkewlessError, match="got rows of slot"):
                list(cluster.worker((owner + 1) % WORKERS, world.batch).run(cluster.ran_by.code, tables, -1))


def overheard(world: World) -> None:
    """A loop hears of a micro-batch of a query that the folder does not name, and learns nothing from it."""
    if world.control().query:  # nobody's at first
        loop = world.make()
        notes = ((1,) * loop.placement.slots,)
        loop.hear(Observed("query 2", "query 2, run 1", 0, control=loop.version.code, notes=notes))
        assert loop.loads == {}


def stray_copies(world: World, placement: Placement, slot: int) -> None:
    """The copies for a placement are of another one, of another query, or damaged: never taken for the right ones."""
    world.hear(len(world.events))
    world.announce(placement)
    world.micro_batch([*range(len(KEYS))])
    version, folder = world.control(), Placements.at(str(world.folder))
    if not version.to_come or not folder.left(version, world.batch):
        return
    now, then = folder.placement(version.force), folder.placement(version.announced)
    other = _changed(then, slot, (int(then.tail[slot]) + 1) % WORKERS)
    strays = [_left(world, now, other, world.query), _left(world, now, then, "query 2")]
    given = [move for move in moves(now, then) if move.source != move.target]
    givers = Counter(move.source for move in given)
    some = [move for move in given if move.slot.startswith("t") and givers[move.source] > 1]
    for move in some[:1]:
        before = _changed(now, int(move.slot[1:]), move.target)  # so that no slot of this name moves
        strays.append(_left(world, before, then, world.query))
    there, aside = world.folder / "moves" / str(version.announced), world.path / "aside"
    strays.append({path.name: b"" for path in there.iterdir()})
    there.rename(aside)
    for number, stray in enumerate(strays):
        there.mkdir()
        for name, data in stray.items():
            (there / name).write_bytes(data)
        _right_or_refused(world, range(len(KEYS)), number)
        shutil.rmtree(there)
    aside.rename(there)
    world.disk.sync(there)


def _changed(placement: Placement, slot: int, worker: int) -> Placement:
    tail = placement.tail.tolist()
    tail[slot] = worker
    own = dict(zip(placement.keys.tolist(), placement.owners[len(tail) :].tolist(), strict=True))
    return replace(Placement.of(WORKERS, tail, own), version=placement.version)


def _left(world: World, now: Placement, then: Placement, query: str) -> dict[str, bytes]:
    """What the micro-batch before would have left, had its rows and their history been others."""
    twin = Placements(f"file://{world.path}/twin", world.loop.folder.stream)
    shutil.rmtree(world.path / "twin", ignore_errors=True)
    twin.write_placement(now.with_version(0), 0, None)
    twin.write_placement(then, 0, query)
    cluster = Cluster(twin, None, query, f"run {world.runs} of a twin")
    versions._once.cache_clear()
    cluster.rows(world.batch - 1, Version(0, then.version), [(*key, 5, 11) for key in KEYS], -1)
    return {path.name: path.read_bytes() for path in (world.path / "twin").glob("moves/*/*")}


def _right_or_refused(world: World, values: Sequence[int], number: int) -> None:
    """An attempt of the next micro-batch, which nothing keeps."""
    rows: list[In] = [(*KEYS[value], 1000 * world.batch + value, value) for value in values]
    wanted = copy.deepcopy(world.reference).run(rows, -1)
    cluster = world.cluster()
    cluster.run += f", attempt {number} that nothing keeps"
    with suppress(SkewlessError):
        assert cluster.rows(world.batch, world.control(), rows, -1) == wanted
