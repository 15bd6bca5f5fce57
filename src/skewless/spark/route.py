"""Routing as a Spark expression: no Python on the path of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.control.workers_file import WorkersFile
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED
from skewless.core.policy import Policy
from skewless.place import Placement

KEY = "__skewless_key"  # the hash of a row's key columns
WORKER = "__skewless_worker"
LANES = "__skewless_lanes"
POLICY_KEY = "__skewless_policy_key"
CONTROL = "__skewless_control"
TOLD = "__skewless_told"  # what the task of a row has learned, in one of its rows
MOST_BITS = 12
"""By which a hot key is found in an expression: longer tables make the plan larger than a join is slow."""


def column(df: DataFrame, name: str) -> Column:
    """The column of that very name, dots and spaces included; a missing one is refused with the names there are."""
    if name not in df.columns:
        raise SkewlessError(f"no column {name!r}; there are {', '.join(df.columns)}")
    return df["`" + name.replace("`", "``") + "`"]


def delay_of(df: DataFrame, time: str) -> int | None:
    """The delay of the watermark that a stream's column of time has, in milliseconds; None if it has none."""
    delay = df.schema[time].metadata.get("spark.watermarkDelayMs") if df.isStreaming else None
    return None if delay is None else int(delay)


def with_control(df: DataFrame, uri: str | None) -> DataFrame:
    """Add the control of the micro-batch as a last column, from the file at this URI; 0 without one.

    Every micro-batch reads the file anew, so that all its rows have the same. Rows for which there is nothing to read
    have none, which whoever reads them refuses: a join that dropped them would lose them.
    """
    if uri is None:
        return df.withColumn(CONTROL, F.lit(0).cast("long"))
    file = df.sparkSession.read.schema("control long").json(uri).select(F.col("control").alias(CONTROL))
    return df.join(F.broadcast(file), F.lit(True), "left")


def with_active(df: DataFrame, file: WorkersFile) -> DataFrame:
    """Add the number of workers that are active in the micro-batch as a last column; the query fails without one."""
    gone = F.raise_error(
        F.lit(f"the number of workers at {file.shown(file.name)} is damaged; call agg(...) or repartition() again")
    )
    return with_control(df, file.path).withColumn(CONTROL, F.coalesce(CONTROL, gone))


def with_key(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add the hash of the key columns: what learners know a key by."""
    return df.withColumn(KEY, F.xxhash64(*[column(df, name) for name in keys]))


def with_worker(df: DataFrame, policy: DataFrame, workers: int | Column, *, shuffle: bool = False) -> DataFrame:
    """Add the worker of each row of a frame that has its `KEY`: one of the key's lanes, or its home.

    The home is that of `skewless.core.home`: `pmod(xxhash64(key), workers)`. Where the number of workers follows the
    load, a policy may still be for more of them: what would go to a worker that is not active goes to one that is.
    """
    lanes = policy.select(F.col("key").alias(POLICY_KEY), F.col("lanes").alias(LANES))
    joined = df.join(F.broadcast(lanes), F.col(KEY) == F.col(POLICY_KEY), "left")
    lane = F.get(F.col(LANES), (F.rand(SEED) * F.size(LANES)).cast("int"))
    if isinstance(workers, Column):
        lane = F.pmod(lane, workers).cast("int")
    worker = F.when(F.col(LANES).isNull(), _elsewhere(workers, shuffle)).otherwise(lane)
    return joined.withColumn(WORKER, worker).drop(LANES, POLICY_KEY)


def with_planned_worker(df: DataFrame, policy: Policy, *, shuffle: bool = False) -> DataFrame | None:
    """The same for a policy that will not change, without a join: its table becomes part of the expression.

    A hot key is found by some bits of its hash, chosen so that no two hot keys have the same; None if there are no such
    bits, as happens with hundreds of hot keys.
    """
    elsewhere = _elsewhere(policy.workers, shuffle)
    if not len(policy):
        return df.withColumn(WORKER, elsewhere)
    found = perfect(policy.keys)
    if found is None:
        return None
    shift, places = found
    size = len(places)
    keys, starts, lengths = (np.zeros(size, dtype=np.int64) for _ in range(3))
    full = places >= 0
    keys[full], starts[full] = policy.keys[places[full]], policy.offsets[:-1][places[full]]
    lengths[full] = np.diff(policy.offsets)[places[full]]
    slot = F.shiftrightunsigned(KEY, shift).bitwiseAND(F.lit(size - 1)).cast("int")
    start, length = (F.get(_array(column, "int"), slot) for column in (starts, lengths))
    hot = (length > 0) & (F.get(_array(keys, "long"), slot) == F.col(KEY))
    lane = F.get(_array(policy.lanes, "int"), start + (F.rand(SEED) * length).cast("int"))
    return df.withColumn(WORKER, F.when(hot, lane).otherwise(elsewhere))


def owner_column(placement: Placement) -> Column:
    """The worker that owns each row's key, by its `KEY`, for a placement that will not change."""
    slot = F.pmod(KEY, F.lit(placement.tail_slots)).cast("int")
    tail = F.get(_array(placement.tail, "int"), slot)
    if not len(placement.keys):
        return tail
    found = perfect(placement.keys)
    if found is None:  # hundreds of keys: Spark looks them up one after the other
        pairs = zip(placement.keys.tolist(), placement.own.tolist(), strict=True)
        own = F.create_map(*[F.lit(value) for pair in pairs for value in pair])
        return F.coalesce(F.try_element_at(own, F.col(KEY)), tail)
    shift, places = found
    bits = F.shiftrightunsigned(KEY, shift).bitwiseAND(F.lit(len(places) - 1)).cast("int")
    keys, workers = np.zeros(len(places), dtype=np.int64), np.full(len(places), -1, dtype=np.int64)
    full = places >= 0
    keys[full], workers[full] = placement.keys[places[full]], placement.own[places[full]]
    worker = F.get(_array(workers, "int"), bits)
    return F.when((worker >= 0) & (F.get(_array(keys, "long"), bits) == F.col(KEY)), worker).otherwise(tail)


def perfect(keys: Int64Array) -> tuple[int, Int64Array] | None:
    """A shift of hashes after which their last bits are all different, and the hash for each value of those bits.

    >>> perfect(np.array([0b100, 0b000, 0b110]))
    (1, array([ 1, -1,  0,  2]))
    """
    for bits in range(max(1, int(len(keys) - 1).bit_length()), MOST_BITS + 1):
        for shift in range(64 - bits):
            slots = (keys.view(np.uint64) >> np.uint64(shift)).astype(np.int64) & ((1 << bits) - 1)
            if len(np.unique(slots)) == len(keys):
                places = np.full(1 << bits, -1, dtype=np.int64)
                places[slots] = np.arange(len(keys))
                return shift, places
    return None


def _array(values: Int64Array | Int32Array, kind: str) -> Column:
    """A constant array. Spark reads it from one text when it optimises the plan; `lit` hands over number by number."""
    return F.split(F.lit(",".join(map(str, values.tolist()))), ",").cast(f"array<{kind}>")


def home_of(workers: int | Column) -> Column:
    """The home of each row's key, by its `KEY`: that of `skewless.core.home`."""
    return F.pmod(F.xxhash64(KEY), F.lit(workers)).cast("int")


def _elsewhere(workers: int | Column, shuffle: bool) -> Column:
    """The worker of a key that is not hot."""
    return (F.rand(SEED) * workers).cast("int") if shuffle else home_of(workers)


def exchange(df: DataFrame, workers: int) -> DataFrame:
    """One Spark partition for each worker."""
    return df.repartitionById(workers, WORKER).drop(WORKER)
