"""Workers that come and go several at a time on a real streaming query, under every placer, against plain Python."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.api.watch import Watch
from skewless.workload import Zipf
from support.streams import begin, partitions, start, stream_of

BATCHES, SLOTS, KEYS = 9, 16, 100
FEW = (3, 2, 4)
"""How many workers are asked for after micro-batches 1, 3 and 5; each number is in force two micro-batches later."""
MANY = (4, 2, 8)
PLACERS: dict[str, str | sk.place.Placer] = {
    "hash": "hash",
    **{name: name for name in sk.place.NAMES if name != "uniform"},
    "readj, tail": sk.place.Readj(slots=SLOTS, tail=True),
}


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
    """A stream of a hundred keys, of which some are hot."""
    chance = np.random.default_rng(8)
    weights = 1 / np.arange(1, KEYS + 1)
    keys = [chance.choice(KEYS, 800, p=weights / weights.sum()) for _ in range(BATCHES)]
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


# In `make test` a placer by hashes alone and one by loads: tests/place/test_growth.py has them all, without Spark.
@pytest.mark.parametrize(
    ("names", "workers"), [(["consistent", "readj"], FEW), pytest.param([*PLACERS], MANY, marks=pytest.mark.long)]
)
def test_any_number_of_workers_come_and_go_under_every_placer(
    spark: SparkSession, tmp_path: Path, names: list[str], workers: tuple[int, int, int]
) -> None:
    # A query for each placer, all at the same time: a query alone waits more than it works.
    tables = batches()
    wanted = expected(tables)
    sizes = dict(zip((1, 3, 5), workers, strict=True))
    given: dict[str, dict[int, Counter[Any]]] = {name: {} for name in names}
    active: dict[str, dict[int, int]] = {name: {} for name in names}

    def scale(name: str, df: DataFrame, batch: int, watching: Watch) -> None:
        given[name][batch] = Counter(map(tuple, df.collect()))
        assert watching.wait(batch)
        if not batch:
            return  # nothing is known yet
        active[name][batch] = before = watching.placement.workers
        if batch in sizes:
            moves = watching.rebalance(sizes[batch])
            assert set(range(before, sizes[batch])) <= {move.target for move in moves}  # new workers all get something
            assert {move.target for move in moves} <= set(range(sizes[batch]))

    with partitions(spark, workers[-1]):
        rows, queries = stream_of(spark, tmp_path / "in", tables), {}
        still = sk.place.Rule(alpha=float("inf"))  # only what is asked for
        for name in names:
            folder, checkpoint = tmp_path / name, tmp_path / f"{name} checkpoint"
            result = sk.keyed(rows, "key", workers=1, place=PLACERS[name]).process(
                Totals(), "n long, total long", folder=str(folder), slots=SLOTS, rule=still
            )
            queries[name] = start(result, checkpoint, partial(scale, name))
            begin(queries[name])
    for name, query in queries.items():
        query.awaitTermination()
        watching = sk.watch(query)
        assert watching.wait(BATCHES)
        assert given[name] == wanted
        assert [active[name][batch] for batch in (1, 3, 5, 7)] == [1, *workers]
        assert set(watching.loads) == set(range(workers[-1]))
        assert all(watching.loads.values())
        moves = tmp_path / name / "moves"
        handed = [sum(file.stat().st_size for file in (moves / str(version)).iterdir()) for version in (1, 2, 3)]
        assert min(handed) > 1000  # state moved each time


@pytest.mark.long
def test_a_zipf_stream_is_balanced_by_four_workers_by_eight_and_by_six(spark: SparkSession, tmp_path: Path) -> None:
    stream, sizes = Zipf(1.0, keys=10_000, seed=5), {2: 8, 5: 6}
    keys = list(stream.blocks(9 * 20_000, block=20_000))
    tables = [pa.table({"key": some, "v": some % 7}) for some in keys]
    wanted = expected(tables)
    placers = [kind(slots=64, tail=True) for kind in (sk.place.Scan, sk.place.Redist, sk.place.Readj)]
    given: dict[str, dict[int, Counter[Any]]] = {}
    loads: dict[str, dict[int, list[int]]] = {}

    def scale(name: str, df: DataFrame, batch: int, watching: Watch) -> None:
        given.setdefault(name, {})[batch] = Counter(map(tuple, df.collect()))
        assert watching.wait(batch)
        if batch:
            loads.setdefault(name, {})[batch - 1] = [rows for _worker, rows in sorted(watching.loads.items())]
        if batch in sizes:
            watching.rebalance(sizes[batch])

    with partitions(spark, 8):
        rows, queries = stream_of(spark, tmp_path / "in", tables), {}
        still = sk.place.Rule(alpha=float("inf"))  # only what is asked for
        for placer in (*placers, sk.place.Even(slots=64)):
            result = sk.keyed(rows, "key", workers=4, place=placer).process(
                Totals(), "n long, total long", folder=str(tmp_path / placer.name), rule=still
            )
            queries[placer.name] = start(result, tmp_path / f"{placer.name} checkpoint", partial(scale, placer.name))
            begin(queries[placer.name])
    for name, query in queries.items():
        query.awaitTermination()
        assert given[name] == wanted
        for batch, workers in ((0, 4), (4, 8), (7, 6)):
            there = loads[name][batch]
            print(f"{name}, {workers} workers: {max(there) * workers / sum(there):.2f}")
            assert len(there) == workers
            assert all(there)
            # Before the first change slots are spread blindly, and the most frequent key has a tenth of the rows.
            assert batch == 0 or max(there) * workers / sum(there) <= 1.15, name
