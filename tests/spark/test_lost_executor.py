"""Rows that were routed when an executor was lost arrive once, though tasks that run again give them other workers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

JOB = Path(__file__).with_name("lost_executor_job.py")

pytestmark = pytest.mark.long  # a cluster of two executors, which are killed and started again four times


def run(tmp_path: Path, *only: str) -> None:
    command = [sys.executable, str(JOB), str(tmp_path), "true", *only]
    with (tmp_path / "log.txt").open("w") as log:
        # Where it is started, Spark makes a folder of its cluster.
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=tmp_path, timeout=400)
    assert done.stdout.endswith("finished\n"), (tmp_path / "log.txt").read_text()[-3000:]


def test_no_row_is_lost_or_doubled_with_an_executor(tmp_path: Path) -> None:
    run(tmp_path)
    wanted = sorted(pq.read_table(tmp_path / "in")["id"].to_pylist())
    for split in ("dalton", "bounded"):
        assert (tmp_path / f"{split}-done" / "killed").exists()
        assert sorted(pq.read_table(tmp_path / split)["id"].to_pylist()) == wanted, split
    assert (tmp_path / "agg-done" / "killed").exists()
    assert sum(pq.read_table(tmp_path / "agg")["total"].to_pylist()) == sum(wanted)


def test_tasks_that_run_again_are_learned_from_once(tmp_path: Path) -> None:
    run(tmp_path, "together")
    assert (tmp_path / "together-done" / "killed").exists()
    wanted = sorted(pq.read_table(tmp_path / "in")["id"].to_pylist())
    assert sorted(pq.read_table(tmp_path / "together")["id"].to_pylist()) == wanted
    assert re.search(r"Q-table version 1: \d+ hot keys, from 4 tasks", (tmp_path / "explained").read_text())
