"""Workers of a placed stream in one process, with a processor for them and what they must give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from skewless.control.placements import Placements
from skewless.control.version import Version
from skewless.core import blob
from skewless.core.hashing import xxhash64
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.operators.process import Processor, Rows, State
from skewless.operators.process.pack import Pack
from skewless.operators.process.processor import Key, Row
from skewless.operators.process.worker import Columns, ProcessWorker, Task
from skewless.operators.send import Sender, received
from skewless.place.placement import Placement

In = tuple[int | None, int | None, int, int]  # two key columns, time, value
Out = tuple[Any, ...]

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("t", TIME), ("v", pa.int64())])
COLUMNS = Columns(SCHEMA, keys=(0, 1), order=(2, 3), time=2)
FIELDS = pa.schema([("total", pa.int64()), ("last", pa.int64())])
RESULT = pa.schema([("total", pa.int64()), ("last", pa.int64()), ("why", pa.string())])
WORKERS, TAIL = 4, 5
QUERY = "the query"
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
        yield (state["total"], state["last"], "row")
        if state["last"] == 7:
            state.forget()

    def expire(self, key: Key, state: State) -> Iterable[Row]:
        yield (state["total"], state["last"], "timer")
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


def table(rows: Sequence[In], version: Version) -> pa.RecordBatch:
    """Rows as a task gets them, which sends them to workers: hash, control and columns."""
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(4)]
    columns[2] = columns[2].cast(TIME)
    control = pa.array([version.code] * len(rows), pa.int64())
    names = ["hash", "control", *SCHEMA.names]
    return pa.RecordBatch.from_arrays([pa.array(xxhash64(*columns[:2])), control, *columns], names)


@dataclass
class Cluster:
    """Workers, each with a store of its own, and one folder."""

    folder: Placements
    ttl: int | None = None
    query: str = QUERY
    run: str = ""
    stores: list[MemoryStore] = field(default_factory=lambda: [MemoryStore() for _worker in range(WORKERS)])
    notes: tuple[tuple[int, ...], ...] = ()
    """What the tasks of the last micro-batch with rows told the driver."""
    ran_by: Version = field(default_factory=lambda: Version(0))
    """What the last micro-batch with rows went by."""

    def worker(self, worker: int, batch: int) -> ProcessWorker:
        task = Task(Total(), COLUMNS, FIELDS, RESULT, self.folder, self.ttl)
        return ProcessWorker(task, Turn(worker, batch, self.query, self.run), self.stores[worker])

    def sent(self, batch: int, version: Version, rows: Sequence[In]) -> list[list[pa.RecordBatch]]:
        """What each worker gets of rows that two tasks send."""
        lines: list[dict[str, Any]] = []
        for task, some in enumerate((rows[::2], rows[1::2])):
            parts = [table(part, version) for part in (some[:3], some[3:]) if part]
            turn = Turn(task, batch, self.query, self.run)
            sending = Pack(self.folder, SCHEMA).send(parts, Sender(range(WORKERS), task), turn)
            lines += [line for each in sending for line in each.to_pylist()]
        self.notes = tuple(tuple(line["note"]) for line in lines if line["note"])
        assert {line["owner"] for line in lines} == set(range(WORKERS))  # every worker hears of the version
        (code,) = {line["control"] for line in lines}  # all tasks find the same
        self.ran_by = Version.of(code)
        return [
            received((line["part"], line["rows"]) for line in lines if line["owner"] == worker)
            for worker in range(WORKERS)
        ]

    def rows(
        self, batch: int, version: Version, rows: Sequence[In], watermark: int, done: int = WORKERS
    ) -> Counter[Out]:
        """A micro-batch with rows, whose control is `version`; all die once so many workers are done."""
        out = Counter[Out]()
        for worker, mine in enumerate(self.sent(batch, version, rows)[:done]):
            out += tuples(self.worker(worker, batch).run(self.ran_by.code, mine, watermark))
        return out

    def timers(self, batch: int, watermark: int, awake: frozenset[int]) -> Counter[Out]:
        """A micro-batch without rows: just some workers run, among them those that must."""
        out = Counter[Out]()
        for number in range(WORKERS):
            worker = self.worker(number, batch)
            if number in awake or (worker.wake is not None and worker.wake <= watermark):
                out += tuples(worker.run(None, [], watermark))
        return out

    def copies(self) -> list[dict[str, bytes]]:
        return [dict(store.blobs) for store in self.stores]

    def restore(self, copies: list[dict[str, bytes]]) -> None:
        for store, blobs in zip(self.stores, copies, strict=True):
            store.blobs = dict(blobs)

    def slots(self, worker: int) -> set[str]:
        """Those that a worker holds entries of."""
        data = self.stores[worker].blobs.get("state")
        return set(json.loads(blob.notes(blob.load(data))["notes"])["slots"]) if data else set()


def tuples(batches: Iterable[pa.RecordBatch]) -> Counter[Out]:
    return Counter(row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))


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
