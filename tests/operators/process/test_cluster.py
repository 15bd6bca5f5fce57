"""Owners of moving slots, with crashes and replays, against one process with dictionaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.control.location import Control, Location
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.store import MemoryStore
from skewless.operators.process import Processor, Rows, State
from skewless.operators.process.calls import step_of
from skewless.operators.process.processor import Key, Row
from skewless.operators.process.worker import Columns, Owner, arriving, changed, leaving
from skewless.place.placement import Placement, moves

In = tuple[int | None, int | None, int, int]  # two key columns, time, value
Out = tuple[Any, ...]

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("t", TIME), ("v", pa.int64())])
COLUMNS = Columns(SCHEMA, keys=(0, 1), order=(2, 3), time=2)
FIELDS = pa.schema([("total", pa.int64()), ("last", pa.int64())])
RESULT = pa.schema([(name, pa.int64()) for name in ("a", "b", "total", "last")] + [("why", pa.string())])
WORKERS, TAIL = 4, 5
KEYS = [(a, b) for a in (0, 1, 2, 3, None) for b in (1, None)]
HASHES: list[int] = xxhash64(*(pa.array(list(column), pa.int64()) for column in zip(*KEYS, strict=True))).tolist()


class Total(Processor):
    """A running total and the last value; what becomes of a key depends on both, with timers some time after it."""

    state = "total long, last long"

    def process(self, key: Key, rows: Rows, state: State) -> Iterable[Row]:
        state["total"] = (state["total"] or 0) + sum(rows["v"])
        state["last"] = rows["v"][-1]
        if state["last"] % 3:
            state.timer = rows["t"][-1] + timedelta(microseconds=state["last"])
        yield (*key, state["total"], state["last"], "row")
        if state["last"] == 7:
            state.forget()

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        yield (*key, state["total"], state["last"], "timer")
        if state["total"] % 3 == 0:
            state.forget()
        elif state["total"] % 3 == 1:
            state.timer = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=2 * state["total"])
            state["total"] += 2


@dataclass
class Reference:
    """The same in one process: for each key its total, last value, timer, and when it was last touched."""

    ttl: int | None
    kept: dict[Key, list[Any]] = field(default_factory=dict)

    def run(self, rows: Sequence[In], watermark: int) -> Counter[Out]:
        out = list(self._timers(watermark))
        if self.ttl is not None:
            self.kept = {key: entry for key, entry in self.kept.items() if entry[3] >= watermark - self.ttl}
        groups: dict[Key, list[tuple[int, int]]] = {}
        for a, b, time, value in rows:
            if time > watermark:
                groups.setdefault((a, b), []).append((time, value))
        for key, group in groups.items():
            group.sort()
            entry = self.kept.setdefault(key, [0, None, None, 0])
            entry[0] += sum(value for _time, value in group)
            entry[1] = group[-1][1]
            if entry[1] % 3:
                entry[2] = group[-1][0] + entry[1]
            entry[3] = max(entry[3], group[-1][0])
            out.append((*key, *entry[:2], "row"))
            if entry[1] == 7:
                del self.kept[key]
        return Counter(out)

    def _timers(self, watermark: int) -> Iterator[Out]:
        for key, entry in list(self.kept.items()):
            last = watermark if self.ttl is None else min(watermark, entry[3] + self.ttl)
            if entry[2] is not None and entry[2] <= last:
                yield (*key, *entry[:2], "timer")
                entry[2] = None
                if entry[0] % 3 == 0:
                    del self.kept[key]
                elif entry[0] % 3 == 1:
                    entry[2] = 2 * entry[0]
                    entry[0] += 2


def table(rows: Sequence[In]) -> pa.RecordBatch:
    """Rows as an owner gets them."""
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(4)]
    columns[2] = columns[2].cast(TIME)
    return pa.RecordBatch.from_arrays(
        [pa.array(xxhash64(*columns[:2])), *columns], schema=pa.schema([("hash", pa.int64()), *SCHEMA])
    )


@dataclass
class Cluster:
    """Workers, each with a store of its own, and one folder."""

    location: Location
    ttl: int | None = None
    stores: list[MemoryStore] = field(default_factory=lambda: [MemoryStore() for _worker in range(WORKERS)])

    def owner(self, worker: int, batch: int) -> Owner:
        step = step_of(Total(), pa.schema([SCHEMA.field(i) for i in COLUMNS.keys]), FIELDS, RESULT)
        return Owner(worker, COLUMNS, step, self.stores[worker], self.location, batch, self.ttl)

    def rows(self, batch: int, control: Control, rows: Sequence[In], watermark: int) -> Counter[Out]:
        """A batch with rows: every worker hears of the control."""
        every = table(rows)
        workers = self.location.placement(control.version).worker_of(np.asarray(every.column(0)))
        out = Counter[Out]()
        for worker in range(WORKERS):
            mine = every.filter(pa.array(workers == worker))
            halves = [mine.slice(0, mine.num_rows // 2), mine.slice(mine.num_rows // 2)]
            out += tuples(self.owner(worker, batch).run(control, halves, watermark))
        return out

    def timers(self, batch: int, watermark: int, awake: frozenset[int]) -> Counter[Out]:
        """A batch without rows: just some workers run, among them those that must."""
        out = Counter[Out]()
        for worker in range(WORKERS):
            owner = self.owner(worker, batch)
            if worker in awake or (owner.wake is not None and owner.wake <= watermark):
                out += tuples(owner.run(None, [], watermark))
        return out

    def copies(self) -> list[dict[str, bytes]]:
        return [dict(store.blobs) for store in self.stores]

    def restore(self, copies: list[dict[str, bytes]]) -> None:
        for store, blobs in zip(self.stores, copies, strict=True):
            store.blobs = dict(blobs)

    def slots(self, worker: int) -> set[str]:
        """Those that a worker holds entries of."""
        return set(json.loads(self.stores[worker].blobs.get("notes", b'{"slots": []}'))["slots"])


def tuples(batches: Iterable[pa.RecordBatch]) -> Counter[Out]:
    return Counter(row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))


@dataclass
class Driver:
    """What decides by which control the next batch goes."""

    location: Location
    control: Control
    given: bool = False  # whether a batch with rows was committed since the placement was announced

    def turn(self, placement: Placement) -> None:
        """Announce a placement, or let the announced one come into force once it can."""
        version = self.control.version
        if not self.control.moving:
            self.location.write_placement(placement.with_version(version + 1))
            self.control, self.given = Control(version, moving=True), False
        elif self.given:
            self.control = Control(version + 1)

    def commit(self, ran_by: Control) -> None:
        """A batch with rows was committed, which ran by that control."""
        self.given = self.given or (ran_by == self.control and ran_by.moving)


@dataclass(frozen=True)
class Attempt:
    """A micro-batch that is run: for the first time, or again after a crash."""

    turn: bool  # whether the control takes its next step before
    placement: Placement  # to announce, if it is time for one
    awake: frozenset[int]  # who runs although no timer is due


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    workers = draw(st.integers(1, WORKERS))
    worker = st.integers(0, workers - 1)
    tail = draw(st.lists(worker, min_size=TAIL, max_size=TAIL))
    return Placement.of(workers, tail, draw(st.dictionaries(st.sampled_from(HASHES), worker, max_size=4)))


rows_in = st.lists(
    st.tuples(
        st.sampled_from(KEYS),
        st.integers(0, 3),  # steps of the clock
        st.sampled_from([0, 0, 0, 1, 4, 9]),  # how late
        st.integers(0, 12),
    ),
    max_size=8,
)
attempts = st.builds(
    Attempt,
    turn=st.sampled_from([True, True, False]),
    placement=placements(),
    awake=st.frozensets(st.integers(0, WORKERS - 1)),
)
batches = st.lists(st.tuples(rows_in, st.lists(attempts, min_size=1, max_size=3)), min_size=3, max_size=14)


@settings(max_examples=50)
@given(ttl=st.none() | st.integers(2, 12), first=placements(), batches=batches)
def test_rows_come_out_as_from_one_process_whatever_moves_and_however_often_a_batch_is_replayed(
    tmp_path_factory: pytest.TempPathFactory,
    ttl: int | None,
    first: Placement,
    batches: list[tuple[list[tuple[Any, int, int, int]], list[Attempt]]],
) -> None:
    location = Location.at(str(tmp_path_factory.mktemp("stream")))
    location.write_placement(first)
    cluster, reference, driver = Cluster(location, ttl), Reference(ttl), Driver(location, Control(0))
    clock = watermark = 0
    for batch, (data, attempts) in enumerate(batches):
        rows: list[In] = []
        for (a, b), step, behind, value in data:
            clock += step
            rows.append((a, b, max(0, clock - behind), value))
        wanted, before = reference.run(rows, watermark), cluster.copies()
        for attempt in attempts:
            cluster.restore(before)  # the folder stays as the last attempt left it
            if attempt.turn:
                driver.turn(attempt.placement)
            ran_by = driver.control
            if rows:
                assert cluster.rows(batch, ran_by, rows, watermark) == wanted
            else:
                assert cluster.timers(batch, watermark, attempt.awake) == wanted
        if rows:
            driver.commit(ran_by)
            placement = location.placement(ran_by.version)
            owners = {placement.name(slot): int(worker) for slot, worker in enumerate(placement.owners)}
            for worker in range(WORKERS):
                assert all(owners[name] == worker for name in cluster.slots(worker))
        watermark = max(watermark, clock - 4)


def test_a_long_stream_with_many_moves_comes_out_as_from_one_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    location = Location.at(str(tmp_path))
    location.write_placement(Placement.of(WORKERS, rng.integers(0, WORKERS, TAIL).tolist()))
    cluster, reference, driver = Cluster(location, 40), Reference(40), Driver(location, Control(0))
    clock = watermark = 0
    for batch in range(60):
        keys = rng.zipf(1.3, 60) % 200
        times = clock + rng.integers(-6, 4, 60)
        clock += 3
        rows: list[In] = [
            (int(key) if key % 7 else None, None if key % 3 else 1, max(0, int(time)), int(value))
            for key, time, value in zip(keys, times, rng.integers(0, 13, 60), strict=True)
        ]
        hashes = np.asarray(table(rows).column(0))
        own = {key: int(rng.integers(WORKERS)) for key in hashes[: rng.integers(6)].tolist()}
        driver.turn(Placement.of(WORKERS, rng.integers(0, WORKERS, TAIL).tolist(), own))
        assert cluster.rows(batch, driver.control, rows, watermark) == reference.run(rows, watermark)
        driver.commit(driver.control)
        watermark = max(watermark, clock - 4)
    assert driver.control.version >= 25


def test_what_moves_is_a_transfer_of_the_slots_it_comes_to() -> None:
    before = Placement.of(3, tail=[0, 1], own={4: 0, 9: 1, 11: 2})
    after = Placement.of(3, tail=[0, 2], own={4: 2, 5: 1, 11: 2}, version=1)
    assert [move.slot for move in moves(before, after)] == ["t1", "k4", "k5", "k9"]
    assert changed(before, after) == ["t1", "k4", "k5", "k9"]
    assert [set(leaving(before, after, worker)) for worker in range(3)] == [{"k4"}, {"t1"}, set()]
    assert [set(arriving(before, after, worker)) for worker in range(3)] == [set(), set(), {0, 1}]


BEFORE = Placement.of(2, tail=[0, 1, 0, 1, 0], own={HASHES[0]: 0})
AFTER = Placement.of(2, tail=[1, 0, 0, 1, 1], own={HASHES[2]: 1}, version=1)
IN_FORCE = Control(1)
ROWS: list[In] = [(a, b, 10 + i, i) for i, (a, b) in enumerate(KEYS)]


@pytest.fixture
def moving(tmp_path: Path) -> Cluster:
    """Two workers that are about to swap slots: the batches 0 and 1 are committed, in the second they gave."""
    cluster = Cluster(Location.at(str(tmp_path)))
    cluster.location.write_control(Control(0))
    cluster.location.write_placement(BEFORE)
    cluster.location.write_placement(AFTER)
    cluster.rows(0, Control(0), ROWS, 0)
    cluster.rows(1, Control(0, moving=True), ROWS, 0)
    return cluster


def refused(cluster: Cluster, message: str, control: Control | None = IN_FORCE, batch: int = 2) -> None:
    """Worker 1 refuses a batch, and a retry finds what was there."""
    before = cluster.copies()
    rows = table(ROWS) if control is not None else table([])
    with pytest.raises(SkewlessError, match=message):
        list(cluster.owner(1, batch).run(control, [rows], 30))
    assert cluster.copies() == before


def taken(cluster: Cluster) -> None:
    """The next batch comes out as if nothing had happened."""
    reference = Reference(None)
    reference.run(ROWS, 0)
    reference.run(ROWS, 0)
    assert cluster.rows(2, Control(1), ROWS, 11) == reference.run(ROWS, 11)


SLOTS = rf"the state of slots t0, t4, k{HASHES[2]} from worker 0"


def test_state_that_did_not_arrive_is_not_done_without(moving: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "moves/1/0-1.arrow"
    data = file.read_bytes()
    file.unlink()
    refused(moving, rf"{SLOTS} is not at file://{tmp_path}/moves/1/0-\*\.arrow; restore the folder")
    (tmp_path / "moves/1/0-2.arrow").write_bytes(data)  # as of this batch: not of one before it
    refused(moving, rf"{SLOTS} is not at file://{tmp_path}/moves/1/0-\*\.arrow; restore the folder")
    file.write_bytes(data)
    taken(moving)


@pytest.mark.parametrize("part", [0.0, 0.002, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
def test_state_that_arrived_in_part_is_not_taken(moving: Cluster, tmp_path: Path, part: float) -> None:
    file = tmp_path / "moves/1/0-1.arrow"
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])
    refused(moving, rf"{SLOTS} at file://{tmp_path}/moves/1/0-1\.arrow is damaged \(.*\); restore the folder")
    file.write_bytes(data)
    taken(moving)


def test_state_of_other_columns_is_not_taken(moving: Cluster, tmp_path: Path) -> None:
    moving.location.write_moves(1, 1, 0, pa.record_batch([pa.array(["x"])], names=["x"]))
    refused(moving, rf"{SLOTS} at file://{tmp_path}/moves/1/0-1\.arrow is damaged \(.*\); restore the folder")


def damage(cluster: Cluster, version: int, change: Callable[[str], str]) -> None:
    file = Path(cluster.location.uri.removeprefix("file://")) / "placements" / f"{version}.json"
    file.write_text(change(file.read_text()))
    # By another name of the folder, as on a machine that has not read the placement yet.
    cluster.location = Location(f"{cluster.location.uri}/.", cluster.location.whose)


WAYS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[:40], r"is damaged \(.*\); restore the folder that goes with this checkpoint"),
    "of fewer owners": (lambda text: text.replace('own\\":[', 'own\\":[1,'), r"is damaged \(.* owners.*\); restore"),
    "of another stream": (lambda text: text.replace('{"id": "', '{"id": "x'), "is of another stream; restore the"),
    "of another version": (lambda text: text.replace('version\\":', 'version\\":7'), r"is placement 7\d; restore the"),
}


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_placement_is_refused_before_anything_is_written(moving: Cluster, way: str, version: int) -> None:
    moving.location.write_placement(BEFORE.with_version(2))
    change, message = WAYS[way]
    damage(moving, version, change)
    refused(moving, rf"/\./placements/{version}\.json {message}", Control(1, moving=True))
    if version < 2:  # who just wakes for its timers gives away as well
        refused(moving, rf"/\./placements/{version}\.json {message}", None)


def test_a_missing_placement_is_refused(moving: Cluster, tmp_path: Path) -> None:
    refused(moving, rf"placement 2 is not at file://{tmp_path}/placements/2\.json; restore", Control(1, True))


@pytest.mark.parametrize("control", [Control(2), Control(3, moving=True), Control(2, moving=True)])
def test_a_folder_that_is_ahead_of_the_checkpoint_is_refused(moving: Cluster, control: Control) -> None:
    message = rf"the folder file://.* is at placement {control.version}, but the checkpoint is at 0; restore both"
    refused(moving, message, control)


def test_a_folder_that_is_behind_the_checkpoint_is_refused(moving: Cluster) -> None:
    taken(moving)
    message = r"the folder file://.* is at placement 0, but the checkpoint is at 1; restore both from the same time"
    refused(moving, message, Control(0, moving=True), batch=3)


def test_a_folder_in_use_is_refused_to_a_new_checkpoint(moving: Cluster) -> None:
    moving.stores[1].blobs.clear()
    refused(moving, "the folder file://.* is at placement 1, but the checkpoint is new; name an empty folder")


def test_a_folder_of_another_stream_is_refused(moving: Cluster) -> None:
    moving.location = Location(moving.location.uri, "another")
    message = "the folder file://.* does not belong to this checkpoint; name the one it was made with"
    refused(moving, message)
