"""Checks of what the calls are asked for, before anything runs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from skewless import place as placers
from skewless import split as splitters
from skewless.aggregate import Measure
from skewless.aggregate.measure import TIME
from skewless.core.errors import SkewlessError
from skewless.elastic import Range
from skewless.operators.process.calls import GROUP
from skewless.operators.process.processor import Processor, SlotProcessor
from skewless.place import Placer
from skewless.spark.route import column
from skewless.spark.staging import shuffle_partitions
from skewless.spark.types import structure
from skewless.split import Splitter

SPLITS = ("auto", "local", "spark", *splitters.NAMES)
PLACES = ("auto", "hash", *(name for name in placers.NAMES if name != "uniform"))  # "hash" is its name here


def new_identity() -> str:
    """The identity of a stream, made by the call that ends its description."""
    return uuid.uuid4().hex[:12]


def check_workers(workers: object, interval: str | None = None) -> int | Range | None:
    """A number of workers, a range that follows the load, or None."""
    if isinstance(workers, Range):
        if interval is not None:
            raise SkewlessError(f"interval is {interval!r}, and the range has {workers.interval!r}; give it once")
        return workers
    if isinstance(workers, (tuple, list)):
        if len(workers) != 2:
            raise SkewlessError(f"workers is {workers!r}; give a number, or the fewest and the most, such as (2, 16)")
        if interval is None:
            raise SkewlessError(
                f"workers is {workers!r}, a range that follows the load, and no interval= says how often a micro-batch "
                'begins; give that of the query\'s trigger, such as interval="1 second"'
            )
        return Range(workers[0], workers[1], interval)
    if interval is not None:
        raise SkewlessError(
            f"interval is {interval!r}, by which a range of workers follows the load, and workers is {workers!r}; give "
            "a range such as workers=(2, 16), or leave interval= out"
        )
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise SkewlessError(f"workers is {workers!r}; give at least 1, or None for Spark's shuffle partitions")
    return workers


def check_fixed(workers: object) -> int | None:
    """A number of workers, or None, for windows that are given to workers as a whole."""
    if isinstance(workers, (tuple, list, Range)):
        shown = f"{workers.least, workers.most}" if isinstance(workers, Range) else f"{workers!r}"
        raise SkewlessError(
            f"workers is {shown}, a range that follows the load; whole windows are assigned to one number of workers, "
            "which stays as it is at the start: give a number, or None for Spark's shuffle partitions"
        )
    fixed = check_workers(workers)
    assert not isinstance(fixed, Range)  # or it was refused
    return fixed


def check_stays(asked: Range | None) -> None:
    """Refuse workers that follow the load where keys stay where they are."""
    if asked is not None:
        raise SkewlessError(
            f"place is 'hash', which places keys once and for ever, and {asked} follow the load; give place='auto', or "
            "one number of workers"
        )


def check_families(split: object, place: object) -> None:
    """Refuse words that name no splitter and no placer."""
    if not isinstance(split, Splitter) and split not in SPLITS:
        hint = "; to keep keys whole give place=" if split in PLACES or isinstance(split, Placer) else ""
        raise SkewlessError(f"no split {split!r}; there are {', '.join(SPLITS)}{hint}")
    if not isinstance(place, Placer) and place not in PLACES:
        hint = "; to split hot keys give split=" if place in SPLITS or isinstance(place, Splitter) else ""
        raise SkewlessError(f"no place {place!r}; there are {', '.join(PLACES)}{hint}")


def check_partitions(df: DataFrame, workers: int, what: str) -> None:
    """Refuse more workers than there are partitions of state."""
    partitions = shuffle_partitions(df)
    if workers > partitions:
        raise SkewlessError(
            f"workers is {workers}; {what} can have up to {partitions}, the shuffle partitions: "
            "set spark.sql.shuffle.partitions first for more"
        )


def check_time(df: DataFrame, time: str) -> None:
    """Refuse a time column that is no time."""
    column(df, time)
    kind = df.schema[time].dataType
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
        raise SkewlessError(
            f"the time column {time!r} is of type {kind.simpleString()}; make it a timestamp first: "
            f'df.withColumn("{time}", F.to_timestamp("{time}"))'
        )


def check_measures(df: DataFrame, aggregates: Mapping[str, Measure], taken: Sequence[str]) -> dict[str, Measure]:
    """Aggregates by name; `taken` are the names that the result has already."""
    if not aggregates:
        raise SkewlessError("what to aggregate? Name at least one, such as agg(n=sk.count()); folder= is not one")
    for name, measure in aggregates.items():
        if not isinstance(measure, Measure):
            raise SkewlessError(f"{name}={measure!r} is not an aggregate; write one such as {name}=sk.sum('column')")
        if name in taken:
            raise SkewlessError(f"the result has a column {name!r} already; give the aggregate another name")
        for each in measure.columns:
            if each != TIME:
                column(df, each)
    return dict(aggregates)


def check_schema(schema: str | T.StructType, taken: Sequence[str]) -> T.StructType:
    """The columns that a function or processor gives; `taken` are the names that the result has already."""
    result = structure(schema)
    for name in result.names:
        if name in taken:
            raise SkewlessError(f"the result has a column {name!r} already; leave it out of the schema")
    return result


def check_processor(df: DataFrame, keys: Sequence[str], processor: Any, schema: T.StructType) -> T.StructType:
    """The fields that a processor keeps of a key; `schema` has the columns that it gives."""
    if not isinstance(processor, Processor):
        raise SkewlessError(f"{processor!r} is no processor; subclass sk.Processor and give an instance of it")
    declared = getattr(processor, "state", None)
    if not isinstance(declared, str):
        raise SkewlessError(f'{type(processor).__name__} declares no state; add state = "total long" to the class')
    fields = structure(declared)
    twice = sorted({name for name in fields.names if fields.names.count(name) > 1})
    if twice:
        raise SkewlessError(f"the state has two fields {twice[0]!r}; give one another name")
    if not isinstance(processor, SlotProcessor):
        return fields
    for name in fields.names:
        if name == "timer" or name in keys:
            has = "is the key's timer" if name == "timer" else "is a key column"
            raise SkewlessError(
                f"a state field is named {name!r}, which {has} in the table of states; rename the field"
            )
    if GROUP in df.columns:
        raise SkewlessError(
            f"the rows have a column {GROUP!r}, which numbers the keys in what process_slot is given; rename it first: "
            f'df.withColumnRenamed("{GROUP}", "...")'
        )
    if GROUP in schema.names:
        raise SkewlessError(
            f"the schema has a column {GROUP!r}, which numbers the keys in what process_slot gives; rename the column"
        )
    return fields
