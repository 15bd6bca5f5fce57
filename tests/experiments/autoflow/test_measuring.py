"""How AutoFlow's workloads are measured on Spark: the files of the source, and what a micro-batch says of itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.autoflow import SLICE, _batch, asked_for, chosen, seconds_of, write_slices
from experiments.autoflow.setting import FIXED, HALVES, SPIKES, WANDERING, Case, bids, rate
from skewless.control.version import Version


def test_the_files_of_the_source_have_each_bid_once_when_its_time_is_over(tmp_path: Path) -> None:
    case = Case("a b", 3, (), 2.0, 1)
    slices = write_slices(tmp_path / "in", case, 3.0)  # longer than the workload is
    early, late = slices[:2], slices[2:]
    assert [due for due, _path in late] == [SLICE * i for i in range(1, 13)]
    tables = [pq.read_table(path) for _due, path in late]
    at, auction, _price = bids(replace(case, seconds=3.0))
    assert len(at) == pytest.approx(3 * rate(3), rel=0.01)
    assert np.concatenate([table["at"] for table in tables]).tolist() == at.tolist()
    assert np.concatenate([table["auction"] for table in tables]).tolist() == auction.tolist()
    assert np.concatenate([table["number"] for table in tables]).tolist() == list(range(len(at)))
    for due, table in zip([due for due, _path in late], tables, strict=True):
        assert due - SLICE <= min(table["at"].to_pylist()) <= max(table["at"].to_pylist()) < due
    for _due, path in early:  # rows that start the query and are not measured
        assert set(pq.read_table(path)["at"].to_pylist()) == {-1.0}
    assert [path.name for _due, path in slices] == sorted(path.name for _due, path in slices)


@pytest.mark.parametrize(("version", "announced"), [(Version(3), False), (Version(3, 4), True)])
def test_whether_a_placement_was_announced_is_what_the_rows_of_the_micro_batch_bore(
    version: Version, announced: bool
) -> None:
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    progress = {
        "timestamp": "2026-01-01T00:00:05.250Z",
        "durationMs": {"triggerExecution": 1500},
        "observedMetrics": {"other": {"control": 7}, "placed 1 sent": {"control": version.code}},
    }
    found = _batch(progress, ([10, 20], [[0.5], []]), start.timestamp())
    assert found == {
        "began": 5.25,
        "commit": 6.75,
        "force": 3,
        "announced": announced,
        "rows": [10, 20],
        "at": [[0.5], []],
    }


def test_without_a_wish_the_runs_that_figures_need_most_are_measured_in_a_quarter_of_an_hour() -> None:
    usual = chosen([])
    assert sum(seconds_of(case, name) for case, name in usual) < 15 * 60
    assert {name for case, name in usual if case is FIXED[0]} == {"off", "autoflow"}
    assert {name for case, name in usual if case in SPIKES} == {"off", "autoflow"}
    assert chosen(["6a/even"]) == [(SPIKES[0], "even")]
    assert chosen(["8"]) == []
    assert len(chosen(["5ef", "5ij", "5mn"])) == 6
    assert {case for case, _name in usual} == {FIXED[0], *SPIKES, *WANDERING}


def test_all_that_is_not_usual_can_be_asked_for_by_name() -> None:
    assert chosen(["/even"]) == [(case, "even") for case in (*FIXED, *SPIKES, *WANDERING)]
    assert chosen(["half/autoflow"]) == [(case, "autoflow") for case in HALVES]
    assert {case.name.removeprefix("half ").removesuffix(", half the rows") for case in HALVES} == {
        case.name for case in FIXED[1:]
    }
    for case in FIXED:
        assert seconds_of(case, "off") >= 105
        assert seconds_of(case, "even") >= 135
        assert seconds_of(case, "autoflow") >= seconds_of(case, "off")
    for case in (FIXED[0], FIXED[-1]):  # a micro-batch of the last one can take over four seconds
        assert seconds_of(case, "autoflow") == 200


def test_a_name_that_is_none_is_refused_beside_others() -> None:
    with pytest.raises(SystemExit, match="no workload begins with 5xy/even; there are 5ab, 5ef, 5ij, 5mn, 6a"):
        asked_for(["5ef", "5xy/even"])
    assert asked_for(["5ef"]) == [(FIXED[1], "off"), (FIXED[1], "autoflow")]


def test_half_the_rows_are_half_of_them() -> None:
    at, _auction, _price = bids(replace(HALVES[0], seconds=4.0, spots=()))
    assert len(at) == pytest.approx(4 * rate(3) / 2, rel=0.02)
