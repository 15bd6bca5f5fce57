"""The loop that tunes batches of windows: when sizes change, and what a driver that starts again goes by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skewless.chop.assignment import BatchAssignment
from skewless.control.batch_sizes import BatchSizes, Work
from skewless.control.loop import Chosen, Observed
from skewless.control.tuning import Tuning
from skewless.control.version import Version
from skewless.core.errors import SkewlessError
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import BEFORE_ALL, Windows
from skewless.operators.windows.function import WindowCall
from skewless.operators.windows.worker import Task
from tests.support.windows import ANSWER, COLUMNS, ROWS, adaptive, table, whole

CHOSEN = Chosen("batches of windows", "as the test asks")


def loop(path: Path, windows: Windows, workers: int = 2, batch: int = 1) -> Tuning:
    return Tuning("stream", BatchSizes.at(str(path)), BatchAssignment.of(windows, workers, batch), 1.0, 1e9, CHOSEN)


def seen(batch: int, version: Version, reached: int, rows: int) -> Observed:
    return Observed("q", "run", batch, control=version.code, notes=((reached, rows, rows, rows),))


def test_an_announcement_does_not_outlive_the_driver(tmp_path: Path) -> None:
    tuning = loop(tmp_path, Windows(10, 5))
    tuning.hear(seen(0, Version(0), reached=7, rows=10))
    tuning.change(4)
    assert tuning.announced
    with pytest.raises(SkewlessError, match="on its way"):
        tuning.change(5)
    again = loop(tmp_path, Windows(10, 5))
    assert again.announced  # which is not for one that may never run to change
    again.start("another", "its run")
    assert again.announced
    again.start("q", "run 2")
    assert not again.announced
    again.hear(seen(1, Version(0), reached=7, rows=10))
    again.change(4)
    assert again.folder.read_control() == (Version(0, announced=2), "q")  # not a number that was used before


def test_what_a_micro_batch_took_is_there_though_later_ones_are_done(tmp_path: Path) -> None:
    folder = loop(tmp_path, Windows(10, 5)).folder
    for batch in range(3):
        for worker in range(2):
            folder.write_work(Turn(worker, batch, "q"), Work(batch, 1, 10 * batch + worker, 0.5))
    assert sorted(work.rows for work in folder.take_work(1)) == [10, 11]
    assert sorted(work.rows for work in folder.take_work(2)) == [20, 21]
    assert folder.take_work(0) == []  # what was passed is deleted


def test_what_another_streams_workers_took_is_refused(tmp_path: Path) -> None:
    folder = loop(tmp_path, Windows(10, 5)).folder
    other = BatchSizes(folder.uri, "another stream")
    other.write_work(Turn(0, 1, "q"), Work(1, 1, 10, 0.5))
    other.refuse(1, Turn(0, 1, "q"))
    with pytest.raises(SkewlessError, match=r"work/1/0\.json is of another stream"):
        folder.take_work(1)
    with pytest.raises(SkewlessError, match=r"refused/1\.json is of another stream"):
        folder.refused(1)


def test_loads_are_those_of_the_workers_and_not_of_all_partitions(tmp_path: Path) -> None:
    tuning = loop(tmp_path, Windows(10, 5))
    tuning.hear(Observed("q", "run", 0, control=Version(0).code, notes=((7, 40, 20, 20, 0, 0), (6, 0, 0, 0, 0, 0))))
    assert (tuning.loads, tuning.imbalance) == ({0: 20, 1: 20}, 1.0)
    tuning.hear(Observed("q", "run", 1, control=Version(0).code, notes=((BEFORE_ALL, 3, 0, 0, 0, 0),)))
    assert (tuning.loads, tuning.imbalance) == ({0: 0, 1: 0}, None)  # no row had a time


def test_another_shape_is_refused(tmp_path: Path) -> None:
    loop(tmp_path, Windows(10, 5))
    with pytest.raises(SkewlessError, match="empty folder"):
        loop(tmp_path, Windows(20, 5))
    with pytest.raises(SkewlessError, match="empty folder"):
        loop(tmp_path, Windows(10, 5), workers=3)


def test_a_size_that_is_hardly_better_is_not_worth_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows, clock = Windows(10_000_000, 1_000_000), iter(range(0, 1000, 10))
    monkeypatch.setattr("skewless.control.tuning.time.monotonic", lambda: next(clock))
    folder = BatchSizes.at(str(tmp_path))
    tuning = Tuning("stream", folder, BatchAssignment.of(windows, 2, 2), 1000.0, 1.0, CHOSEN, most=8)
    sizes = []
    for batch in range(40):
        control = folder.read_control()
        assert control is not None
        size = folder.sizes(control[0].force).batch
        rows = (10 + size - 1) * 1000
        for worker in range(2):
            folder.write_work(Turn(worker, batch, "q"), Work(10_000 * size, size, rows, rows * 1e-5))
        tuning.hear(seen(batch, control[0], reached=20 * batch, rows=20_000))
        sizes.append(tuning.sizes.batch)
    assert not tuning._failed
    assert max(sizes) == 8  # as many as there may be: rows cost, and larger batches copy fewer
    assert sizes[-20:] == [8] * 20


@pytest.mark.parametrize(("keys", "batch"), [(1, 1), (1, 7), (1, 60), (6, 1), (6, 60)])
def test_the_tuner_hears_how_many_windows_end_together_and_where_the_turns_of_their_keys_start(
    tmp_path: Path, keys: int, batch: int
) -> None:
    windows, workers, span, start = Windows(10, 5), 3, 40, 10**9
    tuning = loop(tmp_path, windows, workers, batch)
    task = Task(COLUMNS, windows, WindowCall(whole, ROWS, ANSWER))
    stores = [MemoryStore() for _ in range(workers)]
    for number in range(4):
        rows = [(start + 200 * number + at, key, 0) for at in range(200) for key in range(keys)]
        times, hashes = np.array([row[0] for row in rows]), np.array([7 * row[1] for row in rows])
        which, owners = tuning.sizes.copies(hashes, times)
        for worker in range(workers):
            sent = [rows[i] for i in which[owners == worker]]
            tables = [table(sent)] if sent else []
            turn, watermark = Turn(worker, number, "q"), start + 200 * number if number else 0  # as Spark's begins
            adaptive(task, tuning.folder, turn, stores[worker], Version(0).code, tables, watermark)
        tuning.hear(seen(number, Version(0), reached=start // 5 + 40 * number + 39, rows=len(rows)))
    assert not tuning._failed
    assert tuning.tuner.together == pytest.approx(span, abs=2)
    shares = np.bincount(np.arange(keys) * 7 % workers, minlength=workers) / keys
    assert np.array(tuning.tuner.starts) / sum(tuning.tuner.starts) == pytest.approx(shares, abs=0.02)
