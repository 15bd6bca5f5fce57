"""Memory under a hot key: 40 % of 20 M rows have one key, and the aggregate is the user's own.

Claim tested: partial states are built from pieces of a key's rows, so Python's memory follows the number of keys, where
`applyInPandas` must hold the whole group of the hot one.

What measuring taught: all Python workers together held 337 MiB at most, against 972 MiB with `applyInPandas`.

`make bench-spark` runs this and writes it to docs/results/windows.md.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk

ROWS, HOT, KEYS = 20_000_000, 0.4, 10_000
PAGE = os.sysconf("SC_PAGE_SIZE")


class WeightedMean(sk.Aggregate):
    """An average with weights."""

    def partial(self, table: pa.Table) -> pa.Table:
        """Sums of products and of weights."""
        products = table.append_column("product", pc.multiply(table["value"], table["weight"]))
        return _sums(products.select(["group", "product", "weight"]))

    def merge(self, table: pa.Table) -> pa.Table:
        """Add the sums."""
        return _sums(table)

    def finish(self, table: pa.Table) -> pa.Table:
        """Divide the sums."""
        return pa.table({"group": table["group"], "mean": pc.divide(table["product"], table["weight"])})


def _sums(table: pa.Table) -> pa.Table:
    sums = table.group_by("group").aggregate([("product", "sum"), ("weight", "sum")])
    return sums.rename_columns(["group", "product", "weight"])


def table(spark: SparkSession, folder: Path) -> list[str]:
    """Peak memory of all Python workers, with skewless and with `applyInPandas`."""
    files = str(folder / "hot")
    key = F.when(F.rand(1) < HOT, F.lit(0)).otherwise((F.rand(2) * KEYS).cast("int"))
    rows = spark.range(0, ROWS, 1, 8).select(key.alias("key"), F.rand(3).alias("value"), F.rand(4).alias("weight"))
    rows.write.parquet(files)
    source = spark.read.parquet(files)
    mine = sk.keyed(source, "key", split="dalton").agg(mean=WeightedMean("value", "weight"))
    theirs = source.groupBy("key").applyInPandas(_weighted, "key int, mean double")
    peaks = {"skewless": _peak(mine), "applyInPandas": _peak(theirs)}
    for name, peak in peaks.items():
        print(name, round(peak / 2**20), "MiB", flush=True)
    return [
        f"{ROWS // 1_000_000} M rows, {HOT:.0%} of them with one key, a weighted mean of the user's own. Peak of what",
        "all Python workers together held in memory of their own, sampled every 50 ms:",
        "",
        "| | MiB |",
        "|---|---|",
        *[f"| {name} | {peak / 2**20:,.0f} |" for name, peak in peaks.items()],
    ]


def _weighted(frame: pd.DataFrame) -> pd.DataFrame:
    mean = (frame["value"] * frame["weight"]).sum() / frame["weight"].sum()
    return pd.DataFrame({"key": [frame["key"].iloc[0]], "mean": [mean]})


def _peak(df: DataFrame) -> int:
    """Bytes that the Python workers held at most while this ran."""
    done, peak = threading.Event(), 0

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, sum(_resident(pid) for pid in _python_workers()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        df.write.format("noop").mode("overwrite").save()
    finally:
        done.set()
        thread.join()
    return peak


def _python_workers() -> list[int]:
    """The processes of this driver's Python daemon; those of other sessions on the machine do not count."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes() and _is_ours(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:  # it ended meanwhile
                continue
    return found


def _is_ours(pid: int) -> bool:
    """Whether a process descends from this one."""
    while pid > 1:
        if pid == os.getpid():
            return True
        # The name, in parentheses, may hold anything; state and parent come after it.
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def _resident(pid: int) -> int:
    try:
        shared = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(shared[1]) - int(shared[2])) * PAGE
