"""A worker's windows against windows written out row by row."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import aggregate
from skewless.aggregate import Kernel
from skewless.core.errors import SkewlessError
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.core.windows import END, Windows
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import Partials
from skewless.operators.panes.worker import PanesWorker
from support.campaign import campaign

Row = tuple[int, str | None, int | None, int | None]  # time, two key columns, value
INPUTS = [pa.int64(), pa.float64()]


def kernels() -> tuple[Kernel, ...]:
    """Some that are subtracted and some that need two stacks."""
    named: list[tuple[aggregate.Measure, list[pa.DataType]]] = [
        (aggregate.count(), []),
        (aggregate.sum("i"), [pa.int64()]),
        (aggregate.sum("x"), [pa.float64()]),
        (aggregate.max("i"), [pa.int64()]),
        (aggregate.var("x"), [pa.float64()]),
    ]
    return tuple(measure.bind(types) for measure, types in named)


READS = ((), (4,), (5,), (4,), (5,))


def partials(layout: Layout, rows: Sequence[Row]) -> list[pa.RecordBatch]:
    states = Partials(layout, READS)
    if rows:
        time, a, b, value = (list(column) for column in zip(*rows, strict=True))
        columns = [
            pa.array([0] * len(rows), pa.int64()),
            pa.array(time, pa.timestamp("us")),
            pa.array(a, pa.string()),
            pa.array(b, pa.int64()),
            pa.array(value, pa.int64()),
            pa.array([None if v is None else v / 4 for v in value], pa.float64()),
        ]
        states.add(pa.RecordBatch.from_arrays(columns, names=list("htabix")))
    found = states.all()
    return [] if found is None else [found]


@dataclass
class WrittenOut:
    """Every window as the list of its values, by the rules of Spark's own operator."""

    spec: Windows
    windows: dict[tuple[int, str | None, int | None], list[int | None]] = field(default_factory=dict)

    def add(self, rows: Sequence[Row], late: int) -> set[tuple[int, str | None, int | None]]:
        touched = set()
        for time, a, b, value in rows:
            for k in range(-200, 2000):
                start = k * self.spec.slide
                if start <= time < start + self.spec.size and start + self.spec.size > late:
                    self.windows.setdefault((start, a, b), []).append(value)
                    touched.add((start, a, b))
        return touched

    def row(self, key: tuple[int, str | None, int | None]) -> tuple[Any, ...]:
        values = [value for value in self.windows[key] if value is not None]
        total = sum(values) if values else None
        spread = statistics.variance([v / 4 for v in values]) if len(values) > 1 else None
        rough = None if total is None else pytest.approx(total / 4)
        largest = max(values, default=None)
        about = None if spread is None else pytest.approx(spread, abs=1e-6)
        return len(self.windows[key]), total, rough, largest, about


@st.composite
def specs(draw: st.DrawFn) -> Windows:
    slide = draw(st.sampled_from([1, 2, 3, 5]))
    return Windows(slide * draw(st.integers(1, 7)) + draw(st.integers(0, 1)), slide)


rows = st.tuples(
    st.integers(0, 12) | st.integers(60, 70),  # steps of the clock: mostly small, sometimes a gap
    st.sampled_from([None, "a", "b", "c", "d"]),
    st.sampled_from([None, 1]),
    st.none() | st.integers(-1000, 1000),
    st.sampled_from([0, 0, 0, 2, 9, 30]),  # how late
)


def windows_of(parts: Iterable[pa.RecordBatch]) -> dict[tuple[int, str | None, int | None], tuple[Any, ...]]:
    """The values of each window and key, which come once."""
    found = {}
    for part in parts:
        for start, a, b, *values in zip(*(column.to_pylist() for column in part.columns), strict=True):
            assert (start, a, b) not in found
            found[(start, a, b)] = tuple(values)
    return found


@campaign(150)
@given(spec=specs(), updating=st.booleans(), data=st.lists(st.lists(rows, max_size=12), min_size=1, max_size=10))
def test_windows_are_those_written_out_row_by_row(
    spec: Windows, updating: bool, data: list[list[tuple[int, str | None, int | None, int | None, int]]]
) -> None:
    layout = Layout(spec, (pa.string(), pa.int64()), kernels(), updating)
    store, oracle = MemoryStore(), WrittenOut(spec)
    clock, watermark, late = 0, 0, 0
    for batch in [*data, []]:
        given_rows: list[Row] = []
        for step, a, b, value, behind in batch:
            clock += step // 4
            given_rows.append((max(0, clock - behind), a, b, value))
        touched = oracle.add(given_rows, late)
        tables = partials(layout, given_rows[::2]) + partials(layout, given_rows[1::2])
        found = windows_of(PanesWorker(layout, Turn(0), store).run(None, tables, watermark))
        wanted = touched if updating else {key for key in oracle.windows if late < key[0] + spec.size <= watermark}
        assert found == {key: oracle.row(key) for key in wanted}
        late, watermark = watermark, max(watermark, clock - 5)


def run(spec: Windows, kernel: Kernel, times: np.ndarray, values: np.ndarray, step: int) -> list[pa.RecordBatch]:
    """One key's rows, a batch for every `step` of time."""
    layout, store, given_rows = Layout(spec, (pa.int64(),), (kernel,)), MemoryStore(), []
    for start in range(0, int(times[-1]) + spec.size + 1, step):
        here = (times >= start) & (times < start + step)
        states = Partials(layout, ((3,),))
        key = pa.array(np.zeros(here.sum(), dtype=np.int64))
        columns = [key, pa.array(times[here]).cast(pa.timestamp("us")), key, pa.array(values[here])]
        states.add(pa.RecordBatch.from_arrays(columns, names=list("htkv")))
        found = states.all()
        tables = [] if found is None else [found]
        given_rows += list(PanesWorker(layout, Turn(0), store).run(None, tables, start + step))
    return given_rows


