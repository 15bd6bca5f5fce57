"""The driver of a placed stream and its workers, without Spark: events lag, runs crash, are rebuilt and restored.

The engine here does what Spark does: it reads the control when a micro-batch begins, runs tasks and workers, commits
their stores together, and tells the driver of a committed micro-batch some time later. What each micro-batch gives is
compared with one process that has dictionaries. No step may fail unless it is one that has to. What each mending is for
that the campaign here, and the tests of single cases, hold in place is in `test_mendings.py`.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control import version as versions
from skewless.control.loop import Chosen, Observed
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.scaling import Scaling
from skewless.control.version import CONTROL, Version
from skewless.core.errors import SkewlessError
from skewless.core.turn import Turn
from skewless.elastic import Range
from skewless.operators.process.pack import Pack
from skewless.operators.send import Sender
from skewless.place import Even, Placement, Rule
from support.campaign import campaign, examples
from support.cluster import KEYS, SCHEMA, TAIL, WORKERS, Cluster, In, Reference, placements, table

CHOSEN = Chosen("even", "as the test asks")
NEVER = Rule(alpha=float("inf"))  # only what the test announces


class DiskFullError(OSError):
    """What a worker meets that cannot write to the folder."""


@dataclass(frozen=True)
class FullFolder(Placements):
    """A folder in which there is room for what worker 0 leaves, and for nothing else."""

    def give(
        self, placement: Placement, turn: Turn, slots: Sequence[str], entries: pa.RecordBatch, *, whole: bool = True
    ) -> None:
        if turn.worker:
            raise DiskFullError("no space left on device")
        super().give(placement, turn, slots, entries, whole=whole)


@dataclass(frozen=True)
class Death:
    """An attempt of a micro-batch that is not committed.

    Parameters
    ----------
    done
        How many workers were done.
    withdrawn
        Whether what was announced is withdrawn before the application is started again, after that, or not at all.
    """

    done: int
    withdrawn: str = ""


@dataclass
class Backup:
    """The checkpoint and the folder of one time."""

    batch: int
    stores: list[dict[str, bytes]]
    reference: Reference
    folder: Path


@dataclass
class World:
    """A query with its checkpoint, its folder, and the loop on its driver."""

    path: Path
    retain: int = 2
    query: str = "query 1"
    batch: int = 0
    runs: int = 0
    full: bool = False
    moved: int = 0
    """The number of versions that came into force."""
    unheard: int = 0
    """How many micro-batches went by a placement that the driver had not written to be in force."""
    elastic: bool = False
    """Whether the number of active workers follows how long micro-batches take."""
    seconds: float | None = None
    """How long that is, with an interval of a second."""
    events: deque[Observed] = field(default_factory=deque)
    backup: Backup | None = None

    def __post_init__(self) -> None:
        self.reference, self.force = Reference(None), 0
        self.known: list[Placing] = []  # those that were built last, with handles that somebody may still have
        self.stores: list[dict[str, bytes]] = [{} for _worker in range(WORKERS)]
        self.built = self.loop = self.build()
        self.start()

    @property
    def folder(self) -> Path:
        return self.path / "placement"

    @property
    def run(self) -> str:
        return f"{self.query}, run {self.runs}"

    def build(self) -> Placing:
        """`process(...)` is called, which touches nothing that runs."""
        scaling = Scaling(Range(1, WORKERS, "1 second", d=1), "reduce") if self.elastic else None
        folder, workers = Placements.at(str(self.folder)), 1 if self.elastic else 2
        self.built = Placing(
            "stream", Even(slots=TAIL), folder, workers, WORKERS, NEVER, self.retain, CHOSEN, None, scaling
        )
        self.known = [*self.known[-3:], self.built]
        return self.built

    def start(self) -> None:
        """A run of the DataFrame that was built last: all loops that there are hear that a query starts."""
        self.runs += 1
        for loop in self.known:
            loop.start(self.query, self.run)
        self.loop = self.built

    def stop(self) -> None:
        """The run ends in peace: the driver hears of all that was done."""
        self.hear(len(self.events))
        for loop in self.known:
            loop.end(self.run, self.query, healthy=True)

    def restart(self) -> None:
        """The query is stopped and started again."""
        self.stop()
        self.start()

    def crash(self) -> None:
        """The application dies, with what the driver had not heard yet, and is started again."""
        self.events.clear()
        self.known = []
        versions._once.cache_clear()
        self.loop = self.build()
        self.start()

    def control(self) -> Version:
        """What the rows of a micro-batch are given, as Spark reads it from the file."""
        return Version.of(int(json.loads((self.folder / CONTROL).read_text())["control"]))

    def micro_batch(self, values: list[int], deaths: Sequence[Death] = ()) -> None:
        """A micro-batch, which is run again after every crash until the last attempt is committed."""
        rows: list[In] = [(*KEYS[value % len(KEYS)], 1000 * self.batch + i, value) for i, value in enumerate(values)]
        wanted = self.reference.run(rows, -1)
        for death in deaths:
            self.cluster().rows(self.batch, self.control(), rows, -1, death.done)
            if death.withdrawn == "before the start":
                self.withdraw()
            self.crash()
            if death.withdrawn == "after it":
                self.withdraw()
        cluster = self.cluster()
        assert cluster.rows(self.batch, self.control(), rows, -1) == wanted
        ran_by = cluster.ran_by
        self.moved += ran_by.force != self.force
        self.unheard += ran_by.force == self.control().announced > 0
        self.force = ran_by.force
        self.stores = cluster.copies()
        seen = Observed(self.query, self.run, self.batch, control=ran_by.code, notes=cluster.notes)
        times = {"rows": 1000, "began": self.batch * 1_000_000, "seconds": self.seconds, "busy": self.seconds}
        self.events.append(replace(seen, **times))
        self.batch += 1

    def cluster(self) -> Cluster:
        """The workers, with what is committed."""
        kind = FullFolder if self.full else Placements
        folder = self.loop.folder
        cluster = Cluster(kind(folder.uri, folder.stream), None, self.query, self.run)
        cluster.restore(self.stores)
        return cluster

    def hear(self, count: int = 1) -> None:
        """Some of what was done reaches the driver."""
        for _ in range(min(count, len(self.events))):
            self.loop.hear(self.events.popleft())
        assert not self.loop._failed

    def announce(self, placement: Placement, loop: Placing | None = None) -> None:
        """Somebody has a placement announced; refused while another is on its way, or nothing was heard."""
        with suppress(SkewlessError):
            (loop or self.loop).announce(placement)

    def announce_by_an_old_handle(self, placement: Placement) -> None:
        self.announce(placement, self.known[0])

    def withdraw(self) -> None:
        """By any handle, such as that of a run that is over."""
        with suppress(SkewlessError):
            self.known[0].withdraw()

    def blank(self) -> None:
        """The control is gone when a micro-batch begins: it is refused, and none of its rows is lost."""
        rows: list[In] = [(*key, 1, 1) for key in KEYS]
        without = table(rows, Version(0)).set_column(1, "control", pa.nulls(len(rows), pa.int64()))
        with pytest.raises(SkewlessError, match="the control file of the stream's folder is empty or gone"):
            list(Pack(self.loop.folder, SCHEMA).send([without], Sender(range(WORKERS), 0), Turn(0, self.batch)))

    def keep(self) -> None:
        """The query is stopped, and folder and checkpoint are copied."""
        self.stop()
        kept = self.path / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept)
        self.backup = Backup(self.batch, copy.deepcopy(self.stores), copy.deepcopy(self.reference), kept)
        self.start()

    def restore(self, *, rebuilt: bool) -> None:
        """Both are restored in the running application."""
        if self.backup is None:
            return
        self.stop()
        shutil.rmtree(self.folder)
        shutil.copytree(self.backup.folder, self.folder)
        self.batch, self.stores = self.backup.batch, copy.deepcopy(self.backup.stores)
        self.reference = copy.deepcopy(self.backup.reference)
        if rebuilt:
            self.build()
        self.start()

    def load(self, seconds: float | None) -> None:
        """From now on micro-batches take so long."""
        self.seconds = seconds

    def intrude(self) -> None:
        """Another query of the same folder, with a new checkpoint: it gets no row out, and does no harm."""
        if self.control().query == 0:
            return  # nobody's yet
        other = Cluster(Placements.at(str(self.folder)), None, "query 2", "query 2, run 1")
        with pytest.raises(SkewlessError, match="belongs to query query 1, and this is query query 2"):
            other.rows(0, self.control(), [(*KEYS[0], 5, 5)], -1)

    def settles(self) -> None:
        """Whatever came before: what is announced now comes into force within a few micro-batches."""
        self.load(None)
        self.hear(len(self.events))
        for number in range(8 if self.elastic else 6):
            self.micro_batch([number, number + 1, 3])
            self.hear(len(self.events))
        assert not self.loop.announced
        force, scaling = self.loop.version.force, self.loop.scaling
        if scaling is not None:
            assert self.loop.paused or scaling.workers == self.loop.workers == self.loop.placement.workers
        self.loop.announce(Placement.of(2, tail=[0, 1, 1, 0, number % 2]))
        for number in range(2):
            self.micro_batch([number, 4, 5])
            self.hear(len(self.events))
        assert self.loop.version.force > force
        assert self.control() == self.loop.version


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
}
often = ["micro-batch", "micro-batch", "micro-batch", "hear", "announce", "announce"]


@campaign(40)
@given(
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.sampled_from([*often, *steps]).flatmap(steps.__getitem__), min_size=10, max_size=40),
)
def test_a_stream_goes_on_whatever_lags_crashes_or_is_restored(
    tmp_path_factory: pytest.TempPathFactory, retain: int, elastic: bool, steps: list[Step]
) -> None:
    world = World(tmp_path_factory.mktemp("stream"), retain, elastic=elastic)
    for step in steps:
        step(world)
    world.settles()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_long_stream_goes_on_whatever_lags_crashes_or_is_restored(tmp_path: Path, seed: int) -> None:
    chance, world = random.Random(seed), World(tmp_path)

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


def test_a_range_of_workers_follows_the_load_though_the_driver_dies_in_between(tmp_path: Path) -> None:
    world = World(tmp_path, elastic=True)
    world.load(3.0)
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
    world.micro_batch([0, 1, 2])
    world.hear()
    world.load(3.0)
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


ELSEWHERE = Placement.of(2, tail=[1, 0, 1, 0, 1])


def announced(path: Path) -> World:
    """A query for which a placement was announced after its first micro-batch."""
    world = World(path)
    world.micro_batch([0, 1, 2])
    world.hear()
    world.announce(ELSEWHERE)
    return world


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
