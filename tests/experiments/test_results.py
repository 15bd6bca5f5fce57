from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import results
from experiments.figure import Check, Measured, Scaled, Table
from experiments.results import Record
from skewless.core.errors import SkewlessError

RECORD = Record(
    "dalton-9",
    "small",
    "Shifts",
    "Dalton adapts.",
    (Scaled("tuples", "10^9", "10^7"), Scaled("n", "64", "64")),
    "1.4 times",
    (Check("gain", 1.4, low=1.3, high=6), Check("drop", math.inf, high=2, essential=False, why="It is | slow.")),
    (
        Table(
            "Throughput", ("algorithm", "rows/s", "error"), (("hash", 12_345, Measured(1.25, 0.5)), ("x", 0.125, "-"))
        ),
    ),
    "figures/dalton-9-small.svg",
    12.5,
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "results" / "figures.json"
    results.write(file, [RECORD])
    assert results.read(file) == [RECORD]


@given(
    st.floats(allow_nan=False),
    st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda x: float(f"{x:.6g}"))),
    st.text(max_size=20),
)
def test_whether_a_check_holds_survives_the_file(value: float, low: float | None, name: str) -> None:
    value = float(f"{value:.6g}")
    record = replace(RECORD, checks=(Check(name, value, low, high=100.0),))
    assert results._record(json.loads(results._lines(results._data(record)))) == record


def test_the_file_says_what_was_found(tmp_path: Path) -> None:
    results.write(tmp_path / "figures.json", [RECORD])
    (data,) = json.loads((tmp_path / "figures.json").read_text())
    assert (data["id"], data["scale"], data["claim"], data["verdict"]) == (
        "dalton-9",
        "small",
        "Dalton adapts.",
        "partly",
    )
    assert data["why"] == "drop: It is | slow."
    assert data["command"] == "make figures FIG=dalton-9"
    shown = [(check["name"], check["value"], check["bound"], check["holds"]) for check in data["checks"]]
    assert shown == [("gain", 1.4, "1.3 to 6", True), ("drop", "inf", "at most 2", False)]


def test_records_come_by_paper_number_and_scale(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    names = [("gedik-3", "small"), ("dalton-10", "small"), ("dalton-9", "full"), ("dalton-9", "small")]
    results.write(file, [replace(RECORD, id=name, scale=scale) for name, scale in names])
    found = [(record.id, record.scale) for record in results.read(file)]
    assert found == [("dalton-9", "small"), ("dalton-9", "full"), ("dalton-10", "small"), ("gedik-3", "small")]


def test_a_new_record_replaces_only_its_own_figure_and_scale() -> None:
    others = [replace(RECORD, scale="full"), replace(RECORD, id="dalton-10")]
    new = replace(RECORD, found="other")
    assert results.put([RECORD, *others], new) == [*others, new]


def test_why_is_said_of_what_does_not_hold_only() -> None:
    assert replace(RECORD, checks=(Check("a", 1, low=0, why="never said"),)).why == ""
    assert replace(RECORD, checks=(Check("a", 1, low=2),)).why == "a: the cause is not known."


def test_a_file_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    assert results.read(tmp_path / "none.json") == []


@pytest.mark.parametrize("text", ["not json", '[{"id": "dalton-9"}]', "[3]"])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "figures.json"
    file.write_text(text)
    with pytest.raises(SkewlessError, match="is no file of figures"):
        results.read(file)
