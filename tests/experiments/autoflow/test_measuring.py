"""How AutoFlow's workloads are measured on Spark: the files of the source, and what a micro-batch says of itself."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.autoflow import PLACERS, SLICE, _batch, asked_for, chosen, write_slices
from experiments.autoflow.setting import FIXED, SPIKES, WANDERING, Case, bids, rate
from skewless.control.version import Version


def test_the_files_of_the_source_have_each_bid_once_when_its_time_is_over(tmp_path: Path) -> None:
    case = Case("a b", 3, (), 3.0, 1)
    slices = write_slices(tmp_path / "in", case)
    early, late = slices[:2], slices[2:]
    assert [due for due, _path in late] == [SLICE * i for i in range(1, 13)]
    tables = [pq.read_table(path) for _due, path in late]
    at, auction, _price = bids(case)
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


def test_workloads_are_chosen_by_how_their_names_begin_and_by_placer() -> None:
    every = (*FIXED, *SPIKES, *WANDERING)
    assert {name for case, name in chosen([]) if case is FIXED[0]} == set(PLACERS)
    assert [case for case, name in chosen([]) if name == "autoflow"] == list(every)
    assert chosen(["6a/even"]) == [(SPIKES[0], "even")]
    assert chosen(["5ef", "5ij", "5mn"]) == [(case, name) for case in FIXED[1:] for name in PLACERS]
    assert chosen(["/even"]) == [(case, "even") for case in every]
    assert chosen(["8"]) == []


def test_a_limit_of_the_source_is_a_whole_number_of_its_files() -> None:
    for case in (*FIXED, *SPIKES, *WANDERING):
        assert case.most is not None
        assert case.most / SLICE == round(case.most / SLICE)


def test_a_name_that_is_none_is_refused_beside_others() -> None:
    with pytest.raises(SystemExit, match="no workload begins with 5xy/even; there are 5ab, 5ef, 5ij, 5mn, 6a"):
        asked_for(["5ef", "5xy/even"])
    assert asked_for(["5ef"]) == [(FIXED[1], name) for name in PLACERS]
