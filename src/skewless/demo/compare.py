"""Both queries over the same clicks, and their results row by row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from skewless.core.counts import Counts
from skewless.demo.clicks import Clicks, hash_of, name_of
from skewless.demo.measured import Comparison, Run
from skewless.demo.query import WORKERS, run_query
from skewless.split import make

Shown = Callable[[str], AbstractContextManager[Callable[[Run], None]]]
"""Given a splitter, shows its run for as long as it lasts."""


def compare(spark: SparkSession, clicks: Clicks, folder: Path, shown: Shown) -> Comparison:
    """Spark's own windows first, then skewless.

    Parameters
    ----------
    spark
        The session to run in.
    clicks
        What the stream consists of.
    folder
        For the stream, the results and all that Spark keeps.
    shown
        Shows each run.
    """
    clicks.write(folder / "clicks")
    warm_up()
    runs, results = [], []
    for split in ("spark", "dalton"):
        with shown(split) as show:
            run = run_query(spark, clicks, folder, split, show)
        results.append(sorted_rows(folder / split))
        runs.append(replace(run, results=results[-1].num_rows))
    own, routed = runs
    return Comparison(own, routed, identical=same(*results))


def warm_up() -> None:
    """Compile what learning needs, or load it from disk: it would take longer than a micro-batch."""
    pages = [hash_of(name_of(page)) for page in range(WORKERS)]
    make("dalton", WORKERS).plan(Counts.of(np.array(pages, dtype=np.int64)))


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether all values are equal, in the same order; what may be null in a column does not matter.

    >>> same(pa.table({"n": [1, 2]}), pa.table({"n": [1, 2]})), same(pa.table({"n": [1, 2]}), pa.table({"n": [2, 1]}))
    (True, False)
    """
    return one.column_names == other.column_names and bool(one.columns == other.columns)


def sorted_rows(folder: Path) -> pa.Table:
    """All rows of a result, in an order that depends on nothing but the rows."""
    rows = ds.dataset(folder, format="parquet").to_table()
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()
