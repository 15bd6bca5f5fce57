"""Processors with state per key, against Spark's own three ways to write one in Python, in one run.

Claim tested: Spark calls Python for each key, which costs a fixed time a key whatever it does; owners of slots are
called once for thousands of keys, so that the same processor costs far less, and less again a slot at a time.

What measuring taught. A key takes 10 us key by key and 7 us a slot at a time, against 237 us with the fastest of
Spark's ways. The JVM compiles for some twenty micro-batches before ours run at their pace, which is why so many do not
count. What a micro-batch writes follows the keys that have rows in it: it is 1.6 MB where 100,000 keys are held, and
2.2 MB where 5 million are.

`make bench-place` runs this and writes it to docs/results/place.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import skewless as sk

KEYS, BATCHES, WARM, HELD = 100_000, 36, 20, 5_000_000
COLUMNS = "key long, value long"
SCHEMA = "total long"
SPARK_SCHEMA = f"key long, {SCHEMA}"


class Total(sk.Processor):
    """A running sum, key by key."""

    state = "total long"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[int]]:
        """Add the rows."""
        state["total"] = (state["total"] or 0) + sum(rows["value"])
        yield (state["total"],)


class Totals(sk.SlotProcessor):
    """A running sum, a slot at a time."""

    state = "total long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Add the rows of all keys."""
        starts = np.flatnonzero(np.diff(np.asarray(rows["group"]), prepend=-1))
        sums = np.add.reduceat(np.asarray(rows["value"]), starts)
        total = pc.add(pc.fill_null(states["total"], 0), pa.array(sums))
        return pa.table({"total": total}), pa.table({"total": total})


class PandasTotal(StatefulProcessor):
    """A running sum by Spark's `transformWithStateInPandas`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Add the rows."""
        old = self._total.get()
        total = (old[0] if old else 0) + sum(int(frame["value"].sum()) for frame in rows)
        self._total.update((total,))
        yield pd.DataFrame({"key": [key[0]], "total": [total]})

    def close(self) -> None:
        """Nothing to close."""


class RowTotal(StatefulProcessor):
    """A running sum by Spark's `transformWithState` on rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._total = handle.getValueState("total", "total long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Add the rows."""
        old = self._total.get()
        total = (old[0] if old else 0) + sum(row.value for row in rows)
        self._total.update((total,))
        yield Row(key=key[0], total=total)

    def close(self) -> None:
        """Nothing to close."""


