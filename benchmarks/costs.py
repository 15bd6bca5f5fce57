"""What the work of a cluster costs on Spark, with the operators of skewless: the costs of all simulated figures.

Every cost is a slope: the same stage runs on one core with more rows, more keys or more fragments of a key, and a
straight line through the times says what one more of them takes. What a stage costs at all, such as starting Spark's
job, is in the intercept and drops out. Times are those that Spark and its Python workers spent on a core, so that it
matters little what else the machine does.

`make bench-costs` runs this, and writes docs/results/costs.md and experiments/costs.json, which the figures read.
`python -m benchmarks.costs reducer` measures one part anew and keeps the others. `python -m benchmarks.costs sorting`
only prints what sorting keys in any order adds to `plan`, whose keys are in order already, and keeps all costs.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import skewless as sk
from benchmarks.costs_page import page
from benchmarks.fixed_costs import fixed_costs
from benchmarks.messages import FEWER, told_and_merged
from benchmarks.python_aggregates import Add, Compare, Read
from benchmarks.slopes import Point, Slope, slopes
from skewless.aggregate import Measure
from skewless.core.arrays import Int64Array
from skewless.core.windows import Windows
from skewless.operators.panes.combine import Combine
from skewless.operators.panes.partials import FIRST_KEY
from skewless.operators.panes.worker import PanesWorker
from skewless.spark.aggregate import Aggregation
from skewless.spark.in_task import Pack
from skewless.spark.result import Result
from skewless.spark.staging import sent, worked
from skewless.split import Counts, Dalton, Splitter, partition
from skewless.workload import Zipf

PAGE, DATA = Path("docs/results/costs.md"), Path("experiments/costs.json")
ROUNDS = 5
TWEETS, NUMBERS = (100_000, 250_000, 400_000), (200_000, 500_000, 800_000)
FEW, MANY = 1_000, (100_000, 200_000)
MERGED = ((100_000, 1), (100_000, 2), (100_000, 4), (100_000, 8), (300_000, 1), (600_000, 1))  # keys, their fragments
WORKERS = 56  # the combiners of a cluster of 64 threads
COMPARED, ALIKE = 16_000, (4, 8, 16)  # rows, and those of them that have the same key
DECIDED = (10_000_000, 20_000_000, 30_000_000)
PLANNED, TUPLES = (10_000, 30_000, 100_000), 1_000_000
WINDOW = Windows.of("60 seconds", "60 seconds")
REST = "the quick brown fox jumps over the lazy dog again and again"

READ, ADD, BUILT_IN = "Python, reads tweets", "Python, adds numbers", "built-in sum"


@dataclass(frozen=True)
class Rows:
    """So many rows of so many keys, each key in so many tasks."""

    rows: int
    keys: int
    fragments: int
    frame: DataFrame

    @property
    def partials(self) -> int:
        """Partial results that the tasks emit."""
        return self.keys * self.fragments

    def on_disk(self, folder: Path) -> Rows:
        """The same, written and read again: then all are in one task."""
        self.frame.write.parquet(str(folder))
        return replace(self, frame=self.frame.sparkSession.read.parquet(str(folder)))

    def aggregation(self, measure: Measure) -> Aggregation:
        """An aggregation of them by word, in one window."""
        return Aggregation(self.frame, ("word",), {"n": measure}, WINDOW, "ts")

    def combined(self, measure: Measure) -> DataFrame:
        """What combiners send to reducers."""
        aggregation = self.aggregation(measure)
        return sent(aggregation.rows(), Combine(aggregation.layout(), ((FIRST_KEY + 1,),)), "")


def main() -> None:
    """Measure all parts, or those that are named, and write the page and the data."""
    if not PAGE.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-costs` does")
    wanted = sys.argv[1:] or list(PARTS | PRINTED)
    if unknown := set(wanted) - set(PARTS | PRINTED):
        sys.exit(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS | PRINTED)}")
    found = json.loads(DATA.read_text()) if DATA.exists() else {}
    for name in wanted:
        spark = sk.session(1, memory="4g", spark_sql_session_timeZone="UTC")
        folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
        try:
            measured = _plain((PARTS | PRINTED)[name](spark, folder))
        finally:
            spark.stop()
            shutil.rmtree(folder)
        print(json.dumps({name: measured}, indent=2), flush=True)
        if name in PARTS:
            found[name] = measured
    if set(wanted) & set(PARTS) and set(found) >= set(PARTS):
        DATA.write_text(json.dumps({"costs": _costs(found)} | {name: found[name] for name in PARTS}, indent=2) + "\n")
        PAGE.write_text(page(json.loads(DATA.read_text())))
        print(f"written to {PAGE} and {DATA}")


def _costs(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What the figures charge, of all that was measured."""
    read, add = found["combiner"][READ], found["combiner"][ADD]
    parse = {name: read["tuple"][name] - add["tuple"]["seconds"] for name in Slope._fields}
    return {
        "parse": {name: float(f"{value:.4g}") for name, value in parse.items()},
        "add": add["tuple"],
        "emit": add["emit"],
        **found["reducer"][ADD],
        "route": found["routes"]["dalton"],
        **found["decide"],
        **found["pair"],
        **found["plan"],
        **found["messages"],
        **found["fixed"],
    }


