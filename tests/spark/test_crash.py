"""Queries of `agg`, `apply`, `process` and `ordered` that are killed again and again end with the rows of others.

`make test-long` kills more of them, more often and at other moments; `make soak KILLS=30 SEED=7` as often as you like.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.control.placements import Placements
from support.campaign import KILLS, SEED
from support.streams import stream_of

JOB = Path(__file__).with_name("crash_job.py")
FILES = 3 + KILLS  # a run that is killed may commit one of them, or none
QUIET, TTL = timedelta(seconds=3), timedelta(seconds=8)
Kept = tuple[int, Decimal, datetime | None, datetime]
"""What is kept of a page: the number and the sum of its rows, its timer, and the time of its last row."""
WHOLE = KILLS > 2  # else without second queries of an operator
WINDOWS = ("dalton", "batch", "pane", *(("local", "tuned") if WHOLE else ()))
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("page", pa.string()), ("price", pa.decimal128(12, 2)), ("n", pa.int64())]
)


def write_stream(folder: Path) -> None:
    """Files of a skewed stream with late rows, in the order of their times of change."""
    chance, clock = random.Random(3), datetime(2026, 1, 1, tzinfo=timezone.utc)
    folder.mkdir()
    for i in range(FILES):
        rows = []
        for _ in range(200):
            clock += timedelta(seconds=chance.choice([0, 0, 0.01, 0.1]), microseconds=1)  # no two at one time
            page = chance.choice(["hot", "hot", f"hot{i // 10}", None, f"p{chance.randint(0, 99)}"])
            ts = clock - timedelta(seconds=chance.choice([0, 0, 1, 4, 15, 30]))
            rows.append({"ts": ts, "page": page, "price": Decimal(chance.randint(0, 99999)).scaleb(-2), "n": i})
        path = folder / f"{i:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))


def start(folder: Path) -> subprocess.Popen[str]:
    """The job in a process group of its own, its queries running."""
    command = [sys.executable, str(JOB), str(folder), str(SEED), "ordered", "placed", *WINDOWS]
    command += ["counted"] if WHOLE else []
    with (folder / "log.txt").open("a") as log:
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    assert job.stdout is not None
    assert job.stdout.readline() == "started\n", complaints(folder)
    return job


def complaints(folder: Path) -> str:
    """What the job's last run said, without the lines of Java that led to it."""
    lines = (folder / "log.txt").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("\tat ", "\t... ")))[-6000:]


def committed(folder: Path) -> int:
    """The number of micro-batches that all queries together have committed."""
    return sum(1 for name in folder.glob("*-checkpoint/commits/*") if name.name.isdigit())


def kill(job: subprocess.Popen[str]) -> None:
    with job:  # which waits for it and closes its pipe
        os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.campaign
def test_a_query_killed_at_random_gives_the_rows_of_one_that_was_not(spark: SparkSession, tmp_path: Path) -> None:
    write_stream(tmp_path / "in")
    chance, cut_short = random.Random(SEED), 0
    while cut_short < KILLS:
        more = committed(tmp_path) + chance.randint(1, 7)  # of one query, or of most of them
        job = start(tmp_path)
        while committed(tmp_path) < more and job.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        assert job.poll() is None, complaints(tmp_path)
        kill(job)
        cut_short += 1
    with start(tmp_path) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "finished\n", complaints(tmp_path)
    wanted: dict[tuple[int, ...], list[str]] = {}
    for way in WINDOWS:
        ends = batches(tmp_path, way)
        if ends not in wanted:
            wanted[ends] = uninterrupted(spark, tmp_path, ends)
            assert len(wanted[ends]) > 200
        found = spark.read.parquet(str(tmp_path / way))
        assert sorted(map(repr, flat(found).collect())) == wanted[ends], way
    found = spark.read.parquet(str(tmp_path / "placed")).drop("batch")
    given = running(tmp_path)
    assert min(n for _page, n, _total in given) < 0  # timers were called
    assert forgotten(given)  # and the ttl ended some lives that began anew
    assert sorted(map(repr, map(tuple, found.collect()))) == sorted(map(repr, given))
    if WHOLE:
        found = spark.read.parquet(str(tmp_path / "counted"))
        windows = counted(tmp_path, batches(tmp_path, "counted"))
        assert len(windows) > 20
        assert sorted(map(tuple, found.select("window.start", "rows", "spent", "most", "total").collect())) == windows
    for folder in ("placement", *(("sizes",) if WHOLE else ())):
        versions = [int(path.stem) for path in (tmp_path / folder / "versions").iterdir()]
        assert max(versions) >= 1, folder  # slots were to move, and sizes to change
    if WHOLE:  # else there may be too few micro-batches that are counted, as the first of a run is not
        assert 3 in announced(tmp_path)  # by the range of workers
    delivered = [json.loads(path.read_text()) for path in sorted((tmp_path / "ordered").glob("*.json"))]
    times = [row["ts"].timestamp() for path in (tmp_path / "in").iterdir() for row in pq.read_table(path).to_pylist()]
    found = [ts for rows in delivered for ts, _n in rows]
    assert len(found) > 200
    assert found == sorted(times)[: len(found)]


