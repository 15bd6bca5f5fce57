"""Stages in a plan: rows are sent to workers, and workers run on what was sent."""

from __future__ import annotations

from pyspark.sql import DataFrame

from skewless.core.hashing import preimages
from skewless.operators.send import Sending
from skewless.operators.worker import Maker
from skewless.spark.observe import with_sent_observed
from skewless.spark.stage import LINES, Out, Run, RunAll, Send


def sent(rows: DataFrame, sending: Sending, stream: str) -> DataFrame:
    """The lines that tasks send for their rows; those of a stream are observed under its identity."""
    lines = rows.mapInArrow(Send(sending, owners_of(rows)), LINES)
    return with_sent_observed(lines, stream) if rows.isStreaming else lines.drop("note")


def worked(lines: DataFrame, make: Maker, out: Out, *, timed: bool, mode: str = "append") -> DataFrame:
    """The rows that workers give for lines.

    Parameters
    ----------
    lines
        What was sent to the workers.
    make
        Makes the workers.
    out
        What becomes of their rows.
    timed
        Whether the workers of a stream go by the watermark.
    mode
        Spark's output mode for a stream.
    """
    owners, schema = owners_of(lines), out.schema(streaming=lines.isStreaming)
    if not lines.isStreaming:
        return lines.repartition(len(owners), "owner").mapInArrow(RunAll(make, out, owners), schema)
    run = Run(make, out, owners, timed=timed)
    return lines.groupBy("owner").transformWithStateInPandas(run, schema, mode, "eventtime" if timed else "none")


def owners_of(df: DataFrame) -> tuple[int, ...]:
    """For each partition of state, the value that Spark shuffles to it."""
    return tuple(preimages(shuffle_partitions(df)).tolist())


def shuffle_partitions(df: DataFrame) -> int:
    """How many partitions a shuffle of this session has."""
    partitions = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    assert partitions is not None  # Spark has a default
    return int(partitions)
