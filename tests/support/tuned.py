"""A query whose batches of windows are tuned, its workers and the loop on its driver, without Spark.

As in `support.placed` the engine reads the control when a micro-batch begins, runs tasks and workers, commits their
stores together, and tells the driver some time later. No step may fail, with one exception: a driver that was started
anew does not know how far rows reached before, so what it announces may come too early. A worker finds that out, and
the query goes on by the sizes before when it is started again.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skewless.chop.assignment import BatchAssignment
from skewless.control import version as versions
from skewless.control.batch_sizes import BatchSizes
from skewless.control.loop import Chosen, Observed
from skewless.control.tuning import Tuning
from skewless.control.version import CONTROL, Version
from skewless.core.errors import SkewlessError
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import Windows
from skewless.operators.send import Sender, received
from skewless.operators.windows.function import WindowCall
from skewless.operators.windows.spread import AdaptiveSpread
from skewless.operators.windows.worker import Task
from support.disk import Disk
from support.placed import NAMESAKE
from support.windows import ANSWER, COLUMNS, ROWS, Stream, adaptive, expected, found, table, whole

Rows = list[tuple[int, int, int]]
WORKERS = 2
CHOSEN = Chosen("batches", "as the test asks")
KINDS = (pa.int64(),) * 4
Given = tuple[list[Any], list[dict[str, bytes]], Observed | None]


@dataclass(frozen=True)
class Death:
    """An attempt of a micro-batch that is not committed, after so many workers were done."""

    done: int
    withdrawn: bool = False
    """Whether what was announced is withdrawn after the application was started again."""


@dataclass
class Backup:
    """The checkpoint and the folder of one time, and what had come and was given by then."""

    batch: int
    watermark: int
    stores: list[dict[str, bytes]]
    stream: Stream
    got: list[Any]
    folder: Path


@dataclass
class World:
    """A query with its checkpoint, its folder, and the loop on its driver.

    Parameters
    ----------
    path
        Where everything is.
    windows
        Size and slide.
    again
        Whether a query that failed is started again in the same application, or in a new one.
    """

    path: Path
    windows: Windows = field(default_factory=lambda: Windows(10, 5))
    again: bool = True
    query: str = "query 1"
    batch: int = 0
    runs: int = 0
    watermark: int = 0
    highest: int = 0
    wish: int | None = None
    """The size that the tuner would have."""
    unheard: str | None = None
    """The run whose start the driver has not heard of yet: with Spark Connect that may come late."""
    forgot: bool = False
    """Whether the loop is of a driver that does not know how far rows reached before it was there."""
    refused: int = 0
    disk: Disk = field(default_factory=Disk)
    events: deque[Observed] = field(default_factory=deque)
    backup: Backup | None = None

    def __post_init__(self) -> None:
        self.task = Task(COLUMNS, self.windows, WindowCall(whole, ROWS, ANSWER))
        self.stores: list[dict[str, bytes]] = [{} for _worker in range(WORKERS)]
        self.stream: Stream = []
        self.got: list[Any] = []
        self.rash: set[int] = set()  # versions that were announced by a driver that had forgotten
        self.last = 0
        self.before = 0, 0  # the last version that an earlier run announced, and the one in force at its end
        self.ended: dict[int, int] = {}  # of each micro-batch, the windows of keys that workers gave
        self.known: list[Tuning] = []
        self.built = self.loop = self.build()
        self.start()

    @property
    def folder(self) -> Path:
        return self.path / "sizes"

    @property
    def run(self) -> str:
        return f"{self.query}, run {self.runs}"

    def build(self) -> Tuning:
        """`apply(..., tune=, folder=)` is called, which touches nothing that runs."""
        sizes = BatchAssignment.of(self.windows, WORKERS, 1)
        loop = Tuning("stream", BatchSizes.at(str(self.folder)), sizes, 1.0, 1e9, CHOSEN)
        loop.tuner.tune = lambda *_seen: self.wish or loop.sizes.batch
        self.built, self.known = loop, [*self.known[-3:], loop]
        return loop

    def start(self, *, late: bool = False) -> None:
        """A run of what was built last; `late` is whether the driver hears of that after its first micro-batch."""
        self.runs += 1
        self.unheard = self.run
        self.before = self.built.folder.last(), self.control().force
        if not late:
            self.hear_of_the_start()
        self.forgot |= self.built is not self.loop and self.batch > 0
        self.loop = self.built

    def hear_of_the_start(self) -> None:
        if self.unheard is not None:
            for loop in self.known:
                loop.start(self.query, self.unheard)
        self.unheard = None

    def stop(self, *, healthy: bool = True) -> None:
        """The run ends, and the driver hears of all that was done."""
        self.hear(len(self.events))
        self.hear_of_the_start()
        for loop in self.known:
            loop.end(self.run, self.query, healthy=healthy)

    def restart(self, *, late: bool = False) -> None:
        """The query is stopped and started again."""
        self.stop()
        self.start(late=late)

    def crash(self, *, late: bool = False) -> None:
        """The application dies, with what the driver had not heard yet, and is started again."""
        self.events.clear()
        self.known, self.unheard = [], None
        versions._once.cache_clear()
        self.build()
        self.start(late=late)

    def lose_power(self) -> None:
        """The machine of the driver and of its disk dies: what was not flushed is gone."""
        self.disk.lose_power(self.folder)
        self.crash()

    def control(self) -> Version:
        """What the rows of a micro-batch are given, as Spark reads it from the file."""
        return Version.of(int(json.loads((self.folder / CONTROL).read_text())["control"]))

    def micro_batch(self, offsets: Sequence[int], rise: int = 0, deaths: Sequence[Death] = ()) -> None:
        """A micro-batch of rows so far from the watermark, which is run again until an attempt is committed."""
        first = sum(len(rows) for rows, _watermark in self.stream)
        rows = [(self.watermark + each, each % 3, first + i) for i, each in enumerate(offsets)]
        for death in deaths:
            if self.attempt(rows, death.done) is not None:
                self.crash()
            if death.withdrawn:
                self.withdraw()
        # A worker may refuse the sizes of a rash driver; those before them are then to be had.
        given = self.attempt(rows) or self.attempt(rows)
        assert given is not None
        answers, self.stores, event = given
        self.got += answers
        self.stream.append((rows, self.watermark))
        self.highest = max([self.highest, *(time for time, _key, _value in rows)])
        if event is not None:
            self.events.append(event)
        self.batch, self.watermark = self.batch + 1, self.watermark + rise

    def attempt(
        self, rows: Rows, done: int = WORKERS
    ) -> tuple[list[Any], list[dict[str, bytes]], Observed | None] | None:
        """What is given, the stores then, and what the driver is to hear; None if the query failed as it may."""
        stores, control, event, answers = self.opened(), None, None, []
        lines: list[dict[str, Any]] = []
        if rows:
            control = self.control().code
            lines = self.sent(rows, control)
            notes = tuple(tuple(line["note"]) for line in lines if line["note"])
            event = Observed(self.query, self.run, self.batch, control=control, notes=notes, watermark=self.watermark)
        try:
            self.ended[self.batch] = 0
            for worker, store in list(enumerate(stores))[:done]:
                tables = received((line["part"], line["rows"]) for line in lines if line["owner"] == worker)
                turn = Turn(worker, self.batch, self.query, self.run)
                given = adaptive(self.task, self.loop.folder, turn, store, control, tables, self.watermark)
                windows = list(found(self.windows, given))
                self.ended[self.batch] += len(windows)
                answers += windows
        except SkewlessError as error:
            early = re.match(r"version (\d+) changes the batches .* start the query again", str(error))
            if not early:
                raise
            assert int(early[1]) in self.rash
            self.fail()
            return None
        return answers, [store.blobs for store in stores], event

    def opened(self) -> list[MemoryStore]:
        stores = [MemoryStore() for _worker in range(WORKERS)]
        for store, blobs in zip(stores, self.stores, strict=True):
            store.blobs = dict(blobs)
        return stores

    def sent(self, rows: Rows, control: int | None, query: str | None = None) -> list[dict[str, Any]]:
        """The lines of two tasks."""
        lines, half = [], len(rows) // 2
        for task, some in enumerate((rows[:half], rows[half:])):
            if some:
                column = pa.array([control] * len(some), pa.int64())
                part = table(some).add_column(0, "control", column)
                turn = Turn(task, self.batch, query or self.query, self.run)
                sending = AdaptiveSpread(self.loop.folder, self.windows, KINDS)
                lines += [
                    line
                    for each in sending.send([part], Sender(range(WORKERS), task), turn)
                    for line in each.to_pylist()
                ]
        return lines

    def fail(self) -> None:
        """A worker has refused the sizes in force: the query fails, and is started again."""
        self.refused += 1
        if self.again:
            self.stop(healthy=False)
            self.start()
        else:
            self.crash()

    def hear(self, count: int = 1) -> None:
        """Some of what was done reaches the driver."""
        for _ in range(min(count, len(self.events))):
            seen = self.events.popleft()
            assert sum(work.windows for work in self.loop.folder.take_work(seen.batch)) == self.ended[seen.batch]
            self.loop.hear(seen)
            if seen.run == self.run:  # what earlier runs announced is withdrawn, and what is refused is as well
                last, force = self.before
                assert self.control().to_come == 0 or self.control().to_come > last
                assert self.control().force <= force or self.control().force > last
            self.hear_of_the_start()
        assert not self.loop._failed
        self.look()

    def look(self) -> None:
        """Remember which versions were announced by a driver that had forgotten how far rows reached."""
        last = self.loop.folder.last()
        if self.forgot:
            self.rash |= set(range(self.last + 1, last + 1))
        self.last = last

    def change(self, batch: int, loop: Tuning | None = None) -> None:
        """Somebody has another size announced; refused while another is on its way, or nothing was heard."""
        with suppress(SkewlessError):
            (loop or self.loop).change(batch)
        self.look()

    def change_behind(self, offsets: Sequence[int], batch: int) -> None:
        """A size is announced while a micro-batch runs that knows nothing of it, and the next one is done by it too."""
        self.micro_batch(offsets)
        self.change(batch)
        self.micro_batch([0])
        self.hear()

    def change_after_a_crash(self, offsets: Sequence[int], far: int, batch: int) -> None:
        """A driver that knows nothing of rows that reached far announces a size, which comes into force too early."""
        self.micro_batch([far])
        self.crash()
        self.micro_batch([0, *offsets])
        self.hear()
        self.change(batch)
        self.micro_batch([0])
        self.hear()
        self.micro_batch([0])

    def change_by_the_one_before(self, batch: int) -> None:
        """The size changes after the stream was built anew, and what was built then goes on from there."""
        before = self.loop
        self.hear(len(self.events))
        self.build()
        self.change(batch, before)
        for _batch in range(2):
            self.micro_batch([0])
            self.hear()
        self.restart()
        self.micro_batch([0])
        self.hear()
        self.change(batch + 1)
        self.micro_batch([0])

    def tune(self, batch: int | None) -> None:
        """From now on the tuner would have batches of this size."""
        self.wish = batch

    def withdraw(self) -> None:
        """By any handle, such as that of a run that is over."""
        with suppress(SkewlessError):
            self.known[0].withdraw()

    def blank(self) -> None:
        """The control is gone when a micro-batch begins: it is refused, and none of its rows is lost."""
        with pytest.raises(SkewlessError, match="the control file of the stream's folder is empty or gone"):
            self.sent([(1, 1, 1)], None)

    def intrude(self) -> None:
        """Another query of the same folder, with a new checkpoint: it gets no row out, and does no harm."""
        control = self.control()
        if control.query == 0:
            return  # nobody's yet
        for query in ("query 2", NAMESAKE) if control.force or control.announced else ("query 2",):
            with pytest.raises(SkewlessError, match=f"belongs to query query 1, and this is query {query}"):
                self.sent([(1, 1, 1)], control.code, query)

    def keep(self) -> None:
        """The query is stopped, and folder and checkpoint are copied."""
        self.stop()
        kept = self.path / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept)
        stores = copy.deepcopy(self.stores)
        self.backup = Backup(self.batch, self.watermark, stores, [*self.stream], [*self.got], kept)
        self.start()

    def restore(self, *, rebuilt: bool) -> None:
        """Both are restored in the running application."""
        if self.backup is None:
            return
        self.stop()
        shutil.rmtree(self.folder)
        shutil.copytree(self.backup.folder, self.folder)
        self.disk.sync(self.folder)
        self.batch, self.watermark = self.backup.batch, self.backup.watermark
        self.stores, self.last = copy.deepcopy(self.backup.stores), 0
        self.stream, self.got = [*self.backup.stream], [*self.backup.got]
        if rebuilt:
            self.build()
        self.look()
        self.start()

    def settles(self) -> None:
        """Whatever came before: what is announced now comes into force, and all windows are given."""
        self.wish = None
        for _ in range(2):
            self.micro_batch([self.highest - self.watermark + 1, 1])
            self.hear(len(self.events))
        assert not self.loop.announced
        force, size = self.loop.version.force, self.loop.sizes.batch
        self.loop.change(size + 1)
        self.micro_batch([0, 1, 2])
        self.hear(len(self.events))
        assert self.loop.version.force > force
        assert self.loop.sizes.batch == size + 1
        for _ in range(2):
            self.micro_batch([0, self.highest - self.watermark + 30])
            self.hear(len(self.events))
        assert self.control() == self.loop.version
        self.watermark = self.highest + 10_000
        self.micro_batch([])
        assert sorted(self.got) == expected(self.stream, self.windows)


def announced(path: Path, *, again: bool = True) -> World:
    """A query for which sizes were announced after its first micro-batch, from window 7 on."""
    world = World(path, again=again)
    world.micro_batch([0, 20])  # reaches window 4
    world.hear()
    world.change(2)
    assert world.loop.folder.sizes(1).sizes[-1] == (7, 2)
    return world