def _plain(each: Any) -> Any:
    """Slopes and numbers as JSON has them, to four digits."""
    if isinstance(each, Slope):
        return _plain(each._asdict())
    return {name: _plain(value) for name, value in each.items()} if isinstance(each, dict) else float(f"{each:.4g}")


def combiner(spark: SparkSession, folder: Path) -> dict[str, dict[str, Slope]]:
    """What combiners take, by aggregate."""
    return {
        READ: _combiner(spark, folder / "tweets", Read("tweet"), TWEETS, ()),
        ADD: _combiner(spark, folder / "numbers", Add("words"), NUMBERS, MANY),
        BUILT_IN: _combiner(spark, folder / "sums", sk.sum("words"), NUMBERS, MANY),
    }


def reducer(spark: SparkSession, folder: Path) -> dict[str, dict[str, Slope]]:
    """What reducers take, by aggregate."""
    return {
        ADD: _reducer(spark, folder / "numbers", Add("words")),
        BUILT_IN: _reducer(spark, folder / "sums", sk.sum("words")),
    }


def _combiner(
    spark: SparkSession, folder: Path, measure: Measure, rows: Sequence[int], keys: Sequence[int]
) -> dict[str, Slope]:
    """What it takes for a tuple and, if numbers of keys are given, to emit a partial result."""
    amounts = [(each, FEW) for each in rows] + [(rows[-1], each) for each in keys]
    inputs = [_rows(spark, *each, 1).on_disk(folder / str(number)) for number, each in enumerate(amounts)]
    points = [
        Point((each.rows, each.partials) if keys else (each.rows,), _run(partial(each.combined, measure)))
        for each in inputs
    ]
    return dict(zip(("tuple", "emit"), slopes(points, ROUNDS), strict=False))


def _reducer(spark: SparkSession, folder: Path, measure: Measure) -> dict[str, Slope]:
    """What it takes for a partial result, and for a key."""
    points = []
    for keys, fragments in MERGED:
        each = _rows(spark, keys * fragments, keys, fragments)
        lines = str(folder / f"{keys} in {fragments}")
        each.combined(measure).write.parquet(lines)
        points.append(Point((each.partials, each.keys), _run(_reduced(each, measure, spark.read.parquet(lines)))))
    return dict(zip(("partial", "key"), slopes(points, ROUNDS), strict=True))


def _reduced(each: Rows, measure: Measure, lines: DataFrame) -> Callable[[], DataFrame]:
    make = partial(PanesWorker, each.aggregation(measure).layout())
    word, value = T.StructField("word", T.StringType()), T.StructField("n", T.LongType())
    result = Result((word,), (value,), WINDOW, T.TimestampType())
    return lambda: worked(lines, make, result, timed=False)


def routes(spark: SparkSession, folder: Path) -> dict[str, Slope]:
    """What it takes to read a tuple, and to route it besides: to decide, to pack it and to exchange it."""
    inputs = [_rows(spark, rows, FEW, 1).on_disk(folder / str(rows)) for rows in NUMBERS]
    sources = [(each.rows, each.aggregation(Read("tweet")).rows()) for each in inputs]
    (read,) = slopes([Point((rows,), _run(lambda df=df: df)) for rows, df in sources], ROUNDS)
    found = {"read": read}
    splitters: dict[str, Splitter] = {
        "hash": sk.split.Hash(WORKERS),
        "dalton": Dalton(WORKERS, in_task=True),
        "bounded": sk.split.Bounded(WORKERS, in_task=True),
    }
    for name, splitter in splitters.items():
        (slope,) = slopes([Point((rows,), _run(_routed(df, splitter))) for rows, df in sources], ROUNDS)
        found[name] = Slope(*(each - read.seconds for each in slope))
    return found


