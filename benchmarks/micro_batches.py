"""What a micro-batch of Spark costs whatever its rows, and what its time goes to: scheduling, communication, execution.

Claims tested: a micro-batch has a fixed cost that grows with its tasks (Prompt+, section 3.3), and scheduling and
communication take a large part of short micro-batches (Figure 1.4b).

Durations are those of a query's progress, the rest is read from Spark's REST interface on loopback, both public. Of a
micro-batch, the time in which at least one of its tasks is running is divided as the metrics of its tasks are, and all
other time (planning, logs, launching, results) is scheduling. Where rows become bytes for a shuffle, Spark counts that
as running time, so that communication is rather too small here; and on one machine no byte crosses a network.

The ways to compute windows take turns, in rounds, of which each goes the other way round than the one before: what the
JVM compiles meanwhile makes later runs faster, so that ways that were run one after the other could not be compared.
`moved` has the same rows and tasks as Spark's own windows, and no state. Runs with next to no rows tell what of the
execution is a fixed cost too.

`make bench-batches` runs this and writes docs/results/micro-batches.json, from which the scheduling costs of simulated
figures are taken. `python -m benchmarks.micro_batches fixed` measures one part,
`shares` the other.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk

TARGET = Path("docs/results/micro-batches.json")
SLOTS = 2
TASKS = (1, 2, 4, 8, 16, 32)  # of each of the two stages
WARM, COUNTED = 5, 9  # micro-batches that are dropped and counted
LARGE, WARM_LARGE, COUNTED_LARGE = 1_000_000, 1, 2  # rows from which on micro-batches take long, and the same for them
ROUNDS = 3  # of all ways, after one that is dropped, some 12 minutes each; one that is stopped keeps what it has
WORKERS = 8
GROUP = 10
NEXT_TO_NONE = 100
ROWS = {
    "spark": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "moved": (1_000, 1_000_000),
    "hash": (NEXT_TO_NONE, 10_000, 100_000, 1_000_000, 10_000_000),
    "prompt": (NEXT_TO_NONE, 10_000, 100_000, 1_000_000, 10_000_000),
    "partly": (10_000, 100_000),
}
SKEWED = "bigint(pow((pmod(xxhash64(value), 1000003) + 1) / 1000004D, -1))"  # the hottest key has half of the rows
REST = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings with which Spark's REST interface answers on loopback, and nowhere else."""
PARTS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


def main() -> None:
    """Measure both and write the file."""
    if not TARGET.parent.is_dir():
        sys.exit(f"there is no {TARGET.parent} here; run this from the top of the repository, as the Makefile does")
    spark = sk.session(
        SLOTS,
        memory="3g",
        **{
            **REST,
            "spark.sql.shuffle.partitions": str(WORKERS),
        },
    )
    folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
    wanted = sys.argv[1:] or list(MEASURED)
    found = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    found |= {"spark": spark.version, "slots": SLOTS, "counted": COUNTED, "workers": WORKERS, "group": GROUP}
    try:
        for name in wanted:
            found[name] = []
            for each in MEASURED[name](spark, folder):  # written one by one: what is done stays if it is stopped
                found[name].append(each)
                TARGET.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"written to {TARGET}")


