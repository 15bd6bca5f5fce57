"""Workers that follow the load, in wall-clock time: 2 to 16 of them, and a rate that goes 1x, 6x, 1x.

An aggregate sleeps 20 us a row, so that two cores can hold sixteen workers that are busy at once. A micro-batch reads
one file, however many wait, as a source with a limit does; a file of the middle has six times the rows of the others.

Claims tested: W, the processing time over the interval, is at most 0.9 again within 2 d + 2 micro-batches of the rise
where a decision goes straight to the number that is needed, with d = 1 and with the d = 3 of those who say
nothing, and within 9 d + 2 where it is one worker more; fewer
workers are busy again after the fall; rows are the same, also if the process is killed at the height of the load and
started again. Beside it run sixteen workers all the time, and two.

One more run, "clock", has no limit: files come by the clock, whatever the query does, and rows that wait come with the
next micro-batch. Its rate is high for three minutes, and it says how long it takes until W is at most 0.9 again.

`make bench-elastic` runs this and writes docs/results/elastic.md. `python -m benchmarks.elastic runs` makes the runs
again, or some of them by name, and `python -m benchmarks.elastic page` writes the page from what they left.
`python -m benchmarks.elastic moving` makes a run of `process`, whose state does not merge, so that its owners follow
the load and their state moves, and writes docs/results/elastic-state.md (about 3 minutes).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from benchmarks import by_the_clock, micro_batches, moving_owners
from benchmarks.executors import EXECUTORS, LASTS, TIMEOUT
from benchmarks.idle_workers import IDLE, measured_idle
from benchmarks.skew import MICROSECONDS, Slow
from skewless.elastic import Range
from skewless.workload import Zipf

LEAST, MOST, OWNERS = 2, 16, 4
INTERVAL, D = "6 seconds", 1
ROWS, TIMES, KEYS, SKEW = 200_000, 6, 20_000, 1.2
WHOLE = 0.9
"""The exponent where no key is split, so that one worker can keep up with the hottest."""
BEFORE, DURING, AFTER = 3, 12, 4
"""Micro-batches of each part."""
PERIODS = BEFORE + DURING + AFTER
CLOCK_DURING = 30
"""Intervals of the middle where files come by the clock: enough for what has piled up to be worked off meanwhile."""
START = 1_700_000_040_000_000  # a full minute
KILLED_AFTER = BEFORE + 6
CALM = 0.9
"""W up to which no workers are added."""
WAYS: dict[str, int | Range] = {
    "straight": Range(LEAST, MOST, INTERVAL, d=D),
    "default": Range(LEAST, MOST, INTERVAL),
    "one": Range(LEAST, MOST, INTERVAL, d=D, stride="one"),
    "killed": Range(LEAST, MOST, INTERVAL, d=D),
    "all": MOST,
    "few": LEAST,
    "clock": Range(LEAST, MOST, INTERVAL, d=D),
}
NAMES = {
    "straight": f'{LEAST} to {MOST}, `"straight"`',
    "default": f'{LEAST} to {MOST}, `"straight"`, `d` = {Range.d}',
    "one": f'{LEAST} to {MOST}, `"one"`',
    "killed": f'{LEAST} to {MOST}, `"straight"`, killed and started again',
    "all": f"always {MOST}",
    "few": f"always {LEAST}",
}
TICKS = 6
"""Files that come by the clock, in each interval."""
LEFT = Path(tempfile.gettempdir()) / "skewless-bench-elastic"
"""What the runs leave for the page."""


class Counted(sk.SlotProcessor):
    """Counts the rows of a key, and sleeps for each."""

    state = "n long"

    def process_slot(self, rows: pa.Table, states: pa.Table) -> tuple[pa.Table, pa.Table]:
        """All keys of a slot."""
        time.sleep(rows.num_rows * MICROSECONDS / 1e6)
        came = np.bincount(np.asarray(rows["group"]), minlength=len(states))
        n = pa.array(np.asarray(states["n"].fill_null(0)) + came)
        return pa.table({"came": pa.array(came), "n": n}), pa.table({"n": n})


def main(asked: list[str]) -> None:
    """Make the runs, write the page, or both."""
    if asked[:1] == ["child"]:
        child(asked[1], Path(asked[2]), again=asked[3:] == ["again"])
        return
    target = Path("docs/results/elastic.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-elastic` does")
    if asked == ["moving"]:
        (target.parent / "elastic-state.md").write_text("\n".join(_of_moving(measured("process"))) + "\n")
        return
    LEFT.mkdir(exist_ok=True)
    if asked[:1] != ["page"]:
        for way in asked[1:] or [*WAYS, *OTHERS]:
            (LEFT / f"{way}.json").write_text(json.dumps(OTHERS[way]() if way in OTHERS else measured(way)))
    if asked[:1] != ["runs"]:
        target.write_text("\n".join(page()) + "\n")
        print(f"written to {target}")


def measured(way: str) -> list[dict[str, Any]]:
    """The micro-batches of a run in a process of its own, killed once if that is asked for."""
    folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
    try:
        ticks, during = (TICKS, CLOCK_DURING) if way == "clock" else (1, DURING)
        write_files(folder, ticks, during, WHOLE if way == "process" else SKEW)
        done: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "benchmarks.elastic", "child", way, str(folder)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        for line in _lines(running):
            done.append(line)
            print(way, line, flush=True)
            if way == "killed" and len(done) == KILLED_AFTER:
                time.sleep(2.0)  # in the middle of the next one
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
                running = subprocess.Popen(
                    [*command, "again"], stdout=subprocess.PIPE, text=True, start_new_session=True
                )
                for rest in _lines(running):
                    done.append({**rest, "again": True})
                    print(way, rest, flush=True)
                break
        if running.wait():
            sys.exit(f"the run {way} failed")
        return done
    finally:
        shutil.rmtree(folder)


def _lines(running: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert running.stdout is not None  # it is a pipe
    for line in running.stdout:
        if line.startswith("{"):
            yield json.loads(line)


def write_files(folder: Path, ticks: int, during: int, skew: float = SKEW) -> None:
    """So many files for each interval, which has a minute of its own; if there are several, they come later."""
    sizes = [ROWS] * BEFORE + [TIMES * ROWS] * during + [ROWS] * AFTER
    keys = Zipf(skew, keys=KEYS, seed=3)
    (folder / "later").mkdir()
    for name, rows, files in (("in", sizes, ticks), ("warm", [ROWS, TIMES * ROWS] * 2, 1)):
        (folder / name).mkdir()
        for i, size in enumerate(size // files for size in rows for _ in range(files)):
            times = pa.array(np.full(size, START + i // files * 60_000_000)).cast(pa.timestamp("us", "UTC"))
            path = folder / ("later" if files > 1 else name) / f"{i:03d}.parquet"
            pq.write_table(pa.table({"ts": times, "key": keys.take(size)}), path)
            os.utime(path, (1_000_000 + i,) * 2)


def child(way: str, folder: Path, *, again: bool) -> None:
    """Run the query to the end of its files, print a line for each micro-batch, and compare what it wrote."""
    build, partitions = (_counted, MOST) if way == "process" else (_windows, OWNERS)
    spark = sk.session(
        MOST, spark_sql_shuffle_partitions=str(partitions), spark_sql_session_timeZone="UTC", **micro_batches.REST
    )
    following = WAYS.get(way, WAYS["straight"])
    for number, workers in enumerate((MOST, following)):  # all Python workers start, and the plan is compiled
        warm = build(_rows(spark, folder / "warm"), workers, folder / f"policies-{again}-{number}")
        writer = warm.writeStream.format("parquet").option("checkpointLocation", str(folder / f"warm-{again}-{number}"))
        writer.trigger(availableNow=True).start(str(folder / f"warmed-{again}-{number}")).awaitTermination()
    later, seconds = sorted((folder / "later").iterdir()), Range(1, 1, INTERVAL).seconds
    total = sum(pq.read_metadata(each).num_rows for each in later)
    result = build(_rows(spark, folder / "in", None if later else 1), following, folder / "policies")
    writer = result.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime=INTERVAL).start(str(folder / "out"))
    watching, last, read = sk.watch(query), -1, 0
    began = by_the_clock.feed(later, folder / "in", seconds, TICKS)
    heard, before = 0, _ran(spark)
    while read < total if later else last < PERIODS - 1:
        if not watching.wait(heard + 1, timeout=300):
            sys.exit(f"no micro-batch in 300 s: {query.exception()}")
        new = [each for each in query.recentProgress if each["batchId"] > last and each["numInputRows"]]
        for done in new:
            last, heard, read = int(done["batchId"]), heard + 1, read + done["numInputRows"]
            took = done["durationMs"]["triggerExecution"] / 1000
            ran = _ran(spark)
            line = {
                "batch": last,
                "since": datetime.fromisoformat(done["timestamp"].replace("Z", "+00:00")).timestamp() - began,
                "rows": done["numInputRows"],
                "W": took / seconds,
                "busy": sum(1 for rows in watching.loads.values() if rows),
                "took": took,
                "ran": ran - before,
            }
            if way == "process":
                line["placement"] = watching.placement.tail.tolist()
            before = ran
            print(json.dumps({**line, "workers": watching.workers, "why": watching.decision}), flush=True)
    query.processAllAvailable()  # the micro-batch without rows that closes the last but one window
    query.stop()
    if way == "process":
        _check_counts(spark, folder)
    else:
        _check(spark, folder, BEFORE + (CLOCK_DURING if later else DURING) + AFTER)
    spark.stop()


def _ran(spark: SparkSession) -> float:
    """Seconds that the tasks of all stages ran until now."""
    stages = micro_batches.get(f"{micro_batches.interface(spark)}/stages?status=complete")
    return float(sum(stage["executorRunTime"] for stage in stages)) / 1000


def _rows(spark: SparkSession, files: Path, limit: int | None = 1) -> DataFrame:
    reader = spark.readStream.schema("ts timestamp, key long")
    limited = reader if limit is None else reader.option("maxFilesPerTrigger", limit)
    return limited.parquet(str(files))


def _windows(rows: DataFrame, workers: int | Range, folder: Path) -> DataFrame:
    keyed = sk.keyed(rows, "key", workers=workers, split="bounded")
    return keyed.window("ts", "60 seconds", watermark="0 seconds").agg(folder=str(folder), n=Slow())


def _counted(rows: DataFrame, workers: int | Range, folder: Path) -> DataFrame:
    keyed = sk.keyed(rows.select("key"), "key", workers=workers)
    return keyed.process(Counted(), "came long, n long", folder=str(folder))


def _check_counts(spark: SparkSession, folder: Path) -> None:
    """Refuse counts that are not those of the files, or state that is not the sum of what came."""
    totals = spark.read.parquet(str(folder / "out")).groupBy("key").agg(F.sum("came").alias("came"), F.max("n"))
    found = {key: (came, n) for key, came, n in totals.collect()}
    keys = np.concatenate([pq.read_table(file)["key"].to_numpy() for file in sorted((folder / "in").glob("*.parquet"))])
    pairs = zip(*(each.tolist() for each in np.unique(keys, return_counts=True)), strict=True)
    if found != {key: (n, n) for key, n in pairs}:
        sys.exit(f"the rows of {len(found)} keys were counted, or their state kept, otherwise than the files have them")


def _check(spark: SparkSession, folder: Path, periods: int) -> None:
    """Refuse a result that is not just what the files of so many intervals say."""
    rows = spark.read.parquet(str(folder / "out")).select("window.start", "key", "n").toArrow()
    found = {}
    for start, key, n in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        minute = round(start.timestamp() * 1e6 - START) // 60_000_000
        if (minute, key) in found:
            sys.exit(f"window {minute} of key {key} is there twice")
        found[minute, key] = n
    expected = {}
    files = sorted((folder / "in").glob("*.parquet"))
    for i in range(periods - 1):  # the watermark has not passed the last one
        of_minute = files[len(files) // periods * i :][: len(files) // periods]
        keys = np.concatenate([pq.read_table(file)["key"].to_numpy() for file in of_minute])
        pairs = zip(*(each.tolist() for each in np.unique(keys, return_counts=True)), strict=True)
        expected.update({(i, key): n for key, n in pairs})
    if found != expected:
        sys.exit(f"{len(found)} windows were written, {len(expected)} expected, or their counts differ")


def measured_executors() -> dict[str, dict[str, int]]:
    """Executors that dynamic allocation leaves, with idle workers and without a query."""
    found = subprocess.check_output([sys.executable, "-m", "benchmarks.executors"], text=True).splitlines()
    counted: dict[str, dict[str, int]] = json.loads(found[-1])
    return counted


OTHERS: dict[str, Callable[[], Any]] = {"idle": measured_idle, "executors": measured_executors}
"""What is measured besides the runs."""


def page() -> list[str]:
    """The page from what the runs left."""
    runs = {way: _result(way) for way in WAYS}
    idle_ones = dict(zip(IDLE, _result("idle"), strict=True))
    with_ours = idle_ones["with"]
    executors = _result("executors")
    first, last = BEFORE, BEFORE + DURING
    own = ROWS * (BEFORE + TIMES * DURING + AFTER) * MICROSECONDS / 1e6
    lines = [
        "# Workers that follow the load",
        "",
        f"Made by `make bench-elastic`, in wall-clock time, with {MOST} local slots on {os.cpu_count()} cores.",
        "",
        f"A micro-batch every {INTERVAL}, of one file, however many wait: {ROWS:,} rows, and {TIMES} times as many in",
        f"micro-batches {first} to {last - 1}. One file with each micro-batch is no rate: rows that are late make no",
        "micro-batch larger. Where rows come at a rate is [by the clock](#by-the-clock).",
        "",
        f"Windows over {KEYS:,} keys, Zipf {SKEW}, by `bounded`, with an aggregate whose `partial` sleeps",
        f"{MICROSECONDS} us a row. State is in {OWNERS} partitions. `d` is {D} unless said, and a warm-up came before.",
        "In each run the rows written were compared with those of the files, and were the same: none is missing and",
        "none is there twice. One run was killed two seconds after micro-batch",
        f"{KILLED_AFTER - 1}, with SIGKILL to all of its processes, and was started again.",
        "",
        "*Back* is the first micro-batch with W at most 0.9 since the rise, counted from there; *again above* are",
        "those after it with W above 0.9, up to the fall. *Busy* is measured: the seconds that tasks ran in stages",
        "that were completed, as Spark's REST interface tells them. *Held* is worked out, and is no resource of Spark,",
        "where a task that has ended holds no slot: it is the sum over micro-batches of the workers with rows times",
        "the time until the next one. *Used* is how much of that is the rows' own cost, and worked out too.",
        "*Violations* are micro-batches with W above 1.",
        "",
        f"All of these runs have the same rows, whose own cost is {own:,.0f} s. The rest of *busy* is what tasks take",
        f"besides: a micro-batch has {MOST} tasks that combine rows, active or not, and {LEAST} of them with always",
        f"{LEAST}.",
        "",
        "| workers | back | promised | again above | workers at the height | in the end | busy | held, worked out | "
        "used | violations |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    promised = {"straight": 2 * D + 2, "default": 2 * Range.d + 2, "one": 9 * D + 2}
    for way, name in NAMES.items():
        done = {each["batch"]: each for each in runs[way]}
        high = [done[batch] for batch in range(first, last) if batch in done]
        back = next((each["batch"] - first for each in high if each["W"] <= CALM), None)
        above = "" if back is None else sum(each["W"] > CALM for each in high if each["batch"] - first > back)
        bound = promised.get(way)
        held = _held(done)
        cells = (
            name,
            "never" if back is None else f"after {back}",
            "" if bound is None else f"within {bound}",
            above,
            max(each["busy"] for each in high),
            done[max(done)]["busy"],
            f"{sum(each['ran'] for each in done.values()):,.0f}",
            f"{held:,.0f}",
            f"{own / held:.0%}",
            sum(each["W"] > 1 for each in done.values()),
        )
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    lines += ["", "## Micro-batch by micro-batch", ""]
    lines += ["Workers with rows, and W, where one file comes with each micro-batch, which is not a rate.", ""]
    lines += ["| | rows | " + " | ".join(NAMES[way] for way in NAMES) + " |", "|---|---|" + "---|" * len(NAMES)]
    for batch in range(PERIODS):
        each = {way: next((one for one in runs[way] if one["batch"] == batch), None) for way in NAMES}
        cells = [f"{one['busy']}, {one['W']:.2f}" if one else "" for one in each.values()]
        lines.append(f"| {batch} | {next(one for one in each.values() if one)['rows']:,} | " + " | ".join(cells) + " |")
    seconds = Range(1, 1, INTERVAL).seconds
    rise, fall = first * seconds, (first + CLOCK_DURING) * seconds
    names = f"{NAMES['straight']}, `d` = {D}"
    lines += ["", *by_the_clock.section(runs["clock"], rise, fall, CALM, names)]
    lines += [
        "",
        "## An idle worker's task",
        "",
        "Milliseconds of a task without rows: 64 tasks of which 60 have none, less 4 tasks, on 2 slots, best of 6.",
        "",
        "| | ms |",
        "|---|---|",
        f"| no Python | {with_ours['jvm']:.1f} |",
        *(f"| {what} | {idle_ones[name]['python']:.1f} |" for name, what in IDLE.items()),
        "",
        "## A range against a number",
        "",
        "Milliseconds of a micro-batch of 10,000 bare rows by `bounded`, median of 38, in turn, 2 slots: with a range,",
        "a small file is read and joined to the rows, and the number is observed.",
        "",
        "| | ms |",
        "|---|---|",
        f"| `workers=4` | {with_ours['fixed']:.0f} |",
        f"| `workers=Range(4, 4, ...)` | {with_ours['range']:.0f} |",
        "",
        "## Executors",
        "",
        f"{EXECUTORS} executors of one slot (`local-cluster`), dynamic allocation with an idle timeout of {TIMEOUT} s",
        f"and at least 1 executor: how many there are at first and {LASTS} s later.",
        "",
        "| | at first | later | tasks that an executor ran meanwhile |",
        "|---|---|---|---|",
    ]
    active = executors["query"]["active"]
    rows = {f"a query every second, {active} of {EXECUTORS} workers active": "query", "then no query": "none"}
    for what, name in rows.items():
        each = executors[name]
        lines.append(f"| {what} | {each['first']} | {each['end']} | {each['least']} to {each['most']} |")
    return lines


def _of_moving(done: list[dict[str, Any]]) -> list[str]:
    """The page of the run whose state moves."""
    setting = (
        f"A micro-batch every {INTERVAL}, of one file, however many wait: {ROWS:,} rows, and {TIMES} times as many in "
        f"micro-batches {BEFORE} to {BEFORE + DURING - 1}. `process` counts the rows of each key and sleeps "
        f"{MICROSECONDS} us a row, with {LEAST} to {MOST} workers, `d` = {D}: {KEYS:,} keys, Zipf {WHOLE}, as no key "
        f"is split, {len(done[0]['placement'])} slots of hashes, and {MOST} partitions of state."
    )
    return moving_owners.page(done, setting, BEFORE, BEFORE + DURING, CALM, MOST)


def _result(name: str) -> Any:
    """What a run left."""
    left = LEFT / f"{name}.json"
    if not left.exists():
        sys.exit(f"the run {name} has left no {left}; make it with `python -m benchmarks.elastic runs {name}`")
    return json.loads(left.read_text())


def _held(done: dict[int, dict[str, Any]]) -> float:
    seconds = Range(1, 1, INTERVAL).seconds
    return float(sum(each["busy"] * max(seconds, each["took"]) for each in done.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
