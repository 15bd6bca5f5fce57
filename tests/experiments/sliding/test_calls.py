"""What is called for Linear Road's statistics, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import sliding_apply
from experiments.sliding import calls
from experiments.sliding.calls import Called, Calls, Road, called
from experiments.sliding.measured import Spark
from experiments.sliding.on_spark import ROAD_WORKERS, OnSpark, _road_batch

ROAD = {
    "Spark's groupBy(window)": {"100": 3.0, "300": 5.0},
    "apply by window": {"100": 3.0, "300": 4.0},
    "apply by batch": {"100": 3.0, "300": 5.0},
    "apply by pane": {"100": 3.0, "300": 7.0},
}


def test_windows_from_panes_have_the_statistics_of_windows_from_rows() -> None:
    road = Road(20_000, keys_of=20)
    whole, merged = road.by_window(), road.merged(road.by_pane())
    assert len(whole) == len(road.of_windows.starts) > len(road.of_panes.starts) > 100
    for name in ("n", "least", "most", "mean"):
        assert merged[name].to_pylist() == pytest.approx(whole[name].to_pylist())


def test_the_functions_are_those_that_were_measured_on_spark() -> None:
    road = Road(20_000, keys_of=20)
    table = pa.Table.from_batches([road.speeds.slice(0, 7)])
    assert calls.of_window((1,), None, table) == sliding_apply._plain((1,), None, table)
    assert calls.of_pane((1,), None, table) == sliding_apply._plain_pane((1,), None, table)
    panes = [calls.of_pane((1,), None, table)] * 3
    assert calls.of_panes((1,), None, panes) == sliding_apply._plain_window((1,), None, panes)


def test_calls_are_counted_for_a_row_of_the_stream() -> None:
    road, found = Road(20_000, keys_of=20), called(20_000, keys_of=20, times=1)
    rows = road.speeds.num_rows
    assert found.window.calls == found.merge.calls == len(road.of_windows.starts) / rows
    assert found.pane.calls == len(road.of_panes.starts) / rows
    assert found.pane.calls * found.pane.given == pytest.approx(1)  # each row is in one pane
    assert found.merge.given == pytest.approx(np.mean(road.of_answers.stops - road.of_answers.starts))
    assert all(each.seconds > 0 for each in (found.window, found.pane, found.merge))


def test_what_a_row_costs_is_its_share_of_the_calls() -> None:
    found = Calls(Called(0.5, 100.0, 4e-6), Called(0.25, 4.0, 8e-6), Called(0.5, 60.0, 2e-6))
    assert [each.of_row for each in (found.window, found.pane, found.merge)] == pytest.approx([2e-6, 2e-6, 1e-6])


def test_the_order_of_the_ways_is_checked_and_what_turns_it_round_is_said_with_its_numbers() -> None:
    counted = Calls(Called(0.6, 167.0, 20e-6), Called(0.36, 2.8, 25e-6), Called(0.6, 60.0, 30e-6))
    best, batch, pane = OnSpark(Spark({"road": ROAD}), counted)._road_checks()
    assert (best.essential, batch.essential, pane.essential) == (True, False, False)
    assert (best.value, batch.value, pane.value) == pytest.approx((2.0, 0.5, 0.5))
    assert (best.holds, batch.holds, pane.holds) == (True, False, False)
    for number in ("20 us for a window of 167 rows", "25 us for a pane of 2.8", "30 us for the 60 answers"):
        assert number in pane.why
    assert "12 us a row by window and 27 by pane" in pane.why
    paper = {**ROAD, "apply by batch": {"100": 3.0, "300": 3.9}, "apply by pane": {"100": 3.0, "300": 3.8}}
    assert all(check.holds for check in OnSpark(Spark({"road": paper}))._road_checks())


def test_linear_roads_batches_are_of_one_window_as_is_said_of_them() -> None:
    assert ROAD_WORKERS == sliding_apply.ROAD_CORES
    assert _road_batch() == 1
