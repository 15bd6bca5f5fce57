"""Routing as a Spark expression: no Python on the path of a row."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.hashing import SEED

KEY = "__skewless_key"  # the hash of a row's key columns
WORKER = "__skewless_worker"
LANES = "__skewless_lanes"
POLICY_KEY = "__skewless_policy_key"


def column(df: DataFrame, name: str) -> Column:
    """The column of that very name, dots and spaces included; a missing one is refused with the names there are."""
    if name not in df.columns:
        raise SkewlessError(f"no column {name!r}; there are {', '.join(df.columns)}")
    return df["`" + name.replace("`", "``") + "`"]


def with_key(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Add the hash of the key columns: what learners know a key by."""
    return df.withColumn(KEY, F.xxhash64(*[column(df, name) for name in keys]))


def with_worker(df: DataFrame, policy: DataFrame, workers: int, *, shuffle: bool = False) -> DataFrame:
    """Add the worker of each row of a frame that has its `KEY`: one of the key's lanes, or its home.

    The home is that of `skewless.home`: `pmod(xxhash64(key), workers)`.
    """
    lanes = policy.where("key is not null").select(F.col("key").alias(POLICY_KEY), F.col("lanes").alias(LANES))
    joined = df.join(F.broadcast(lanes), F.col(KEY) == F.col(POLICY_KEY), "left")
    chance = F.rand(SEED)
    elsewhere = chance * workers if shuffle else F.pmod(F.xxhash64(KEY), F.lit(workers))
    lane = F.element_at(LANES, (chance * F.size(LANES)).cast("int") + 1)
    worker = F.when(F.col(LANES).isNull(), elsewhere.cast("int")).otherwise(lane)
    return joined.withColumn(WORKER, worker).drop(LANES, POLICY_KEY)


def exchange(df: DataFrame, workers: int) -> DataFrame:
    """One Spark partition for each worker."""
    return df.repartitionById(workers, WORKER).drop(WORKER)
