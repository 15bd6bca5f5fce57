"""Pages of results that need Spark, under docs/results: windows, skew, place, shuffle, nexmark and chop.

`make bench-spark`, `bench-skew`, `bench-place`, `bench-shuffle`, `bench-nexmark` and `bench-chop` write them.

`python -m benchmarks.spark windows memory` runs some parts of a page only, and prints them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

import skewless as sk
from benchmarks import apply, chop, handover, jvm, memory, migrate, nexmark, place, process, shuffle, skew, windows


class Part(NamedTuple):
    """A part of a page.

    Attributes
    ----------
    title, cores
        Its title, and the cores of its session; None for all.
    measure
        What it measures.
    settings
        Further settings of its session, which may have something made in a folder.
    """

    title: str
    cores: int | None
    measure: Callable[[SparkSession, Path], list[str]]
    settings: Callable[[Path], dict[str, str]] = lambda _folder: {}


def _without_spark(table: Callable[[], list[str]]) -> Callable[[SparkSession, Path], list[str]]:
    """A page of its own as a part of another."""
    return lambda _spark, _folder: [f"#{line}" if line.startswith("## ") else line for line in table()]


PAGES: dict[str, tuple[str, str, list[Part]]] = {
    "windows": (
        "Windows on Spark",
        "make bench-spark",
        [
            Part("Sliding windows", None, windows.table),
            Part("Memory", None, memory.table),
        ],
    ),
    "skew": ("Skew in wall-clock time", "make bench-skew", [Part("Sixteen workers", skew.WORKERS, skew.table)]),
    "place": (
        "Keys that stay whole",
        "make bench-place",
        [
            Part("Processors in Python", None, process.table),
            Part("Moving state", migrate.WORKERS, migrate.table),
            Part("Moving against size", None, _without_spark(handover.table)),
            Part("Tail slots", None, _without_spark(place.table)),
            Part("Growth", None, _without_spark(place.growth)),
        ],
    ),
    "nexmark": ("Nexmark", "make bench-nexmark", [Part("Queries as streams", None, nexmark.table)]),
    "shuffle": (
        "ShuffleBench's case",
        "make bench-shuffle",
        [Part("Black boxes with state", shuffle.WORKERS, shuffle.table, jvm.settings)],
    ),
    "chop": (
        "Time cut, not keys",
        "make bench-chop",
        [
            Part("Medians on Spark", None, apply.medians),
            Part("Split on Spark", apply.SPLIT_WORKERS, apply.split),
            Part("Scale-up on Spark", apply.WORKERS[-1], apply.scale_up),
            Part("Order on Spark", None, apply.order),
            Part("Simulated", None, _without_spark(chop.table)),
        ],
    ),
}


def main() -> None:
    """Run all parts of a page, each in a session of its own, and write it; or print the parts that are asked for."""
    page, *wanted = sys.argv[1:] or ["windows"]
    if page not in PAGES:
        sys.exit(f"no page {page!r}; there are {', '.join(PAGES)}")
    target = Path(f"docs/results/{page}.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as the Makefile does")
    title, command, parts = PAGES[page]
    lines = [f"# {title}", "", f"Made by `{command}`, on all cores of one machine.", ""]
    for name, cores, measure, settings in parts:
        if wanted and name.split()[0].lower() not in wanted:
            continue
        folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
        spark = sk.session(cores, memory="6g", spark_sql_session_timeZone="UTC", **settings(folder))
        try:
            lines += [f"## {name}", "", *measure(spark, folder), ""]
        finally:
            spark.stop()
            shutil.rmtree(folder, ignore_errors=True)
    if wanted:
        print("\n".join(lines))
    else:
        target.write_text("\n".join(lines).rstrip() + "\n")
        print(f"written to {target}")


if __name__ == "__main__":
    main()
