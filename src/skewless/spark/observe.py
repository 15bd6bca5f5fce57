"""Measure: what a micro-batch observes of itself, in the same job, in the JVM; and what the driver reads from it.

An observation bears the identity of its stream: `skewless-1f3a keys` counts the most frequent keys of stream 1f3a,
`skewless-1f3a sent` what its tasks sent, `skewless-1f3a loads` the rows of each worker, and `skewless-1f3a told` what
the tasks that route have learned. Where the number of active workers follows the load, it is observed with one of
these, or as `skewless-1f3a active`.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

from skewless.control.loop import Observed
from skewless.core.counts import Counts
from skewless.core.hashing import SEED
from skewless.core.home import homes
from skewless.spark.route import CONTROL, KEY, TOLD, WORKER, home_of

SAMPLE = 8
"""One row in so many of a stream goes into the sketch of its keys, which costs more than all else that is observed."""
FIRST = 1 << 16
"""So many rows of each partition of a batch are counted before counting goes over to a sample."""
MOST_WATCHED = 4096
"""No more keys than that are observed, whatever a placer asks for: they travel with every progress report."""
MOST_TOLD = 1 << 16
"""So many keys of a batch are told apart at most where all of them are counted, so that the driver can hold them."""
_FIRST, _SAMPLED = "__skewless_first", "__skewless_sampled"


def watched(workers: int, asked: int = 0) -> int:
    """How many keys are observed: more than can be hot, and as many as are asked for, within reason."""
    return max(min(1024, max(64, 8 * workers)), min(MOST_WATCHED, asked))


def with_keys_observed(
    df: DataFrame, stream: str, workers: int, asked: int = 0, *, distinct: bool = False
) -> DataFrame:
    """The rows of a stream that have their `KEY`, with their most frequent keys observed: `asked` of them or more.

    With `distinct`, it is also observed about how many keys the sample has: enough to know when there are more.
    """
    # A key that is left out is null, which the sketch counts apart and fast.
    sampled = df.withColumn(_SAMPLED, F.when(F.rand(SEED) < 1 / SAMPLE, F.col(KEY)))
    top = _top(watched(workers, asked), _SAMPLED, SAMPLE)
    if distinct:
        top.append(F.approx_count_distinct(_SAMPLED).alias("distinct"))
    return sampled.observe(_name(stream, "keys"), *top, *_active(df)).drop(_SAMPLED)


def with_loads_observed(df: DataFrame, stream: str, workers: int) -> DataFrame:
    """The rows of a stream that have their `WORKER`, with the rows of each worker observed."""
    # With as many bins as there are workers, each has one of its own, and the counts are exact.
    bins = F.histogram_numeric(F.col(WORKER).cast("double"), F.lit(max(2, workers)))
    return df.observe(_name(stream, "loads"), F.count(F.lit(1)).alias("rows"), bins.alias("bins"), *_active(df))


def with_active_observed(lines: DataFrame, stream: str) -> DataFrame:
    """Packed rows of a stream, with the number of workers that they were routed to observed."""
    return lines.observe(_name(stream, "active"), *_active(lines))


def with_sent_observed(lines: DataFrame, stream: str) -> DataFrame:
    """The lines that a stream's tasks send, with the version they went by and the tasks' notes observed."""
    notes = [F.max("control").alias("control"), F.collect_list("note").alias("notes")]
    return lines.observe(_name(stream, "sent"), *notes).drop("note")


def with_told_observed(df: DataFrame, stream: str) -> DataFrame:
    """The rows of a stream, with what their tasks told observed: one text of each task, in the column `TOLD`."""
    return df.observe(_name(stream, "told"), F.collect_list(TOLD).alias("told")).drop(TOLD)


def with_rows_observed(df: DataFrame, stream: str) -> DataFrame:
    """The rows of a stream that Spark's own operators aggregate, counted."""
    return df.observe(_name(stream, "rows"), F.count(F.lit(1)).alias("rows"))


def observed(progress: StreamingQueryProgress, stream: str) -> Observed | None:
    """What a micro-batch observed of a stream; None if it had no rows."""
    kinds = {"keys": "rows", "sent": "notes", "loads": "rows", "rows": "rows", "told": "told"}
    found = {kind: progress.observedMetrics.get(_name(stream, kind)) for kind in kinds}
    if not any(each is not None and each[kinds[kind]] for kind, each in found.items()):
        return None
    keys, sent, loads, _rows, told = found.values()
    active = progress.observedMetrics.get(_name(stream, "active"))
    controls = [each["control"] for each in (*found.values(), active) if each is not None and "control" in each]
    return Observed(
        str(progress.id),
        str(progress.runId),
        progress.batchId,
        counts_of(keys) if keys is not None else None,
        {round(bin_["x"]): round(bin_["y"]) for bin_ in loads["bins"]} if loads is not None else None,
        next((control for control in controls if control is not None), None),
        tuple(tuple(note) for note in sent["notes"]) if sent is not None else (),
        _watermark(progress),
        tuple(told["told"]) if told is not None else (),
        progress.numInputRows,
        keys["distinct"] if keys is not None and "distinct" in keys else None,
        _moment(progress.timestamp),
        _seconds(progress, "triggerExecution"),
        _seconds(progress, "addBatch"),
    )