def apply_total(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A running sum by Spark's `applyInPandasWithState`."""
    total = (state.get[0] if state.exists else 0) + sum(int(frame["value"].sum()) for frame in frames)
    state.update((total,))
    yield pd.DataFrame({"key": [key[0]], "total": [total]})


def table(spark: SparkSession, folder: Path) -> list[str]:
    """The five ways on the same stream, and what they cost when many keys are held."""
    files = folder / "keys"
    write_stream(files, KEYS, BATCHES)
    rows = []
    for name in ("transformWithStateInPandas", "applyInPandasWithState", "transformWithState", "each key", "slot"):
        # Those with pandas take minutes for a micro-batch: there is one, and it counts.
        # Ours take a second, so that the JVM has to compile for some before it runs at its pace.
        batches, skip = {"transformWithState": (2, 1), "each key": (BATCHES, WARM), "slot": (BATCHES, WARM)}.get(
            name, (1, 0)
        )
        rows.append((name, run(spark, files, COLUMNS, partial(_query, name), batches, skip)[:2]))
        print(rows[-1], flush=True)
    rival = min(seconds for _name, (seconds, _bytes) in rows[:3])
    lines = [
        f"A running sum, {KEYS:,} keys in every micro-batch, one row each. The first micro-batch of",
        f"`transformWithState` and the first {WARM} of `process` do not count, some 20 s of each; those with pandas",
        "have one.",
        "",
        "| | s a micro-batch | us a key | speed, of the fastest of Spark's |",
        "|---|---|---|---|",
    ]
    for name, (seconds, _bytes) in rows:
        ours = {"each key": "`process`, key by key", "slot": "`process`, a slot at a time"}.get(name, f"`{name}`")
        lines.append(f"| {ours} | {seconds:.2f} | {seconds / KEYS * 1e6:.0f} | {rival / seconds:.1f} |")
    return [*lines, "", *held(spark, folder)]


def held(spark: SparkSession, folder: Path) -> list[str]:
    """What a micro-batch writes when few of the keys that are held have rows."""
    lines = [
        f"{KEYS:,} keys of those held have a row in a micro-batch, chosen at random; a slot at a time; means of ten",
        "micro-batches after one with all keys. Bytes are what Spark's changelog got. A slot is written anew once what",
        "changed is 2 to 4 times what it holds: later than in these micro-batches, so that its share is added.",
        "",
        "| keys held | s a micro-batch | MB written a micro-batch | with writing anew |",
        "|---|---|---|---|",
    ]
    for keys in (KEYS, HELD):
        files = folder / f"held-{keys}"
        write_held(files, keys, 12)
        seconds, written = run(spark, files, COLUMNS, partial(_query, "slot"), 13, skip=3)[:2]
        all_keys = _written(files.parent / "work", [0])
        anew = all_keys / (3 * keys / KEYS) if keys > KEYS else 0.0  # with all keys touched, anew is how it is written
        lines.append(f"| {keys:,} | {seconds:.2f} | {written / 1e6:.1f} | {(written + anew) / 1e6:.1f} |")
        print(lines[-1], flush=True)
    return lines


def write_stream(folder: Path, keys: int, batches: int) -> None:
    """All keys in every file."""
    folder.mkdir()
    for i in range(batches):
        order = np.random.default_rng(i).permutation(keys)
        write(folder, i, _rows(order))


def write_held(folder: Path, keys: int, batches: int) -> None:
    """All keys, and then some of them again and again."""
    folder.mkdir()
    write(folder, 0, _rows(np.arange(keys)))
    for i in range(batches):
        some = np.random.default_rng(i).choice(keys, KEYS, replace=False)
        write(folder, 1 + i, _rows(some))


def _rows(keys: Any) -> pa.Table:
    return pa.table({"key": keys, "value": keys % 1000})


def write(folder: Path, i: int, rows: pa.Table) -> None:
    """The rows of a micro-batch, in a file of its own."""
    path = folder / f"{i:03}.parquet"
    # Row groups, so that both cores read.
    pq.write_table(rows, path, row_group_size=len(rows) // 2 + 1)
    os.utime(path, (1_000_000 + i,) * 2)


def run(
    spark: SparkSession,
    files: Path,
    columns: str,
    build: Callable[[DataFrame, Path], DataFrame],
    batches: int,
    skip: int = 1,
) -> tuple[float, float, StreamingQuery]:
    """Seconds of a micro-batch, the bytes it wrote to state, and the query, which has ended.

    Parameters
    ----------
    spark
        The session.
    files, columns
        A folder with a file for each micro-batch, and the columns in them.
    build
        The result for the rows, with a folder for what the query keeps.
    batches, skip
        How many micro-batches there are, and how many of the first ones do not count.
    """
    reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    work = files.parent / "work"
    shutil.rmtree(work, ignore_errors=True)
    some = work / "in"
    some.mkdir(parents=True)
    for path in sorted(files.iterdir())[:batches]:
        shutil.copy2(path, some / path.name)
    result = build(reader.parquet(str(some)), work)
    writer = result.writeStream.format("noop").option("checkpointLocation", str(work / "checkpoint"))
    query = writer.outputMode("update").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [batch for batch in query.recentProgress if batch["numInputRows"]][skip:]
    seconds = float(np.mean([batch["durationMs"]["triggerExecution"] for batch in progress])) / 1000
    return seconds, _written(work, [batch["batchId"] for batch in progress]), query


def _written(work: Path, batches: list[int]) -> float:
    """Bytes that a micro-batch wrote to state, on average."""
    state = work / "checkpoint/state/0"
    sizes = [sum(path.stat().st_size for path in state.glob(f"*/{batch + 1}.changelog")) for batch in batches]
    return float(np.mean(sizes))


def _query(name: str, rows: DataFrame, work: Path) -> DataFrame:
    grouped = rows.groupBy("key")
    if name == "transformWithStateInPandas":
        return grouped.transformWithStateInPandas(PandasTotal(), SPARK_SCHEMA, "update", "none")
    if name == "transformWithState":
        return grouped.transformWithState(RowTotal(), SPARK_SCHEMA, "update", "none")
    if name == "applyInPandasWithState":
        timeout = GroupStateTimeout.NoTimeout
        return grouped.applyInPandasWithState(apply_total, SPARK_SCHEMA, SCHEMA, "update", timeout)
    processor = Total() if name == "each key" else Totals()
    return sk.keyed(rows, "key").process(processor, SCHEMA, folder=str(work / "placement"))