def announced(folder: Path) -> list[int]:
    """The number of workers of each placement that was written."""
    placements = Placements.at(str(folder / "placement"))
    return [placements.placement(int(path.stem)).workers for path in (folder / "placement" / "versions").iterdir()]


def begun(folder: Path, way: str) -> list[tuple[int, int]]:
    """The last file of each micro-batch of a query, and its watermark in milliseconds, as Spark noted them.

    Spark notes a file as seen before it notes the micro-batch. If it is killed between the two, the next run takes the
    file together with the next one: the micro-batches are others, and with them the rows that are too late.
    """
    offsets = sorted((folder / f"{way}-checkpoint/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    lines = [list(map(json.loads, path.read_text().splitlines()[1:])) for path in offsets]
    return [(last["logOffset"], first["batchWatermarkMs"]) for first, *_, last in lines]


def batches(folder: Path, way: str) -> tuple[int, ...]:
    """The last file of each micro-batch that had rows."""
    return tuple(sorted({last for last, _watermark in begun(folder, way)}))


def grouped(folder: Path, ends: tuple[int, ...]) -> list[pa.Table]:
    """The rows of each micro-batch."""
    files = sorted((folder / "in").iterdir())
    edges = itertools.pairwise([-1, *ends])
    return [pa.concat_tables(map(pq.read_table, files[first + 1 : last + 1])) for first, last in edges]


def running(folder: Path) -> list[tuple[str | None, int, Decimal]]:
    """What the placed query is to give: of timers that are due, and then of rows that are not late, by price."""
    kept: dict[str | None, Kept] = {}
    given: list[tuple[str | None, int, Decimal]] = []
    files, done = sorted((folder / "in").iterdir()), -1
    for last, milliseconds in begun(folder, "placed"):
        watermark = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=milliseconds)
        for page, (n, total, timer, touched) in list(kept.items()):
            if timer is not None and timer <= min(watermark, touched + TTL):
                given.append((page, -n, total))
                kept[page] = 0, total, None, touched
            if touched < watermark - TTL:
                del kept[page]
        rows = [row for path in files[done + 1 : last + 1] for row in pq.read_table(path).to_pylist()]
        for row in sorted(rows, key=lambda row: row["price"]):
            if row["ts"] <= watermark:
                continue
            n, total, timer, touched = kept.get(row["page"], (0, Decimal(0), None, row["ts"]))
            n, total, touched = n + 1, total + row["price"], max(touched, row["ts"])
            given.append((row["page"], n, total))
            kept[row["page"]] = n, total, timer, touched
        for page in {row["page"] for row in rows if row["ts"] > watermark}:
            n, total, _timer, touched = kept[page]
            newest = max(row["ts"] for row in rows if row["page"] == page and row["ts"] > watermark)
            kept[page] = n, total, newest + QUIET, touched
        done = last
    return given


def forgotten(given: list[tuple[str | None, int, Decimal]]) -> set[str | None]:
    """The pages whose sum fell, which no price and no timer makes it do."""
    last: dict[str | None, Decimal] = {}
    found = set()
    for page, _n, total in given:
        if total < last.get(page, Decimal(0)):
            found.add(page)
        last[page] = total
    return found


def counted(folder: Path, ends: tuple[int, ...]) -> list[tuple[int, int, Decimal, int, int]]:
    """Windows of 60 rows sliding by 24: batch by batch, and by time inside of one."""
    rows = [row for table in grouped(folder, ends) for row in sorted(table.to_pylist(), key=lambda row: row["ts"])]
    windows = []
    for start in range(0, len(rows) - 59, 24):
        some = rows[start : start + 60]
        numbers = [row["n"] for row in some]
        windows.append((start, 60, sum((row["price"] for row in some), Decimal(0)), max(numbers), sum(numbers)))
    return windows


def uninterrupted(spark: SparkSession, folder: Path, ends: tuple[int, ...]) -> list[str]:
    """The rows of Spark's own operator in one go, with the micro-batches that end with these files."""
    own = folder / f"own-{'-'.join(map(str, ends))}"
    events = stream_of(spark, own / "in", grouped(folder, ends))
    windows = events.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "20 seconds", "5 seconds"), "page")
    counts = F.count(F.lit(1)).alias("rows"), F.sum("price").alias("spent")
    result = windows.agg(*counts, F.max("n").alias("most"), F.sum("n").alias("total"))
    writer = result.writeStream.format("parquet").option("checkpointLocation", str(own / "checkpoint"))
    writer.trigger(availableNow=True).start(str(own / "out")).awaitTermination()
    return sorted(map(repr, flat(spark.read.parquet(str(own / "out"))).collect()))


def flat(df: DataFrame) -> DataFrame:
    return df.select("window.start", "window.end", "page", "rows", "spent", "most", "total")