def stream_of(name: str) -> str | None:
    """The identity of the stream whose observation this is; None if it is somebody else's."""
    prefix, _, kind = name.partition(" ")
    return prefix.removeprefix("skewless-") if prefix.startswith("skewless-") and kind else None


def all_counts(rows: DataFrame, workers: int) -> Counts | None:
    """The keys of batch rows that have their `KEY`, counted exactly; None without rows.

    The most frequent keys are told apart, and of the others the driver gets the rows and the keys of each home.
    """
    counted = rows.groupBy(KEY).agg(F.count(F.lit(1)).alias("rows")).persist()
    try:
        top = counted.orderBy(F.desc("rows"), KEY).limit(MOST_TOLD).toArrow()
        at_home = counted.groupBy(home_of(workers).alias("home")).agg(F.sum("rows"), F.count(F.lit(1))).collect()
    finally:
        counted.unpersist()
    if not top.num_rows:
        return None
    keys, counts = np.array(top[KEY]), np.array(top["rows"])
    told = homes(keys, workers)
    tail, others = -np.bincount(told, counts, workers).astype(np.int64), -np.bincount(told, minlength=workers)
    for home, rows_there, keys_there in at_home:
        tail[home] += rows_there
        others[home] += keys_there
    total, distinct = (sum(row[field] for row in at_home) for field in (1, 2))
    return Counts(keys, counts, total, tail, distinct, others)


def top_counts(rows: DataFrame, workers: int, asked: int = 0) -> Counts | None:
    """The most frequent keys of batch rows that have their `KEY`, in one pass; None without rows.

    The first rows of each partition are all counted, and of the others a sample, so that small batches are counted
    exactly and large ones fast.
    """
    place = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))  # of a row in its partition
    rows = rows.select(KEY, (place < FIRST).alias(_FIRST)).filter(F.col(_FIRST) | (F.rand(SEED) < 1 / SAMPLE))
    rows = rows.select(
        F.when(F.col(_FIRST), F.col(KEY)).alias(_FIRST), F.when(~F.col(_FIRST), F.col(KEY)).alias(_SAMPLED)
    )
    most, parts = watched(workers, asked), {_FIRST: 1, _SAMPLED: SAMPLE}
    tops = [F.struct(*_top(most, key, sample, F.count(key) * sample)).alias(key) for key, sample in parts.items()]
    found = [counts for counts in map(counts_of, rows.agg(*tops).collect()[0]) if counts is not None]
    return Counts.sum(found) if found else None


def counts_of(row: Row) -> Counts | None:
    """The counts in what was observed of keys; None without rows."""
    if not row["rows"]:
        return None
    top = [(item["item"], item["count"]) for item in row["top"] if item["item"] is not None]
    keys = np.array([key for key, _ in top], dtype=np.int64)
    # The sketch counts too high where it is unsure, though never by much.
    counts = np.array([count for _, count in top], dtype=np.int64) * row["sample"]
    return Counts(keys, counts, max(int(row["rows"]), int(counts.sum())))


def _top(most: int, key: str, sample: int, rows: Column | None = None) -> list[Column]:
    """How many rows there are, and the most frequent values of `key`."""
    top = F.expr(f"approx_top_k({key}, {most}, {16 * most})")
    rows = F.count(F.lit(1)) if rows is None else rows
    return [rows.alias("rows"), top.alias("top"), F.lit(sample).alias("sample")]


def _name(stream: str, kind: str) -> str:
    return f"skewless-{stream} {kind}"


def _active(df: DataFrame) -> list[Column]:
    """The number of active workers of rows that have it."""
    return [F.max(CONTROL).alias("control")] if CONTROL in df.columns else []


def _watermark(progress: StreamingQueryProgress) -> int | None:
    text = progress.eventTime.get("watermark")
    return _moment(text) if text else None


def _moment(text: str) -> int:
    """A moment as Spark writes it, in microseconds."""
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e6)


def _seconds(progress: StreamingQueryProgress, part: str) -> float | None:
    """How long a part of the micro-batch took, as far as Spark tells it."""
    milliseconds = progress.durationMs.get(part)
    return None if milliseconds is None else milliseconds / 1000
