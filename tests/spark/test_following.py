"""A hot spot that wanders over sixteen workers of a real query, and state that moves while rows come."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from skewless.api.watch import Watch
from skewless.core.counts import Counts
from skewless.core.hashing import xxhash64
from skewless.place.base import Owners
from support.streams import begin, partitions, start, stream_of, write_files

WORKERS, SLOTS, KEYS, ROWS, EVERY, SPOTS = 16, 256, 40_000, 60_000, 5, 3
PATIENCE = 600.0  # seconds, on a machine that is busy elsewhere


class Where(sk.SlotProcessor):
    """Counts the rows of a key, and tells the worker that had them."""

    state = "n long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        context = TaskContext.get()
        assert context is not None
        came = rows.group_by("group").aggregate([("group", "count")]).sort_by("group")["group_count"]
        n = pc.add(states["n"].fill_null(0), came)
        worker = pa.array([context.partitionId()] * len(n), pa.int32())
        return pa.table({"worker": worker, "came": came, "n": n}), pa.table({"n": n})


def wandering() -> list[pa.Table]:
    """Of 60 % of the rows the keys are two workers' by the first placement, two thirds of them ten hot ones each.

    Every few micro-batches it is two other workers'.
    """
    first = sk.place.make("even", slots=SLOTS).place(Counts.none(), None, WORKERS)
    owners, tables = first.worker_of(xxhash64(np.arange(KEYS))), []
    for batch in range(EVERY * SPOTS):
        chance = np.random.default_rng(batch)
        there = [np.flatnonzero(owners == (worker + 5 * (batch // EVERY)) % WORKERS) for worker in (3, 11)]
        kind = chance.random(ROWS)
        rows = np.where(kind < 0.6, chance.choice(np.concatenate(there), ROWS), chance.integers(0, KEYS, ROWS))
        hottest = np.concatenate([keys[:10] for keys in there])
        tables.append(pa.table({"key": np.where(kind < 0.4, chance.choice(hottest, ROWS), rows)}))
    return tables


@pytest.mark.long
def test_a_hot_spot_that_wanders_over_sixteen_workers_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    tables = wandering()
    busiest: dict[bool, list[float]] = {True: [], False: []}
    counted: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}

    def take(idle: bool, df: DataFrame, batch: int, watching: Watch) -> None:
        found = df.collect()
        assert watching.wait(batch, PATIENCE)  # back to back, the driver hears of the one before while this one runs
        loads = np.bincount([row["worker"] for row in found], [row["came"] for row in found], WORKERS)
        assert loads.sum() == ROWS  # no row waits for the next
        busiest[idle].append(float(loads.max() / loads.mean()))
        for row in found:
            counted[idle][row["key"]] = row["n"]

    with partitions(spark, WORKERS):
        queries = []
        for idle in (False, True):
            folder = tmp_path / f"{idle}"
            rows = stream_of(spark, folder / "in", tables[:1] if idle else tables)
            result = sk.keyed(rows, "key", workers=WORKERS, place="even").process(
                Where(), "worker int, came long, n long", folder=str(folder / "placement"), slots=SLOTS
            )
            queries.append(start(result, folder / "checkpoint", partial(take, idle), available_now=not idle))
            begin(queries[-1])
        back_to_back, with_idle_time = queries
        for batch, table in enumerate(tables, 1):
            write_files(tmp_path / "True" / "in", [table], batch - 1)
            with_idle_time.processAllAvailable()
            assert sk.watch(with_idle_time).wait(
                batch, PATIENCE
            )  # the driver has heard of it before the next one begins
    with_idle_time.stop()
    back_to_back.awaitTermination()
    every_row = Counter(key for table in tables for key in table["key"].to_pylist())
    for idle, settled in ((True, 3), (False, 4)):
        assert counted[idle] == every_row
        print(f"idle {idle}: " + " ".join(f"{over_mean:.2f}" for over_mean in busiest[idle]))
        for spot in range(SPOTS):
            there = busiest[idle][EVERY * spot : EVERY * (spot + 1)]
            assert there[0] > 2  # or nothing is followed
            # The rule leaves 1.2 as it is, by loads that are estimated from a sample of the rows.
            assert max(there[settled - 1 :]) <= 1.4, there


MANY, BYTES, EACH = 100_000, 1_000, 10_000


class Away(sk.place.Placer):
    """Has every slot on one of four workers at first, and on one of the four others when it is asked again."""

    name = "away"

    def _place(self, seen: Counts, previous: sk.place.Placement | None, workers: int) -> Owners:
        tail = np.arange(self.slots, dtype=np.int32) % 4 + (0 if previous is None else 4)
        return Owners(tail.astype(np.int32))


class Large(sk.SlotProcessor):
    """Keeps a number and 1 KB that is made from the key."""

    state = "n long, data binary"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        context = TaskContext.get()
        assert context is not None
        keys = states["key"].to_pylist()
        wanted = [key.to_bytes(8, "little") * (BYTES // 8) for key in keys]
        there = states["data"].to_pylist()
        assert all(data in (None, mine) for data, mine in zip(there, wanted, strict=True))
        came = rows.group_by("group").aggregate([("group", "count")]).sort_by("group")["group_count"]
        n = pc.add(states["n"].fill_null(0), came)
        worker = pa.array([context.partitionId()] * len(n), pa.int32())
        return pa.table({"worker": worker, "n": n}), pa.table({"n": n, "data": wanted})


@pytest.mark.long
def test_all_state_of_many_keys_moves_and_no_row_waits(spark: SparkSession, tmp_path: Path) -> None:
    # All 100 MB go from four workers to the four after them, while every micro-batch brings rows.
    keys = np.arange(MANY)
    some = [np.random.default_rng(i).choice(MANY, EACH, replace=False) for i in range(4)]
    tables = [pa.table({"key": each}) for each in (keys, *some, keys)]
    owners: dict[int, set[int]] = {}
    counted: Counter[int] = Counter()

    def take(df: DataFrame, batch: int, watching: Watch) -> None:
        found = df.collect()
        assert sorted(row["key"] for row in found) == sorted(tables[batch]["key"].to_pylist())  # each row at once
        owners[batch] = {row["worker"] for row in found}
        for row in found:
            counted[row["key"]] += 1
            assert row["n"] == counted[row["key"]]
        assert watching.wait(batch, PATIENCE)
        if batch == 1:
            assert len(watching.rebalance()) == SLOTS

    with partitions(spark, 8):
        rows = stream_of(spark, tmp_path / "in", tables)
        keyed = sk.keyed(rows, "key", workers=8, place=Away(SLOTS))
        still = sk.place.Rule(alpha=float("inf"))
        result = keyed.process(Large(), "worker int, n long", folder=str(tmp_path / "q"), slots=SLOTS, rule=still)
        query = start(result, tmp_path / "checkpoint", take)
    query.awaitTermination()
    assert [owners[batch] for batch in range(6)] == [{0, 1, 2, 3}] * 3 + [{4, 5, 6, 7}] * 3
    moved = sum(file.stat().st_size for file in (tmp_path / "q" / "moves" / "1").iterdir())
    assert moved > MANY * BYTES
