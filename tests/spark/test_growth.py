"""Workers that come and go several at a time on a real streaming query, under every placer, against plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import skewless as sk
from skewless.api.watch import Watch
from support.streams import partitions, run, stream_of

SIZES = {1: 4, 3: 2, 5: 8}
"""After how many micro-batches how many workers are asked for. Each change is announced in one and in force in two."""
BATCHES, SLOTS, KEYS = 8, 64, 300


class Totals(sk.SlotProcessor):
    """The rows of a key so far, and the sum of their values."""

    state = "n long, total long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        found = rows.group_by("group").aggregate([("v", "count"), ("v", "sum")]).sort_by("group")
        n = pa.compute.add(states["n"].fill_null(0), found["v_count"])
        total = pa.compute.add(states["total"].fill_null(0), found["v_sum"])
        kept = pa.table({"n": n, "total": total})
        return kept, kept


def batches() -> list[pa.Table]:
    """A stream of a few hundred keys, of which some are hot."""
    chance = np.random.default_rng(8)
    weights = 1 / np.arange(1, KEYS + 1)
    keys = [chance.choice(KEYS, 1500, p=weights / weights.sum()) for _ in range(BATCHES)]
    return [pa.table({"key": some, "v": chance.integers(0, 1000, len(some))}) for some in keys]


def expected(tables: list[pa.Table]) -> dict[int, Counter[Any]]:
    kept: dict[int, tuple[int, int]] = {}
    given = {}
    for i, table in enumerate(tables):
        touched = set()
        for key, value in zip(table["key"].to_pylist(), table["v"].to_pylist(), strict=True):
            n, total = kept.get(key, (0, 0))
            kept[key] = n + 1, total + value
            touched.add(key)
        given[i] = Counter((key, *kept[key]) for key in touched)
    return given


@pytest.mark.parametrize("name", sk.place.NAMES)
def test_any_number_of_workers_come_and_go(spark: SparkSession, tmp_path: Path, name: str) -> None:
    tables, folder = batches(), tmp_path / "folder"
    active: dict[int, int] = {}

    def scale(batch: int, watching: Watch) -> None:
        assert watching.wait(batch)
        if batch in SIZES:
            moves = watching.rebalance(SIZES[batch])
            before, after = watching.placement.workers, SIZES[batch]
            if after > before:  # every new worker gets something, and none that goes keeps anything
                assert set(range(before, after)) <= {move.target for move in moves}
            assert {move.target for move in moves} <= set(range(after))
        active[batch] = watching.placement.workers

    with partitions(spark, 8):
        stream = sk.keyed(stream_of(spark, tmp_path / "in", tables), "key", workers=1, place=name)
        still = sk.place.Rule(alpha=float("inf"))  # only what is asked for
        result = stream.process(Totals(), "n long, total long", folder=str(folder), slots=SLOTS, rule=still)
        given, watching = run(result, tmp_path / "checkpoint", scale)
    assert {batch: Counter(rows) for batch, rows in given.items()} == expected(tables)
    assert watching.wait(BATCHES)
    assert [active[batch] for batch in (1, 3, 5, 7)] == [1, 4, 2, 8]
    assert set(watching.loads) == set(range(8))
    assert all(rows > 0 for rows in watching.loads.values())
    handed = [sum(file.stat().st_size for file in (folder / "moves" / str(i)).iterdir()) for i in (1, 2, 3)]
    assert min(handed) > 1000  # state moved each time
