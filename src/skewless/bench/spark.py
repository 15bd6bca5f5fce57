"""Everything measured on Spark but routing alone: `make bench-spark` writes docs/results/windows.md."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import skewless as sk
from skewless.bench import memory, skew, windows

PARTS: list[tuple[str, int | None, Callable[[SparkSession, Path], list[str]]]] = [
    ("Sliding windows", None, windows.table),
    ("Skew", skew.WORKERS, skew.table),
    ("Memory", None, memory.table),
]


def main() -> None:
    """Run all parts, each in a session of its own, and write the page."""
    target = Path("docs/results/windows.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-spark` does")
    wanted = sys.argv[1:]
    lines = ["# Windows on Spark", "", "Made by `make bench-spark`, on all cores of one machine.", ""]
    for title, cores, part in PARTS:
        if wanted and title.split()[0].lower() not in wanted:
            continue
        folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
        spark = sk.session(cores, memory="6g", spark_sql_session_timeZone="UTC")
        try:
            lines += [f"## {title}", "", *part(spark, folder), ""]
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