def test_a_running_sum_of_doubles_does_not_drift_in_ten_thousand_slides() -> None:
    slides, spec = 10_000, Windows(60, 1)
    values = np.random.default_rng(5).choice([1e16, 1.0, 1e-3, 3.3e8], slides)
    kernel = aggregate.sum("x").bind([pa.float64()])
    found = run(spec, kernel, np.arange(slides), values, 1000)
    ends = np.concatenate([np.asarray(part.column(0)) for part in found]) + spec.size
    sums = np.concatenate([np.asarray(part.column(2)) for part in found])
    assert ends.tolist() == list(range(1, slides + 60))
    tail = np.arange(slides - 3000, slides)
    fresh = [float(np.sum(values[max(0, end - 60) : end])) for end in ends[tail]]
    np.testing.assert_allclose(sums[tail], fresh, rtol=1e-12)


@pytest.mark.slow
def test_a_window_reads_only_pages_that_enter_or_leave() -> None:
    class Counting(MemoryStore):
        reads = 0

        def get(self, name: str) -> bytes | None:
            self.reads += name.startswith(("page/", "after/"))
            return super().get(name)

    spec = Windows(600, 1)
    layout, store = Layout(spec, (pa.int64(),), (aggregate.sum("x").bind([pa.float64()]),)), Counting()
    reads = []
    for second in range(1800):
        states = Partials(layout, ((3,),))
        one, when = pa.array([1]), pa.array([second]).cast(pa.timestamp("us"))
        states.add(pa.RecordBatch.from_arrays([one, when, one, pa.array([0.5])], names=list("htkv")))
        found = states.all()
        assert found is not None
        closed = list(PanesWorker(layout, Turn(0), store).run(None, [found], second + 1))
        before, store.reads = store.reads, 0
        reads.append(before)
        assert sum(part.num_rows for part in closed) == 1
    # the oldest page, what comes after it, and the newest; when the stacks are turned, all of a window
    assert sorted(reads[1200:])[-2] <= 3
    assert max(reads) <= 12
    assert len([name for name in store.blobs if name.startswith("page/")]) <= 11


def test_a_key_without_rows_leaves_no_trace() -> None:
    spec = Windows(2, 1)
    layout, store = Layout(spec, (pa.string(), pa.int64()), kernels()), MemoryStore()
    sizes = []
    for second in range(200):
        tables = partials(layout, [(second, f"key {second}", None, 1)])
        list(PanesWorker(layout, Turn(0), store).run(None, tables, second + 1))
        sizes.append(sum(map(len, store.blobs.values())))
    assert max(sizes[100:]) <= 1.05 * max(sizes[50:100])


def test_another_query_on_the_same_state_is_refused() -> None:
    store = MemoryStore()
    PanesWorker(Layout(Windows(2, 1), (pa.string(), pa.int64()), kernels()), Turn(0), store).save()
    with pytest.raises(SkewlessError, match="the checkpoint is of another query"):
        PanesWorker(Layout(Windows(3, 1), (pa.string(), pa.int64()), kernels()), Turn(0), store)


ROWS: list[Row] = [(3, "a", 1, 5), (4, "a", 1, 2), (12, "b", None, 7), (10**15, "a", 1, 1)]


def test_without_a_watermark_no_window_is_closed() -> None:
    layout, store = Layout(Windows(10, 5), (pa.string(), pa.int64()), kernels()), MemoryStore()
    assert list(PanesWorker(layout, Turn(0), store).run(None, partials(layout, ROWS[:2]), None)) == []
    assert PanesWorker(layout, Turn(0), store).wake is None
    found = windows_of(PanesWorker(layout, Turn(0), store).run(None, partials(layout, ROWS[2:3]), 20))
    assert {key: values[:2] for key, values in found.items()} == {
        (-5, "a", 1): (2, 7),
        (0, "a", 1): (2, 7),
        (5, "b", None): (1, 7),
        (10, "b", None): (1, 7),
    }


def test_the_last_call_of_a_batch_closes_all_windows() -> None:
    layout, store = Layout(Windows(10, 5), (pa.string(), pa.int64()), kernels()), MemoryStore()
    worker = PanesWorker(layout, Turn(0), store)
    assert list(worker.run(None, partials(layout, ROWS), None)) == []
    oracle = WrittenOut(Windows(10, 5))
    oracle.add(ROWS[:3], late=-100)
    wanted = {key: oracle.row(key) for key in oracle.windows}
    far = {(start, "a", 1): (1, 1, 0.25, 1, None) for start in (10**15 - 5, 10**15)}
    assert windows_of(worker.run(None, [], END)) == {**wanted, **far}
    assert windows_of(worker.run(None, [], END)) == {}
    assert [name for name in store.blobs if name.startswith("page/")] == []


def test_a_worker_wakes_when_its_first_open_window_ends() -> None:
    layout, store = Layout(Windows(10, 5), (pa.string(), pa.int64()), kernels()), MemoryStore()
    assert len(windows_of(PanesWorker(layout, Turn(0), store).run(None, partials(layout, ROWS[:3]), 7))) == 1
    assert PanesWorker(layout, Turn(0), store).wake == 10
    assert set(windows_of(PanesWorker(layout, Turn(0), store).run(None, [], 10))) == {(0, "a", 1)}
    assert PanesWorker(layout, Turn(0), store).wake == 15