def _routed(df: DataFrame, splitter: Splitter) -> Callable[[], DataFrame]:
    return lambda: df.mapInArrow(Pack(splitter), "owner int, rows binary").repartitionById(WORKERS, "owner")


def decide(_spark: SparkSession, _folder: Path) -> dict[str, Slope]:
    """What the decision alone takes, in a compiled loop on arrays."""
    router, points = Dalton(WORKERS), []
    for tuples in DECIDED:
        keys = Zipf(1.5, 100_000).take(tuples)
        points.append(Point((tuples,), partial(router.route, keys)))
    (slope,) = slopes(points, ROUNDS)
    return {"decide": slope}


def pair(spark: SparkSession, folder: Path) -> dict[str, Slope]:
    """What it takes to compare two texts of a key, as VOTE does, at the same number of rows."""
    points = []
    for alike in ALIKE:
        each = _rows(spark, COMPARED, COMPARED // alike, 1).on_disk(folder / str(alike))
        pairs = COMPARED * (alike - 1) / 2
        points.append(Point((pairs,), _run(partial(each.combined, Compare("name")))))
    (slope,) = slopes(points, ROUNDS)
    return {"pair": slope}


def plan(_spark: SparkSession, _folder: Path) -> dict[str, Slope]:
    """What it takes to plan the blocks of a key of a micro-batch (Prompt's Algorithm 2), the keys in order already."""
    return {"plan": _planned(in_order=True)}


def sorting(_spark: SparkSession, _folder: Path) -> dict[str, Slope]:
    """The same beside keys in any order, which are sorted by their counts first."""
    return {"in order already": _planned(in_order=True), "in any order": _planned(in_order=False)}


def _planned(*, in_order: bool) -> Slope:
    points = []
    for keys in PLANNED:
        seen = Counts.of(Zipf(0.6, keys).take(TUPLES))  # by falling count
        mixed = np.random.default_rng(1).permutation(len(seen.keys))
        distinct, counts = (each if in_order else each[mixed] for each in (seen.keys, seen.whole))

        def planned(distinct: Int64Array = distinct, counts: Int64Array = counts) -> None:
            for _ in range(20):  # a clock tick is long beside one plan
                order = (-counts).argsort(kind="stable")
                partition(distinct[order], counts[order], WORKERS)

        points.append(Point((20 * len(distinct),), planned))
    (slope,) = slopes(points, ROUNDS)
    return slope


def messages(_spark: SparkSession, _folder: Path) -> dict[str, Slope]:
    """What two partitioners that learn together take for a message, and their Q-table reducer for a round.

    A message takes longer the more tuples there were since the last one, as more keys were counted.
    """
    return {**told_and_merged(WORKERS), "tell of few": told_and_merged(WORKERS, FEWER)["tell"]}


def _rows(spark: SparkSession, rows: int, keys: int, fragments: int) -> Rows:
    """Rows in as many tasks as a key has fragments; if there is a row for each fragment, every task has every key."""
    number = F.col("id")
    word = F.format_string("word-%06d", number % keys)
    user = F.struct((number % 997).alias("id"), F.lit("somebody").alias("screen_name"))
    tweet = F.struct(
        F.lit("Wed Nov 18 13:23:13 +0000 2026").alias("created_at"),
        (F.lit(1_460_000_000_000_000_000) + number).alias("id"),
        F.concat_ws(" ", word, F.lit(REST)).alias("text"),
        user.alias("user"),
        F.lit("en").alias("lang"),
        (number % 13).alias("retweet_count"),
    )
    frame = spark.range(0, rows, 1, fragments).select(
        F.timestamp_micros(F.lit(1_700_000_000_000_000)).alias("ts"),
        word.alias("word"),
        F.to_json(tweet).alias("tweet"),
        F.lit(12).cast("long").alias("words"),
        F.substring(F.md5(number.cast("string")), 1, 8).alias("name"),
    )
    return Rows(rows, keys, fragments, frame)


def _run(make: Callable[[], DataFrame]) -> Callable[[], None]:
    return lambda: make().write.format("noop").mode("overwrite").save()


PARTS: dict[str, Callable[[SparkSession, Path], dict[str, Any]]] = {
    "combiner": combiner,
    "reducer": reducer,
    "routes": routes,
    "decide": decide,
    "pair": pair,
    "plan": plan,
    "messages": messages,
    "fixed": fixed_costs,
}
PRINTED: dict[str, Callable[[SparkSession, Path], dict[str, Any]]] = {"sorting": sorting}  # and not kept


if __name__ == "__main__":
    main()
