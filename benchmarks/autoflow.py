"""AutoFlow's workloads on Spark: latency and throughput of each worker, without moving, with `autoflow`, with `even`.

A paced source: the bids of each quarter of a second are a file, which is put in place when that quarter is over. The
query is the paper's, the sum of prices of each auction. A row takes a worker a millisecond, which it sleeps, so that
two cores can hold five busy workers. Latency is the commit of the micro-batch minus the source's stamp, of every 100th
row of the source. Whether a placement was announced or in force is read from the control that the rows of a
micro-batch bore.

The source has a limit of so many files a micro-batch as are the rows of four seconds where a hot spot stays, and of two
and a half where it goes. Without it a hot reducer's backlog makes every micro-batch longer than the one before, and a
decision, which reaches the second one after it, comes too late: the last workload of figure 5 did not level in 105 s.
With three seconds its loads level sooner, but micro-batches then are hardly shorter than the time in which their rows
came, so that a backlog stays.

`make bench-autoflow` runs the workloads of figures 5, 6 and 7, each without moving and with `autoflow`, and the first
and the last of figure 5 with `even` too (about 40 minutes), and writes docs/results/autoflow.json, from which the
figures are drawn. `python -m benchmarks.autoflow 5ef 5ij` runs those whose names begin so with all placers, and keeps
the others; `python -m benchmarks.autoflow 6a/even` runs a workload with one placer, and `/even` all with it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import skewless as sk
from experiments.autoflow.setting import (
    FACTOR,
    FIXED,
    LOAD,
    SLOTS,
    SPIKES,
    WANDERING,
    WORK,
    Case,
    bids,
)
from skewless import place
from skewless.control.version import Version

TARGET = Path("docs/results/autoflow.json")
SLICE, EVERY = 0.25, 100
"""Seconds of a file, and rows of which one is sampled."""
ALL = (*FIXED, *SPIKES, *WANDERING)
USUAL = ("/off", "/autoflow", "5ab/even", "5mn/even")
AT_ONCE = place.Rule(alpha=1.0, cost=0.0, byte_cost=0.0, memory=0.0)  # `factor` alone decides
PLACERS: dict[str, tuple[Any, Any]] = {
    "off": ("hash", place.Rule(alpha=float("inf"))),
    "autoflow": (place.AutoFlow(SLOTS, FACTOR), AT_ONCE),
    "even": (place.Even(SLOTS), place.Rule()),
}


class Totals(sk.SlotProcessor):
    """Sums prices by auction, and sleeps for each row; gives how many rows a worker had, and stamps of some."""

    state = "total long"

    def __init__(self, over: str) -> None:
        self.over = over  # a file that is there when nothing is measured any more

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """All auctions of a slot."""
        if not os.path.exists(self.over):
            time.sleep(rows.num_rows * WORK)
        total = np.asarray(states["total"].fill_null(0)).astype(np.int64)
        np.add.at(total, np.asarray(rows["group"]), np.asarray(rows["price"]))
        context = TaskContext.get()
        sampled = np.asarray(rows["at"])[np.asarray(rows["number"]) % EVERY == 0]
        lines = 1 + len(sampled)
        told = {
            "group": np.zeros(lines, np.int64),
            "worker": np.full(lines, context.partitionId() if context else 0, np.int32),
            "rows": np.array([rows.num_rows, *[0] * len(sampled)]),
            "at": np.array([-1.0, *sampled]),
        }
        return pa.table(told), pa.table({"total": total})


def main() -> None:
    """Run what is asked for, and put it to what is in the file."""
    if not TARGET.parent.is_dir():
        sys.exit(f"there is no {TARGET.parent} here; run this from the top of the repository, as the Makefile does")
    wanted = asked_for(sys.argv[1:])
    for workers in sorted({case.workers for case, _ in wanted}):
        spark = sk.session(workers, memory="3g", **{"spark.sql.streaming.numRecentProgressUpdates": "2000"})
        folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
        try:
            _warm(spark, folder, workers)
            for case, name in wanted:
                if case.workers == workers:
                    _keep(spark, case, name, run(spark, folder, case, name))
        finally:
            spark.stop()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"written to {TARGET}")


def asked_for(names: Sequence[str]) -> list[tuple[Case, str]]:
    """The workloads and placers of these names; a name that is none ends the program."""
    unknown = [name for name in names if not chosen([name])]
    if unknown:
        there = ", ".join(dict.fromkeys(case.off for case in ALL))
        sys.exit(f"no workload begins with {' or '.join(unknown)}; there are {there}")
    return chosen(names)


def chosen(asked: Sequence[str]) -> list[tuple[Case, str]]:
    """The workloads whose names begin as asked, with the placer that stands behind a slash or with all.

    >>> [(case.off, name) for case, name in chosen(["5ab/even", "6a"])]
    [('5ab', 'even'), ('6a', 'off'), ('6a', 'autoflow'), ('6a', 'even')]
    """
    names = [each.partition("/") for each in asked or USUAL]
    return [
        (case, name)
        for case in ALL
        for name in PLACERS
        if any(case.name.startswith(begin) and one in ("", name) for begin, _, one in names)
    ]


def _warm(spark: SparkSession, folder: Path, workers: int) -> None:
    """A short run, so that Python and the JVM have loaded what they need."""
    run(spark, folder, Case("warm up", workers, (), 6.0, 1), "even")


def _keep(spark: SparkSession, case: Case, name: str, batches: list[dict[str, Any]]) -> None:
    found = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    now = {each.name for each in ALL}
    found["runs"] = {name: runs for name, runs in found.get("runs", {}).items() if name in now}
    found |= {"spark": spark.version, "work": WORK, "load": LOAD, "slots": SLOTS, "every": EVERY, "slice": SLICE}
    found["runs"].setdefault(case.name, {})[name] = batches
    lines = json.dumps(found, indent=1)
    TARGET.write_text(_short(lines) + "\n")
    rows = np.sum([batch["rows"] for batch in batches], axis=0)
    moves = sum(batch["announced"] for batch in batches)
    late = max(batches[-1]["commit"] - min(stamps) for stamps in batches[-1]["at"] if stamps)
    said = f"{len(batches)} micro-batches, {moves} with a placement announced, rows {rows.tolist()}"
    print(f"{case.name}, {name}: {said}, {late:.1f} s late at last", flush=True)


def _short(text: str) -> str:
    """JSON with a line for each micro-batch."""
    data = json.loads(text)
    runs = data.pop("runs")
    head = json.dumps(data)[1:-1]
    parts = []
    for case, by_name in runs.items():
        inner = ",\n".join(
            f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(batch)}" for batch in batches) + "\n  ]"
            for name, batches in by_name.items()
        )
        parts.append(f" {json.dumps(case)}: {{\n{inner}\n }}")
    return f'{{{head}, "runs": {{\n' + ",\n".join(parts) + "\n}}"


def run(spark: SparkSession, folder: Path, case: Case, name: str) -> list[dict[str, Any]]:
    """The micro-batches of a query that were committed while rows came, in seconds since the first row."""
    work = Path(tempfile.mkdtemp(dir=folder))
    slices = write_slices(work / "waiting", case)
    (work / "in").mkdir()
    reader = spark.readStream.schema("auction long, price long, at double, number long")
    if case.most is not None:
        reader = reader.option("maxFilesPerTrigger", round(case.most / SLICE))
    source = reader.parquet(str(work / "in"))
    placer, rule = PLACERS[name]
    stream = sk.keyed(source, "auction", workers=case.workers, place=placer)
    processor, schema = Totals(str(work / "over")), "worker int, rows long, at double"
    result = stream.process(processor, schema, folder=str(work / "placement"), slots=SLOTS, rule=rule)
    told: dict[int, tuple[list[int], list[list[float]]]] = {}

    def take(df: DataFrame, batch: int) -> None:
        rows, stamps = [0] * case.workers, defaultdict[int, list[float]](list)
        for row in df.select("worker", "rows", "at").collect():
            rows[row["worker"]] += row["rows"]
            if row["at"] >= 0:
                stamps[row["worker"]].append(round(row["at"], 2))
        told[batch] = rows, [sorted(stamps[worker]) for worker in range(case.workers)]

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start()
    sk.watch(query)
    try:
        for early in range(2):  # the first micro-batches of a query start Python and open its state
            _put(slices.pop(0)[1], work / "in")
            query.processAllAvailable()
            time.sleep(0.5 * early)
        start = time.time()
        for due, path in slices:
            time.sleep(max(0.0, start + due - time.time()))
            _put(path, work / "in")
        (work / "over").touch()
        over = time.time() - start
        query.processAllAvailable()
    finally:
        progress = [each for each in query.recentProgress if each["numInputRows"]]
        query.stop()
    batches = [_batch(each, told[each["batchId"]], start) for each in progress]
    return [batch for batch in batches if batch["began"] > 0 and batch["commit"] <= over]


def write_slices(folder: Path, case: Case) -> list[tuple[float, Path]]:
    """Files of the bids of each slice, and when each is due; before them two of a few rows that are not measured."""
    folder.mkdir(parents=True)
    at, auction, price = bids(case)
    number = np.arange(len(at))
    slices = []
    for i in range(-2, round(case.seconds / SLICE)):
        mine = slice(*np.searchsorted(at, [i * SLICE, (i + 1) * SLICE])) if i >= 0 else slice(0, 60)
        path = folder / f"{i + 2:04}.parquet"
        stamp = at[mine] if i >= 0 else np.full(60, -1.0)
        columns = {"auction": auction[mine], "price": price[mine], "at": stamp, "number": number[mine]}
        pq.write_table(pa.table(columns), path)
        slices.append(((i + 1) * SLICE, path))
    return slices


def _put(path: Path, target: Path) -> None:
    os.utime(path)
    path.rename(target / path.name)


def _batch(progress: Any, told: tuple[list[int], list[list[float]]], start: float) -> dict[str, Any]:
    """A micro-batch: when it began and was committed, what its control said, rows and sampled stamps by worker."""
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp() - start
    metrics = progress["observedMetrics"]
    control = next(each["control"] for name, each in metrics.items() if name.endswith(" sent"))
    version = Version.of(control)
    return {
        "began": round(began, 3),
        "commit": round(began + progress["durationMs"]["triggerExecution"] / 1000, 3),
        "force": version.force,
        "announced": bool(version.to_come),
        "rows": told[0],
        "at": told[1],
    }


if __name__ == "__main__":
    main()
