from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sliding.partition import ByBatch, ByPane, ByWindow, Partitioner
from skewless.core.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (max(pair), min(pair)))
TIMES = st.lists(st.integers(-300, 300), max_size=60)


@st.composite
def partitioners(draw: st.DrawFn, rows: bool = False) -> Partitioner:
    size, slide = draw(SHAPES)
    kind = draw(st.sampled_from(["window", "batch", "pane"]))
    if kind == "batch":
        return ByBatch(size, slide, draw(st.integers(1, 9)), rows=rows)
    return ByWindow(size, slide, rows=rows) if kind == "window" else ByPane(size, slide, rows=rows)


def holds(partitioner: Partitioner, partition: int, time: int) -> bool:
    start, end = partitioner.span(partition)
    return start <= time < end


@given(partitioners(), TIMES)
def test_a_row_is_copied_to_every_partition_whose_span_holds_it(partitioner: Partitioner, times: list[int]) -> None:
    rows, partitions = partitioner.assign(np.array(times, np.int64))
    expected = [(i, p) for i, t in enumerate(times) for p in range(-400, 400) if holds(partitioner, p, t)]
    assert list(zip(rows.tolist(), partitions.tolist(), strict=True)) == expected


@given(partitioners(rows=True), st.integers(0, 100))
def test_of_row_numbers_no_partition_starts_before_the_first(partitioner: Partitioner, n: int) -> None:
    rows, partitions = partitioner.assign(np.arange(n))
    expected = [(i, p) for i in range(n) for p in range(n + 1) if holds(partitioner, p, i)]
    assert list(zip(rows.tolist(), partitions.tolist(), strict=True)) == expected
    assert sorted(set(rows.tolist())) == list(range(n))


@given(partitioners(), st.integers(-50, 50))
def test_copies_of_a_row_are_as_many_as_the_paper_says(partitioner: Partitioner, start: int) -> None:
    w, s = partitioner.size, partitioner.slide
    b = partitioner.batch if isinstance(partitioner, ByBatch) else 1
    factor = {"window": Fraction(w, s), "batch": Fraction(w + (b - 1) * s, b * s), "pane": Fraction(1)}
    expected = factor[partitioner.name]
    assert partitioner.replication == pytest.approx(float(expected))
    whole = 3 * partitioner.extents.slide  # over whole slides the average is exact
    rows, _ = partitioner.assign(np.arange(start, start + whole))
    assert Fraction(len(rows), whole) == expected


@given(SHAPES, st.integers(1, 9), TIMES)
def test_a_batch_holds_all_rows_of_its_windows(shape: tuple[int, int], batch: int, times: list[int]) -> None:
    batches = ByBatch(*shape, batch)
    rows, partitions = batches.assign(np.array(times, np.int64))
    held: dict[int, set[int]] = {}
    for row, partition in zip(rows.tolist(), partitions.tolist(), strict=True):
        held.setdefault(partition, set()).add(row)
    for partition in held:
        for window in batches.windows_of(partition):
            start, end = batches.windows.span(window)
            assert {i for i, time in enumerate(times) if start <= time < end} <= held[partition]


@given(SHAPES, st.integers(1, 9), st.integers(-50, 50))
def test_every_window_is_in_one_batch(shape: tuple[int, int], batch: int, window: int) -> None:
    batches = ByBatch(*shape, batch)
    assert [p for p in range(-60, 60) if window in batches.windows_of(p)] == [window // batch]


@given(SHAPES, st.integers(-60, 60))
def test_a_pane_is_needed_by_the_windows_that_it_is_part_of(shape: tuple[int, int], pane: int) -> None:
    panes = ByPane(*shape)
    expected = [window for window in range(-200, 200) if pane in panes.panes_of(window)]
    assert list(panes.windows_of(pane)) == [window for window in expected if abs(window) < 200]
    start, end = panes.span(pane)
    for window in panes.windows_of(pane):
        low, high = panes.windows.span(window)
        assert low <= start < end <= high


@given(SHAPES, st.integers(-60, 60))
def test_a_window_is_its_panes(shape: tuple[int, int], window: int) -> None:
    panes = ByPane(*shape)
    spans = [panes.span(pane) for pane in panes.panes_of(window)]
    assert (spans[0][0], spans[-1][1]) == panes.windows.span(window)
    assert all(before[1] == after[0] for before, after in pairwise(spans))


@given(partitioners(), st.integers(-100, 100))
def test_a_partition_is_complete_when_the_watermark_passed_its_end(partitioner: Partitioner, watermark: int) -> None:
    partitions = np.arange(-150, 150)
    expected = [partitioner.span(p)[1] <= watermark for p in partitions.tolist()]
    assert partitioner.complete(partitions, watermark).tolist() == expected


@given(partitioners(), TIMES, st.integers(1, 50))
def test_blocks_are_the_same_copies(partitioner: Partitioner, times: list[int], most: int) -> None:
    stream = np.array(times, np.int64)
    blocks = list(partitioner.blocks(stream, most))
    rows, partitions = partitioner.assign(stream)
    assert np.concatenate([np.empty(0, np.int64), *(block[0] for block in blocks)]).tolist() == rows.tolist()
    assert np.concatenate([np.empty(0, np.int64), *(block[1] for block in blocks)]).tolist() == partitions.tolist()
    assert all(len(block[0]) <= max(most, int(np.ceil(partitioner.replication))) for block in blocks)


@given(partitioners(), st.lists(st.integers(-100, 100), max_size=20), st.integers(1, 8))
def test_workers_take_turns(partitioner: Partitioner, partitions: list[int], workers: int) -> None:
    expected = [partition % workers for partition in partitions]
    assert partitioner.worker_of(np.array(partitions, np.int64), workers).tolist() == expected


def test_the_papers_example_of_batches() -> None:
    # Figure 2: w = 3, s = 1, B = 3; of every 3 tuples 5 copies, where windows alone would make 9.
    rows, _ = ByBatch(3, 1, 3).assign(np.arange(30, 60))
    assert len(rows) == 50
    assert len(ByWindow(3, 1).assign(np.arange(30, 60))[0]) == 90


def test_what_cannot_be_partitioned_is_refused() -> None:
    with pytest.raises(SkewlessError, match="slide 5 is longer than size 3"):
        ByPane(3, 5)
    with pytest.raises(SkewlessError, match="batch of 0 windows"):
        ByBatch(3, 1, 0)
    with pytest.raises(SkewlessError, match="workers must be at least 1, not 0"):
        ByWindow(3, 1).worker_of(np.arange(3), 0)
    with pytest.raises(SkewlessError, match="at least 1 copy"):
        next(ByWindow(3, 1).blocks(np.arange(3), 0))
