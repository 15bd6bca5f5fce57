"""Partial states: the same for rows in any pieces, in memory that does not follow the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skewless import aggregate
from skewless.aggregate.user import PooledKernel
from skewless.core.windows import Windows
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.partials import Partials


class Total(aggregate.Aggregate):
    def partial(self, table: pa.Table) -> pa.Table:
        return table.group_by("group").aggregate([("v", "sum")]).rename_columns(["group", "total"])

    def merge(self, table: pa.Table) -> pa.Table:
        return table.group_by("group").aggregate([("total", "sum")]).rename_columns(["group", "total"])

    def finish(self, table: pa.Table) -> pa.Table:
        return table


def rows(chance: np.random.Generator, n: int) -> pa.RecordBatch:
    times = pa.array(chance.integers(0, 30, n)).cast(pa.timestamp("us"))
    keys = pa.array(chance.integers(0, 20, n))
    return pa.RecordBatch.from_arrays([keys, times, keys, pa.array(chance.integers(0, 9, n))], names=list("htkv"))


def sums(states: pa.RecordBatch) -> dict[tuple[int, int], int]:
    _, pane, key, seen, total = states.columns
    assert all(seen.to_pylist())
    return dict(zip(zip(pane.to_pylist(), key.to_pylist(), strict=True), total.to_pylist(), strict=True))


def test_rows_in_any_pieces_give_the_same_states_and_nothing_else_stays() -> None:
    kernel = Total("v").bind([pa.int64()])
    assert isinstance(kernel, PooledKernel)
    layout = Layout(Windows(20, 10), (pa.int64(),), (kernel,))
    whole = rows(np.random.default_rng(1), 50_000)
    once, pieces = Partials(layout, ((3,),)), Partials(layout, ((3,),))
    once.add(whole)
    expected = once.all()
    assert expected is not None
    wanted: dict[tuple[int, int], int] = {}
    for _, time, key, value in zip(*(column.to_pylist() for column in whole.columns), strict=True):
        at = (int(np.datetime64(time, "us").astype(int)) // 10, key)
        wanted[at] = wanted.get(at, 0) + value
    assert sums(expected) == wanted
    for start in range(0, 50_000, 100):
        pieces.add(whole.slice(start, 100))
        assert kernel.pool.size == 0
    found = pieces.all()
    assert found is not None
    assert sums(found) == wanted


def test_rows_without_a_time_do_not_count() -> None:
    layout = Layout(Windows(20, 10), (pa.int64(),), (aggregate.count().bind([]),))
    states = Partials(layout, ((),))
    one = pa.array([7, 7])
    states.add(pa.RecordBatch.from_arrays([one, pa.array([None, 5], pa.timestamp("us")), one], names=list("htk")))
    found = states.all()
    assert found is not None
    assert found.column(3).to_pylist() == [1]