def fixed(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """All numbers of tasks, after a round that warms up the JVM: else it would look as if more tasks cost less."""
    for tasks in TASKS[1::2]:
        _fixed(spark, folder / "warm", tasks, tasks == TASKS[-1])
    return (_fixed(spark, folder, tasks, python) for python in (False, True) for tasks in TASKS)


def shares(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """All ways to compute windows, each at several numbers of rows, in turn."""
    each = [(way, rows) for way in ROWS for rows in ROWS[way]]
    for way, rows in each:
        _run(spark, WAYS[way](_source(spark, WORKERS, rows)), folder / f"warm-{way}-{rows}", 0, 2)
    for turn in range(ROUNDS):
        for way, rows in each if turn % 2 else each[::-1]:
            yield _shares(spark, folder, way, rows, turn)


def _fixed(spark: SparkSession, folder: Path, tasks: int, python: bool) -> dict[str, Any]:
    """A micro-batch with next to no rows: a stage of so many tasks, a shuffle, and another of as many."""
    rows = _source(spark, tasks, tasks).repartition(tasks, "key")
    if python:
        rows = rows.mapInArrow(_same, rows.schema)
    found = _run(spark, rows, folder / f"fixed-{tasks}-{python}")
    return _said({"tasks": 2 * tasks, "python": python}, found)


def _shares(spark: SparkSession, folder: Path, way: str, rows: int, turn: int) -> dict[str, Any]:
    df = WAYS[way](_source(spark, WORKERS, rows))
    warm, counted = (WARM, COUNTED) if rows < LARGE else (WARM_LARGE, COUNTED_LARGE)
    found = _run(spark, df, folder / f"shares-{way}-{rows}-{turn}", warm, counted)
    return _said({"way": way, "rows": rows, "round": turn}, found)


def _source(spark: SparkSession, tasks: int, rows: int) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", max(rows, tasks))
    read = source.option("numPartitions", tasks).option("startTimestamp", 0).load()
    return read.select(F.col("timestamp").alias("ts"), F.expr(SKEWED).alias("key"), "value")


def _spark(df: DataFrame) -> DataFrame:
    counts = df.withWatermark("ts", "2 seconds").groupBy(F.window("ts", "5 seconds"), "key")
    return counts.agg(F.count("*").alias("n"), F.sum("value").alias("s"))


def _moved(df: DataFrame) -> DataFrame:
    return df.repartition(WORKERS, "key")


def _skewless(split: str) -> Callable[[DataFrame], DataFrame]:
    def windows(df: DataFrame) -> DataFrame:
        keyed = sk.keyed(df, "key", workers=WORKERS, split=split)
        return keyed.window("ts", "5 seconds", watermark="2 seconds").agg(n=sk.count(), s=sk.sum("value"))

    return windows


WAYS = {"spark": _spark, "moved": _moved, **{split: _skewless(split) for split in ("hash", "prompt", "partly")}}


MEASURED = {"fixed": fixed, "shares": shares}


def _same(tables: Iterable[Any]) -> Iterable[Any]:
    yield from tables


def _run(
    spark: SparkSession, df: DataFrame, checkpoint: Path, warm: int = WARM, counted: int = COUNTED
) -> dict[str, Any]:
    """The durations of the counted micro-batches, and their tasks as Spark's REST interface lists them."""
    writer = df.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        while not (query.lastProgress and query.lastProgress["batchId"] >= warm + counted):
            if query.exception() is not None:
                raise query.exception()
            time.sleep(0.05)
    finally:
        query.stop()
    done = {each["batchId"]: each["durationMs"] for each in query.recentProgress if each["numInputRows"]}
    batches = [batch for batch in sorted(done) if batch >= warm][:counted]
    api = interface(spark)
    jobs = [job for job in get(f"{api}/jobs") if job.get("jobGroup") == str(query.runId)]
    stages = {stage["stageId"]: stage for stage in get(f"{api}/stages") if stage["status"] == "COMPLETE"}
    tasks = []
    for batch in batches:
        own = [job for job in jobs if f"batch = {batch}" in job.get("description", "").split("\n")]
        numbers = sorted({number for job in own for number in job["stageIds"] if number in stages})
        tasks.append([task for number in numbers for task in get(f"{api}/stages/{number}/0/taskList?length=1000")])
    return {"durations": [done[batch] for batch in batches], "tasks": tasks}


def _said(what: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What was run, the medians of its durations, and all counted micro-batches."""
    medians = {part: float(np.median([each.get(part, 0) for each in found["durations"]])) for part in PARTS}
    batches = [_split(*each) for each in zip(found["durations"], found["tasks"], strict=True)]
    said = {**what, "launched": int(np.median([len(tasks) for tasks in found["tasks"]])), "medians": medians}
    print(said, [round(batch["total"]) for batch in batches])
    return {**said, "batches": batches}


def _split(duration: dict[str, float], tasks: list[dict[str, Any]]) -> dict[str, float]:
    """Milliseconds of scheduling, communication and execution in a micro-batch, by the time tasks are running."""
    began = [_ms(task["launchTime"]) for task in tasks]
    # Of a task that took less than a millisecond, no duration is listed.
    spans = [(start, start + task.get("duration", 0)) for start, task in zip(began, tasks, strict=True)]
    metrics = [task["taskMetrics"] for task in tasks]
    run = sum(each["executorRunTime"] for each in metrics)
    moved = sum(
        each["shuffleReadMetrics"]["fetchWaitTime"] + each["shuffleWriteMetrics"]["writeTime"] / 1e6 for each in metrics
    )
    around = sum(each["resultSerializationTime"] for each in metrics)
    around += sum(task.get("gettingResultTime", 0) for task in tasks)
    started = sum(each["executorDeserializeTime"] for each in metrics)
    started += sum(task.get("schedulerDelay", 0) for task in tasks)
    total, busy = duration["triggerExecution"], _union(spans)
    whole = max(1e-9, run + around + started)
    execution, communication = busy * (run - moved) / whole, busy * (moved + around) / whole
    parts = {"total": total, "scheduling": total - execution - communication}
    parts |= {"communication": communication, "execution": execution}
    return {name: round(value, 2) for name, value in parts.items()}


def _union(spans: list[tuple[float, float]]) -> float:
    """How long at least one of these is going on."""
    total, until = 0.0, -np.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _ms(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%Z").timestamp() * 1000


def interface(spark: SparkSession) -> str:
    """The address of the REST interface of a session."""
    return f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"


def get(url: str) -> Any:
    """What Spark's REST interface answers."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
