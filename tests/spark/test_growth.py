"""Workers that come and go several at a time on a real streaming query, under every placer, against plain Python."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from skewless.control.placing import Placing
from skewless.spark.listen import wait_until
from support.streams import partitions, run, stream_of

SIZES = {1: 4, 3: 2, 5: 8}
"""After how many micro-batches how many workers are asked for; in force two or three micro-batches later."""
BATCHES, SLOTS, KEYS = 9, 64, 300


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


def placing(watching: Watch, streams: int, batches: int) -> list[Placing]:
    """The loops of all streams of the query, once each has learned from so many micro-batches."""
    known = watching._run
    assert wait_until(lambda: len(known.loops) == streams and all(loop.batches >= batches for loop in known.loops), 60)
    return [loop for loop in known.loops if isinstance(loop, Placing)]


def test_any_number_of_workers_come_and_go_under_every_placer(spark: SparkSession, tmp_path: Path) -> None:
    # One query with a stream for each placer, because most of the time of a micro-batch is the query's own.
    tables, active = batches(), dict[str, list[int]]()
    names = ["hash", *(name for name in sk.place.NAMES if name != "uniform")]

    def scale(batch: int, watching: Watch) -> None:
        if not batch:
            return  # nothing is known yet
        loops = placing(watching, len(names), batch)
        for loop in loops:
            active.setdefault(loop.name, []).append(loop.placement.workers)
            if batch in SIZES:
                before, after = loop.placement.workers, SIZES[batch]
                moves = loop.rebalance(after)
                assert set(range(before, after)) <= {move.target for move in moves}  # every new worker gets something
                assert {move.target for move in moves} <= set(range(after))

    with partitions(spark, 8):
        rows, results = stream_of(spark, tmp_path / "in", tables), []
        still = sk.place.Rule(alpha=float("inf"))  # only what is asked for
        for name in names:
            stream = sk.keyed(rows, "key", workers=1, place=name, name=name)
            folder = str(tmp_path / "folders" / name)
            result = stream.process(Totals(), "n long, total long", folder=folder, slots=SLOTS, rule=still)
            results.append(result.withColumn("placer", F.lit(name)))
        given, watching = run(reduce(DataFrame.unionByName, results), tmp_path / "checkpoint", scale)
    wanted = expected(tables)
    for batch, found in given.items():
        assert Counter(found) == Counter({(*row, name): n for name in names for row, n in wanted[batch].items()})
    assert sorted(given) == list(range(BATCHES))
    for loop in placing(watching, len(names), BATCHES):
        assert [active[loop.name][batch - 1] for batch in (1, 3, 5, 7)] == [1, 4, 2, 8]
        assert set(loop.loads) == set(range(8))
        assert all(loop.loads.values())
        moves = tmp_path / "folders" / loop.name / "moves"
        handed = [sum(file.stat().st_size for file in (moves / str(version)).iterdir()) for version in (1, 2, 3)]
        assert min(handed) > 1000  # state moved each time
